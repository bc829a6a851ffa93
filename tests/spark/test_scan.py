"""A query through the catalog gives the rows that plain Spark gives over the same rows in Parquet, and reads fewer parts for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.spark.conftest import Lake
from tests.spark.frames import rows_of

import tamis
from tamis.engine.part_writer import write_part
from tamis.spark.scan.spark_scan import Scan

pytestmark = pytest.mark.spark

WEEKS = 12
ROWS = f"""
SELECT id,
  timestamp'2024-01-01 00:00:00' + make_dt_interval(0, 0, cast(id * 20 as int)) ts,
  cast(id % 97 as int) user,
  if(id % 11 = 0, NULL, concat(substr('abcdefghijkl', cast(id / 504 as int) + 1, 1), '-', id)) name,
  if(id % 13 = 0, double('NaN'), id / 7D) x,
  cast(id / 3 as decimal(12, 3)) price,
  if(id % 17 = 0, NULL, named_struct('kind', concat('k', cast(id / 1008 as int)), 'size', id)) item,
  cast(id / 504 as int) week
FROM range({WEEKS * 504})
"""


@pytest.fixture(scope="module")
def events(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A table of twelve appends, a week each, clustered by time; the view ``plain`` holds the same rows in Spark's own Parquet."""
    root = tmp_path_factory.mktemp("scan")
    tamis.attach(spark, "scans", str(root / "lake"))
    spark.sql(ROWS).write.parquet(str(root / "plain"))
    plain = spark.read.parquet(str(root / "plain"))
    plain.createOrReplaceTempView("plain")
    spark.sql("CREATE NAMESPACE IF NOT EXISTS scans.db")
    spark.sql(
        "CREATE TABLE scans.db.events (id BIGINT, ts TIMESTAMP, user INT, name STRING, x DOUBLE, price DECIMAL(12,3), "
        "item STRUCT<kind: STRING, size: BIGINT>, week INT) USING tamis CLUSTER BY (ts)"
    )
    table = tamis.open(root / "lake" / "db" / "events")
    rows = plain.orderBy("ts").toArrow()
    for week in range(WEEKS):
        table.append(rows.slice(week * 504, 504))
    before = spark.conf.get("spark.sql.parquet.filterPushdown")
    spark.conf.set("spark.sql.parquet.filterPushdown", "false")
    yield "scans.db.events"
    spark.conf.set("spark.sql.parquet.filterPushdown", before)
    spark.catalog.dropTempView("plain")


@contextmanager
def conf(spark: Any, **settings: str) -> Iterator[None]:
    names = {key.replace("__", "."): value for key, value in settings.items()}
    before = {name: spark.conf.get(name, None) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)


PRUNED = {
    "ts >= '2024-03-11'": 3,
    "ts BETWEEN '2024-01-20' AND '2024-01-25'": 2,
    "ts < '2024-01-05' OR ts > '2024-03-20'": 3,
    "week = 3": 1,
    "week IN (1, 5, 7)": 3,
    "week > 3 AND week < 4": 0,
    "NOT (week < 10)": 2,
    "id > 5900": 2,
    "id <= 100 AND user = 5": 1,
    "name LIKE 'c%'": 1,
    "name = 'd-1600'": 1,
    "price > 2000.5": 1,
    "item.size = 4000": 1,
    "item.kind = 'k2'": 3,
    "x IS NULL": 0,
    "id IS NULL": 0,
    "week IS NULL OR week = 11": 1,
    "date_trunc('MONTH', ts) = timestamp'2024-02-01'": 6,
    "year(ts) = 2023": 0,
    "week + 1 > 12": 1,
    "cast(week AS STRING) = '4' AND week > 3": 8,
    "coalesce(week, 0) = 2": 12,
    "ts > timestamp'2024-03-18' - INTERVAL 3 DAYS": 2,
}
"""Conditions, and how many of the twelve parts may be read at most."""

WHOLE = [
    "user = 5",
    "x > 100",
    "x = 'NaN'",
    "name IS NULL",
    "soundex(name) = 'B000'",
    "hash(id) % 7 = 3 AND week < 9",
    "item IS NULL AND name IS NOT NULL",
    "user IN (1, 2, 3) OR name LIKE '%7'",
]


