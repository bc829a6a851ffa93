"""Run-time join keys: the values of a join's small side prune the scan of the other side before it is read.

Invariants: keys are added as conjuncts after those of the query, so skipping by them is proved as for any
filter and hides no error of the query's own filter. Keys apply to one execution only: a scan that Spark
reuses, or that occurs twice in a plan, never sees the keys of another execution.
"""

from __future__ import annotations

import base64
import threading
import weakref
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr import MOST_KEYS, Call, Expr, Literals, column_by_ids, equal_as_arrow, key_filter
from tamis.core.stats import TableEvidence
from tamis.core.types import (
    DATE,
    INTEGRAL,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    Field,
    Schema,
    String,
)
from tamis.core.types.arrow import to_arrow_type
from tamis.cost_model import COSTS
from tamis.engine.scan import Plan
from tamis.errors import TamisError
from tamis.sizes import SIZES
from tamis.spark.executors.partitions import Cut
from tamis.spark.executors.read_task import Task
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.catalyst import known_nodes, translate_filters
from tamis.spark.jvm_bridge.catalyst_literals import Inexpressible, constant_array, data_type, same_values
from tamis.spark.jvm_bridge.node_settings import zone_table
from tamis.spark.jvm_bridge.wire_format import NUL, list_text
from tamis.spark.scan.join_key_benefit import prunes_parts
from tamis.storage.commit_log import Snapshot

_FUNCTION = ("java.util.function.BiFunction",)
INTERFACE = "org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering"
TASK_BYTES = SIZES.join_key_task_bytes
"""Maximum bytes of keys sent with every task. Larger sets prune parts and look up indexes only.

Spark's join tests the rows in any case.
"""


def key_columns(owner: Bridge, schema: Schema) -> str:
    """The columns whose keys can prune, as ``wire_format.list_text``."""
    return list_text(f.name for f in schema if _has_order(f.type)) if owner.pinned else ""


def _has_order(kind: DataType) -> bool:
    if isinstance(kind, String):
        return equal_as_arrow(kind) and kind.kind != "char"
    return kind in {*INTEGRAL, DATE, TIMESTAMP, TIMESTAMP_NTZ} or isinstance(kind, Decimal)


def key_conjuncts(owner: Bridge, predicates: Any, schema: Schema) -> tuple[Expr, ...]:
    """Translate Spark's run-time predicates to conjuncts on ``schema``. Omits those without an exact form."""
    from py4j.protocol import Py4JError

    try:
        numbers, others = _numbers(base64.b64decode(owner.helper("JoinKeys").numbers(predicates, MOST_KEYS)), schema)
        if not others:
            return numbers
        said = owner.helper("JoinKeys").expressions(predicates, MOST_KEYS)
        text = owner.helper("TreeText").render(said, known_nodes())
        found = translate_filters(text, schema, zone_table(owner)).conjuncts
    except Py4JError:  # values that Java itself cannot write; keys are optional
        return ()
    return (
        *numbers,
        *(c for c in found if isinstance(c, Call) and c.function == "in" and isinstance(c.args[1], Literals)),
    )


def _numbers(packed: bytes, schema: Schema) -> tuple[tuple[Expr, ...], bool]:
    """Unpack ``JoinKeys.numbers`` into IN conjuncts; also return whether there are other usable predicates.

    Keys are sorted and distinct. A predicate without values has no type and becomes an empty IN list.
    """
    at = 4 + int.from_bytes(packed[:4], "little")
    others, *header = packed[4:at].decode().split(NUL)
    out = []
    for name, kind, count in zip(header[::3], header[1::3], header[2::3], strict=True):
        values = np.frombuffer(packed, "<i8", int(count), at)
        at += values.nbytes
        try:
            column = schema.find(name)[0]
            if not kind:
                keys = pa.array([], to_arrow_type(column.type))
            elif same_values(column.type, data_type(kind)):
                keys = constant_array(column.type, values)
            else:
                continue
            out.append(key_filter(column_by_ids(schema, (column.id,)), keys, distinct=True))
        except (TamisError, Inexpressible):  # not a column of the table, or a type without a counterpart
            continue
    return tuple(conjunct for conjunct in out if conjunct is not None), others != "0"


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A scan's plan under the keys of one execution. Its tasks are counted under ``name``."""

    name: str
    keys: tuple[Expr, ...]
    plan: Plan
    cut: Cut

    def tasks(self) -> list[Task]:
        """The plan's tasks, each with keys, because the reader that Spark made earlier does not know them.

        All keys if audits check proofs made with them, otherwise the sets that are small enough to send.
        """
        keys = self.keys if self.plan.proofs else smallest_key_sets(self.keys)
        return [replace(task, scan=self.name, keys=keys) for task in self.cut.tasks()]


