"""Casts of decimals and texts in filters give the rows of plain Parquet, in each mode, and DELETE takes just those.

Spark takes long decimals to small integers through doubles, and prints small ones with an exponent outside of ANSI.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.conftest import Lake

import tamis
from tamis.core.expr import Column, Expr, Literal, make_call
from tamis.core.types import STRING
from tamis.spark.jvm_bridge.catalyst_literals import Inexpressible
from tamis.spark.jvm_bridge.catalyst_patterns import read_like

pytestmark = pytest.mark.spark

LOG = "2024-03-05 10:00:01 ERROR boom\n  at x.y(Z.java:3)"
ROWS: list[tuple[str, str, str, str, str, float]] = [
    ("0.999999999999999999", "99999999.9999999999", "0.99999999999999999", "0E20", LOG, 1.5),
    ("-0.999999999999999999", "2147483647.9999999999", "0.5", "0E37", "2024-03-05T\n", 2.5),
    ("0", "-2147483648.9999999999", "0", "0E38", "2024-03-05 \n", 2.0**60),
    ("0.0000001", "127.9999999999", "0.00000000000000001", "-0.0E+3", "2024-03-05", 0.0),
    ("127.999999999999999999", "32767.9999999999", "0.12345678901234567", "1E2", "x\n", -1.0),
    ("1.000000000000000000", "1.0000000000", "0.9", "12.345", "2024-03-06\n", 1e9),
]
SCHEMA = pa.schema(
    [
        ("k", pa.int32()),
        ("m", pa.decimal128(38, 18)),
        ("w", pa.decimal128(20, 10)),
        ("n", pa.decimal128(17, 17)),
        ("s", pa.string()),
        ("line", pa.string()),
        ("d", pa.float64()),
    ]
)
EVERYWHERE = [
    "try_cast(m AS INT) = 1",
    "try_cast(m AS INT) = 0",
    "try_cast(m AS TINYINT) IS NULL",
    "try_cast(m AS TINYINT) = 127",
    "try_cast(w AS INT) = 100000000",
    "try_cast(w AS INT) = 2147483647",
    "try_cast(w AS INT) IS NULL",
    "try_cast(w AS SMALLINT) IS NULL",
    "try_cast(w AS BIGINT) = 2147483647",
    "try_cast(n AS INT) = 0",
    "try_cast(m + w AS INT) > 99999999",
    "try_cast(m * 2 AS INT) = 2",
    "try_cast(try_cast(m AS STRING) AS DOUBLE) < 1e-6",
    "try_cast(m AS STRING) LIKE '%E-%'",
    "length(try_cast(n AS STRING)) < 6",
    "try_cast(s AS DECIMAL(10,2)) = 0",
    "try_cast(s AS DECIMAL(10,2)) IS NULL",
    "try_cast(line AS DATE) = DATE'2024-03-05'",
    "try_cast(line AS DATE) IS NULL",
    "year(try_to_date(line)) = 2024",
]
BY_MODE = [
    "CAST(m AS INT) = 1",
    "CAST(m AS INT) = 0",
    "CAST(m AS BIGINT) = 0",
    "CAST(m AS STRING) = '0E-18'",
    "CAST(m AS STRING) = '0.000000000000000000'",
    "CAST(m AS STRING) LIKE '%E-%'",
    "CAST(m AS STRING) IN ('1.00000000000E-7', 'x')",
    "NOT CAST(m AS STRING) LIKE '0.%'",
    "concat(m, '') = '0E-18'",
    "length(CAST(n AS STRING)) > 10",
    "CAST(d AS DECIMAL(38,0)) = 1152921504606847000",
    "CAST(d AS DECIMAL(38,0)) = 1152921504606846976",
]
LEGACY = [
    "CAST(w AS INT) > 99999999",
    "CAST(line AS DATE) = DATE'2024-03-05'",
    "to_date(line) = DATE'2024-03-05'",
    "line >= DATE'2024-03-01'",
    "CAST(s AS DECIMAL(10,2)) = 0",
    "m IN ('0E-18')",
]


def rows() -> pa.Table:
    columns = list(zip(*ROWS, strict=True))
    numbers = [[Decimal(text) for text in column] for column in columns[:3]]
    return pa.table([pa.array(range(len(ROWS)), pa.int32()), *numbers, *columns[3:]], schema=SCHEMA)


@pytest.fixture(params=["parts of one row", "one part"])
def numbers(lake: Lake, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Lake, tamis.Table, Any]]:
    """A table, and its rows as plain Parquet without pushdown."""
    table = tamis.create(lake.folder / "db" / "t", SCHEMA)
    size = 1 if request.param == "parts of one row" else len(ROWS)
    for start in range(0, len(ROWS), size):
        table.append(rows().slice(start, size))
    pq.write_table(rows(), tmp_path / "plain.parquet")
    before = lake.spark.conf.get("tamis.read.lazy", None)
    lake.spark.conf.set("tamis.read.lazy", "on")
    plain = lake.spark.read.parquet(str(tmp_path / "plain.parquet")).cache()
    yield lake, table, plain
    plain.unpersist()
    if before is None:
        lake.spark.conf.unset("tamis.read.lazy")
    else:
        lake.spark.conf.set("tamis.read.lazy", before)


@pytest.fixture(params=[True, False], ids=["ansi", "legacy"])
def ansi(spark: Any, request: pytest.FixtureRequest) -> Iterator[bool]:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", str(request.param).lower())
    yield request.param
    spark.conf.set("spark.sql.ansi.enabled", before)


def keys(frame: Any, text: str) -> list[int]:
    return sorted(row[0] for row in frame.where(text).select("k").collect())


def test_filters_give_the_rows_of_plain_parquet(numbers: tuple[Lake, tamis.Table, Any], ansi: bool) -> None:
    lake, _, plain = numbers
    table = lake.spark.table(f"{lake.name}.db.t")
    for text in (*EVERYWHERE, *BY_MODE, *(() if ansi else LEGACY)):
        assert keys(table, text) == keys(plain, text), text


@pytest.mark.push_cases(8)
@pytest.mark.parametrize("text", [*BY_MODE, "try_cast(m AS INT) = 1", "try_cast(line AS DATE) = DATE'2024-03-05'"])
def test_delete_takes_the_rows_that_spark_finds(lake: Lake, tmp_path: Path, text: str, ansi: bool) -> None:
    table = tamis.create(lake.folder / "db" / "t", SCHEMA)
    table.append(rows())
    pq.write_table(rows(), tmp_path / "plain.parquet")
    gone = keys(lake.spark.read.parquet(str(tmp_path / "plain.parquet")).cache(), text)
    lake.sql(f"DELETE FROM lake.db.t WHERE {text}")
    left = sorted(row[0] for row in lake.rows("SELECT k FROM lake.db.t"))
    assert left == sorted(set(range(len(ROWS))) - set(gone)), ansi


def test_embedded_scans_cast_as_spark_does(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", SCHEMA)
    table.append(rows())
    found = {
        text: sorted(table.scan(text, ["k"]).to_arrow()["k"].to_pylist())
        for text in (
            "CAST(m AS INT) = 1",
            "try_cast(w AS INT) = 100000000",
            "try_cast(line AS DATE) = DATE'2024-03-05'",
        )
    }
    assert list(found.values()) == [[0, 5], [0], [0, 1, 2, 3]]


@pytest.mark.parametrize(
    "text",
    ["CAST(m AS SMALLINT) = 127", "CAST(m AS INT) = 127", "CAST(w AS STRING) = '1.0000000000'", "CAST(m AS INT) < 0"],
)
def test_what_must_still_prune(tmp_path: Path, text: str) -> None:
    table = tamis.create(tmp_path / "t", SCHEMA)
    for at in range(len(ROWS)):
        table.append(rows().slice(at, 1))
    assert table.scan(text).plan().report.parts.kept <= 1


@pytest.mark.parametrize("pattern", ["_😀", "%😀_%x", "a😀%b%c"])
def test_patterns_with_characters_of_two_units_are_not_read(pattern: str) -> None:
    class Caller:
        def call(self, function: str, node: dict[str, Any], args: tuple[Expr, ...]) -> Expr:
            return make_call(function, *args)

    column = Column(STRING, (1,), "s")
    assert read_like(Caller(), {"p": {}}, (column, Literal(STRING, "_é%"))) == make_call(
        "like", column, Literal(STRING, "_é%")
    )
    with pytest.raises(Inexpressible):
        read_like(Caller(), {"p": {}}, (column, Literal(STRING, pattern)))


def test_patterns_with_characters_of_two_units_give_the_rows_of_spark(lake: Lake) -> None:
    lake.sql("CREATE TABLE lake.db.u (s STRING)")
    lake.sql("INSERT INTO lake.db.u VALUES ('x😀'), ('y'), ('😀')")
    view = lake.spark.sql("SELECT * FROM VALUES ('x😀'), ('y'), ('😀') AS t(s)")
    for text in ("s LIKE '_😀'", "s NOT LIKE '_😀'", "s LIKE '😀%'", "s LIKE '%😀_%x'"):
        expected = sorted(tuple(row) for row in view.where(text).collect())
        assert sorted(lake.rows(f"SELECT s FROM lake.db.u WHERE {text}")) == expected, text