@pytest.mark.parametrize("condition", [*PRUNED, *WHOLE])
@pytest.mark.push_cases(12)
def test_rows_are_those_of_spark(spark: Any, events: str, condition: str) -> None:
    expected = rows_of(spark.sql(f"SELECT * FROM plain WHERE {condition}"))
    for lazy in ("on", "off", "native"):
        with conf(spark, tamis__read__lazy=lazy):
            assert rows_of(spark.sql(f"SELECT * FROM {events} WHERE {condition}")) == expected, lazy


@pytest.mark.push_cases(8)
@pytest.mark.parametrize(("condition", "most"), PRUNED.items())
def test_parts_that_cannot_match_are_not_read(spark: Any, events: str, condition: str, most: int) -> None:
    spark.sql(f"SELECT user FROM {events} WHERE {condition}").collect()
    (report,) = tamis.reports()
    assert report.parts["total"] == WEEKS
    assert report.parts["kept"] <= most
    assert report.parts["kept"] == report.parts["total"] - sum(
        v for k, v in report.parts.items() if k.startswith("skipped")
    )


@pytest.mark.parametrize("lazy", ["auto", "off", "native"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM {t}",
        "SELECT count(*), count(name), sum(id), max(ts), min(price) FROM {t}",
        "SELECT user, count(*) n FROM {t} GROUP BY user",
        "SELECT 1 one FROM {t} WHERE week = 2 AND user = 3",
        "SELECT max(item.size), count(item) FROM {t}",
        "SELECT item.kind, week FROM {t} WHERE item.size > 6000",
        "SELECT a.id, b.id other FROM {t} a JOIN {t} b ON a.id = b.id + 504 WHERE a.week = 3 AND b.week < 4",
        "SELECT count(*) FROM {t} a JOIN {t} b ON a.id = b.id",
        "SELECT id FROM {t} WHERE x > (SELECT avg(x) FROM {t} WHERE NOT isnan(x)) AND week > 10",
        "SELECT id FROM {t} WHERE user IN (SELECT user FROM {t} WHERE week = 0 AND user < 3) AND week = 5",
        "SELECT id FROM {t} WHERE week = 4 UNION ALL SELECT id FROM {t} WHERE week = 9",
        "SELECT name FROM {t} ORDER BY id DESC LIMIT 7",
        "SELECT id, row_number() OVER (PARTITION BY week ORDER BY id) r FROM {t} WHERE user = 7",
    ],
)
@pytest.mark.push_cases(7)
def test_queries_agree(spark: Any, events: str, query: str, lazy: str) -> None:
    expected = rows_of(spark.sql(query.format(t="plain")))
    for adaptive in ("true", "false"):
        with conf(spark, tamis__read__lazy=lazy, spark__sql__adaptive__enabled=adaptive):
            assert rows_of(spark.sql(query.format(t=events))) == expected


def test_rows_come_in_the_order_of_parts(spark: Any, events: str) -> None:
    with conf(spark, tamis__read__lazy="off"):
        ids = [r.id for r in spark.sql(f"SELECT id FROM {events} WHERE week < 6").collect()]
    assert ids == list(range(6 * 504))


