"""Filters and local times of writes and feeds are those of the session, whatever its time zone is."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.conftest import Lake

import tamis

pytestmark = pytest.mark.spark

NOON = dt.datetime(2026, 1, 1, 12)


@pytest.fixture
def new_york(lake: Lake) -> Iterator[Lake]:
    before = lake.spark.conf.get("spark.sql.session.timeZone")
    lake.spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield lake
    lake.spark.conf.set("spark.sql.session.timeZone", before)


def test_the_procedure_of_changes_keeps_local_times(new_york: Lake) -> None:
    new_york.sql("CREATE TABLE lake.db.t (id INT, tn TIMESTAMP_NTZ)")
    gap = "TIMESTAMP_NTZ'2024-03-10 02:30:00'"
    new_york.sql(f"INSERT INTO lake.db.t VALUES (1, TIMESTAMP_NTZ'2026-01-01 12:00:00'), (2, {gap})")
    call = new_york.sql("CALL lake.system.changes('db.t', 0)").select("id", "tn").collect()
    expected = [(1, NOON), (2, dt.datetime(2024, 3, 10, 2, 30))]
    assert sorted(map(tuple, call)) == expected
    frame = tamis.open(new_york.folder / "db" / "t").changes(0).to_spark(new_york.spark)
    assert dict(frame.dtypes)["tn"] == "timestamp_ntz"
    assert sorted(map(tuple, frame.select("id", "tn").collect())) == expected


def january(lake: Lake, *hours: str) -> Any:
    rows = ", ".join(f"('{hour}')" for hour in hours)
    return lake.spark.sql(f"SELECT CAST(c AS TIMESTAMP) AS ts FROM VALUES {rows} AS t(c)")


OLD = ("2026-01-01 20:00:00", "2026-01-02 10:00:00", "2026-01-02 22:00:00", "2026-01-03 01:00:00")
DAY = "ts >= '2026-01-02' AND ts < '2026-01-03'"


@pytest.mark.parametrize("how", ["replaceWhere", "table.overwrite"])
def test_a_filter_of_replaced_rows_is_of_the_sessions_zone(new_york: Lake, how: str) -> None:
    path = str(new_york.folder / "db" / "t")
    january(new_york, *OLD).write.format("tamis").save(path)
    fresh = january(new_york, "2026-01-02 23:30:00")
    if how == "replaceWhere":
        fresh.write.format("tamis").mode("overwrite").option("replaceWhere", DAY).save(path)
    else:
        tamis.open(path).overwrite(fresh, DAY)
    frame = new_york.spark.read.format("tamis").load(path)
    left = [str(row[0]) for row in frame.selectExpr("CAST(ts AS STRING)").collect()]
    assert sorted(left) == ["2026-01-01 20:00:00", "2026-01-02 23:30:00", "2026-01-03 01:00:00"]


def test_new_rows_outside_of_the_sessions_day_are_refused(new_york: Lake) -> None:
    path = str(new_york.folder / "db" / "t")
    january(new_york, *OLD).write.format("tamis").save(path)
    writer = january(new_york, "2026-01-01 23:30:00").write.format("tamis").mode("overwrite")
    with pytest.raises(Exception, match="OUTSIDE_FILTER"):
        writer.option("replaceWhere", DAY).save(path)
    with pytest.raises(tamis.errors.InvalidInput, match="OUTSIDE_FILTER"):
        tamis.open(path).overwrite(pa.table({"ts": pa.array([NOON], pa.timestamp("us", "UTC"))}), DAY)