def smallest_key_sets(keys: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The sets of keys sent with every task: the smallest ones, up to ``TASK_BYTES`` in total.

    Smallest first, so that a large set of one join does not exclude the small set of another.
    """
    sizes = [c.args[1].array.nbytes if isinstance(c, Call) and isinstance(c.args[1], Literals) else 0 for c in keys]
    order = sorted(range(len(keys)), key=sizes.__getitem__)
    fits = np.cumsum([sizes[at] for at in order]) <= TASK_BYTES
    taken = {at for at, fit in zip(order, fits, strict=True) if fit}
    return tuple(c for at, c in enumerate(keys) if at in taken)


class KeySelectivity:
    """Java ``BiFunction`` that tells ``JoinPlanning`` whether one scan's values, or any keys, can prune another."""

    def __init__(self, owner: Bridge) -> None:
        self._owner = owner

    def apply(self, key: str, asked: str) -> str:
        scan = self._owner.target_of_key(key)
        if NUL not in asked:
            return str(_prunes_parts(scan, asked)).lower()
        column, other, theirs = asked.split(NUL)
        keys = self._owner.target_of_key(other)
        return str(scan is None or keys is None or scan.keys_are_selective(column, keys, theirs)).lower()


def _prunes_parts(scan: Any, column: str) -> bool:
    """Whether keys for ``column`` can skip parts of ``scan``, or rows while it is read; True if the scan is gone."""
    if scan is None:
        return True
    field = scan.source.schema.find(column)[0]
    return prunes_parts(scan.plan, scan.source.snapshot, field, native=scan.native)


class RuntimeFilteredScans:
    """Java ``BiFunction`` that gives ``RuntimeFiltering`` the runtime-filtered scan of a scan, or None."""

    def __init__(self, owner: Bridge) -> None:
        self._owner = owner

    def apply(self, key: str, asked: str) -> Any:
        rows, _, column = asked.partition(" ")
        scan = self._owner.target_of_key(key)
        return None if scan is None else scan.runtime_filtered(column, int(rows))


_planning: weakref.WeakKeyDictionary[Bridge, tuple[Any, Any] | None] = weakref.WeakKeyDictionary()
"""The strategy and the rule of each JVM; None if this Spark lacks classes that they name."""


def install_planning(owner: Bridge) -> None:
    """Install ``Pushed``, ``JoinPlanning`` and ``RuntimeFiltering`` in the active session.

    With the latter two, more joins pass their keys to our scans. If a later Spark lacks what they need, Spark's own
    rules remain.
    """
    from py4j.protocol import Py4JError

    pushed = owner.helper("Pushed")
    try:
        if owner not in _planning:
            filters = owner.helper("KeyFilters")
            selectivity = owner.implement(_FUNCTION, KeySelectivity(owner))
            hiding = owner.helper("HiddenErrors").search()
            rule = owner.helper("JoinPlanning").rule(
                selectivity, filters.removal(), filters.outsideRecursions(), hiding
            )
            scans = owner.implement(_FUNCTION, RuntimeFilteredScans(owner))
            _planning[owner] = owner.helper("RuntimeFiltering").strategy(scans), rule
        if (planning := _planning[owner]) is not None:
            owner.install_strategy(*planning, pushed)
            return
    except Py4JError:
        _planning[owner] = None
    pushed.run()


def pushed_planning(owner: Bridge) -> tuple[Any, Any, Any] | None:
    """What ``install_planning`` installs, for ``Bridge.implement``; None if it has been installed already."""
    if _planning.get(owner) is None:
        install_planning(owner)
    found = _planning[owner]
    return None if found is None else (*found, owner.helper("Pushed"))


MOST_SHARE = SIZES.join_share_percent / 100
"""Maximum share of a column's values for keys to be few.

With more keys nearly every block holds one of them, and Spark's reader is faster.
"""


def is_selective(plan: Plan, snapshot: Snapshot, column: Field, keys: int) -> bool:
    """Whether this number of keys is likely to exclude most rows, judging by the bounds of the column."""
    rows = int(plan.parts.live_rows.sum())
    ends = _ends(plan, snapshot, column)
    return keys <= MOST_SHARE * min(rows, rows // 10 if ends is None else ends[1] - ends[0] + 1)


MOST_COVERED = COSTS.join_covered_share
"""Maximum share of a column's value range that many keys may cover and still be likely to prune a part."""


def range_is_selective(
    plan: Plan, snapshot: Snapshot, column: Field, keys: int, other: Snapshot, theirs: Field
) -> bool:
    """Whether all values of ``theirs`` in ``other``, at most ``keys``, are likely to prune ``column``.

    True if they are few, if bounds are unknown, or if they cover at most ``MOST_COVERED`` of the column's
    range.
    """
    mine, given = _ends(plan, snapshot, column), _ends(plan, other, theirs)
    if mine is None or given is None or is_selective(plan, snapshot, column, keys):
        return True
    return min(mine[1], given[1]) - max(mine[0], given[0]) + 1 <= MOST_COVERED * (mine[1] - mine[0] + 1)


def _ends(plan: Plan, snapshot: Snapshot, column: Field) -> tuple[int, int] | None:
    """Return the bounds of an integral or DATE column, whose difference limits the number of values, or None.

    None also if the scan must not use statistics.
    """
    if not plan.options.stats_filter:
        return None
    table = snapshot.segment_evidence(frozenset({column.id}))
    found = TableEvidence(table, {schema.schema_id: schema for schema in snapshot.head.schemas}).column((column.id,))
    if found is None or column.type not in {*INTEGRAL, DATE} or not len(table):
        return None
    number = pa.int32() if column.type == DATE else found.lo.type
    lo, hi = pc.min(found.lo.cast(number)).as_py(), pc.max(found.hi.cast(number)).as_py()
    return None if lo is None or hi is None else (int(lo), int(hi))


class Handover:
    """Passes keys from ``filter`` to the ``toBatch`` that Spark calls next in the same thread and execution.

    Several threads may use one scan at once.
    """

    def __init__(self) -> None:
        self._mine = threading.local()

    def put(self, now: str, narrowed: Narrowed | None) -> None:
        """Keep ``narrowed`` for the next batch of the SQL execution ``now``."""
        self._mine.waiting = (now, narrowed)

    def take(self) -> Narrowed | None:
        """Return, once, what was put for the current execution."""
        waiting, self._mine.waiting = getattr(self._mine, "waiting", None), None
        return waiting[1] if waiting is not None and waiting[0] == execution_id() else None


def execution_id() -> str:
    """The id of the SQL execution for which Spark calls in this thread."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    return str(context.getLocalProperty("spark.sql.execution.id")) if context is not None else ""
