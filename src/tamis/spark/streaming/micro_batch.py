"""One micro-batch of a stream: the parts between two positions, pruned by the filters above them.

Invariants: Spark's own filter stays above the relation and tests every row again. A micro-batch is planned
under its own filters, in which Spark has replaced ``current_timestamp()`` by the batch's instant. Filters never
move a position.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, ClassVar

from tamis.core.expr import Expr, short_sql
from tamis.core.schema import check_table_reader
from tamis.core.types import Schema
from tamis.engine.operations.streaming.range_plan import plan_ranges
from tamis.engine.operations.streaming.stream_source import Follower, Position
from tamis.engine.scan import Counts, Options, Plan, PlanRequest
from tamis.engine.scan.report.report_text import report_summary
from tamis.engine.scan.skip_audit import audit_is_strict
from tamis.errors import InvalidInput
from tamis.spark.executors.partitions import Cut, pack_tasks
from tamis.spark.executors.read_task import Read
from tamis.spark.executors.row_metadata import METADATA, PART, POSITION
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.spark_types import to_spark
from tamis.spark.jvm_bridge.sql_metrics import declared_metrics, metric_values
from tamis.spark.scan.node_metrics import STREAM_METRICS, planning_metrics
from tamis.spark.scan.python_source import python_reader, worker_metrics
from tamis.spark.scan.scan_metrics import Planned, metrics_ledger, scan_id
from tamis.spark.streaming.query_filters import translated_filters
from tamis.spark.streaming.running_query import local_property
from tamis.storage.commit_log import load

if TYPE_CHECKING:
    from tamis.spark.scan.spark_scan import Scan

STREAM = "org.apache.spark.sql.connector.read.streaming."
INTERFACES = (STREAM + "MicroBatchStream", STREAM + "SupportsTriggerAvailableNow")
_SCANNED = (*INTERFACES, "org.apache.spark.sql.connector.read.Scan")
_METRIC = "org.apache.spark.sql.connector.metric.CustomMetric"
_FUNCTION = ("java.util.function.BiFunction",)


class MicroBatch:
    """Spark's ``MicroBatchStream`` as a single micro-batch reads it, and its ``Scan``, whose metrics a node shows.

    It equals the ``origin``, the stream that Spark knows, and all other micro-batches of it, because Spark counts
    the rows of a source by it. Spark also takes scans for the same if their streams are equal, and compares
    projections by the positions of columns. So the plans of micro-batches with different columns must differ:
    ``StreamFilters`` gives each set of columns a number.
    """

    java_constant: ClassVar = {"description": "planInputPartitions", "supportedCustomMetrics": ""}

    def __init__(self, origin: object, scan: Scan, follower: Follower, conjuncts: tuple[Expr, ...], selected: Schema):
        self._scan, self._owner, self._follower = scan, scan._owner, follower
        self.origin = origin
        self._conjuncts, self._selected = conjuncts, selected
        self._name = scan_id()
        self._plan: Plan | None = None
        self.java_key = self._name

    def java(self) -> Any:
        """Make the Java object. Executions are reported under its key."""
        made, self.java_key = self._owner.implement_with_key(_SCANNED, self)
        return made

    # --- Scan ---

    def readSchema(self) -> Any:  # noqa: N802
        return self._owner.struct_type(to_spark(self._selected))

    def description(self) -> str:
        """Spark asks for it in each state of a plan, also before the parts are planned."""
        return str(self) if self._plan is None else f"{self}, {report_summary(self._plan.report)}"

    def supportedCustomMetrics(self) -> Any:  # noqa: N802
        return self._owner.make_once("metrics", "stream", self._declared)

    def _declared(self) -> Any:
        """A Java array of what planning reports, and of what Spark's Python readers report for each task."""
        planned = declared_metrics(self._owner, STREAM_METRICS)
        return self._owner.array(_METRIC, [*planned, *worker_metrics(self._owner)])

    def reportDriverMetrics(self) -> Any:  # noqa: N802
        """Spark calls this after ``planInputPartitions``."""
        return metric_values(
            self._owner, STREAM_METRICS, {} if self._plan is None else planning_metrics(self._plan.report)
        )

    # --- MicroBatchStream ---

    def planInputPartitions(self, start: Any, end: Any) -> Any:  # noqa: N802  # Spark's name
        """Plan the parts between two offsets.

        Raises ``SchemaFenced``, and ``InvalidInput`` (``SCAN_TOO_LARGE``).
        """
        scan, source = self._scan, self._scan.source
        check_table_reader(load(source.store).head.schemas, self._selected)
        here, there = Position.from_json(start.json()), Position.from_json(end.json())
        ranges = self._follower.ranges(here, there)
        request = range_request(scan, self._conjuncts, self._selected, scan.options)
        plan = self._plan = plan_ranges(ranges, source.store, request)
        plan.report.stream = Counts(
            query=local_property("sql.streaming.queryId"), batch=_number(local_property("streaming.sql.batchId")),
            start=here.to_json(), end=there.to_json(),
        )  # fmt: skip
        cut = Cut(plan, scan.cut.sizes)
        planned = Planned(
            self._name, plan.report, len(cut), plan.parts.bytes, int(plan.parts.live_rows.sum()), False, True
        )
        metrics_ledger(self._owner).record_plan(self.java_key, planned)
        plan.guard()
        return self._owner.helper("Partitions").python(pack_tasks(cut.tasks()))

    def createReaderFactory(self) -> Any:  # noqa: N802  # Spark's name
        """Return the reader. Spark calls this after ``planInputPartitions``."""
        assert self._plan is not None
        read = Read(self._name, self._plan.spec, metrics_ledger(self._owner).accumulator, strict=audit_is_strict())
        return python_reader(self._owner, read, self._owner.struct_type(to_spark(self._selected)))

    def __eq__(self, other: object) -> bool:
        return self.origin is (other.origin if isinstance(other, MicroBatch) else other)

    def __hash__(self) -> int:
        return id(self.origin)

    def __str__(self) -> str:
        return f"tamis stream of {self._scan.source.name}, filter: [{' AND '.join(map(short_sql, self._conjuncts))}]"


