"""The foreign tables whose files are parts of a table, as its head names them.

Invariant: a part of a source is only read: no path below a source's root is ever written or deleted. The head never
holds a credential: whoever opens the table gives the options of the source's store (``source.…``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tamis.errors import CorruptData
from tamis.storage.object_store.storage_options import is_storage_option

EXTERNAL_COLUMNS = (
    "source",  # string: the id of the source that the file belongs to; NULL: the table's own file
    "constants",  # string: JSON, by column id the value of a column that the file does not hold
    "etag",  # string: as the store named the file's state; NULL: unknown
    "modified_micros",  # int64: when the file was written, as the store says; NULL: unknown
)
"""The manifest columns of parts that lie in a source, beside ``PART_COLUMNS``."""

NO_EXTERNAL = pa.schema(
    [("source", pa.string()), ("constants", pa.string()), ("etag", pa.string()), ("modified_micros", pa.int64())]
)


@dataclass(frozen=True, slots=True)
class Source:
    """A foreign table of which parts are read.

    ``column_names`` gives, by column id, the name in the files where it is not that of the part's schema; "" for a
    column that no file has by its name.
    """

    source_id: str
    kind: str
    """``parquet``, ``delta`` or ``iceberg``."""
    root: str
    """The URL that the paths of its parts are below."""
    column_names: Mapping[int, str] = field(default_factory=dict)
    by_field_id: bool = False
    """Whether files carry the column ids as Parquet field ids; a file without any is read by name."""
    properties: Mapping[str, Any] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        """Executors get no ``properties``: they read files and need nothing else."""
        return Source, (self.source_id, self.kind, self.root, dict(self.column_names), self.by_field_id)


def source_to_json(source: Source) -> dict[str, Any]:
    """Return the JSON form; a property that may be a credential by its name is left out, at any depth."""
    return {
        "source_id": source.source_id,
        "kind": source.kind,
        "root": source.root,
        "column_names": {str(column): name for column, name in source.column_names.items()},
        "by_field_id": source.by_field_id,
        "properties": _without_credentials(source.properties),
    }


def _without_credentials(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = {key: held for key, held in value.items() if not (is_storage_option(key) or _SECRET.search(str(key)))}
        return {key: _without_credentials(held) for key, held in kept.items()}
    return [_without_credentials(item) for item in value] if isinstance(value, list | tuple) else value


_SECRET = re.compile("secret|password|passwd|token|credential|(access|account|service|private|sas).?key", re.IGNORECASE)


def source_from_json(value: dict[str, Any]) -> Source:
    return Source(
        source_id=value["source_id"],
        kind=value["kind"],
        root=value["root"],
        column_names={int(column): name for column, name in value.get("column_names", {}).items()},
        by_field_id=value.get("by_field_id", False),
        properties=value.get("properties", {}),
    )


def source_named(sources: Iterable[Source], source_id: str, path: str) -> Source:
    """Return the source of a part. Raises ``CorruptData`` (``UNKNOWN_SOURCE``) if the head does not name it."""
    for source in sources:
        if source.source_id == source_id:
            return source
    raise CorruptData(
        f"The file {path} belongs to the source {source_id}, which the table's head does not name.",
        code="UNKNOWN_SOURCE",
        name=path,
        remedy="Restore the table's log from a backup.",
    )
