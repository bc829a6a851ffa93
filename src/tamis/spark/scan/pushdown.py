"""Pushdown of limits, top-N and aggregates into a scan.

Invariants: Spark keeps its own limit and sort, so the scan only leaves out rows that cannot matter. Pushed
aggregates equal Spark's to the last bit; others are not pushed. Spark pushes limits and aggregates only if it
has no filter left to test. So under one of them, and nowhere else, a scan owns its filter, and only if our
evaluator computes every conjunct exactly and none can fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from tamis.core.expr import Call, Column, Expr, Literal, Literals, function_entry
from tamis.core.expr.registry import Partial
from tamis.core.stats.statistics_columns import has_bounds
from tamis.core.types import STRING, Schema, String
from tamis.engine.part_reader import ReadCounters
from tamis.engine.scan import PartRefs, Plan
from tamis.engine.scan.partial_aggregates import Aggregation, Measure
from tamis.engine.scan.scan_order import Order, sort_key
from tamis.engine.scan.scan_plan import report_order
from tamis.engine.scan.top_k import PLACE, POSITION, TopK, TopRows
from tamis.errors import TamisError
from tamis.sizes import SIZES
from tamis.spark.jvm_bridge.wire_format import list_items

READ = "org.apache.spark.sql.connector.read."
LIMITS = (READ + "SupportsPushDownLimit", READ + "SupportsPushDownTopN")
AGGREGATES = READ + "SupportsPushDownAggregates"
"""Option that ``Pushed.java`` sets on a relation under a limit or an aggregate that a scan can answer."""
AGGREGATE = "aggregate"
"""Value of the option under such an aggregate."""

LOOK_BYTES = SIZES.look_bytes
"""Approximate bytes of the order's columns that the driver may read before it sends the first task."""
LOOK_ROWS = SIZES.look_rows
"""Maximum limit for this search: the positions of the rows found are sent with the tasks."""

_EXACT = frozenset(
    [
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "null_safe_eq",
        "in",
        "and",
        "or",
        "not",
        "is_null",
        "is_not_null",
        "is_nan",
        "starts_with",
        "ends_with",
        "contains",
    ]
)
"""Functions that our evaluator computes exactly as Spark does: comparisons, logic, byte-wise text tests."""


@dataclass(frozen=True, slots=True)
class Pushed:
    """What Spark has pushed into a scan."""

    owned: bool = False
    """Spark does not test the filter."""
    limit: int | None = None
    order: Order = ()
    aggregation: Aggregation | None = None

    @property
    def obstacle(self) -> str | None:
        """Reason not to use Spark's own reader, or None."""
        if self.aggregation is not None:
            return "partial aggregates are asked for"
        return "the first rows of an order are asked for" if self.order else None


NOTHING = Pushed()


def is_exact(conjuncts: Sequence[Expr]) -> bool:
    """Whether our evaluator keeps exactly the rows that Spark keeps, and no conjunct can fail."""
    return all(_exact(node) for conjunct in conjuncts for node in conjunct.walk())


def _exact(node: Expr) -> bool:
    if isinstance(node, Call):
        return node.function in _EXACT and function_entry(node.function).partial(node) is Partial.NEVER
    return isinstance(node, Literal | Literals) or (isinstance(node, Column) and not node.type.children)


def order_of(text: str | None, schema: Schema) -> Order:
    """The order described by ``Pushed.orders``; empty if it cannot be used."""
    words = list_items(text)
    try:
        return tuple(
            sort_key(schema, name, descending=direction == "DESCENDING", nulls_first=nulls == "NULLS_FIRST")
            for name, direction, nulls in zip(words[::3], words[1::3], words[2::3], strict=True)
        )
    except TamisError:
        return ()


