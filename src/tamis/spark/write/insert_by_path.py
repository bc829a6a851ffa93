"""INSERT into a table opened by path (``tamis.open``), with the checks and casts of Spark's own statement."""

from __future__ import annotations

from typing import Any

from tamis.core.expr import TRUE, Expr, conjuncts_of
from tamis.engine.operations import Result
from tamis.errors import InvalidInput
from tamis.spark.catalog.spark_table import SparkTable
from tamis.spark.jvm_bridge.adapter import bridge_of
from tamis.spark.jvm_bridge.session_checks import check_version, is_connect
from tamis.spark.jvm_bridge.spark_types import from_spark
from tamis.spark.write.insert import insert_rows
from tamis.spark.write.session_frames import write_switches
from tamis.storage.commit_log import Operation, Snapshot


def append(table: Any, df: Any, operation: Operation | None = None, *, merge_schema: bool = False) -> Result:
    """``table.append(df)``: columns by name, cast as INSERT does it.

    ``operation`` is what the commit says about itself. ``merge_schema`` first adds the columns that
    ``df`` brings, and widens those that have a wider type there.
    Raises ``SchemaMismatch`` naming the column, with Spark's reason.
    """
    _check_session(df)
    if merge_schema:
        table.merge_columns(from_spark(df._jdf.schema().json()))
    return _statement(table, df, table.write_snapshot(df.columns), None, operation)


def overwrite(
    table: Any,
    df: Any,
    row_filter: str | Expr | None = None,
    *,
    allow_outside: bool = False,
    merge_schema: bool = False,
) -> Result:
    """``table.overwrite(df, row_filter)``: as ``append``, and the rows that the filter matches (None: all) go.

    The filter names columns as ``table`` does, which may be older names. New rows that it does not match are refused
    unless allowed.
    """
    _check_session(df)
    if merge_schema:
        table.merge_columns(from_spark(df._jdf.schema().json()))
    start = table.write_snapshot(df.columns)
    if row_filter is None:
        return _statement(table, df, start, (TRUE,))
    options = write_switches(df.sparkSession, bridge_of(df.sparkSession), {}, start.head)
    found = table.bind_filter(start, row_filter, options)
    replaced = tuple(c for part in found for c in conjuncts_of(part))
    return _statement(table, df, start, replaced, allow_outside=allow_outside)


def _statement(
    table: Any,
    df: Any,
    start: Snapshot,
    replaced: tuple[Expr, ...] | None,
    operation: Operation | None = None,
    *,
    allow_outside: bool = False,
) -> Result:
    handle = SparkTable.opened_by_path(bridge_of(df.sparkSession), table.store, start, df)
    handle.operation = operation or handle.operation
    return insert_rows(handle, df, replaced, allow_outside=allow_outside)


def _check_session(df: Any) -> None:
    if is_connect(df):
        raise InvalidInput(
            "A DataFrame of Spark Connect cannot be written.",
            code="SPARK_CONNECT",
            name="data",
            remedy="Use df.toArrow(), or a classic session.",
        )
    check_version(str(df.sparkSession.version))