def range_request(scan: Scan, conjuncts: tuple[Expr, ...], selected: Schema, options: Options) -> PlanRequest:
    """The plan request of a range. Rows on which a conjunct fails are kept, since Spark tests every row again."""
    text = " AND ".join(short_sql(c) for c in conjuncts) or None
    name = scan.source.name
    return PlanRequest(
        conjuncts=conjuncts, selected=selected, options=options, errors="keep", table=name, filter_text=text
    )


class Batches:
    """Java ``BiFunction`` that gives ``StreamFilters`` the stream of one micro-batch, and the number of its columns."""

    def __init__(self, owner: Bridge) -> None:
        self._owner = owner

    def apply(self, key: str, asked: Any) -> Any:
        stream = self._owner.target_of_key(key)
        if stream is None or not hasattr(stream, "batch"):
            return None
        schema = stream.schema
        columns = frozenset(self._owner.texts(asked.columns()))
        selected = Schema(tuple(f for f in schema if f.name in columns), schema.schema_id)
        if hidden := (columns - {f.name for f in schema}) & {METADATA, PART, POSITION}:
            raise InvalidInput(
                f"A stream does not read the metadata column {min(hidden)}.",
                code="UNSUPPORTED_READ",
                name=min(hidden),
                remedy="Read the table by spark.read, or leave it out.",
            )
        if len(selected) != len(columns):
            return None
        conjuncts = translated_filters(self._owner, asked.filters(), schema)
        return [stream.batch(conjuncts, selected).java(), stream.column_set_number(asked.end(), selected)]


_strategies: weakref.WeakKeyDictionary[Bridge, Any] = weakref.WeakKeyDictionary()


def plan_with_filters(owner: Bridge) -> None:
    """Install ``StreamFilters`` in the active session, that of a streaming query.

    If a later Spark does not allow it, a stream reads all parts.
    """
    from py4j.protocol import Py4JError

    try:
        if owner not in _strategies:
            _strategies[owner] = owner.helper("StreamFilters").strategy(owner.implement(_FUNCTION, Batches(owner)))
        if _strategies[owner] is not None:
            owner.install_strategy(_strategies[owner])
    except Py4JError:
        _strategies[owner] = None


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
