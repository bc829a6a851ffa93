"""Join keys at run time: the values of a join's small side, known when it has run, narrow the scan of the other side before that is read.

Laws: keys only add conjuncts behind those of the query, so that what they skip is proved as for any filter and no error of the query's own filter is hidden. They hold
for the one execution that brought them: a scan that Spark uses again, or twice in a plan, never sees another's.
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

from tamis.core.expr import Call, Expr, Literals, bound, call
from tamis.core.stats import TableEvidence
from tamis.core.types import BINARY_COLLATION, DATE, INTEGRAL, TIMESTAMP, TIMESTAMP_NTZ, DataType, Decimal, Field, Schema, String
from tamis.core.types.arrow import to_arrow_type
from tamis.engine.scan import Plan
from tamis.errors import TamisError
from tamis.sizes import SIZES
from tamis.spark.executors.partitions import Cut
from tamis.spark.executors.read_task import Task
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.catalyst import known, translate
from tamis.spark.jvm_bridge.catalyst_literals import Strange, array, data_type, same_values
from tamis.storage.commit_log import Snapshot

_FUNCTION = ("java.util.function.BiFunction",)
INTERFACE = "org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering"
MOST_KEYS = SIZES.join_keys
"""Keys up to which they are asked about; a broadcast of more is a table, not a set of keys."""
TASK_BYTES = SIZES.join_key_task_bytes
"""Keys travel with every task. Larger sets prune parts and look up indexes, and leave rows to Spark's join."""


def key_columns(owner: Bridge, schema: Schema) -> Any:
    """References to the columns whose keys can prune. Without floats: what a join calls equal there is not what a list does."""
    if not owner.pinned:
        return []
    names = [f.name for f in schema if _has_order(f.type)]
    return owner.helper("JoinKeys").columns("\0".join(names)) if names else []


def _has_order(kind: DataType) -> bool:
    if isinstance(kind, String):
        return kind.collation == BINARY_COLLATION and kind.kind != "char"
    return kind in {*INTEGRAL, DATE, TIMESTAMP, TIMESTAMP_NTZ} or isinstance(kind, Decimal)


def key_conjuncts(owner: Bridge, predicates: Any, schema: Schema) -> tuple[Expr, ...]:
    """Spark's run-time predicates as conjuncts on columns of ``schema``; those that cannot be said exactly are left out."""
    from py4j.protocol import Py4JError

    try:
        numbers, others = _numbers(base64.b64decode(owner.helper("JoinKeys").numbers(predicates, MOST_KEYS)), schema)
        if not others:
            return numbers
        said = owner.helper("JoinKeys").expressions(predicates, MOST_KEYS)
        found = translate(owner.helper("TreeText").render(said, known()), schema).conjuncts
    except Py4JError:  # values of a kind that Java itself cannot show: keys are advice
        return ()
    return (*numbers, *(c for c in found if isinstance(c, Call) and c.function == "in" and isinstance(c.args[1], Literals)))


def _numbers(packed: bytes, schema: Schema) -> tuple[tuple[Expr, ...], bool]:
    """What ``JoinKeys.numbers`` has packed, each key once and in order, or none of a column of any type; and whether there are other predicates."""
    at = 4 + int.from_bytes(packed[:4], "little")
    others, *words = packed[4:at].decode().split("\0")
    out = []
    for name, kind, count in zip(words[::3], words[1::3], words[2::3], strict=True):
        values = np.frombuffer(packed, "<i8", int(count), at)
        at += values.nbytes
        try:
            column = schema.find(name)[0]
            if not kind:
                keys = pa.array([], to_arrow_type(column.type))
            elif same_values(column.type, data_type(kind)):
                keys = array(column.type, values)
            else:
                continue
            out.append(call("in", bound(schema, (column.id,)), Literals(column.type, keys)))
        except (TamisError, Strange):  # no column of the table, or a type that there is not here
            continue
    return tuple(out), others != "0"


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A scan's plan for one execution's keys. ``name`` is what its tasks are counted under."""

    name: str
    keys: tuple[Expr, ...]
    plan: Plan
    cut: Cut

    def tasks(self) -> list[Task]:
        """As the plan's, each bearing keys: the reader that Spark made earlier does not know them. All where something was proved by them, else the sets that are small enough to travel."""
        keys = self.keys if self.plan.proofs else light(self.keys)
        return [replace(task, scan=self.name, keys=keys) for task in self.cut.tasks()]


