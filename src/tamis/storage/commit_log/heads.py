"""How a head gets its next schema, and what that does to the order of the parts there are."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.schema import dropped_between
from tamis.core.types import Schema
from tamis.errors import InvalidInput
from tamis.storage.commit_log.model import Head

RESERVED = "_tamis_"
"""How the names of the columns begin that say where a row stands; Spark finds them beside a table's own."""


def next_schema(head: Head, schema: Schema) -> Head:
    """``head`` after ``schema`` (all ids given) has become its latest: its id is its position, what it lacks is remembered, and nothing else of the sequence changes.

    A clustering column that is gone clusters no more. Sorted by (a, b, c) is sorted by (a, b) but not by (a, c): where a column was taken from between, the parts
    there are count as not in order (``ordered_now``) until they are compacted.

    Raises ``InvalidInput`` (``RESERVED_NAME``) for a new column whose name a metadata column may have.
    """
    before = set(head.schema.names) if head.schema else set[str]()
    for name in schema.names:
        if name.lower().startswith(RESERVED) and name not in before:
            raise InvalidInput(
                f"Column {name!r}: names that begin with {RESERVED!r} are metadata columns'.",
                code="RESERVED_NAME",
                name=name,
                remedy="Choose another name.",
            )
    given = replace(schema, schema_id=len(head.schemas))
    dropped = dropped_between(head.schema, given) if head.schema else ()
    live = (*(gone for gone in head.dropped if gone.parent == 0 or gone.parent in given.by_id), *dropped)
    kept = tuple(path for path in head.cluster_by if given.paths.get(path[-1]) == path)
    broken = kept != head.cluster_by[: len(kept)]
    return replace(
        head,
        schemas=(*head.schemas, given),
        highest_column_id=max(head.highest_column_id, given.highest_id()),
        dropped=live,
        cluster_by=kept,
        ordered_since=given.schema_id if broken else head.ordered_since,
    )


def ordered_now(head: Head, parts: pa.Table) -> pa.BooleanArray:
    """Which of ``parts`` (columns ``ordered``, ``schema_id``) are in the clustering order that is in force: what relies on order asks this, never ``ordered`` alone."""
    said = pc.fill_null(parts["ordered"], False)
    found = pc.and_(said, pc.fill_null(pc.greater_equal(parts["schema_id"], head.ordered_since), False))
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
