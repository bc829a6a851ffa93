"""INSERT: Spark passes the rows as a DataFrame (its V1 write), so writing is a normal PySpark pipeline."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from tamis.core.expr import TRUE, Call, Expr
from tamis.core.expr.functions.cast.java_decimals import prints_exponents
from tamis.core.expr.portable_values import needs_spark
from tamis.engine.operations import Result
from tamis.engine.scan import Options
from tamis.errors import InvalidInput, SchemaMismatch, TamisError
from tamis.spark.catalog.loaded_table import LoadedTable, PendingWrite
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.catalyst import translate_filters
from tamis.spark.jvm_bridge.node_settings import zone_table
from tamis.spark.jvm_bridge.spark_errors import offending_column, unsupported_statement
from tamis.spark.options.source_options import Use, read_options, refuse_settings
from tamis.spark.write import spark_write as write
from tamis.spark.write.node_metrics import NodeMetrics
from tamis.spark.write.own_reads import find_own_reads
from tamis.spark.write.session_frames import python_frame, write_switches

_WRITE = "org.apache.spark.sql.connector.write."
_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."

Filter = tuple[Expr, ...] | None


@dataclass(eq=False)
class WriteBuilder:
    """Spark's write builder.

    ``replaced``: None to append, else conjuncts for the rows to replace (TRUE for all).
    """

    table: LoadedTable
    options: dict[str, str] = field(default_factory=dict)
    replaced: Filter = None

    def __post_init__(self) -> None:
        self.metrics = NodeMetrics(self.table.bridge)

    def java(self) -> Any:
        return self.table.bridge.implement([_WRITE + "SupportsOverwriteV2"], self)

    def canOverwrite(self, predicates: Any) -> bool:  # noqa: N802, ARG002  # Spark's name; overwrite rejects
        return True

    def overwrite(self, predicates: Any) -> Any:
        found = tuple(c for p in predicates for c in translate_predicate(self.table, p))
        return replace(self, replaced=found).java()

    def truncate(self) -> Any:
        return replace(self, replaced=(TRUE,)).java()

    def build(self) -> Any:
        return self.table.bridge.implement([_WRITE + "V1Write"], V1Write(self))

    def __str__(self) -> str:
        return f"tamis write to {self.table}"


@dataclass(eq=False)
class V1Write:
    builder: WriteBuilder

    def toInsertableRelation(self) -> Any:  # noqa: N802  # Spark's name
        read_options(self.builder.options, {Use.WRITE_TABLE}, by_path=self.builder.table.by_path)
        return self.builder.table.bridge.implement(
            ["org.apache.spark.sql.sources.InsertableRelation"], Insert(self.builder)
        )

    def toStreaming(self) -> Any:  # noqa: N802  # Spark's name
        read_options(self.builder.options, {Use.WRITE_STREAM}, by_path=self.builder.table.by_path)
        refuse_settings(self.builder.options, "A stream")
        if self.builder.replaced is not None:
            raise unsupported_statement("Output mode Complete", "Append rows, or overwrite the table in foreachBatch.")
        return self.builder.table.streaming_write()

    def description(self) -> str:
        return str(self.builder)

    def supportedCustomMetrics(self) -> Any:  # noqa: N802  # Spark's name
        return self.builder.metrics.declared()

    def reportDriverMetrics(self) -> Any:  # noqa: N802  # Spark's name
        return self.builder.metrics.values()

    def __str__(self) -> str:
        return str(self.builder)


@dataclass(eq=False)
class Insert:
    builder: WriteBuilder

    def insert(self, java_df: Any, overwrite: bool) -> None:  # noqa: ARG002  # Spark always says false here
        table = self.builder.table
        df = python_frame(java_df)
        options = write_switches(df.sparkSession, table.bridge, self.builder.options, table.head)
        try:
            table.result = self.builder.metrics.result = self.write(df, table, options)
        except TamisError as error:
            table.failure = error
            raise

    def write(self, df: Any, table: LoadedTable, options: Options) -> Result | None:
        replaced = self.builder.replaced
        chosen = None if replaced is None or replaced == (TRUE,) else replaced
        own = find_own_reads(df, table, options)
        pending = table.pending_write
        if pending is not None and (pending.allow_outside or options.write_outside == "auto"):
            options = replace(options, write_outside="allow" if pending.allow_outside else "refuse")
        manifests = write.write_rows(df, table.store, table.head, options, chosen)
        if replaced is None:
            return write.commit_rows(
                table.store,
                table.snapshot,
                table.head,
                manifests,
                table.operation,
                spark=df.sparkSession,
                options=options,
                own=own,
            )
        return write.overwrite_rows(
            df.sparkSession,
            table.store,
            table.snapshot,
            table.head,
            manifests,
            chosen,
            options,
            reads_all=own is not None,
        )


def translate_predicate(table: LoadedTable, java_predicate: Any) -> tuple[Expr, ...]:
    """Translate a data source predicate to conjuncts of the filter language.

    Nobody evaluates them again. Raises ``InvalidInput`` (``BAD_FILTER``) if only Spark can compute one of them.
    """
    bridge = table.bridge
    found = bridge.scala_object("org.apache.spark.sql.catalyst.expressions.V2ExpressionUtils").toCatalyst(
        java_predicate
    )
    if found.isEmpty():
        raise _unusable(java_predicate, "Spark gives no expression for it")
    # Spark's own analysis of the filter over the table resolves names and types.
    asked = bridge.new(_LOGICAL + "Filter", found.get(), _relation(table))
    session = bridge.active_session()._jsparkSession
    condition = session.sessionState().executePlan(asked, _command_mode(bridge)).analyzed().condition()
    text = bridge.helper("TreeText").render(bridge.seq([condition]), "")
    conjuncts = translate_filters(text, table.logical_schema, zone_table(bridge)).conjuncts
    ansi = session.sessionState().conf().ansiEnabled()
    if any(needs_spark(one) or not (ansi or _is_mode_free(one)) for one in conjuncts):
        raise _unusable(java_predicate, "its value can differ between releases of Java, or modes")
    return conjuncts


def _unusable(java_predicate: Any, why: str) -> InvalidInput:
    shown = java_predicate.toString()
    return InvalidInput(
        f"The filter {shown!r} cannot be used here: {why}.",
        code="BAD_FILTER",
        name=shown,
        remedy="Use comparisons, IN and null tests; or DELETE the rows by it, and INSERT the others.",
    )


def _is_mode_free(conjunct: Expr) -> bool:
    """Return whether no cast depends on the mode, which data source predicates do not carry."""
    casts = (node for node in conjunct.walk() if isinstance(node, Call) and node.function == "cast")
    return not any(prints_exponents(node.args[0].type, node.type) for node in casts)


def run_insert(table: LoadedTable, df: Any, replaced: Filter, *, allow_outside: bool = False) -> Result:
    """Run INSERT of ``df`` into ``table``, columns by name, with all of Spark's checks.

    Raises what Spark raises, and our own errors unchanged.
    """
    bridge = table.bridge
    spark = df.sparkSession._jsparkSession
    plan, empty = df._jdf.queryExecution().logical(), bridge.cls("scala.collection.immutable.Map$")
    options = getattr(empty, "MODULE$").empty()
    target = table.for_write(PendingWrite(replaced, allow_outside))
    evolution = (False,) if bridge.has_method(_LOGICAL + "AppendData$", "byName", 4) else ()
    statement = bridge.scala_object(_LOGICAL + "AppendData").byName(_relation(target), plan, options, *evolution)
    try:
        spark.sessionState().executePlan(statement, _command_mode(bridge)).assertCommandExecuted()
    except Exception:
        if target.failure is not None:
            raise target.failure from None
        raise
    assert target.result is not None
    return target.result


def insert_rows(table: LoadedTable, df: Any, replaced: Filter, *, allow_outside: bool = False) -> Result:
    """Run ``run_insert``, but raise ``SchemaMismatch`` naming the column if the data does not fit the table."""
    from pyspark.errors import AnalysisException

    try:
        return run_insert(table, df, replaced, allow_outside=allow_outside)
    except AnalysisException as error:
        condition = error.getCondition() or ""
        if condition.startswith(
            (
                "INCOMPATIBLE_DATA_FOR_TABLE",
                "INSERT_COLUMN_ARITY_MISMATCH",
                "AMBIGUOUS_REFERENCE",
                "COLUMN_ALREADY_EXISTS",
            )
        ):
            raise SchemaMismatch(
                str(error).strip(),
                name=offending_column(error.getMessageParameters() or {}) or table.name(),
                remedy="Rename, cast or add columns so that the data fits the table.",
                code="DATA_MISMATCH",
            ) from error
        raise


def _relation(table: LoadedTable) -> Any:
    none = table.bridge.scala_object("scala.None")
    relation = table.bridge.scala_object("org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation")
    return relation.create(table.java(), none, none)


def _command_mode(bridge: Bridge) -> Any:
    return bridge.scala_object("org.apache.spark.sql.execution.CommandExecutionMode").ALL()
