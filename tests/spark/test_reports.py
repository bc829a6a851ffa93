"""One report per execution of a Spark scan: never cumulative, never from EXPLAIN, nothing counted twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.engine.part_reader import ReadCounters
from tamis.engine.scan import Report

pytestmark = pytest.mark.spark

PARTS, ROWS = 5, 200


@pytest.fixture(scope="module")
def table(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    tamis.attach(spark, "reported", str(tmp_path_factory.mktemp("reports")))
    spark.sql("CREATE NAMESPACE IF NOT EXISTS reported.db")
    spark.sql("CREATE TABLE reported.db.t (id BIGINT, g INT, s STRING) USING tamis")
    for n in range(PARTS):
        rows = spark.range(n * ROWS, (n + 1) * ROWS, 1, 1).selectExpr(
            "id", "cast(id % 10 as int) g", "repeat(cast(id as string), 20) s"
        )
        rows.writeTo("reported.db.t").append()
    return "reported.db.t"


@pytest.fixture
def new(spark: Any) -> Callable[[], list[Report]]:
    """The reports since the test began, oldest first."""
    last = tamis.reports()

    def since() -> list[Report]:
        found = []
        for report in tamis.reports(1_000):
            if last and report is last[0]:
                break
            found.append(report)
        return found[::-1]

    return since


def test_explain_reports_nothing(spark: Any, table: str, new: Callable[[], list[Report]]) -> None:
    spark.sql(f"EXPLAIN SELECT * FROM {table} WHERE id > 3").collect()
    spark.sql(f"SELECT * FROM {table} WHERE id > 3")._jdf.queryExecution().executedPlan().toString()
    spark.sql(f"SELECT * FROM {table}")._jdf.queryExecution().executedPlan().toString()
    assert new() == []


def test_the_newest_is_the_one_that_ended_last(spark: Any, table: str, new: Callable[[], list[Report]]) -> None:
    spark.sql(f"SELECT s FROM {table} WHERE id = 1").collect()  # of this, Python learns when reports are asked for
    folder = spark.sql(f"DESCRIBE EXTENDED {table}").where("col_name = 'Location'").first().data_type
    held = tamis.open(folder).scan("id = 2")
    held.to_arrow()
    assert [report.filter for report in new()] == ["(id = 1L)", "id = 2"]
    assert tamis.reports()[0] is held.report


def test_a_report_is_the_whole_funnel(spark: Any, table: str, new: Callable[[], list[Report]]) -> None:
    spark.sql(f"SELECT s FROM {table} WHERE id BETWEEN 390 AND 410").collect()
    (report,) = new()
    assert report.table == table
    assert report.version == spark.sql(f"SELECT max(version) v FROM {table}.history").first().v
    assert "id >= 390" in (report.filter or "")
    assert set(report.columns) == {"id", "s"}
    assert report.parts | {} == report.parts | {"total": PARTS, "kept": 2}
    assert report.rows["matched"] == 21
    assert (
        report.bytes["read"]
        == report.bytes["metadata"] + report.bytes["index"] + report.bytes["leader"] + report.bytes["follower"]
    )
    assert report.bytes["leader"] > 0
    assert report.bytes["table"] > report.bytes["skipped"] > 0
    assert report.requests > 0
    assert report.because
    assert report.as_dict()["parts"]["kept"] == 2


def test_two_executions_of_a_frame_are_two_reports(spark: Any, table: str, new: Callable[[], list[Report]]) -> None:
    frame = spark.sql(f"SELECT id FROM {table} WHERE id >= 980")
    frame.collect()
    frame.collect()
    assert [r.rows["matched"] for r in new()] == [20, 20]


def test_a_scan_that_skips_all_is_reported(spark: Any, table: str, new: Callable[[], list[Report]]) -> None:
    assert spark.sql(f"SELECT id FROM {table} WHERE id < 0").collect() == []
    (report,) = new()
    assert report.parts["kept"] == 0
    assert report.parts["total"] == PARTS
    assert report.rows["matched"] == 0
    assert report.reader_reason == "nothing was read"


def test_null_checks_of_sparks_own_are_no_reason(spark: Any, table: str, new: Callable[[], list[Report]]) -> None:
    spark.sql(f"SELECT id FROM {table} WHERE id >= 0 AND s IS NOT NULL").collect()
    (report,) = new()
    assert {entry["conjunct"] for entry in report.not_skipped_because} == {"id >= 0L", "s IS NOT NULL"}


def test_opening_the_table_is_a_cost_of_its_first_scan(spark: Any, table: str, new: Callable[[], list[Report]]) -> None:
    spark.sql(f"SELECT id FROM {table} WHERE id < 0").collect()
    (report,) = new()
    assert report.requests > 0
    assert list(report.seconds)[:2] == ["open", "plan"]


def test_each_side_of_a_join_has_its_own(spark: Any, table: str, new: Callable[[], list[Report]]) -> None:
    spark.sql(f"SELECT count(*) FROM {table} a JOIN {table} b ON a.g = b.g WHERE a.id < 200 AND b.id >= 800").collect()
    assert sorted((r.parts["kept"], "800" in (r.filter or "")) for r in new()) == [(1, False), (1, True)]


def test_a_subquery_is_reported(spark: Any, table: str, new: Callable[[], list[Report]]) -> None:
    spark.sql(f"SELECT id FROM {table} WHERE g > (SELECT avg(g) FROM {table} WHERE id < 200) AND id > 900").collect()
    assert len(new()) == 2


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_native_scans_are_reported(spark: Any, table: str, new: Callable[[], list[Report]], adaptive: str) -> None:
    before = spark.conf.get("spark.sql.adaptive.enabled")
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        frame = spark.sql(f"SELECT id, s FROM {table}")
        frame.collect()
        frame.collect()
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", before)
    found = new()
    assert [r.reader for r in found] == ["native", "native"]
    assert found[0].reader_reason == "there is no filter; bytes are estimated"
    assert [r.rows["matched"] for r in found] == [PARTS * ROWS] * 2
    assert found[0].bytes["read"] > 0


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_native_scan_that_gives_no_rows_is_reported(
    spark: Any, table: str, new: Callable[[], list[Report]], tmp_path: Path, adaptive: str
) -> None:
    """Spark's reader drops all rows by the page indexes, and its tasks tell nothing: the stage that began to read is the only trace."""
    numbers = pa.table({"n": pa.array(range(0, 20_000, 2)), "s": [f"{n:06}" for n in range(0, 20_000, 2)]})
    folder = tmp_path / "gaps"
    tamis.create(folder, numbers.schema).append(numbers)
    reader = spark.read.format("tamis").option("tamis.read.lazy", "native")
    before = spark.conf.get("spark.sql.adaptive.enabled")
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        frame = reader.load(str(folder)).where(
            "s = '004095'"
        )  # between the last text of a page and the first of the next
        assert frame.collect() == []
        (report,) = new()
        assert (report.reader, report.parts["kept"], report.rows["matched"]) == ("native", 1, 0)
        grouped = reader.load(str(folder)).where("s = '004095'").groupBy("n").count()
        assert grouped.collect() == grouped.collect() == []
        assert len(new()) == 2, "the second time, the shuffle of the first is used again: nothing is scanned"
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", before)


