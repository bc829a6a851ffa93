"""Columns of followed tables that older files hold, and that the schemas of the parts over them lack.

Without a column mapping, Delta's readers find a column in a file by its name alone, while parts here hold column ids.
A column that got a new id, since it was dropped and came back or its type changed to one that is no wider, would be
NULL in older files that hold its name. In Iceberg, a dropped column may come back under its own id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tamis.core.types import Schema
from tamis.errors import InvalidInput

EXTRA_NAMES = "extra_names"
"""The property of a followed Delta source that lists the names that files held, and the schema lacked at that time."""

Path = tuple[str, ...]


def added_names(known: Iterable[Sequence[str]], more: Iterable[Sequence[str]]) -> list[list[str]]:
    """Return both lists of names as ``EXTRA_NAMES`` holds them."""
    return [list(path) for path in sorted({tuple(path) for path in (*known, *more)})]


def reused_schemas(schema: Schema, older: Iterable[Schema], names: Mapping[int, str]) -> dict[int, str]:
    """Return the older schemas that have another column under the name of one of ``schema``, each with such a name.

    ``names`` holds, by column id, the name in the files where it is not that of the schema. Names that differ in case
    are one, as for Spark.
    """
    current = dict(_named_columns(schema, names))
    found: dict[int, str] = {}
    for before in older:
        others = (path for path, i in _named_columns(before, names) if current.get(path, i) != i)
        if (path := next(others, None)) is not None:
            found[before.schema_id] = ".".join(path)
    return found


def schemas_without_returned(schemas: Sequence[Schema], returned: frozenset[int]) -> list[int]:
    """Return the ids of schemas that lack a column which the newest schema has and their files may hold.

    These are the columns ``returned``, and those that an earlier schema had.
    """
    newest, seen, stale = schemas[-1].paths.keys(), set(returned), list[int]()
    for schema in schemas[:-1]:
        if not seen.isdisjoint(newest - schema.paths.keys()):
            stale.append(schema.schema_id)
        seen |= schema.paths.keys()
    return stale


def check_extra_names(
    before: Schema, schema: Schema, names: Mapping[int, str], extra: Iterable[Sequence[str]], root: str
) -> None:
    """Raise ``InvalidInput`` (``SOURCE_LAYOUT``) for a new column whose name files held beyond an older schema."""
    held = {_lower(path) for path in extra}
    if held:
        for path, i in _named_columns(schema, names):
            if i not in before.by_id and path in held:
                raise reused_name_error(".".join(path), root)


def reused_name_error(name: str, root: str) -> InvalidInput:
    """Return the error for a column whose name older files have for another one."""
    return InvalidInput(
        f"Column {name!r} of the source {root} was dropped and added again, or has another type, "
        "while files that hold it by its name remain.",
        code="SOURCE_LAYOUT",
        name=root,
        remedy="If its newest version has none of these files, sync with skip_history=True; else adopt it again.",
    )


def _named_columns(schema: Schema, names: Mapping[int, str]) -> Iterator[tuple[Path, int]]:
    """Yield the path of names in the files, in lower case, and the id, of each column."""
    for path, field in schema.walk():
        yield _lower(names.get(i, schema.by_id[i].name) for i in path), field.id


def _lower(path: Iterable[str]) -> Path:
    return tuple(name.lower() for name in path)
