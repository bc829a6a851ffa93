"""Delete: remove matching rows by deletion vectors, and entirely matching parts by metadata.

A row for which the filter is false or NULL stays; a row on which it raises fails the delete.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from tamis.core.expr import Expr
from tamis.engine.operations.result import Progress, Result
from tamis.engine.operations.rows.overwrite import find_matching
from tamis.engine.operations.rows.row_change import RowChange, read_set
from tamis.engine.operations.tracked_read import TrackedRead
from tamis.engine.scan import Options, Plan
from tamis.storage.commit_log import Snapshot
from tamis.storage.object_store import Store


def delete(
    store: Store, snapshot: Snapshot, conjuncts: Sequence[Expr], options: Options, progress: Progress | None = None
) -> tuple[Snapshot, Result]:
    """Delete the rows that satisfy all ``conjuncts`` (none given: every row), in one commit.

    Raises ``Conflict`` if another commit since ``snapshot`` added rows that may match, or removed matching
    rows; ``InvalidInput`` (``FILTER_FAILED``) for a row on which the filter fails.
    """
    found = matching_parts(store, snapshot, conjuncts, options)
    if found is None:
        return snapshot, Result(snapshot.version)
    partial = found.parts.where(~found.parts.all_match)
    tracked = TrackedRead(found, progress, partial)
    gone = {ref.part_id: position_bitmap(tracked.rows(ref)) for ref in partial}
    return delete_found(store, snapshot, conjuncts, options, tracked, gone)


def delete_found(
    store: Store,
    snapshot: Snapshot,
    conjuncts: Sequence[Expr],
    options: Options,
    tracked: TrackedRead,
    gone: dict[str, Any],
) -> tuple[Snapshot, Result]:
    """Commit a delete; ``gone`` holds the rows by part, for parts that match only partly."""
    found = tracked.found
    doomed = found.parts.where(found.parts.all_match)
    tracked.record_answered(doomed)
    change = RowChange("delete", read_set(conjuncts, options), options, conjuncts, exact=True)
    change.parameters = {} if change.reads.filter is None else {"filter": change.reads.filter}
    change.gone = {part: rows for part, rows in gone.items() if rows}
    change.whole = doomed.table["part_id"].to_pylist()
    change.deleted = int(doomed.live_rows.sum()) + sum(len(rows) for rows in gone.values())
    change.read = len(found.parts) - len(doomed)
    change.bytes_read = tracked.finish()
    return change.commit(store, snapshot)


def matching_parts(store: Store, snapshot: Snapshot, conjuncts: Sequence[Expr], options: Options) -> Plan | None:
    """Plan the parts that may match, reading positions only; None for a table without a schema."""
    schema = snapshot.head.schema
    if schema is None:
        return None
    found = find_matching(store, snapshot, schema, conjuncts, options)
    return replace(found, spec=replace(found.spec, schema=replace(schema, fields=()), positions=True))


def position_bitmap(positions: Iterable[pa.RecordBatch]) -> Any:
    """Return a bitmap of the positions in the first column of these batches."""
    rows = BitMap()
    for batch in positions:
        rows |= BitMap(np.ascontiguousarray(batch.column(0).to_numpy(), dtype=np.uint32))
    return rows
