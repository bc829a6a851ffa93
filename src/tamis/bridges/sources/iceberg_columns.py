"""Detects that files of a followed Iceberg table may hold other columns than the parts over them say.

A part knows the columns of the schema under which it was taken. Two changes in Iceberg give older files other columns:
a dropped column comes back under its id, and, in files without field ids, a name comes to mean another column. Parts
over such files have to be taken again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tamis.bridges.sources.source_table import SourceTable
from tamis.core.types import Schema
from tamis.storage.commit_log import Head, Source

NAME_MAPPING = "name_mapping"
"""The property of a followed source that has the name mapping by which files without field ids were read."""

BARE_NAMES = "bare_names"
"""The property of a followed source that lists the names of all fields that files without field ids held.

None: there was no such file. Sources that older releases adopted lack the property.
"""

Mapped = Mapping[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class KnownColumns:
    """What a table knows of the columns of the Iceberg table that it follows."""

    schema: Schema
    older: tuple[Schema, ...]
    highest_id: int
    """The highest column id that the source had given."""
    mapping: Mapped
    bare_names: frozenset[str] | None
    """As in ``BARE_NAMES``."""
    is_recorded: bool
    """Whether the release that took the files recorded the highest id, the mapping and the names."""
    column_names: Mapping[int, str]
    """As in ``Source``."""

    @staticmethod
    def of(source: Source, head: Head) -> KnownColumns:
        assert head.schema is not None
        held = source.properties.get(BARE_NAMES)
        return KnownColumns(
            head.schema,
            head.schemas[:-1],
            head.highest_column_id,
            {int(i): tuple(names) for i, names in (source.properties.get(NAME_MAPPING) or {}).items()},
            None if held is None else frozenset(held),
            BARE_NAMES in source.properties,
            source.column_names,
        )

    def is_stale(self, now: SourceTable) -> bool:
        """Return whether parts may have to be taken again before they are read under the columns of ``now``."""
        return bool(self.returned_ids(now.schema)) or self.names_moved(now)

    def returned_ids(self, schema: Schema) -> frozenset[int]:
        """Return the ids of columns that the known schema lacks, and that older files may hold all the same."""
        gained = (i for i in schema.paths if i not in self.schema.paths)
        return frozenset(i for i in gained if i <= self.highest_id or not self.is_recorded)

    def names_moved(self, now: SourceTable) -> bool:
        """Return whether a file without ids may hold a column under another name than before."""
        if not self.is_recorded:
            return bool(now.name_mapping or self.column_names)
        if self.bare_names is None:
            return False
        return any(self._moved(i, now.schema, now.name_mapping) for i in now.schema.paths)

    def _moved(self, identifier: int, schema: Schema, mapping: Mapped) -> bool:
        assert self.bare_names is not None
        names = _file_names(identifier, schema, mapping)
        if identifier not in self.schema.by_id:
            return not names.isdisjoint(self.bare_names) or any(identifier in known.by_id for known in self.older)
        before = _file_names(identifier, self.schema, self.mapping)
        own, was = schema.by_id[identifier].name, self.schema.by_id[identifier].name
        return not before <= names or not names - before <= ({own} if own != was else set())


def _file_names(identifier: int, schema: Schema, mapping: Mapped) -> set[str]:
    """Return the names that a column may have in files without ids."""
    if mapping:
        return set(mapping.get(identifier, ()))
    return {schema.by_id[identifier].name}


def known_names(
    before: Mapping[str, Any], bare_names: Iterable[str] | None, table: SourceTable, *, all_read: bool
) -> dict[str, Any]:
    """Return the properties that record the names after a version of the source.

    ``before`` are the properties until then, ``bare_names`` is what its files without ids held (None: all have ids),
    ``all_read`` says that these are all files of the table.
    """
    if not all_read and BARE_NAMES not in before:  # an older release did not look at the files
        return {}
    held = None if all_read else before[BARE_NAMES]
    both = None if held is None and bare_names is None else sorted({*(held or ()), *(bare_names or ())})
    mapping = {str(i): list(names) for i, names in table.name_mapping.items()}
    return {BARE_NAMES: both, NAME_MAPPING: None if both is None else mapping}
