"""Which columns' join keys may pay off for a scan, judged from metadata before the other side of the join has run.

Waiting for keys costs a query some tens of milliseconds: Spark plans a query of its own for each column that is
offered, and the scan plans again. Keys never change a result, so a column may be left out for cost alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr import column_paths
from tamis.core.pruning.evidence import ColumnEvidence
from tamis.core.types import Field, Schema
from tamis.cost_model import COSTS
from tamis.engine.part_reader import MOST_ROWS, evidence_of
from tamis.engine.scan import Plan
from tamis.engine.scan.column_widths import width_share
from tamis.sizes import SIZES
from tamis.storage.commit_log import Snapshot
from tamis.storage.object_store.lru_cache import LruCache

LEAST_BYTES = SIZES.join_part_bytes
"""Minimum bytes of a scan of one part for which waiting for keys, and planning again with them, pays off."""
MOST_SPREAD = COSTS.join_spread_share
_MOST_PARTS = 10_000
"""Number of parts from which reading their statistics costs more than keys do."""
_spreads = LruCache[float](2**20)
"""``key_spread`` by the table's URL and id, its version, and the column's id: a version never changes."""


def beneficial_columns(plan: Plan, snapshot: Snapshot, selected: Schema, *, size: int, native: bool) -> Schema:
    """The columns of ``selected``, which have ``size`` bytes, whose keys may save more than they cost.

    Our reader drops rows by any key. Spark's (``native``) reads the parts that keys leave as a whole, so keys must
    be likely to skip parts, or to save so much that our reader replaces it.
    """
    if not plan.options.scan_join_keys or (len(plan.parts) < 2 and size < LEAST_BYTES):
        return Schema(())
    return Schema(
        tuple(
            f
            for f in selected
            if saves_enough_bytes(plan, snapshot, selected, f) or prunes_parts(plan, snapshot, f, native=native)
        )
    )


def prunes_parts(plan: Plan, snapshot: Snapshot, column: Field, *, native: bool) -> bool:
    """Whether keys for ``column`` are likely to skip parts, or, if our reader reads (not ``native``), rows.

    True if statistics may not be used to judge.
    """
    return not native or not plan.options.stats_filter or key_spread(plan, snapshot, column) <= MOST_SPREAD


def saves_enough_bytes(plan: Plan, snapshot: Snapshot, selected: Schema, column: Field) -> bool:
    """Whether our reader, given few keys for ``column``, would save more than ``tamis.read.native_bytes``.

    It saves what it reads late: everything where an index finds the rows, else the columns that nothing tests.
    """
    limit = plan.options.read_native_bytes
    if not limit:
        return True
    whole = snapshot.head.schema or selected
    if any(index.columns[0] == (column.id,) for index in snapshot.head.indexes) and plan.options.index_use != "off":
        return plan.parts.bytes * width_share(selected, whole) > limit
    tested = {column.id, *(ids[0] for c in plan.spec.conjuncts for ids in column_paths(c))}
    late = Schema(tuple(f for f in selected if f.id not in tested))
    return bool(late.fields) and plan.parts.bytes * width_share(late, whole) * (1 - MOST_ROWS) > limit


def key_spread(plan: Plan, snapshot: Snapshot, column: Field) -> float:
    """The average share of the column's values that lie between the bounds of one part: 1 if no part can be skipped.

    It is about the share of the parts that one key leaves. 0 if unknown.
    """
    key = *snapshot.identity, column.id
    found = _spreads.get(key)
    if found is None:
        found = _computed_spread(plan, snapshot, column)
        _spreads.put(key, found, 256)
    return found


def _computed_spread(plan: Plan, snapshot: Snapshot, column: Field) -> float:
    if int(pc.sum(snapshot.segments["parts"]).as_py() or 0) > _MOST_PARTS:
        return 0.0
    parts = snapshot.parts(None, (column.id,))
    evidence = evidence_of(parts, plan.spec.part_schemas).column((column.id,)) if len(parts) else None
    return 0.0 if evidence is None else _spread(evidence, pc.fill_null(parts["rows"], 0).to_numpy())


def _spread(evidence: ColumnEvidence, rows: np.ndarray[Any, np.dtype[Any]]) -> float:
    """The average, by ``rows``, of the parts' shares. A part without bounds has share 1, one of NULLs 0."""
    known = evidence.lo.is_valid().to_numpy(False) & evidence.hi.is_valid().to_numpy(False)
    if not known.any():
        return 0.0
    mask = pa.array(known)
    shares = np.ones(len(rows))
    shares[known] = _shares(evidence.lo.filter(mask), evidence.hi.filter(mask))
    shares[pc.fill_null(pc.equal(evidence.nulls, evidence.count), False).to_numpy(False)] = 0.0
    return float(np.average(shares, weights=np.maximum(rows, 1)))


def _shares(lo: pa.Array, hi: pa.Array) -> np.ndarray[Any, Any]:
    """For each part, the share of the range of all parts that its bounds enclose.

    Text and binary have no distances: of them, it is the share of the parts that may have a value in common with
    the part.
    """
    if _has_no_distances(lo.type):
        both = pa.chunked_array([lo, hi])
        places = pc.rank(both, tiebreaker="dense").to_numpy()
        starts, ends = places[: len(lo)], places[len(lo) :]
        before = np.searchsorted(np.sort(ends), starts, side="left")
        after = len(lo) - np.searchsorted(np.sort(starts), ends, side="right")
        overlaps: np.ndarray[Any, Any] = (len(lo) - before - after) / len(lo)
        return overlaps
    starts, ends = _numbers(lo), _numbers(hi)
    with np.errstate(invalid="ignore", over="ignore"):  # infinite bounds have no distance: such a part counts whole
        inside: np.ndarray[Any, Any] = (ends - starts + 1.0) / (ends.max() - starts.min() + 1.0)
    return np.where(np.isnan(inside), 1.0, inside)


def _has_no_distances(kind: pa.DataType) -> bool:
    of_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    return bool(of_bytes or pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _numbers(values: pa.Array) -> np.ndarray[Any, Any]:
    if pa.types.is_temporal(values.type):
        values = values.cast(pa.int32() if values.type.bit_width == 32 else pa.int64())
    return np.asarray(values.cast(pa.float64(), safe=False).to_numpy(False))
