"""Statements run with the settings of the session that they belong to, whatever PySpark did last in another one.

PySpark remembers one active session for the whole process: the first one, or that of the last ``createDataFrame``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.spark

ROWS = [("2026-01-01 20:00:00", 1), ("2026-01-02 02:00:00", 2), ("2026-01-02 12:00:00", 3)]
"""In Los Angeles the first two are of 1 January until 16:00, in UTC only the first one is."""


@pytest.fixture
def western(lake: Any) -> Iterator[Any]:
    """A second session, in Los Angeles, while PySpark takes the first one for active; ``db.t`` has ``ROWS``."""
    other = lake.spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    other.sql(f"USE {lake.name}.db")
    lake.sql("CREATE TABLE lake.db.t (ts TIMESTAMP, n INT) USING tamis")
    for text, n in ROWS:
        lake.sql(f"INSERT INTO lake.db.t VALUES (timestamp'{text}', {n})")
    lake.spark.createDataFrame([(1,)], "a INT")
    yield lake._replace(spark=other)
    lake.spark.createDataFrame([(1,)], "a INT")


def left(lake: Any) -> list[int]:
    return sorted(row[0] for row in lake.rows("SELECT n FROM lake.db.t"))


@pytest.mark.push_cases(2)
@pytest.mark.parametrize("verb", ["DELETE FROM lake.db.t WHERE {}", "UPDATE lake.db.t SET n = -n WHERE {}"])
@pytest.mark.parametrize("condition", ["date(ts) = '2026-01-01'", "hour(ts) < 13", "ts::string < '2026-01-01 19'"])
def test_a_change_finds_its_rows_in_its_sessions_zone(western: Any, verb: str, condition: str) -> None:
    wanted = {row[0] for row in western.rows(f"SELECT n FROM lake.db.t WHERE {condition}")}
    assert wanted
    before = left(western)
    western.sql(verb.format(condition))
    kept = [n for n in before if n not in wanted]
    assert left(western) == sorted(kept if verb.startswith("DELETE") else kept + [-n for n in wanted])


def test_a_default_is_computed_in_its_sessions_zone(western: Any) -> None:
    western.sql("ALTER TABLE lake.db.t ADD COLUMN since TIMESTAMP DEFAULT timestamp'2026-01-01 00:00:00'")
    assert western.rows("SELECT DISTINCT since = timestamp'2026-01-01 00:00:00' FROM lake.db.t") == [(True,)]


def test_names_are_those_of_the_sessions_schema(western: Any) -> None:
    feed = "SELECT n FROM table_changes('t', 1)"
    assert sorted(row[0] for row in western.rows(feed)) == [1, 2, 3]
    assert [row["name"] for row in western.sql("DESCRIBE HISTORY t").collect() if "name" in row] == []


def test_times_of_a_feed_are_in_the_sessions_zone(western: Any) -> None:
    stamps = [row[0] for row in western.rows("SELECT timestamp::string FROM lake.db.t.history ORDER BY version")]
    feed = western.rows(f"SELECT n FROM table_changes('{western.name}.db.t', '{stamps[-1]}')")
    assert [row[0] for row in feed] == [3]


def test_threads_have_sessions_of_their_own(western: Any, lake: Any) -> None:
    """One thread makes data frames in one session while the other changes rows in another."""
    done = threading.Event()

    def busy() -> None:
        while not done.is_set():
            lake.spark.createDataFrame([(1,)], "a INT").collect()

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        western.sql("DELETE FROM lake.db.t WHERE date(ts) = '2026-01-01'")
    finally:
        done.set()
        thread.join()
    assert left(western) == [3]