def test_sparks_reader_reads_where_the_filter_keeps_much(
    spark: Any, table: str, new: Callable[[], list[Report]]
) -> None:
    """As far as bounds tell: not where they say nothing; and Spark tests the rows."""
    asked = {
        "id >= 250": True,
        "id >= 250 AND id < 420": True,
        "id > 390 AND id < 410": False,
        "id >= 250 AND g = 3": False,
    }
    for condition in asked:
        rows = spark.sql(f"SELECT id, s FROM {table} WHERE {condition}").collect()
        expected = spark.range(PARTS * ROWS).selectExpr("id", "cast(id % 10 as int) g").where(condition)
        assert sorted(r.id for r in rows) == sorted(r.id for r in expected.collect())
    found = new()
    assert [r.reader == "native" for r in found] == list(asked.values())
    assert found[0].reader_reason == "the filter keeps many rows, Spark tests them; bytes are estimated"
    spark.sql(f"SELECT id, s FROM {table} WITH ('tamis.audit.percent' = '100') WHERE id >= 50").collect()
    assert new()[-1].reader == "native", "an audit looks beside it"


def test_a_limit_is_reported_once(spark: Any, table: str, new: Callable[[], list[Report]]) -> None:
    assert len(spark.sql(f"SELECT id FROM {table} WHERE g = 3 LIMIT 2").collect()) == 2
    assert len(new()) == 1


def test_a_cached_result_is_not_a_scan(spark: Any, table: str, new: Callable[[], list[Report]]) -> None:
    cached = spark.sql(f"SELECT id FROM {table} WHERE g = 4").cache()
    try:
        cached.count()
        cached.count()
        assert len(new()) == 1
    finally:
        cached.unpersist()


def test_work_outside_sql_is_reported(spark: Any, table: str, new: Callable[[], list[Report]]) -> None:
    assert spark.sql(f"SELECT id FROM {table} WHERE g = 5").rdd.count() == PARTS * ROWS // 10
    (report,) = new()
    assert report.rows["matched"] == PARTS * ROWS // 10


def test_an_insert_from_a_scan_reports_the_scan(spark: Any, table: str, new: Callable[[], list[Report]]) -> None:
    spark.sql(f"CREATE TABLE reported.db.copy USING tamis AS SELECT id FROM {table} WHERE id < 100")
    assert [r.parts["kept"] for r in new() if r.table == table] == [1]


def test_the_last_attempt_of_a_task_wins(spark: Any) -> None:
    from tamis.spark.executors.read_task import Outcome
    from tamis.spark.jvm_bridge.adapter import bridge_of
    from tamis.spark.scan.scan_metrics import Planned, metrics_ledger

    def outcome(attempt: tuple[int, int], rows: int) -> Outcome:
        counters = ReadCounters()
        counters.rows_matched = rows
        return Outcome(("scan", "e1", 0), attempt, counters)

    book = metrics_ledger(bridge_of(spark))
    book.record_plan("key", Planned("scan", Report("t", 1, None, ()), 1, 0, 0, native=False))
    book.add_outcomes([outcome((3, 0), 10)])
    book.add_outcomes([outcome((3, 2), 30)])
    book.add_outcomes([outcome((3, 1), 20)])
    (report,) = tamis.reports()
    assert report.rows["matched"] == 30


def test_no_report_names_a_stopped_task(spark: Any, table: str, new: Callable[[], list[Report]]) -> None:
    with pytest.raises(Exception, match=r"\[DIVIDE_BY_ZERO"):
        spark.sql(f"SELECT id FROM {table} WHERE 10 / (g - 5) > 3").collect()
    spark.sql(f"SELECT id FROM {table} WHERE g = 1").collect()
    assert new()[-1].rows["matched"] == PARTS * ROWS // 10
