"""Hints of a filter let Spark's own Parquet reader skip, leave out no row, and hide no error."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.core.expr import Call, Column, Literal, Literals, conjuncts_of, parse_predicate
from tamis.core.types import BOOLEAN, DATE, DOUBLE, INTEGER, LONG, STRING, TIMESTAMP, Field, Schema, String
from tamis.core.types import Decimal as DecimalType
from tamis.spark.jvm_bridge.wire_format import NUL
from tamis.spark.scan.parquet_filter import MOST_VALUES, filter_hints, hints_cover_filter

ROWS = 20_000
COLUMNS = Schema(
    (
        Field("n", LONG),
        Field("i", INTEGER),
        Field("d", DATE),
        Field("at", TIMESTAMP),
        Field("p", DecimalType(9, 2)),
        Field("s", STRING),
        Field("x", DOUBLE),
        Field("c", String("char", 5)),
        Field("u", String(collation="UNICODE")),
        Field("odd name", LONG),
    )
).assign_ids(0)


def hints_of(text: str, *written: Schema | None) -> str:
    return filter_hints(conjuncts_of(parse_predicate(text, COLUMNS)), written or (COLUMNS,)).replace("\0", " ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("n > 5", "gt n long 5"),
        ("5 > n", "lt n long 5"),
        ("n = 5 AND i <= 7", "eq n long 5 le i integer 7"),
        ("d >= DATE '1500-01-01'", "ge d date -171664"),
        ("at < TIMESTAMP '1969-12-31 23:59:59.999999Z'", "lt at timestamp -1"),
        ("p = 1.50BD", "eq p decimal 1.50"),
        ("s IN ('a', 'b')", "in s string 2 a b"),
        ("startswith(s, 'ab')", "starts_with s string ab"),
        ("n IS NULL", "is_null n"),
        ("n IS NOT NULL", "is_not_null n"),
        ("n = 1 OR i = 2", "or eq n long 1 eq i integer 2"),
        ("(n = 1 AND x > 0) OR i = 2", "or eq n long 1 eq i integer 2"),  # an AND may lose a side
        ("n = 1 OR x > 0", ""),  # an OR may not
        ("n <> 5", ""),
        ("NOT (n > 5)", ""),
        ("n > i", ""),
        ("n IN (1, NULL)", ""),
        ("n = NULL", ""),
        ("x > 5", ""),
        ("x = 0.0", ""),
        ("c = 'a'", ""),
        ("u = 'a'", ""),
        ("endswith(s, 'a')", ""),
        ("`odd name` = 3", ""),
        (
            "n = 1 AND 10 / i > 1 AND s = 'a'",
            "eq n long 1",
        ),  # nothing of a conjunct that can fail, and nothing behind it
        ("10 / i > 1 AND n = 1", ""),
        ("(n = 1 AND 10 / i > 1) OR s = 'a'", ""),
    ],
)
def test_what_is_told(text: str, words: str) -> None:
    assert hints_of(text) == words


def test_whole_is_what_is_told_to_its_end() -> None:
    def whole(text: str) -> bool:
        return hints_cover_filter(conjuncts_of(parse_predicate(text, COLUMNS)), [COLUMNS])

    assert whole("n > 5 AND (s = 'a' OR d < DATE '2020-01-01')")
    assert not whole("n > 5 AND x > 1")
    assert not whole("(n = 1 AND x > 0) OR i = 2")


def test_a_column_is_told_by_the_one_name_that_all_parts_have_for_it() -> None:
    n, other = COLUMNS.fields[0], Field("n", LONG, id=99)
    renamed = Schema((Field("old", LONG, id=n.id),), 1)
    assert hints_of("n > 5", renamed) == "gt old long 5"
    assert hints_of("n > 5", COLUMNS, renamed) == ""
    assert hints_of("n > 5", Schema((other,), 1)) == ""  # dropped and added again: the parts' n is another column
    assert hints_of("n > 5", Schema((Field("n", INTEGER, id=n.id),), 1)) == ""
    assert hints_of("n > 5", COLUMNS, None) == ""


def test_constants_without_a_plain_text_are_not_told() -> None:
    n, s = (Column(kind, (COLUMNS.find(name)[0].id,), name) for kind, name in ((LONG, "n"), (STRING, "s")))
    many = Call(BOOLEAN, "in", (n, Literals(LONG, pa.array(range(MOST_VALUES + 1)))))
    assert filter_hints([many], [COLUMNS]) == ""
    assert filter_hints([Call(BOOLEAN, "eq", (s, Literal(STRING, "a" + NUL + "b")))], [COLUMNS]) == ""
    other = String(collation="UNICODE")
    assert (
        filter_hints(
            [Call(BOOLEAN, "eq", (Column(other, (COLUMNS.find("u")[0].id,), "u"), Literal(other, "a")))], [COLUMNS]
        )
        == ""
    )
    assert filter_hints([Call(BOOLEAN, "eq", (s, Literal(STRING, "")))], [COLUMNS]) == NUL.join(
        ["eq", "s", "string", ""]
    )


pages = pytest.mark.spark
NAMES = ["n", "b", "i", "d", "at", "local", "p", "big", "s", "x"]


def _rows(first: int) -> pa.Table:
    """Rising values with NULLs, and at the ends of pages what files' statistics are wrong about most easily: NaN, zeros, the last and first values of a type, days before 1582, bytes above 127."""
    n = np.arange(first, first + ROWS)
    x = n.astype(np.float64)
    x[::2048], x[5::2048], x[7::4096] = np.nan, -0.0, np.inf
    words = [f"{i:06}" for i in n]
    words[2047::2048] = ["é", "\U0001f600", "", "zz\uffff", "Z", "~", "\x7f", "a", "b"][: len(words[2047::2048])]
    gone = n % 11 == 0
    days = (n - 160_000).astype(np.int32)  # from 1531 on
    columns = {
        "n": pa.array(n, mask=gone),
        "b": pa.array((n // 300 % 256 - 128).astype(np.int8)),
        "i": pa.array(np.where(n % 4096 == 0, 2**31 - 1, n).astype(np.int32)),
        "d": pa.array(days, mask=gone).cast(pa.date32()),
        "at": pa.array(n * 86_400_000_000 - 13_000_000_000_000_000).cast(pa.timestamp("us", "UTC")),
        "local": pa.array(n * 1_000_000).cast(pa.timestamp("us")),
        "p": pa.array([Decimal(int(i)) / 100 - 100 for i in n], pa.decimal128(9, 2)),
        "big": pa.array([Decimal(int(i)) - 12_000 for i in n], pa.decimal128(30, 0)),
        "s": pa.array(words, mask=gone),
        "x": pa.array(x),
    }
    return pa.table(columns)


@pytest.fixture(scope="module")
def two(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Create ``hinted.db.t`` of two parts, and a view ``hinted_plain`` of the same rows.

    Before the second part, ``n`` became ``m``, and ``i`` was dropped and added again.
    """
    folder = tmp_path_factory.mktemp("hinted")
    tamis.attach(spark, "hinted", folder / "lake")
    spark.sql("CREATE NAMESPACE hinted.db")
    first, second = _rows(0), _rows(ROWS)
    table = tamis.create(folder / "lake" / "db" / "t", first.schema)
    table.append(first)
    table.alter().rename_column("n", "m").drop_column("i").commit()
    table.alter().add_column("i", pa.int32()).commit()
    again = second.column("i").cast(pa.int64()).cast(pa.int32())
    table.append(second.drop_columns(["i"]).rename_columns({"n": "m"}).append_column("i", again))
    now = first.drop_columns(["i"]).append_column("i", pa.nulls(ROWS, pa.int32())).rename_columns({"n": "m"})
    plain = pa.concat_tables([now, second.drop_columns(["i"]).append_column("i", again).rename_columns({"n": "m"})])
    pq.write_table(plain, folder / "plain.parquet")
    spark.read.option("mergeSchema", "false").parquet(str(folder / "plain.parquet")).createOrReplaceTempView(
        "hinted_plain"
    )
    spark.sql(
        f"CREATE TABLE hinted.db.one ({', '.join(f'{f.name} {_kind(f.type)}' for f in first.schema)}) USING tamis"
    )
    tamis.open(folder / "lake" / "db" / "one").append(first)
    yield spark
    spark.catalog.dropTempView("hinted_plain")


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    names = {
        "int64": "BIGINT",
        "int8": "TINYINT",
        "int32": "INT",
        "date32[day]": "DATE",
        "timestamp[us, tz=UTC]": "TIMESTAMP",
    }
    return {**names, "timestamp[us]": "TIMESTAMP_NTZ", "string": "STRING", "double": "DOUBLE"}[str(kind)]


FILTERS = [
    "{n} = 20000", "{n} > 39990", "{n} <= 3", "{n} IS NULL AND b > 100", "{n} IN (1, 16383, 16384, 20001, 39999)", "{n} BETWEEN 16380 AND 16390 OR {n} > 39998",
    "b = 127", "b = -128", "b > 126", "i = 2147483647", "i IS NULL", "i < 100", "i IS NOT NULL AND {n} < 17000",
    "d = DATE '1582-10-14'", "d < DATE '1531-12-20'", "d >= DATE '1582-10-04' AND d < DATE '1582-10-16'", "at < TIMESTAMP '1558-01-31 00:00:00'", "at = TIMESTAMP '1582-10-10 00:00:00'",
    "at > TIMESTAMP '1667-01-01 12:00:00.000001'", "local = TIMESTAMP_NTZ '1970-01-01 00:00:07'", "p = -0.01", "p < -99.98", "p > 299.97", "p = 0", "p IN (-100.00, 99.99, 100.00)",
    "big = 0", "big < -11998", "big > 27997", "s = 'é'", "s > 'é'", "s > '~'", "s = ''", "s < '000002'", "s LIKE 'zz%'", "s LIKE '0163%'", "s IN ('a', '039999')", "s > 'Z' AND s < 'b'",
    "x = 0.0", "x > 39990", "isnan(x)", "x >= double('NaN')", "x < 1", "{n} = 1 OR x > 39998", "{n} > 39000 AND b = 3 AND s IS NOT NULL",
]  # fmt: skip


@pytest.mark.merge
@pages
def test_rows_are_those_of_spark_without_filters_told(two: Any) -> None:
    one = tuple(two.read.table("hinted.db.one").columns)
    two.conf.set("spark.sql.parquet.filterPushdown", "false")
    try:
        wanted = two.sql(_counts("hinted_plain", "m")).first()
        first = two.sql(_counts("hinted.db.one", "n")).first()
    finally:
        two.conf.set("spark.sql.parquet.filterPushdown", "true")
    assert one == tuple(NAMES)
    for filter_, count in zip(FILTERS, wanted, strict=True):
        assert _found(two, "hinted.db.t", filter_, "m") == count, filter_
    for filter_, count in zip(FILTERS, first, strict=True):
        assert _found(two, "hinted.db.one", filter_, "n") == count, filter_


def _counts(table: str, name: str) -> str:
    return f"SELECT {', '.join(f'count_if({f.format(n=name)})' for f in FILTERS)} FROM {table}"


def _found(spark: Any, table: str, filter_: str, name: str) -> int:
    return len(
        spark.sql(f"SELECT s FROM {table} WITH ('tamis.read.lazy' = 'native') WHERE {filter_.format(n=name)}").toArrow()
    )


@pages
def test_a_session_that_reads_parquet_by_rows_finds_columns_by_their_ids_too(two: Any) -> None:
    asked = "SELECT m, i FROM hinted.db.t WITH ('tamis.read.lazy' = 'native') WHERE m IN (1, 20001)"
    for name in ("spark.sql.parquet.enableVectorizedReader", "spark.sql.parquet.enableNestedColumnVectorizedReader"):
        two.conf.set(name, "false")
        try:
            assert sorted(tuple(row) for row in two.sql(asked).collect()) == [(1, None), (20_001, 20_001)]
            assert tamis.reports(1)[0].reader == "native"
        finally:
            two.conf.unset(name)


@pages
def test_spark_skips_row_groups_and_pages(two: Any) -> None:
    for filter_, most in (
        ("d >= DATE '1582-10-04' AND d < DATE '1582-10-16'", 2_048 * 2),
        ("p = -0.01", 2_048),
        ("s = '000013'", 2_048 * 2),
        ("n < 5000", 5 * 2_048),
    ):
        two.sql(f"SELECT n, s FROM hinted.db.one WITH ('tamis.read.native_bytes' = '8MB') WHERE {filter_}").collect()
        report = next(r for r in tamis.reports() if r.table == "hinted.db.one")
        assert (report.reader, report.rows["total"]) == ("native", ROWS)
        assert 0 < report.rows["matched"] <= most, filter_


@pages
def test_an_error_is_not_hidden(two: Any) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        two.sql(
            "SELECT s FROM hinted.db.one WITH ('tamis.read.lazy' = 'native') WHERE 1 / (b + 100) > -9 AND n = 19000"
        ).collect()
