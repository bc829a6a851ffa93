"""Spark as the oracle of the concrete evaluator: many expressions as columns of one projection."""

from __future__ import annotations

import tempfile
from typing import Any

import pyarrow as pa

from tamis.core import expr
from tamis.core.expr import Expr, Mode
from tamis.core.expr.binding.binder import Binder
from tamis.core.expr.syntax import parse_expression
from tests.pruning.trees import SCHEMA


def bound(text: str, zone: str, mode: Mode = Mode.ANSI) -> Expr:
    """Any expression, not only a predicate."""
    return Binder(SCHEMA, zone, mode, text).bind(parse_expression(text))


def plain(column: Any) -> list[Any]:
    """Values that compare: instants, dates, intervals as integers, NaN as a text, −0.0 as 0.0."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type) or pa.types.is_time64(column.type):
        column = column.view(pa.int64())
    elif pa.types.is_date32(column.type):
        column = column.view(pa.int32())
    return ["NaN" if isinstance(v, float) and v != v else v for v in column.to_pylist()]


def differences(spark: Any, rows: pa.Table, exprs: list[tuple[str, Expr]], zone: str, ansi: bool = True) -> list[str]:
    """Where Spark gives another value than we do, or fails where we do not. Rows that fail here are not asked of Spark."""
    batch = {f.id: rows.column(i) for i, f in enumerate(SCHEMA.fields)}
    table, ours, wanted = rows, [], []
    for number, (text, tree) in enumerate(exprs):
        out = expr.evaluate(tree, batch, rows.num_rows)
        good = [True] * rows.num_rows if out.failed is None else (~out.failed).tolist()
        table = table.append_column(f"ok{number}", pa.array(good))
        ours.append([v if g else None for v, g in zip(plain(out.values), good, strict=True)])
        wanted.append(f"CASE WHEN ok{number} THEN {text} END AS c{number}")
    _stored(spark, table).createOrReplaceTempView("oracle_rows")
    spark.conf.set("spark.sql.session.timeZone", zone)
    spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    spark.conf.set("spark.sql.subexpressionElimination.enabled", "false")
    try:
        return _compared(spark, wanted, ours, exprs)
    finally:
        for key in ("session.timeZone", "ansi.enabled", "subexpressionElimination.enabled"):
            spark.conf.unset(f"spark.sql.{key}")


def _stored(spark: Any, table: pa.Table) -> Any:
    """The rows as Spark keeps them, written in UTC: PySpark converts local times by the zone of whoever looks."""
    path = tempfile.mkdtemp() + "/rows"
    frame = spark.createDataFrame(table)
    for f in table.schema:  # PySpark takes local times for instants
        if pa.types.is_timestamp(f.type) and f.type.tz is None:
            frame = frame.withColumn(f.name, frame[f.name].cast("timestamp_ntz"))
    frame.coalesce(1).write.parquet(path)
    return spark.read.parquet(path)


def _compared(spark: Any, wanted: list[str], ours: list[list[Any]], exprs: list[tuple[str, Expr]]) -> list[str]:
    try:
        theirs = [plain(c) for c in spark.sql(f"SELECT {', '.join(wanted)} FROM oracle_rows").toArrow().columns]
    except Exception as error:
        if len(wanted) == 1:
            return [f"{exprs[0][0]}: Spark fails: {str(error)[:300]}"]
        half = len(wanted) // 2
        return _compared(spark, wanted[:half], ours[:half], exprs[:half]) + _compared(
            spark, wanted[half:], ours[half:], exprs[half:]
        )
    out = []
    for (text, _), mine, other in zip(exprs, ours, theirs, strict=True):
        bad = [i for i, (a, b) in enumerate(zip(mine, other, strict=True)) if a != b]
        if bad:
            out.append(f"{text}: row {bad[0]} ({len(bad)}): ours {mine[bad[0]]!r}, Spark {other[bad[0]]!r}")
    return out


def numbered(spark: Any, rows: pa.Table) -> Any:
    """The rows as Spark keeps them, for ``fails`` to choose from."""
    return _stored(spark, rows.append_column("row_number", pa.array(range(len(rows)), pa.int32())))


def fails(spark: Any, frame: Any, row: int, text: str, zone: str) -> bool:
    """Whether Spark raises for this row of a ``numbered`` frame: what is selected is computed of the rows that the filter leaves."""
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame.where(f"row_number = {row}").selectExpr(f"{text} AS c").toArrow()
    except Exception:
        return True
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
    return False