def test_sparks_reader_reads_a_part_in_several_tasks(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By ranges of bytes: each row once, in order, and what the report says is of the whole."""
    monkeypatch.setattr(write_part, "block_rows_for", lambda *_: 1_024)
    spark.sql("CREATE TABLE scans.db.pieces (id BIGINT, x DOUBLE) USING tamis")
    table = tamis.open(Path(_warehouse(spark)) / "db" / "pieces")
    for first, rows in ((0, 30_000), (30_000, 100), (30_100, 9_900)):
        ids = np.arange(first, first + rows)
        table.append(pa.table({"id": ids, "x": np.random.default_rng(first).random(rows)}))
    sizes = {"spark__sql__files__maxPartitionBytes": "65536", "spark__sql__files__openCostInBytes": "1024"}
    for query, kept in (
        ("SELECT * FROM scans.db.pieces", range(40_000)),
        ("SELECT * FROM scans.db.pieces WHERE id >= 7", range(7, 40_000)),
    ):
        with conf(spark, **sizes):
            frame = spark.sql(query)
            assert frame.rdd.getNumPartitions() > 3
            assert [row.id for row in frame.collect()] == list(kept)
        assert tamis.reports(1)[0].reader == "native"


def test_an_error_of_the_filter_is_sparks_own(spark: Any, events: str) -> None:
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        spark.sql(f"SELECT id FROM {events} WHERE cast(name AS INT) = 3 AND week = 2").collect()


def test_a_conjunct_before_it_shields_an_error(spark: Any, events: str) -> None:
    assert spark.sql(f"SELECT id FROM {events} WHERE week = 99 AND cast(name AS INT) = 3").collect() == []


def test_the_plan_shows_what_is_read(spark: Any, events: str) -> None:
    text = spark.sql(f"SELECT id FROM {events} WHERE week = 3")._jdf.queryExecution().toString()
    assert f"parts: 1 of {WEEKS}" in text
    assert "week = 3" in text


def test_statistics_reach_the_optimiser(spark: Any, events: str) -> None:
    def estimate(query: str) -> Any:
        return spark.sql(query)._jdf.queryExecution().optimizedPlan().collectLeaves().head().stats()

    whole, one = estimate(f"SELECT * FROM {events}"), estimate(f"SELECT * FROM {events} WHERE week = 3")
    with conf(spark, spark__sql__cbo__enabled="true"):
        assert estimate(f"SELECT * FROM {events}").rowCount().get() == WEEKS * 504
    assert one.sizeInBytes() < whole.sizeInBytes() / 6
    assert estimate(f"SELECT week FROM {events}").sizeInBytes() < whole.sizeInBytes() / 4


def test_a_cached_query_is_read_once(spark: Any, events: str) -> None:
    cached = spark.sql(f"SELECT id, user FROM {events} WHERE week = 3").cache()
    try:
        cached.count()
        again = spark.sql(f"SELECT id, user FROM {events} WHERE week = 3")
        assert "InMemoryTableScan" in again._jdf.queryExecution().executedPlan().toString()
    finally:
        cached.unpersist()


def test_equal_scans_share_an_exchange(spark: Any, events: str) -> None:
    side = f"(SELECT user, count(*) n FROM {events} WHERE week = 3 GROUP BY user)"
    with conf(spark, spark__sql__adaptive__enabled="false", spark__sql__autoBroadcastJoinThreshold="-1"):
        plan = (
            spark.sql(f"SELECT * FROM {side} a JOIN {side} b ON a.user = b.user AND a.n = b.n")
            ._jdf.queryExecution()
            .executedPlan()
        )
    assert "ReusedExchange" in plan.toString()


@pytest.mark.parametrize(
    ("query", "equal"),
    [
        ("SELECT id FROM {t} WHERE week = 3", True),
        ("SELECT id FROM {t} WHERE week = 4", False),
        ("SELECT id, user FROM {t} WHERE week = 3", False),
        ("SELECT id FROM {t} VERSION AS OF 5 WHERE week = 3", False),
        ("SELECT id FROM {t} WITH ('tamis.stats.filter' = 'off') WHERE week = 3", False),
    ],
)
def test_scans_are_equal_where_they_read_the_same(spark: Any, events: str, query: str, equal: bool) -> None:
    def scan(text: str) -> Any:
        return spark.sql(text.format(t=events))._jdf.queryExecution().optimizedPlan().collectLeaves().head().scan()

    one, other = scan("SELECT id FROM {t} WHERE week = 3"), scan(query)
    assert one.equals(other) is equal
    assert one.toBatch().equals(other.toBatch()) is equal
    assert not equal or one.hashCode() == other.hashCode()


def scans_in(frame: Any) -> list[Any]:
    leaves = frame._jdf.queryExecution().optimizedPlan().collectLeaves()
    return [leaves.apply(at).scan() for at in range(leaves.size())]


def test_java_compares_scans_without_asking_python(spark: Any, events: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark compares hundreds of pairs to plan a query of thirty scans."""

    def asked(*_: object) -> bool:
        raise AssertionError("Java asked")

    monkeypatch.setattr(Scan, "__eq__", asked)
    monkeypatch.setattr(Scan, "__hash__", lambda _: 1)
    plan = spark.sql(f"SELECT id FROM {events} WHERE week = 3 UNION ALL SELECT id FROM {events} WHERE week = 3")
    one, other = scans_in(plan)
    assert one.equals(other)
    assert one.toBatch().equals(other.toBatch())


def test_options_of_a_query_come_first(spark: Any, events: str) -> None:
    def kept(query: str) -> str:
        return spark.sql(query)._jdf.queryExecution().executedPlan().toString()

    assert f"parts: {WEEKS} of {WEEKS}" in kept(
        f"SELECT id FROM {events} WITH ('tamis.stats.filter' = 'off') WHERE week = 3"
    )
    with conf(spark, tamis__stats__filter="off"):
        assert f"parts: {WEEKS} of {WEEKS}" in kept(f"SELECT id FROM {events} WHERE week = 3")
        assert f"parts: 1 of {WEEKS}" in kept(
            f"SELECT id FROM {events} WITH ('tamis.stats.filter' = 'on') WHERE week = 3"
        )
    frame = spark.read.option("tamis.stats.filter", "off").table(events).where("week = 3")
    assert f"parts: {WEEKS} of {WEEKS}" in frame._jdf.queryExecution().executedPlan().toString()


def test_a_misspelt_option_is_refused(spark: Any, events: str) -> None:
    with pytest.raises(Exception, match="UNKNOWN_OPTION"):
        spark.sql(f"SELECT id FROM {events} WITH ('tamis.stats.fitler' = 'off')").collect()


def test_a_query_over_the_limit_fails_before_it_reads(spark: Any, events: str) -> None:
    query = f"SELECT id FROM {events} WITH ('tamis.scan.max_bytes' = '1') WHERE user = 3"
    assert "parts: 12 of 12" in spark.sql(query)._jdf.queryExecution().executedPlan().toString()
    with pytest.raises(Exception, match="SCAN_TOO_LARGE"):
        spark.sql(query).collect()


def test_every_version_has_its_rows(spark: Any, events: str) -> None:
    now = spark.sql(f"SELECT count(*) n FROM {events}").first().n
    first = spark.sql(f"SELECT min(version) v FROM {events}.history WHERE operation = 'append'").first().v
    assert spark.sql(f"SELECT count(*) n, max(week) w FROM {events} VERSION AS OF {first}").first() == (504, 0)
    assert spark.sql(f"SELECT count(*) n FROM {events} VERSION AS OF {first + 1} WHERE week = 0").first().n == 504
    assert now == WEEKS * 504


def test_a_frame_is_pinned_when_it_is_analysed(spark: Any, events: str) -> None:
    spark.sql("CREATE TABLE scans.db.growing (id BIGINT) USING tamis")
    spark.range(10).writeTo("scans.db.growing").append()
    frame = spark.table("scans.db.growing")
    assert frame.count() == 10
    spark.range(5).writeTo("scans.db.growing").append()
    assert spark.table("scans.db.growing").count() == 15


def test_views_and_new_sessions_read_too(spark: Any, events: str) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW recent AS SELECT id, user FROM {events} WHERE week > 9")
    assert spark.sql("SELECT count(*) n FROM recent").first().n == 2 * 504
    other = spark.newSession()
    tamis.attach(other, "scans", str(_warehouse(spark)))
    assert other.sql(f"SELECT count(*) n FROM {events} WHERE week = 1").first().n == 504


def _warehouse(spark: Any) -> str:
    from tamis.spark.jvm_bridge.adapter import bridge_of

    return str(bridge_of(spark).registered_catalog("scans").warehouse.root.url)


def test_an_empty_table_gives_no_rows(spark: Any, events: str) -> None:
    spark.sql("CREATE TABLE scans.db.empty (id BIGINT, name STRING) USING tamis")
    assert spark.sql("SELECT * FROM scans.db.empty WHERE id > 3").collect() == []
    assert spark.sql("SELECT count(*) n FROM scans.db.empty").first().n == 0


def test_a_python_function_hides_no_conjunct(lake: Lake) -> None:
    """Spark runs the other conjuncts below the function, so they prune in whatever order they were said."""
    from pyspark.sql.functions import col, udf

    lake.sql("CREATE TABLE lake.db.t (seq INT, name STRING)")
    for start in (0, 100, 200):
        lake.sql(f"INSERT INTO lake.db.t SELECT CAST(id AS INT), CAST(id AS STRING) FROM range({start}, {start + 100})")
    seen = lake.spark.sparkContext.accumulator(0)

    def even(value: int) -> bool:
        seen.add(1)
        return 1 // abs(200 - value) >= 0 and value % 2 == 0  # fails on 200

    function = udf(even, "boolean", useArrow=False)
    table = lake.spark.table(f"{lake.name}.db.t")
    for frame in (
        table.where(function(col("seq"))).where("seq < 100"),
        table.where("seq < 100").where(function(col("seq"))),
        table.where(function(col("seq")) & (col("seq") < 100)),
    ):
        seen.value = 0
        assert sorted(row.seq for row in frame.collect()) == list(range(0, 100, 2))
        parts = tamis.reports(1)[0].parts
        assert 3 * parts["kept"] == parts["total"]
        assert seen.value == 100
    assert table.where(function(col("seq"))).where("seq < 300").select("seq").where("seq >= 250").count() == 25
