"""Checks that no column of a followed Delta table has the name of another one that its live files hold.

Without a column mapping, Delta's readers find a column in a file by its name alone, while parts here hold column ids.
A column that got a new id, since its type changed or since it was dropped and came back, would be NULL in older files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tamis.core.types import Schema
from tamis.errors import InvalidInput

Names = tuple[str, ...]


def check_reused_names(schema: Schema, older: Iterable[Schema], names: Mapping[int, str], root: str) -> None:
    """Raise ``InvalidInput`` (``SOURCE_LAYOUT``) if a column has the name that an older schema has for another one.

    ``older`` are the schemas of the live parts. ``names`` holds, by column id, the name in the files where it is not
    that of the schema.
    """
    current = dict(_named_columns(schema, names))
    for before in older:
        for name, column_id in _named_columns(before, names):
            if current.get(name, column_id) != column_id:
                shown = ".".join(name)
                raise InvalidInput(
                    f"Column {shown!r} of the source {root} was dropped and added again, or has another type, "
                    "while files that hold it by its name remain.",
                    code="SOURCE_LAYOUT",
                    name=root,
                    remedy="Adopt it again, as a new table.",
                )


def _named_columns(schema: Schema, names: Mapping[int, str]) -> Iterator[tuple[Names, int]]:
    """Yield the path of names in the files, and the id, of each column."""
    for path, field in schema.walk():
        yield tuple(names.get(i, schema.by_id[i].name) for i in path), field.id
