"""Columns of a change feed, and the check that they can hold the rows of every version in its range.

Rows are read by column ids under the schema of the last version. Invariant: every column of the feed that has the
name of a column of an earlier version in the range is that column, and no version in the range has other columns
throughout; otherwise old values would be NULL without an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import pyarrow as pa

from tamis.core.types import Field, Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.errors import InvalidInput, SchemaFenced
from tamis.storage.commit_log import Snapshot
from tamis.storage.commit_log.commit_objects import read_commits
from tamis.storage.object_store import Store

COLUMNS = (
    pa.field("_change_type", pa.string(), nullable=False),
    pa.field("_commit_version", pa.int64(), nullable=False),
    pa.field("_commit_timestamp", pa.timestamp("us", tz="UTC"), nullable=False),
)
"""Column names shared with the change feeds of other formats and of Spark."""


def feed_schema(store: Store, before: int, last: Snapshot) -> pa.Schema:
    """Return the columns of the feed of what changed after the version ``before`` up to the version ``last``.

    Raises ``InvalidInput`` (``RESERVED_NAME``) for a column that is named as one of a feed's own, and
    ``SchemaFenced`` if the table was replaced in the range (``TABLE_REPLACED``), or a column was dropped and another
    one added under its name (``FENCED_READD_DELETED``).
    """
    now = last.schema or Schema(())
    _check_names(now)
    if before < last.version and len(last.head.schemas) > 1:
        first = read_commits(store, [before], last.head.table_id)[0].schema_id
        _check_kept(store, last.head.schemas[first or 0 :], before, last)
    return pa.schema([*to_arrow_schema(now), *COLUMNS])


def _check_names(now: Schema) -> None:
    own = {f.name for f in COLUMNS}
    for name in now.names:
        if name.lower() in own:
            raise InvalidInput(
                f"The table has a column {name!r}, and so has every change feed.",
                code="RESERVED_NAME",
                name=name,
                remedy="Rename the table's column: a feed has the column names of its last version.",
            )


def _check_kept(store: Store, schemas: Sequence[Schema], before: int, last: Snapshot) -> None:
    """Raise unless rows of all ``schemas``, those in force in the range, can be shown under the last one."""
    breaks = (*_added_again(schemas), *schema_replacements(schemas))
    found = max(breaks, key=lambda one: (one[0], not one[1]), default=None)  # the feed may begin after the last one
    if found is None:
        return
    schema_id, column = found
    commits = read_commits(store, range(before + 1, last.version + 1), last.head.table_id)
    version = next(c.version for c in commits if c.schema_id is not None and c.schema_id >= schema_id)
    what = f"added the column {column!r} in place of a dropped one" if column else "replaced the table"
    raise SchemaFenced(
        f"Version {version} of {store.url} {what}: a change feed cannot show the rows before it.",
        code="FENCED_READD_DELETED" if column else "TABLE_REPLACED",
        name=column or store.url,
        remedy=f"Read version {version} as a whole, and begin the feed after it: changes({version}), "
        f"or startingVersion = {version + 1}.",
    )


def schema_replacements(schemas: Sequence[Schema]) -> Iterator[tuple[int, str]]:
    """Yield the id of each schema that shares no column with the one before it, and an empty column name."""
    for before, after in pairwise(schemas):
        if before.fields and not {f.id for f in before.fields} & {f.id for f in after.fields}:
            yield after.schema_id, ""


def _added_again(schemas: Sequence[Schema]) -> Iterator[tuple[int, str]]:
    """Yield, for each field of the last schema that has a dropped one's name, the first schema with it and its name."""
    now = schemas[-1]
    there = _named(now)
    for before in schemas[:-1]:
        for place, field in _named(before).items():
            found = there.get(place)
            if found is not None and field.id not in now.by_id and found.id not in before.by_id:
                yield next(s.schema_id for s in schemas if found.id in s.by_id), now.path_text(found)


def _named(schema: Schema) -> dict[tuple[tuple[int, ...], str], Field]:
    """Return the fields by the ids of their parents and their name, as names are compared."""
    return {(ids[:-1], field.name.lower()): field for ids, field in schema.walk()}
