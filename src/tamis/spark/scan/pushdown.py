"""What stands above a scan in Spark's plan, pushed into it: a limit, an order with a limit, aggregates.

Laws: Spark keeps its own limit and its own sort, so the scan only leaves out what cannot matter; aggregates that are pushed are Spark's to the last bit, or are not pushed. Spark pushes them
only where it has no filter left to check. So under one of them, and nowhere else, a scan owns its filter: then every conjunct is one that our evaluator
computes exactly and that cannot fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from tamis.core.expr import Call, Column, Expr, Literal, Literals, function
from tamis.core.expr.registry import Partial
from tamis.core.stats.statistics_columns import has_bounds
from tamis.core.types import STRING, Schema, String
from tamis.engine.part_reader import ReadCounters
from tamis.engine.scan import PartRefs, Plan
from tamis.engine.scan.partial_aggregates import Aggregation, Measure
from tamis.engine.scan.scan_order import Order, key
from tamis.engine.scan.scan_plan import tell_order
from tamis.engine.scan.top_k import PLACE, POSITION, Found, TopK
from tamis.errors import TamisError
from tamis.sizes import SIZES

READ = "org.apache.spark.sql.connector.read."
LIMITS = (READ + "SupportsPushDownLimit", READ + "SupportsPushDownTopN")
AGGREGATES = READ + "SupportsPushDownAggregates"
MARK = "tamis.internal.under"
"""The option by which ``Pushed.java`` says that a limit, or an aggregate that a scan can answer, stands above."""
AGGREGATE = "aggregate"
"""The option's value under such an aggregate."""

LOOK_BYTES = SIZES.look_bytes
"""What the driver may read of the order's columns, about, before it sends the first task."""
LOOK_ROWS = SIZES.look_rows
"""Limits beyond which it does not look: where so many rows stand would travel with the tasks."""

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
"""Functions whose every value is computed as Spark does: comparisons, logic, and bytes of text."""


@dataclass(frozen=True, slots=True)
class Pushed:
    """What a scan has taken over."""

    owned: bool = False
    """Spark checks the filter no more."""
    limit: int | None = None
    order: Order = ()
    aggregation: Aggregation | None = None

    @property
    def obstacle(self) -> str | None:
        """Why Spark's own reader is not to be used; None where nothing here forbids it."""
        if self.aggregation is not None:
            return "partial aggregates are asked for"
        return "the first rows of an order are asked for" if self.order else None


NOTHING = Pushed()


def exact(conjuncts: Sequence[Expr]) -> bool:
    """Whether rows that our evaluator keeps are the very rows for which Spark finds all conjuncts true, and none can fail."""
    return all(_exact(node) for conjunct in conjuncts for node in conjunct.walk())


def _exact(node: Expr) -> bool:
    if isinstance(node, Call):
        return node.function in _EXACT and function(node.function).partial(node) is Partial.NEVER
    return isinstance(node, Literal | Literals) or (isinstance(node, Column) and not node.type.children)


def order_of(text: str | None, schema: Schema) -> Order:
    """The order that ``Pushed.java`` has written down; nothing where there is none that can be used."""
    words = text[1:].split("\0") if text else []
    try:
        return tuple(
            key(schema, name, descending=direction == "DESCENDING", nulls_first=nulls == "NULLS_FIRST")
            for name, direction, nulls in zip(words[::3], words[1::3], words[2::3], strict=True)
        )
    except TamisError:
        return ()


def aggregation_of(text: str | None, schema: Schema) -> Aggregation | None:
    """The aggregates that ``Pushed.java`` has written down; None where one of them cannot be used, or nothing of them is: the one row that there is then would have no column to stand in."""
    words = text[1:].split("\0") if text else []
    if len(words) < 2:
        return None
    groups, rest = words[1 : 1 + int(words[0])], words[1 + int(words[0]) :]
    try:
        found = [schema.find(name)[0] if name else None for name in (*groups, *rest[1::2])]
    except TamisError:  # a metadata column
        return None
    functions = [*["group"] * len(groups), *rest[::2]]
    if any(f is not None and not has_bounds(f.type) and how != "count" for f, how in zip(found, functions, strict=True)):
        return None
    measures = tuple(Measure(how, f) for how, f in zip(rest[::2], found[len(groups) :], strict=True))
    return Aggregation(measures, tuple(f for f in found[: len(groups)] if f is not None))


def output(aggregation: Aggregation) -> Schema:
    """The columns that Spark gets of partial aggregates: its own text has no length."""
    plain = (replace(f, type=STRING) if isinstance(f.type, String) else f for f in aggregation.output)
    return Schema(tuple(plain))


def pays(aggregation: Aggregation, before: Plan, after: Plan) -> bool:
    """Whether metadata answers enough that reading the rest in Python, as partial aggregates, is no loss."""
    if not aggregation.groups:
        return len(after.parts) < len(before.parts) or bool(before.spec.conjuncts) or not len(before.parts)
    return 2 * int(after.parts.live_rows.sum()) <= int(before.parts.live_rows.sum())


# --- an order with a limit: a look at the best parts before tasks are sent ---


def foremost(plan: Plan, share: float) -> Plan:
    """The plan of the rows that may be among the first, after a look at the order's columns (``share`` of a row) of the best parts.

    Of the parts looked at, the rows found there are all that is needed; the others are read for rows that come before the last of these.
    """
    if not plan.order or not plan.limit or plan.limit > LOOK_ROWS or len(plan.parts) < 2 or plan.proofs or not plan.options.scan_topk:
        return plan
    search = TopK(replace(plan, report=plan.report.fresh()), lambda _part, _problem: None)
    found = search.search(int(LOOK_BYTES / max(share, 1e-6)))
    plan.report.looked(cost(search))
    if found.bound is None and len(found.left):
        return plan
    return _cut_down(plan, found)


def cost(search: TopK) -> ReadCounters:
    """What a search has read, as leaders."""
    spent = ReadCounters()
    for counters in search.counters:
        spent.merge(counters)
    return ReadCounters(
        bytes_leader=spent.bytes_leader + spent.bytes_follower,
        bytes_footer=spent.bytes_footer,
        requests=spent.requests,
        rows_leader=spent.rows_leader,
    )


def _cut_down(plan: Plan, found: Found) -> Plan:
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
    plan.report.unread(len(gone), int(gone.all_match.sum()), gone.blocks, gone.bytes, "skipped_topk")
    plan.report.parts["all_match"] = int(sure.sum())
    tell_order(plan.report, plan.order, plan.limit)
    bounded = plan.spec.conjuncts if found.bound is None else (*plan.spec.conjuncts, found.bound)
    made = PartRefs(table.append_column("candidates", pa.array(chosen, pa.large_binary())), sure)
    return replace(plan, parts=made, spec=replace(plan.spec, conjuncts=bounded))
