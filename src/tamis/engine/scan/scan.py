"""A scan of one snapshot. Immutable and lazy; every read is a separate execution with its own report."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from tamis.core.expr import Column, Expr, check_readable
from tamis.core.types import Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.scan.column_selection import names_of
from tamis.engine.scan.metadata_aggregates import answer_from_metadata, parse_aggregation
from tamis.engine.scan.partial_aggregates import Aggregation, Measure, aggregate_stream, fold_partials
from tamis.engine.scan.reader_fence import check_fence
from tamis.engine.scan.report.scan_report import LAZY_IS_OFF, Report
from tamis.engine.scan.scan_execution import Execution
from tamis.engine.scan.scan_options import Options
from tamis.engine.scan.scan_order import Order
from tamis.engine.scan.scan_plan import Plan, PlanRequest, plan_scan
from tamis.errors import InvalidInput
from tamis.storage.commit_log import Snapshot
from tamis.storage.object_store import Store
from tamis.world import world


@dataclass(slots=True)
class LastExecution:
    """Mutable state that the executions of a scan leave behind."""

    report: Report | None = None
    opened: tuple[int, int, float] = (0, 0, 0.0)
    """Bytes, requests and seconds of opening the snapshot; zeroed once a report includes them."""


@dataclass(frozen=True, slots=True)
class Scan:
    """Rows of one table version, in (segment, part, row) order, under ``selected``."""

    table: str
    store: Store = field(repr=False)
    snapshot: Snapshot = field(repr=False)
    reader: Schema = field(repr=False)
    """The reader's full schema."""
    conjuncts: tuple[Expr, ...] = field(repr=False)
    row_filter: str | None
    selected: Schema = field(repr=False)
    columns: tuple[str, ...]
    """The selected fields as the user gave them."""
    options: Options = field(default_factory=Options, repr=False)
    limit: int | None = None
    order: Order = ()
    """The sort order; only the first ``limit`` rows are read."""
    pinned: bool = field(default=False, repr=False, compare=False)
    """Whether the user asked for this version, by its number or a time."""
    now: tuple[int, int] | None = None
    """The query's instant in microseconds, as an inclusive range; None: the time of execution."""
    _last: LastExecution = field(default_factory=LastExecution, repr=False, compare=False)

    @property
    def version(self) -> int:
        return self.snapshot.version

    @property
    def schema(self) -> pa.Schema:
        """The schema of the output rows."""
        return to_arrow_schema(self.selected)

    @property
    def report(self) -> Report | None:
        """The report of the latest execution, or None before the first."""
        return self._last.report

    def plan(self) -> Plan:
        """Run the funnel, reading metadata only. The plan's report is not added to ``tamis.reports()``."""
        return self._plan(self.now, self.order)

    def explain(self) -> Report:
        """Report what would be read, and why; reads metadata only."""
        report = self.plan().report
        if report.filter is not None and self.options.read_lazy == "off":
            report.reader_reason = LAZY_IS_OFF
        elif report.filter is not None:
            leaders = ", ".join(
                dict.fromkeys(node.name for c in self.conjuncts for node in c.walk() if isinstance(node, Column))
            )
            report.reader, report.reader_reason = (
                "lazy",
                f"leaders: {leaders or 'none'}; decided block by block when rows are read",
            )
        return report

    def to_batches(self) -> pa.RecordBatchReader:
        """Stream the rows in bounded memory; the report is complete when the stream ends or is dropped."""
        execution = self._execute()
        return pa.RecordBatchReader.from_batches(self.schema, execution.batches(self.limit))

    def encoded_batches(self) -> Iterator[pa.RecordBatch]:
        """Stream the rows like ``to_batches``, but leave STRING columns encoded where the file has a dictionary.

        Batches may therefore differ in schema. A sorted scan has plain texts only.
        """
        made = self.plan_read()
        # The sort concatenates batches, which must have one schema.
        return Execution(replace(made, spec=replace(made.spec, dictionaries=not self.order))).batches(self.limit)

    def to_arrow(self) -> pa.Table:
        execution = self._execute()
        return pa.Table.from_batches(execution.batches(self.limit), schema=self.schema)

    def to_pandas(self) -> Any:
        import_optional("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        return import_optional("polars").from_arrow(self.to_arrow())

    def to_duckdb(self, connection: Any = None) -> Any:
        """Return a DuckDB relation over the rows, on ``connection`` or the default one.

        Raises ``InvalidInput`` (``NO_COLUMNS``) for a table without columns, which DuckDB cannot hold.
        """
        return duckdb_relation(self.to_arrow(), connection, self.table)

    def to_spark(self, spark: Any) -> Any:
        """Return the rows as a DataFrame of the session ``spark``, read by its executors."""
        return importlib.import_module("tamis.spark").to_spark(self, spark)

    def count(self) -> int:
        """Count the rows; parts that match entirely are counted from metadata alone."""
        asked = Aggregation((Measure("count", None),))
        made, known = self._answered(asked)
        answered = fold_partials(asked, [known]).column(0)[0].as_py()
        return Execution(made).count(self.limit, answered=answered)

    def aggregate(self, measures: Sequence[str] | str = ("count(*)",), group_by: Sequence[str] | str = ()) -> pa.Table:
        """Return ``count(*)``, ``count(x)``, ``min(x)`` and ``max(x)`` per group of ``group_by``.

        The output has one column per group and measure, under these names, in no particular row order. Parts
        that match entirely and have exact statistics are answered from metadata; the others are read. Without
        measures, returns the distinct groups. Raises ``InvalidInput`` (``BAD_AGGREGATE``) for other measures,
        and for a scan with a limit.
        """
        asked = parse_aggregation(measures, group_by, self.selected)
        if self.limit is not None:
            raise InvalidInput(
                "A scan with a limit has no aggregates.",
                code="BAD_AGGREGATE",
                name="limit",
                remedy="Leave the limit out.",
            )
        made, known = self._answered(asked)
        tables = aggregate_stream(asked, Execution(made).batches())
        return fold_partials(asked, [known, *tables]).rename_columns(
            [*names_of(group_by, "group_by"), *names_of(measures, "measures")]
        )

    def exists(self) -> bool:
        """Test whether any row matches.

        Stops at the first row; reads nothing if metadata shows that a part matches entirely.
        """
        return (
            replace(self, limit=1 if self.limit is None else min(self.limit, 1), order=(), _last=self._last).count() > 0
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self.to_batches())

    def _repr_html_(self) -> str:
        return (self.report or self.explain())._repr_html_()

    def _plan(self, now: tuple[int, int] | None, order: Order, asked: Aggregation | None = None) -> Plan:
        request = PlanRequest(
            conjuncts=self.conjuncts,
            selected=self.selected if asked is None else asked.columns,
            options=self.options,
            now=now,
            limit=self.limit,
            order=order,
            measured=frozenset(f.id for f in asked.columns) if asked else frozenset(),
            table=self.table,
            filter_text=self.row_filter,
            columns=self.columns,
        )
        check_fence(self.snapshot, self.reader, request.selected, self.conjuncts)
        made = plan_scan(self.snapshot, self.store, request)
        opened, self._last.opened = self._last.opened, (0, 0, 0.0)
        made.report.record_planning(*opened[:2])
        made.report.seconds = type(made.report.seconds)(open=opened[2], **made.report.seconds)
        return made

    def _execute(self) -> Execution:
        """Start an execution at one instant; raises the same errors as ``plan_read``."""
        return Execution(self.plan_read())

    def _answered(self, asked: Aggregation) -> tuple[Plan, pa.Table]:
        """Return a plan of the parts that metadata cannot answer, and the partial aggregates of the others.

        Raises the same errors as ``plan_read``.
        """
        made = self._checked((), asked)
        made, known = answer_from_metadata(made, asked, {s.schema_id: s for s in self.snapshot.head.schemas})
        made.guard()
        return made, known

    def plan_read(self) -> Plan:
        """Plan a read at one instant.

        Raises ``InvalidInput`` if the scan can be planned but not read locally, or is too large.
        """
        made = self._checked(self.order)
        made.guard()
        return made

    def _checked(self, order: Order, asked: Aggregation | None = None) -> Plan:
        """Plan at one instant and make its report the latest.

        Raises ``InvalidInput`` if the scan can be planned but not read locally.
        """
        lo, hi = self.now or (instant := world().now_micros(), instant)
        if lo != hi:
            raise InvalidInput(
                "Rows are read at one instant, not over a range.",
                code="NOW_IS_A_RANGE",
                name="now",
                remedy="Give one instant, or use plan() or explain().",
            )
        check_readable(self.conjuncts, lo)
        made = self._plan((lo, hi), order, asked)
        self._last.report = made.report
        return made


def duckdb_relation(rows: Any, connection: Any, table: str) -> Any:
    """Return a DuckDB relation over an Arrow table or dataset. Raises ``InvalidInput`` (``NO_COLUMNS``)."""
    duckdb = import_optional("duckdb")
    if not len(rows.schema):
        raise InvalidInput(
            f"The table {table!r} has no columns, and a DuckDB relation needs one.",
            code="NO_COLUMNS",
            name=table,
            remedy="Add a column, or use to_arrow().",
        )
    return duckdb.from_arrow(rows, **({} if connection is None else {"connection": connection}))


def import_optional(module: str) -> Any:
    """Import an optional package. Raises ``InvalidInput`` (``MISSING_PACKAGE``) if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InvalidInput(
            f"{module} is not installed.", code="MISSING_PACKAGE", name=module, remedy=f"pip install {module}"
        ) from None
