"""Compaction on the executors: the same laws as locally, for sorted, unsorted and curve-sorted tables, by Python and by CALL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.spark.conftest import Lake

import tamis


def fill(lake: Any, name: str, cluster: str = "") -> None:
    lake.sql(
        f"CREATE TABLE lake.db.{name} (id BIGINT, user BIGINT, body VARIANT, tags ARRAY<STRING>, at TIMESTAMP) USING tamis {cluster}"
    )
    for i in range(5):
        lake.sql(
            f"INSERT INTO lake.db.{name} SELECT id, (id * 7919) % 1000, parse_json(concat('{{\"a\": ', id, '}}')), array(string(id), NULL), "
            f"timestamp_micros(id * 1000000) FROM range({i * 200}, {i * 200 + 200})"
        )


def rows(lake: Any, name: str) -> list[tuple[Any, ...]]:
    return sorted(lake.rows(f"SELECT id, user, to_json(body), tags, at FROM lake.db.{name}"), key=repr)


@pytest.fixture
def session(lake: Lake) -> Iterator[Lake]:
    """The catalog in a session whose settings the test may change."""
    before = lake.spark.conf.get("spark.sql.session.timeZone")
    yield lake
    lake.spark.conf.set("spark.sql.session.timeZone", before)
    for name in ("spark.sql.ansi.enabled", "tamis.write.part_bytes", "tamis.stats.keep"):
        lake.spark.conf.unset(name)


@pytest.mark.parametrize(
    ("name", "cluster", "arguments"),
    [("plain", "", {}), ("sorted", "CLUSTER BY (user)", {}), ("curved", "", {"cluster_by": ["id", "user"]})],
)
@pytest.mark.push_cases(1)
def test_by_python(lake: Any, name: str, cluster: str, arguments: dict[str, Any]) -> None:
    fill(lake, name, cluster)
    before = rows(lake, name)
    table = tamis.open(lake.folder / "db" / name)
    done = table.compact(spark=lake.spark, **arguments)
    assert done.commits == 1
    assert done.parts_added < done.parts_removed
    assert rows(lake, name) == before
    assert len(before) == 1000
    if cluster:
        assert all(p["ordered"] for p in table.refresh().metadata("parts").to_pylist())
    assert table.compact(spark=lake.spark, **arguments).commits == 0


def test_by_call(lake: Any) -> None:
    fill(lake, "t", "CLUSTER BY (user)")
    before = rows(lake, "t")
    planned = lake.rows("CALL lake.system.compact(table => 'db.t', dry_run => true)")
    assert len(planned) == 1
    for name in ("filter", "row_filter"):
        assert lake.rows(f"CALL lake.system.compact(table => 'db.t', {name} => 'user > 100000', dry_run => true)") == []
    with pytest.raises(Exception, match="BAD_FILTER"):
        lake.sql("CALL lake.system.compact(table => 'db.t', filter => 'user > 1', row_filter => 'user > 1')").collect()
    done = lake.sql("CALL lake.system.compact(table => 'db.t')").collect()[0].asDict()
    assert done["commits"] == 1
    assert done["parts_removed"] >= 5
    assert rows(lake, "t") == before
    assert lake.rows("SELECT operation FROM lake.db.t.history LIMIT 1") == [("compact",)]
    assert lake.rows("CALL lake.system.changes(table => 'db.t', from_version => 5)") == []
    lake.sql("INSERT INTO lake.db.t SELECT 7777, 1, NULL, NULL, NULL")
    changes = [r.asDict() for r in lake.sql("CALL lake.system.changes('db.t', 5)").collect()]
    assert [(r["id"], r["_change_type"], r["_commit_version"]) for r in changes] == [(7777, "insert", 7)]
    restored = lake.sql("CALL lake.system.restore(table => 'db.t', version => 2)").collect()[0].asDict()
    assert (restored["rows_inserted"], restored["rows_deleted"]) == (400, 1001)
    assert lake.rows("SELECT count(*), max(id) FROM lake.db.t") == [(400, 399)]
    assert lake.sql("CALL lake.system.verify(table => 'db.t')").collect()[0].asDict()["ok"]
    for given in ("retention => '90m'", "retention_hours => 1.5D"):
        report = (
            lake.sql(f"CALL lake.system.vacuum(table => 'db.t', below_retention => true, {given})")
            .collect()[0]
            .asDict()
        )
        assert (report["retention_seconds"], report["dry_run"]) == (5400.0, True)
    assert lake.sql("CALL lake.system.vacuum(table => 'db.t')").collect()[0].asDict()["retention_seconds"] == 7 * 86400
    for given in ("retention => '7 potatoes'", "retention_hours => 1e11D", "retention_hours => double('NaN')"):
        with pytest.raises(Exception, match="BAD_RETENTION"):
            lake.sql(f"CALL lake.system.vacuum(table => 'db.t', {given})").collect()
    assert lake.sql("CALL lake.system.vacuum(table => 'db.t')").collect()[0].asDict()["objects"] == 0, (
        "nothing to remove is a row of numbers"
    )
    call = "CALL lake.system.vacuum(table => 'db.t', retention_hours => 0, below_retention => true, dry_run => {})"
    assert "path" in lake.sql(call.format("true")).collect()[0].asDict()
    vacuumed = lake.sql(call.format("false")).collect()[0].asDict()
    assert vacuumed["objects"] > 0
    assert lake.rows("SELECT count(*), max(id) FROM lake.db.t") == [(400, 399)]
    lake.refused("SELECT * FROM lake.db.t VERSION AS OF 3", "VERSION_NOT_FOUND")


def test_a_column_to_cluster_by_may_have_a_comma(lake: Lake) -> None:
    lake.sql("CREATE TABLE lake.db.t (id INT, `a,b` INT) USING tamis")
    for first in (1, 2):
        lake.sql(f"INSERT INTO lake.db.t SELECT id, {first} - id FROM range(10)")
    done = lake.sql("CALL lake.system.compact(table => 'db.t', cluster_by => 'id, `a,b`')").collect()[0].asDict()
    assert done["parts_removed"] == 4


@pytest.mark.parametrize("statement", ["OPTIMIZE lake.db.t", "OPTIMIZE lake.db.t ZORDER BY (id, ch)"])
def test_texts_with_lengths_keep_their_values_and_types(lake: Lake, statement: str) -> None:
    lake.sql(
        "CREATE TABLE lake.db.t (id INT, ch CHAR(4), v VARCHAR(4), s STRUCT<c: CHAR(3), l: ARRAY<VARCHAR(2)>>) USING tamis CLUSTER BY (ch)"
    )
    for first in (1, 2):
        lake.sql(
            f"INSERT INTO lake.db.t VALUES ({first}, 'b', 'x ', struct('c', array('l'))), ({first + 2}, 'a', NULL, NULL)"
        )
    before, types = lake.rows("SELECT * FROM lake.db.t ORDER BY id"), lake.rows("DESCRIBE lake.db.t")
    lake.sql(statement)
    assert lake.rows("SELECT count(*) FROM lake.db.t.parts") == [(1,)]
    assert lake.rows("SELECT * FROM lake.db.t ORDER BY id") == before
    assert lake.rows("DESCRIBE lake.db.t")[:4] == types[:4]
    assert lake.rows("SELECT id FROM lake.db.t WHERE ch = 'a' AND s IS NULL ORDER BY id") == [(3,), (4,)]
    with pytest.raises(Exception, match="EXCEED_LIMIT_LENGTH"):
        lake.sql("INSERT INTO lake.db.t VALUES (9, 'a', 'too long', NULL)")


def test_a_call_lists_changes_of_texts_with_lengths(lake: Lake) -> None:
    lake.sql("CREATE TABLE lake.db.t (id INT, ch CHAR(4), s STRUCT<v: VARCHAR(4)>) USING tamis")
    lake.sql("INSERT INTO lake.db.t VALUES (1, 'a', struct('b'))")
    call = "CALL lake.system.changes(table => 'db.t', from_version => 0)"
    assert [tuple(row)[:3] for row in lake.sql(call).collect()] == [(1, "a   ", ("b",))]


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "PST"])
def test_a_filter_is_read_in_the_time_zone_of_the_session(session: Lake, zone: str) -> None:
    """Midnight in Los Angeles is 07:00 in UTC, in July."""
    session.sql("CREATE TABLE lake.db.t (at TIMESTAMP) USING tamis")
    for time in ("06:00", "06:30", "07:00", "07:30"):
        session.sql(f"INSERT INTO lake.db.t VALUES (TIMESTAMP '2026-07-01 {time}:00Z')")
    session.spark.conf.set("spark.sql.session.timeZone", zone)
    for filter_ in ("at >= \\'2026-07-01\\'", "at >= TIMESTAMP \\'2026-07-01 00:00:00\\'"):
        (planned,) = session.sql(f"CALL lake.system.compact('db.t', '{filter_}', dry_run => true)").collect()
        assert planned["parts"] == 2, filter_
    (done,) = session.sql("OPTIMIZE lake.db.t WHERE at >= '2026-07-01'").collect()
    assert (done["parts_removed"], done["parts_added"]) == (2, 1)


def test_a_filter_is_read_in_the_ansi_mode_of_the_session(session: Lake) -> None:
    session.sql("CREATE TABLE lake.db.t (n INT, s STRING) USING tamis")
    for n in range(4):
        session.sql(f"INSERT INTO lake.db.t VALUES ({n}, '{n}')")
    session.spark.conf.set("spark.sql.ansi.enabled", "false")
    (done,) = session.sql("OPTIMIZE lake.db.t WHERE n < 2 AND CAST('2x' AS INT) IS NOT NULL").collect()
    assert done["parts_removed"] == 0, "a text that is no number is NULL"


def test_settings_of_the_session_override_properties_of_the_table(session: Lake) -> None:
    """A part as large as the target is not small, so nothing is merged."""
    session.sql("CREATE TABLE lake.db.t (id BIGINT) USING tamis TBLPROPERTIES ('tamis.write.part_bytes' = '1MB')")
    for n in range(4):
        session.sql(f"INSERT INTO lake.db.t VALUES ({n})")
    session.spark.conf.set("tamis.stats.keep", "a_column_of_another_table")
    session.spark.conf.set("tamis.write.part_bytes", "1")
    assert session.sql("OPTIMIZE lake.db.t").collect()[0]["parts_removed"] == 0
    session.spark.conf.unset("tamis.write.part_bytes")
    assert session.sql("OPTIMIZE lake.db.t").collect()[0]["parts_removed"] == 4
