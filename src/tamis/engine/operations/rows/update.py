"""Update: delete the rows that match a filter by vectors and write them anew, in one commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from tamis.core.expr import Expr
from tamis.core.types import Field, Schema
from tamis.engine.operations.result import Progress, Result
from tamis.engine.operations.rows.append import write_rows
from tamis.engine.operations.rows.overwrite import find_matching
from tamis.engine.operations.rows.row_change import RowChange, read_set
from tamis.engine.operations.rows.store_assignment import (
    assignable_column,
    assigned_value,
    check_assigned,
    check_known,
    computed_values,
)
from tamis.engine.operations.tracked_read import TrackedRead
from tamis.engine.scan import Options
from tamis.storage.commit_log import Snapshot
from tamis.storage.object_store import Store


def update(
    store: Store,
    snapshot: Snapshot,
    values: Mapping[str, Expr],
    conjuncts: Sequence[Expr],
    options: Options,
    progress: Progress | None = None,
) -> tuple[Snapshot, Result]:
    """Assign ``values`` to columns in every row that satisfies all ``conjuncts`` (none given: every row).

    Values see the row before the update. Raises ``Conflict`` like ``delete``; ``NotFound`` for an unknown
    column, ``SchemaMismatch`` for a value that does not fit its column.
    """
    schema = snapshot.head.schema
    if schema is None:
        return snapshot, Result(snapshot.version)
    for name in values:
        check_assigned(assignable_column(schema, name))
    wanted = {
        f.id: check_known(assigned_value(value, f, options.timezone))
        for name, value in values.items()
        for f in schema.find(name)
    }
    found = find_matching(store, snapshot, schema, conjuncts, options)
    tracked = TrackedRead(found, progress)
    change = RowChange("update", read_set(conjuncts, options), options, conjuncts, exact=True)
    change.parameters = {"columns": ", ".join(values)} | (
        {} if change.reads.filter is None else {"filter": change.reads.filter}
    )
    change.manifests = list(write_rows(store, snapshot.head, _updated(tracked, schema, wanted, change), options))
    change.updated = sum(len(rows) for rows in change.gone.values())
    change.read, change.bytes_read = len(found.parts), tracked.finish()
    return change.commit(store, snapshot)


def _updated(
    tracked: TrackedRead, schema: Schema, wanted: Mapping[int, Expr], change: RowChange
) -> Iterator[pa.RecordBatch]:
    """Yield the matching rows with their new values; record their positions in ``change``."""
    spec = replace(tracked.found.spec, schema=schema, positions=True)
    for ref in tracked.found.parts:
        for batch in tracked.rows(ref, spec):
            arrays = {f.id: batch.column(at) for at, f in enumerate(schema)}
            rows = BitMap(np.ascontiguousarray(batch.column(len(arrays)).to_numpy(), dtype=np.uint32))
            change.gone[ref.part_id] = change.gone.get(ref.part_id, BitMap()) | rows
            columns = [
                computed_values(wanted[f.id], arrays, len(batch), spec.now_micros, f.name)
                if f.id in wanted
                else _kept(f, arrays[f.id])
                for f in schema
            ]
            yield pa.RecordBatch.from_arrays(columns, names=list(schema.names))


def _kept(f: Field, values: pa.Array) -> pa.Array:
    """Return the values of a column that is not assigned; none of a generated one, which is computed anew."""
    return values if f.generated is None else pa.nulls(len(values), values.type)