def aggregation_of(text: str | None, schema: Schema) -> Aggregation | None:
    """The aggregates described by ``Pushed.aggregation``, or None if one cannot be used.

    None also without groups and measures: the single result row would have no column.
    """
    words = list_items(text)
    if len(words) < 2:
        return None
    groups, rest = words[1 : 1 + int(words[0])], words[1 + int(words[0]) :]
    try:
        found = [schema.find(name)[0] if name else None for name in (*groups, *rest[1::2])]
    except TamisError:  # a metadata column
        return None
    functions = [*["group"] * len(groups), *rest[::2]]
    if any(
        f is not None and not has_bounds(f.type) and how != "count" for f, how in zip(found, functions, strict=True)
    ):
        return None
    measures = tuple(Measure(how, f) for how, f in zip(rest[::2], found[len(groups) :], strict=True))
    return Aggregation(measures, tuple(f for f in found[: len(groups)] if f is not None))


def aggregate_output(aggregation: Aggregation) -> Schema:
    """The columns of partial aggregates, as Spark takes them: text as STRING, without length."""
    plain = (replace(f, type=STRING) if isinstance(f.type, String) else f for f in aggregation.output)
    return Schema(tuple(plain))


def aggregate_pays(aggregation: Aggregation, before: Plan, after: Plan) -> bool:
    """Whether metadata answers enough that aggregating the rest in Python is not slower."""
    if not aggregation.groups:
        return len(after.parts) < len(before.parts) or bool(before.spec.conjuncts) or not len(before.parts)
    return 2 * int(after.parts.live_rows.sum()) <= int(before.parts.live_rows.sum())


# --- top-N: the driver reads the best parts before it sends tasks ---


def reduce_to_top(plan: Plan, share: float) -> Plan:
    """The plan reduced to rows that may be in the top N, after reading the order's columns of the best parts.

    ``share``: the share of a row's bytes in these columns. Of the parts that were read, only the rows found are
    kept. All other parts get an added conjunct: their rows must come before the last row found.
    """
    if (
        not plan.order
        or not plan.limit
        or plan.limit > LOOK_ROWS
        or len(plan.parts) < 2
        or plan.proofs
        or not plan.options.scan_topk
    ):
        return plan
    search = TopK(replace(plan, report=plan.report.for_execution()), lambda _part, _problem: None)
    found = search.search(int(LOOK_BYTES / max(share, 1e-6)))
    plan.report.record_search(search_counters(search))
    if found.bound is None and len(found.left):
        return plan
    return _cut_down(plan, found)


def search_counters(search: TopK) -> ReadCounters:
    """The bytes and rows that a search has read, counted as leader reads."""
    spent = ReadCounters()
    for counters in search.counters:
        spent.merge(counters)
    return ReadCounters(
        bytes_leader=spent.bytes_leader + spent.bytes_follower,
        bytes_footer=spent.bytes_footer,
        requests=spent.requests,
        rows_leader=spent.rows_leader,
    )


def _cut_down(plan: Plan, found: TopRows) -> Plan:
    place, position = found.rows[PLACE].to_numpy(), found.rows[POSITION].to_numpy()
    winners = np.unique(place)
    kept = np.sort(np.concatenate([winners, found.left])).astype(np.int64)
    rows = {int(at): BitMap(position[place == at].astype(np.uint32)).serialize() for at in winners}
    parts = plan.parts.take(kept)
    table = parts.table.drop_columns(["candidates"]) if "candidates" in parts.table.column_names else parts.table
    before = parts.table["candidates"].to_pylist() if "candidates" in parts.table.column_names else [None] * len(kept)
    chosen = [rows.get(int(at), old) for at, old in zip(kept, before, strict=True)]
    sure = np.isin(kept, winners)
    gone = plan.parts.where(~np.isin(np.arange(len(plan.parts)), kept))
    plan.report.record_unread(len(gone), int(gone.all_match.sum()), gone.blocks, gone.bytes, "skipped_topk")
    plan.report.parts["all_match"] = int(sure.sum())
    report_order(plan.report, plan.order, plan.limit)
    bounded = plan.spec.conjuncts if found.bound is None else (*plan.spec.conjuncts, found.bound)
    made = PartRefs(table.append_column("candidates", pa.array(chosen, pa.large_binary())), sure)
    return replace(plan, parts=made, spec=replace(plan.spec, conjuncts=bounded))