def light(keys: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The sets of keys that travel with every task, the smaller ones first: ``TASK_BYTES`` in all. The keys of one join do not keep back those of another."""
    sizes = [c.args[1].array.nbytes if isinstance(c, Call) and isinstance(c.args[1], Literals) else 0 for c in keys]
    order = sorted(range(len(keys)), key=sizes.__getitem__)
    fits = np.cumsum([sizes[at] for at in order]) <= TASK_BYTES
    taken = {at for at, fit in zip(order, fits, strict=True) if fit}
    return tuple(c for at, c in enumerate(keys) if at in taken)


class Worth:
    """Answers ``JoinPlanning``: whether all the values of one scan's column, as keys, can leave out anything of another; a Java ``BiFunction``."""

    def __init__(self, owner: Bridge) -> None:
        self._owner = owner

    def apply(self, key: str, asked: str) -> str:
        column, other, theirs = asked.split("\0")
        scan, keys = self._owner.target_of_key(key), self._owner.target_of_key(other)
        return str(scan is None or keys is None or scan.worth(column, keys, theirs)).lower()


class Twins:
    """Answers ``JoinPlanning``: the twin of a scan that Spark's own reader would read, for where few keys come; a Java ``BiFunction``."""

    def __init__(self, owner: Bridge) -> None:
        self._owner = owner

    def apply(self, key: str, asked: str) -> Any:
        rows, _, column = asked.partition(" ")
        scan = self._owner.target_of_key(key)
        return None if scan is None else scan.twin(column, int(rows))


_planning: weakref.WeakKeyDictionary[Bridge, tuple[Any, Any] | None] = weakref.WeakKeyDictionary()
"""The strategy and the rule of each JVM; None where Spark has other planning classes than those that ``JoinPlanning`` names."""


def plan_with_keys(owner: Bridge) -> None:
    """Sees to it that the active session asks for keys where Spark alone would not, and reads by them where that pays. A later Spark may not let it: its own rules remain."""
    from py4j.protocol import Py4JError

    try:
        if owner not in _planning:
            helper = owner.helper("JoinPlanning")
            rule = helper.rule(owner.implement(_FUNCTION, Worth(owner)))
            _planning[owner] = helper.strategy(owner.implement(_FUNCTION, Twins(owner))), rule
        if (planning := _planning[owner]) is not None:
            owner.plan_with(*planning)
    except Py4JError:
        _planning[owner] = None


MOST_SHARE = SIZES.join_share_percent / 100
"""Of a column's values: where keys are more, nearly every block holds some, and Spark's reader is the faster one."""


def few(plan: Plan, snapshot: Snapshot, column: Field, keys: int) -> bool:
    """Whether so many keys leave most of the rows out, as far as the bounds of the column tell."""
    rows = int(plan.parts.live_rows.sum())
    ends = _ends(snapshot, column)
    return keys <= MOST_SHARE * min(rows, rows // 10 if ends is None else ends[1] - ends[0] + 1)


MOST_COVERED = 0.9
"""Of the range of a column's values that many keys may cover and still leave a part out."""


def worth(plan: Plan, snapshot: Snapshot, column: Field, keys: int, other: Snapshot, theirs: Field) -> bool:
    """Whether all the values of the column ``theirs`` of ``other``, at most ``keys``, are likely to leave anything out as keys: the few, and those of another range."""
    mine, given = _ends(snapshot, column), _ends(other, theirs)
    if mine is None or given is None or few(plan, snapshot, column, keys):
        return True
    return min(mine[1], given[1]) - max(mine[0], given[0]) + 1 <= MOST_COVERED * (mine[1] - mine[0] + 1)


def _ends(snapshot: Snapshot, column: Field) -> tuple[int, int] | None:
    """The bounds of a column that has as many values as lie between them, at most; None of any other."""
    table = snapshot.segment_evidence(frozenset({column.id}))
    found = TableEvidence(table, {schema.schema_id: schema for schema in snapshot.head.schemas}).column((column.id,))
    if found is None or column.type not in {*INTEGRAL, DATE} or not len(table):
        return None
    number = pa.int32() if column.type == DATE else found.lo.type
    lo, hi = pc.min(found.lo.cast(number)).as_py(), pc.max(found.hi.cast(number)).as_py()
    return None if lo is None or hi is None else (int(lo), int(hi))


class Handover:
    """From ``filter`` to the ``toBatch`` that Spark calls next, in the same thread and execution; a scan may be in use by several at once."""

    def __init__(self) -> None:
        self._mine = threading.local()

    def put(self, narrowed: Narrowed | None) -> None:
        self._mine.waiting = (execution(), narrowed)

    def take(self) -> Narrowed | None:
        """What was put for the execution at hand, once."""
        waiting, self._mine.waiting = getattr(self._mine, "waiting", None), None
        return waiting[1] if waiting is not None and waiting[0] == execution() else None


def execution() -> str:
    """The SQL execution on whose behalf Spark calls in this thread."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    return str(context.getLocalProperty("spark.sql.execution.id")) if context is not None else ""
