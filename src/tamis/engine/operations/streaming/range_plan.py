"""Plans a micro-batch: the funnel over the ranges of parts that lie between two positions of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.engine.scan import PartRefs, Plan, PlanRequest
from tamis.engine.scan import plan_scan as run_funnel
from tamis.storage.commit_log.part_range import PartRange
from tamis.storage.object_store import Store
from tamis.storage.object_store.metadata_union import stack_tables


def plan_ranges(ranges: Sequence[PartRange], store: Store, request: PlanRequest) -> Plan:
    """Plan one scan of all ``ranges``, in order; there must be one."""
    plans = [run_funnel(one, store, request) for one in ranges]
    if len(plans) == 1:
        return plans[0]
    widths = [0, *np.cumsum([len(one.segments) for one in ranges])]
    report = reduce(lambda whole, other: whole.including(other), (one.report for one in plans))
    return replace(
        plans[-1],
        parts=_joined([one.parts for one in plans], widths),
        audit=_joined([one.audit for one in plans], widths),
        proofs={part: proof for one in plans for part, proof in one.proofs.items()},
        shared=tuple(lookup for one in plans for lookup in one.shared),
        report=report,
    )


def kept_parts(part_range: PartRange, plan: Plan) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return a mask over the parts of a range: those that a plan of it reads."""
    found: np.ndarray[tuple[int], np.dtype[np.bool_]] = pc.is_in(
        part_range.parts()["part_id"], value_set=plan.parts.table["part_id"].combine_chunks()
    ).to_numpy()
    return found


def _joined(pieces: Sequence[PartRefs], before: Sequence[int]) -> PartRefs:
    """Concatenate parts. Segments are numbered through, so that their order stays that of the ranges."""
    tables = [_numbered(piece.table, int(at)) for piece, at in zip(pieces, before, strict=False)]
    table = stack_tables(tables)
    if "candidate_rows" in table.column_names:  # of some ranges only
        counts = pc.coalesce(table["candidate_rows"], table["rows"])
        table = table.set_column(table.column_names.index("candidate_rows"), "candidate_rows", counts)
    return PartRefs(table, np.concatenate([piece.all_match for piece in pieces]))


def _numbered(table: pa.Table, first: int) -> pa.Table:
    moved = pc.add(table["segment"], pa.scalar(first, pa.int32()))
    return table.set_column(table.column_names.index("segment"), "segment", moved)
