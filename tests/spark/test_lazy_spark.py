"""Lazy reading through Spark, where Spark has a part in it: functions of its own, its settings, its time zone, and what fails in its SELECT list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tamis
from tamis.engine.scan import Report

pytestmark = pytest.mark.spark

ROWS, PRIME = 20_000, 40_009
COLUMNS = [
    "id n",
    f"(id * 7919) % {PRIME} k",
    "IF(id = 77, 'none', CAST(id AS STRING)) s",
    "timestamp_seconds(1704067200 + id * 3600) at",
    *(f"sha2(CAST(id + {i} AS STRING), 256) f{i}" for i in range(6)),
]


@pytest.fixture(scope="module")
def table(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two parts; ``k`` matches no statistics, ``n`` rises; ``s`` is a number as text, but for one row of the first part. The same rows plain beside it."""
    home = tmp_path_factory.mktemp("lazily")
    tamis.attach(spark, "lazily", str(home / "lake"))
    spark.sql("CREATE NAMESPACE lazily.db")
    followers = ", ".join(f"f{i} STRING" for i in range(6))
    spark.sql(
        f"CREATE TABLE lazily.db.t (n BIGINT, k BIGINT, s STRING, at TIMESTAMP, {followers}) USING tamis CLUSTER BY (n)"
    )
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")  # readers have other zones
    try:
        for first in (0, ROWS):
            spark.range(first, first + ROWS, 1, 1).selectExpr(*COLUMNS).writeTo("lazily.db.t").append()
        spark.range(0, 2 * ROWS, 1, 1).selectExpr(*COLUMNS).write.parquet(str(home / "plain"))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.read.parquet(str(home / "plain")).createOrReplaceTempView("lazily_plain")
    yield "lazily.db.t"
    spark.catalog.dropTempView("lazily_plain")


@pytest.fixture
def asked(spark: Any, table: str) -> Callable[[str], tuple[list[Any], Report]]:
    """The rows of a query in order, and the report of its one scan."""

    def run(query: str) -> tuple[list[Any], Report]:
        before = tamis.reports()
        rows = sorted(map(tuple, spark.sql(query).collect()))
        new = []
        for report in tamis.reports(1_000):
            if before and report is before[0]:
                break
            new.append(report)
        (mine,) = [report for report in new if report.table == table]
        return rows, mine

    return run


@pytest.mark.merge
def test_a_function_registered_in_spark_is_left_to_spark(spark: Any, table: str, asked: Any) -> None:
    """Beside a filter that is read it is asked of the survivors alone, and laziness stays; in an OR it is asked of every row, and all columns are read."""
    calls = spark.sparkContext.accumulator(0)

    def odd(n: int) -> bool:
        calls.add(1)
        return n % 2 == 1

    spark.udf.register("lazily_odd", odd, "boolean")
    wanted = ", ".join(str(7919 * n % PRIME) for n in range(100, 40_000, 20_001))  # a row of either part
    expected = [n for n in range(100, 40_000, 20_001) if n % 2]
    base = asked(f"SELECT * FROM {table} WITH ('tamis.read.lazy' = 'off') WHERE k IN ({wanted}) AND lazily_odd(n)")[1]
    calls.value = 0
    rows, report = asked(f"SELECT * FROM {table} WHERE k IN ({wanted}) AND lazily_odd(n)")
    assert [row[0] for row in rows] == expected
    assert calls.value == 2
    assert report.reader == "lazy"
    assert 0 < report.bytes.follower < 0.5 * base.bytes.follower
    calls.value = 0
    rows, report = asked(f"SELECT n, f1 FROM {table} WHERE k IN ({wanted}) OR lazily_odd(n)")
    assert [row[0] for row in rows] == [n for n in range(2 * ROWS) if n % 2 or n in range(100, 40_000, 20_001)]
    assert calls.value >= 2 * ROWS - 2  # whether it is asked of rows whose other leg is true is Spark's to say
    assert report.reader != "lazy"
    assert report.reader_reason


def test_a_session_switches_lazy_reading_off(spark: Any, table: str, asked: Any) -> None:
    """It chooses the reader, a query's own option goes before it, and it changes no row."""
    query = f"SELECT n, f0 FROM {table}{{}} WHERE k = {7919 * 77 % PRIME}"
    found = {}
    for value in ("off", "on", None):
        if value:
            spark.conf.set("tamis.read.lazy", value)
        try:
            found[value] = asked(query.format(""))
            if value == "off":
                found["option"] = asked(query.format(" WITH ('tamis.read.lazy' = 'on')"))
        finally:
            spark.conf.unset("tamis.read.lazy")
    assert {name: report.reader for name, (_, report) in found.items()} == {
        "off": "eager",
        "option": "lazy",
        "on": "lazy",
        None: "lazy",
    }
    assert "tamis.read.lazy is off" in found["off"][1].reader_reason
    assert len({str(rows) for rows, _ in found.values()}) == 1


@pytest.mark.parametrize("zone", ["America/New_York", "Pacific/Apia"])
def test_a_session_of_another_zone_than_the_writers(spark: Any, table: str, zone: str) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        for condition in (
            "hour(at) = 2 AND month(at) = 3",
            "CAST(at AS DATE) = DATE'2024-11-03'",
            "at < TIMESTAMP'2024-01-01 08:30:00'",
        ):
            query = f"SELECT n, CAST(at AS STRING) FROM {{}} WHERE {condition} ORDER BY n"
            rows = [spark.sql(query.format(source)).collect() for source in (table, "lazily_plain")]
            assert rows[0] == rows[1]
            assert rows[0] or "01-01" in condition
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.push_cases(2)
@pytest.mark.parametrize(
    ("columns", "condition", "fails"),
    [
        ("n, CAST(s AS INT) x", f"n >= {ROWS}", False),
        ("n, 100 DIV (n - 77) x", f"k = {7919 * 78 % PRIME}", False),
        ("n, CAST(s AS INT) x", f"k = {7919 * 77 % PRIME}", True),
        ("n, 100 DIV (n - 77) x", "n < 100", True),
        ("sum(CAST(s AS INT)) n, 1 x", f"n >= {ROWS} AND k > 5", False),
        ("count(100 DIV (n - 77)) n, 1 x", "n BETWEEN 70 AND 80", True),
    ],
)
def test_what_fails_in_the_select_list(spark: Any, table: str, columns: str, condition: str, fails: bool) -> None:
    """It fails over a row that the filter keeps, and only then: as over plain files, of which none is skipped."""
    from pyspark.errors import PySparkException

    found = []
    for source in (table, "lazily_plain"):
        try:
            found.append(sorted(map(tuple, spark.sql(f"SELECT {columns} FROM {source} WHERE {condition}").collect())))
        except PySparkException as error:
            found.append(error.getCondition())
    assert found[0] == found[1]
    assert isinstance(found[0], str) == fails, found
