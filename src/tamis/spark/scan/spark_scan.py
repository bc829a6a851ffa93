"""Spark's ``Scan``, which it plans with; ``spark_batch`` holds the ``Batch``, which it runs.

Invariants: scans are equal iff they read the same columns of the same version under the same filters and
options; ``.cache()`` and exchange reuse compare scans. Planning reads metadata only and produces no report;
executions do (``tamis.spark.scan.scan_metrics``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

from tamis.core.expr import Expr, short_sql
from tamis.core.types import Schema
from tamis.engine.part_reader import runnable_conjuncts
from tamis.engine.scan import Options, Plan
from tamis.engine.scan.column_widths import read_share, width_share
from tamis.engine.scan.metadata_aggregates import answer_from_metadata
from tamis.engine.scan.report.report_text import report_summary
from tamis.spark.executors.partitions import Cut, Sizes
from tamis.spark.executors.read_task import Task, packed_rows
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.catalyst import Translation
from tamis.spark.scan import native_reader as native
from tamis.spark.scan.file_checks import check_files, copy_obstacle
from tamis.spark.scan.filter_contract import FilterContract, contract_of
from tamis.spark.scan.join_key_benefit import beneficial_columns, saves_enough_bytes
from tamis.spark.scan.join_keys import (
    INTERFACE,
    Handover,
    Narrowed,
    execution_id,
    is_selective,
    key_columns,
    key_conjuncts,
    range_is_selective,
)
from tamis.spark.scan.native_audit import audit_native
from tamis.spark.scan.node_metrics import NodeMetrics
from tamis.spark.scan.prepared_scan import Preparation, cached_preparation, is_cacheable, plan_prepared
from tamis.spark.scan.pushdown import NOTHING, aggregate_pays, reduce_to_top
from tamis.spark.scan.scan_answers import answer_maker, estimate_text, known_answers, packed_files
from tamis.spark.scan.scan_metrics import Ledger, Planned, metrics_ledger, scan_id
from tamis.spark.scan.scan_source import ScanRequest, Source
from tamis.spark.scan.spark_batch import Batch, batch_part, made_reader, native_rows, pack_partitions, spark_reader_text
from tamis.spark.streaming.stream_read import MicroBatchStream

SCAN = ("org.apache.spark.sql.connector.read.SupportsReportStatistics",)
KEYED = (*SCAN, INTERFACE)
"""Interfaces of a scan that join keys may narrow."""


class Scan:
    """Spark's ``Scan``, with statistics. The constructor runs the funnel."""

    java_constant: ClassVar = {
        "readSchema": "",
        "columnarSupportMode": "",
        "description": "",
        "estimateStatistics": "",
        "supportedCustomMetrics": "",
        "filterAttributes": "",
        "toBatch": "filter",  # which brings join keys
    }
    java_forgets: ClassVar = {
        "filter": ("reportDriverMetrics",),
        "toMicroBatchStream": ("reportDriverMetrics", "supportedCustomMetrics"),
    }
    """Answers that Java may cache: Spark describes each plan state to listeners, about sixty times per query."""

    def __init__(
        self,
        owner: Bridge,
        source: Source,
        options: Options,
        sizes: Sizes,
        request: ScanRequest,
        plan: Plan | None = None,
    ) -> None:
        self._owner = owner
        self.required = request.required
        self._ledger: Ledger = metrics_ledger(owner)
        self.source, self.options, self.selected = source, options, request.selected
        self.positions, self.pushed, self.metadata = request.positions, request.pushed, request.metadata
        self.changes_rows = request.changes_rows
        self.keyed = request.keyed
        self.sizes = sizes
        self.cost_based = request.cost_based and not (self.changes_rows or self.pushed.aggregation)
        self.join_keys: tuple[Expr, ...] = ()
        self.java_key = ""
        self._top_rows_searched = False
        self.id = scan_id()
        self.read_options: Mapping[str, str] = {}
        """The options of the query as given, including those of a stream."""
        self._handover = Handover()
        self._metrics = NodeMetrics(owner)
        self._runtime_filtered: dict[tuple[str, int], Any] = {}
        self._prepare(request.filters, plan)

    def java(self) -> Any:
        """Make a new Java object for the scan. Executions are identified by its key."""
        self.source.opening.charge(self.plan.report)
        batch = batch_part(self)
        known = answer_maker(self._owner), known_answers(self, batch=batch is not None), self.required
        made, key = self._owner.implement_with_answers(self.interfaces, self, known, batch)
        self.register(key)
        return made

    @property
    def interfaces(self) -> tuple[str, ...]:
        """The Java interfaces to implement.

        Join keys would remove rows that a row change, a pushed limit or an aggregate still needs, so such
        scans do not accept them.
        """
        return SCAN if self.changes_rows or self.pushed != NOTHING else KEYED

    def apply_join_keys(self, join_keys: tuple[Expr, ...]) -> None:
        """Plan the scan again for rows that also satisfy ``join_keys``, which replace those of an earlier call.

        The join must drop all other rows. Call it before Java holds a batch of the scan.
        """
        if join_keys != self.join_keys:
            own = self.filters.conjuncts[: len(self.filters.conjuncts) - len(self.join_keys)]
            self.join_keys = join_keys
            self._prepare(replace(self.filters, conjuncts=(*own, *join_keys)))
            self.register(self.java_key)

    def _prepare(self, filters: Translation, plan: Plan | None = None) -> None:
        """Plan the scan under ``filters`` and choose its reader.

        ``plan``: the known result of the funnel, if any.
        """
        source = self.source
        self.filters = filters
        self.audited: Plan | None = None
        """The plan with the audit's sample if Spark's reader reads: ``_audit`` checks it separately."""
        table = source.snapshot.identity
        kind = self.options, self.positions, self.metadata, self.pushed, self.keyed, self.sizes.steady
        self._key = (*table, self.selected, filters.conjuncts, *kind)
        self.java_identity: str | None = None
        """A text by which Java finds scans equal without asking ``__eq__``."""
        if plan is None and is_cacheable(self):
            cached_preparation(self, self._preparation).apply(self)
        else:
            self._preparation(plan)
        self._readers: dict[bool, Any] = {}
        self.__dict__.pop("partitions", None)

    def _preparation(self, plan: Plan | None = None) -> Preparation:
        """Run the funnel, unless its result ``plan`` is known, decide who reads the rows, and return the decisions."""
        source, options, selected, conjuncts = self.source, self.options, self.selected, self.filters.conjuncts
        self.filter_text = " AND ".join(short_sql(c) for c in conjuncts) or None
        self.plan = self._adapted_plan(plan or plan_prepared(self, conjuncts, replace(options, audit_percent=0.0)))
        self.residual_reason = native.residual_reason(
            self.plan, selected, source.schema, filtered=bool(conjuncts), owned=self.pushed.owned
        )
        self.obstacle = self.pushed.obstacle or native.obstacle(
            self.plan, selected, filtered=self.residual_reason is None
        )
        self.obstacle = self.obstacle or copy_obstacle(self.plan.parts, selected, source.store)
        self.obstacle = self.obstacle or ("the keys of a join come" if self.keyed else None)
        if options.audit_percent and plan is None:
            audited = plan_prepared(self, conjuncts, options)
            if self.native:
                self.audited = audited
            else:
                self.plan = self._adapted_plan(audited)
        self.contract = self._contract()
        self.cut = self._cut(self.plan)
        self.bytes, self.rows = self._bytes_and_rows(self.plan)
        self.offered_keys = self._offered_keys()
        self.spark_reader_text = spark_reader_text(self) if self.native else ("", "")
        self.packed_files = packed_files(self, self.plan, self.cut)
        self._report_native_reader(self.plan)
        return Preparation.of(self)

    def _adapted_plan(self, plan: Plan) -> Plan:
        """``plan`` with positions, or reduced to the parts whose partial aggregates metadata does not answer."""
        if self.positions:
            plan = replace(plan, spec=replace(plan.spec, positions=True))
        self.answer, self.pays = b"", True
        if self.pushed.aggregation is None:
            return plan
        left, known = answer_from_metadata(plan, self.pushed.aggregation, plan.spec.part_schemas)
        self.answer, self.pays = packed_rows(known), aggregate_pays(self.pushed.aggregation, plan, left)
        return left

    def _contract(self) -> FilterContract:
        """The filter contract. Raises ``AssertionError`` if nobody would test one of the conjuncts."""
        return contract_of(
            self.filters.conjuncts,
            owned=self.pushed.owned,
            join_keys=self.join_keys,
            evaluated=None if self.native else runnable_conjuncts(self.plan.spec),
            every_row_matches=native.every_row_matches(self.plan),
            requested=frozenset(f.id for f in self.selected),
        )

    def _cut(self, plan: Plan) -> Cut:
        lazy = not self.native and self.options.read_lazy != "off"
        read = read_share(self.selected, plan.spec.conjuncts, self.source.schema, lazy=lazy)
        return Cut(plan, self.sizes, share=read, divisible=not self.native, anywhere=self.native)

    def _report_native_reader(self, plan: Plan) -> None:
        if self.native:
            why = "asked for" if self.options.read_lazy == "native" else self.residual_reason
            done = "bytes are estimated" if len(plan.parts) else "nothing was read"
            plan.report.reader, plan.report.reader_reason = "native", f"{why}; {done}"

    def _bytes_and_rows(self, plan: Plan) -> tuple[int, int]:
        """Bytes of the selected columns in a plan's parts, and their live rows."""
        return int(plan.parts.bytes * width_share(self.selected, self.source.schema)), int(plan.parts.live_rows.sum())

    @property
    def native(self) -> bool:
        """Whether Spark's own Parquet reader reads this scan."""
        return self.obstacle is None

    @property
    def bytes_read(self) -> int:
        """Bytes of data files and indexes read by its execution, which has ended and is not reported yet."""
        return self._ledger.bytes_of(self.id) + int(self.plan.report.bytes["index"])

    def register(self, key: str) -> None:
        """Register the scan in the ledger under the key of its Java object."""
        self.java_key = key
        self.source.opening.charge(self.plan.report)
        planned = Planned(
            self.id,
            self.plan.report,
            max(len(self.cut), self.pushed.aggregation is not None),
            self.bytes,
            self.rows,
            self.native,
        )
        self._ledger.record_plan(key, planned)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scan) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key[:4])

    def __str__(self) -> str:
        return self.description()

    def check(self, narrowed: Narrowed | None = None) -> bool:
        """Check the scan, or ``narrowed``, before it is read. Return whether Spark's reader may skip pages.

        Raises ``InvalidInput`` (``SCAN_TOO_LARGE``), and ``CorruptData`` if Spark's reader would read a
        damaged part.
        """
        self._search_top_rows()
        plan = self.plan if narrowed is None else narrowed.plan
        plan.guard()
        if not self.native:
            return False
        sound = check_files(plan.parts, self.source.store) and not native.has_repeated(self.selected)
        if self.audited is not None and narrowed is None:
            self._audit(self.audited, sound)
        return sound

    def _audit(self, audited: Plan, pages: bool) -> None:
        """Audit what Spark's reader is about to read. After a violation, the Python reader reads instead."""
        reader = made_reader(self, pages)  # a separate one: after reading, Spark cannot send it to executors
        self.audited = None
        if not audit_native(audited, self.plan.report, lambda ref: native_rows(self, reader, ref)):
            audited.report.violations = self.plan.report.violations
            self.plan, self.obstacle = audited, "an audit found something wrong"
            self.contract, self.cut = self._contract(), self._cut(audited)
            self._readers.clear()
            self.register(self.java_key)

    def _search_top_rows(self) -> None:
        """Reduce a top-N scan to rows that may be in the top N, once: when it first runs, not for EXPLAIN."""
        if not self._top_rows_searched and self.pushed.order:
            order = Schema(tuple(by.field for by in self.pushed.order))
            self.plan = reduce_to_top(self.plan, width_share(order, self.source.schema))
            self.cut = self._cut(self.plan)
            self.__dict__.pop("partitions", None)  # cut from the whole plan, they would lack the candidate rows
            self.register(self.java_key)
        self._top_rows_searched = True

    # --- what executors get; adaptive execution requests it more than once ---

    @property
    def tasks(self) -> list[Task]:
        """The tasks. Aggregates have at least one, which returns what metadata answers."""
        return self.cut.tasks() or ([Task(0, ())] if self.pushed.aggregation is not None else [])

    @cached_property
    def partitions(self) -> Any:
        """A Java array of input partitions."""
        return pack_partitions(self, self.tasks)

    def reader(self, *, pages: bool) -> Any:
        """The Java ``PartitionReaderFactory``, made once. ``pages``: whether page indexes may be trusted."""
        if pages not in self._readers:
            self._readers[pages] = made_reader(self, pages)
        return self._readers[pages]

    # --- Scan, SupportsReportStatistics ---

    def readSchema(self) -> Any:  # noqa: N802
        return self.required

    def description(self) -> str:
        reader = "Spark's Parquet reader" if self.native else f"Python ({self.obstacle})"
        return (
            f"tamis version {self.source.snapshot.version}, {report_summary(self.plan.report)}, "
            f"filter: [{self.filter_text or ''}], reader: {reader}"
        )

    def estimateStatistics(self) -> Any:  # noqa: N802
        return self._owner.helper("ScanAnswers").estimate(estimate_text(self))

    def supportedCustomMetrics(self) -> Any:  # noqa: N802
        return self._metrics.declared()

    def reportDriverMetrics(self) -> Any:  # noqa: N802
        return self._metrics.values_for(execution_id, self.plan.report)

    def columnarSupportMode(self) -> str:  # noqa: N802
        return "PARTITION_DEFINED" if self.native else "UNSUPPORTED"

    def toBatch(self) -> Any:  # noqa: N802
        return Batch(self, self._handover.take()).java()

    # --- SupportsRuntimeV2Filtering ---

    def filterAttributes(self) -> str:  # noqa: N802
        return self.offered_keys

    def _offered_keys(self) -> str:
        """The columns whose join keys may pay off, as ``filterAttributes`` returns them."""
        if self.interfaces is not KEYED:
            return ""
        keys = beneficial_columns(self.plan, self.source.snapshot, self.selected, size=self.bytes, native=self.native)
        return key_columns(self._owner, keys)

    def filter(self, predicates: Any) -> None:
        """Take the join keys of one execution. The next batch reads only what can hold them."""
        now = execution_id()
        self._handover.put(now, self._plan_with_keys(now, key_conjuncts(self._owner, predicates, self.source.schema)))

    def runtime_filtered(self, column: str, keys: int) -> Any:
        """A Java scan of the same rows that reads by keys, made once; None to use this scan.

        There is one if ``keys`` keys for ``column`` are likely to exclude most rows.
        """
        if (column, keys) not in self._runtime_filtered:
            self._runtime_filtered[column, keys] = self._make_runtime_filtered(column, keys)
        return self._runtime_filtered[column, keys]

    def keys_are_selective(self, column: str, keys: Scan, theirs: str) -> bool:
        """Whether all values of the column ``theirs`` of the scan ``keys`` are likely to prune this scan."""
        mine, other = self.source.schema.find(column)[0], keys.source.schema.find(theirs)[0]
        return range_is_selective(
            self.plan, self.source.snapshot, mine, int(keys.plan.parts.live_rows.sum()), keys.source.snapshot, other
        )

    def _make_runtime_filtered(self, column: str, keys: int) -> Any:
        f = self.source.schema.find(column)[0]
        if (
            not self.native
            or self.options.read_lazy == "native"
            or not is_selective(self.plan, self.source.snapshot, f, keys)
            or not saves_enough_bytes(self.plan, self.source.snapshot, self.selected, f)
        ):
            return None
        report = self.plan.report.for_execution()
        report.reader, report.reader_reason = "eager", "nothing was read"
        known = replace(self.plan, report=report)
        request = ScanRequest(self.filters, self.selected, self.required, keyed=True)
        made = Scan(self._owner, self.source, self.options, self.sizes, request, known)
        made.read_options = self.read_options
        return made.java()

    def _plan_with_keys(self, now: str, keys: tuple[Expr, ...]) -> Narrowed | None:
        if not keys:
            return None
        options = self.options
        if self.native:  # Spark's reader checks no proofs and reads no single rows
            options = replace(options, audit_percent=0.0, index_use="off")
        plan = plan_prepared(self, (*self.filters.conjuncts, *keys), options)
        plan.report.record_join(self.plan.report)
        self._report_native_reader(plan)
        made = Narrowed(scan_id(), keys, plan, self._cut(plan))
        size, rows = self._bytes_and_rows(plan)
        self._metrics.record_report(now, plan.report)
        planned = Planned(made.name, plan.report, len(made.cut), size, rows, self.native)
        self._ledger.record_keyed_plan(self.java_key, now, planned)
        return made

    def toMicroBatchStream(self, checkpoint: str) -> Any:  # noqa: N802
        self._metrics.streams = True
        return MicroBatchStream(self, self.read_options, checkpoint).java()
