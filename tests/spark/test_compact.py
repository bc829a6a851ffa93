"""Compaction on the executors: the same laws as locally, for sorted, unsorted and curve-sorted tables, by Python and by CALL."""

from __future__ import annotations

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
