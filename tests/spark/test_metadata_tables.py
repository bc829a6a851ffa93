"""lake.db.t.{history, snapshots, segments, parts, columns, schemas}, and CALL."""

from __future__ import annotations

from typing import Any

import pytest
from tests.spark.capabilities import needs_syntax


@pytest.fixture
def filled(lake: Any) -> Any:
    lake.sql("CREATE TABLE lake.db.t (a INT, b STRING) USING tamis CLUSTER BY (a)")
    lake.sql("INSERT INTO lake.db.t VALUES (1, 'x'), (5, 'y')")
    lake.sql("INSERT INTO lake.db.t VALUES (9, NULL)")
    return lake


def test_history(filled: Any) -> None:
    assert filled.rows("SELECT version, operation FROM lake.db.t.history") == [
        (2, "append"),
        (1, "append"),
        (0, "create"),
    ]
    assert filled.rows("SELECT max(version) FROM lake.db.t.snapshots") == [(2,)]


def test_parts_have_readable_bounds(filled: Any) -> None:
    found = filled.rows(
        "SELECT statistics.a.lo, statistics.a.hi, statistics.b.lo, statistics.b.nulls, rows FROM lake.db.t.parts ORDER BY 1"
    )
    assert (found[0][0], found[-1][1]) == (1, 9)
    assert found[-1][2:] == (None, 1, 1)
    assert sum(row[4] for row in found) == 3


def test_segments_columns_schemas(filled: Any) -> None:
    assert filled.rows("SELECT rows FROM lake.db.t.segments ORDER BY version") == [(2,), (1,)]
    assert filled.rows("SELECT name, lo, hi FROM lake.db.t.columns") == [("a", "1", "9"), ("b", "x", "y")]
    assert filled.rows("SELECT schema_id, current FROM lake.db.t.schemas") == [(0, True)]


def test_they_travel_in_time(filled: Any) -> None:
    assert filled.rows("SELECT sum(rows) FROM lake.db.t.parts VERSION AS OF 1") == [(2,)]
    assert filled.rows("SELECT version FROM lake.db.t.history VERSION AS OF 1") == [(1,), (0,)]


def test_they_join_and_cache(filled: Any) -> None:
    joined = "SELECT count(*) FROM lake.db.t.parts p JOIN lake.db.t.segments s ON p.segment_id = s.segment_id"
    assert filled.rows(joined)[0][0] >= 2


def test_there_are_no_others(filled: Any) -> None:
    filled.refused("SELECT * FROM lake.db.t.nope", "TABLE_OR_VIEW_NOT_FOUND")
    filled.refused("SELECT * FROM lake.db.nope.history", "TABLE_OR_VIEW_NOT_FOUND")
    filled.refused("CREATE TABLE lake.db.t.history (a INT) USING tamis", "TABLE_OR_VIEW_ALREADY_EXISTS")


def test_time_travel(filled: Any) -> None:
    assert filled.rows("SELECT count(*) FROM lake.db.t VERSION AS OF 1") == [(2,)]
    assert filled.rows("SELECT count(*) FROM lake.db.t VERSION AS OF 0") == [(0,)]
    at = filled.rows("SELECT CAST(timestamp AS STRING) FROM lake.db.t.history WHERE version = 1")[0][0]
    assert filled.rows(f"SELECT count(*) FROM lake.db.t TIMESTAMP AS OF '{at}'") == [(2,)]
    filled.refused("SELECT count(*) FROM lake.db.t VERSION AS OF 99", "VERSION_NOT_FOUND")
    filled.refused("SELECT count(*) FROM lake.db.t VERSION AS OF 'x'", "BAD_VERSION")
    filled.refused("SELECT count(*) FROM lake.db.t TIMESTAMP AS OF '1999-01-01'", "VERSION_NOT_FOUND")


def test_procedures(filled: Any) -> None:
    newest = filled.sql("CALL lake.system.history(table => 'db.t', limit => 1)").collect()
    assert [(row["version"], row["operation"]) for row in newest] == [(2, "append")]
    detail = filled.sql("CALL lake.system.detail('db.t')").collect()[0]
    assert (detail["num_rows"], detail["clustering_columns"]) == (3, ["a"])
    assert "system.history" in filled.refused("CALL lake.system.bogus('db.t')", "UNKNOWN_PROCEDURE")
    filled.refused("CALL lake.system.history('db.nope')", "TABLE_OR_VIEW_NOT_FOUND")
    assert (
        filled.sql("CALL lake.system.history(table => 'lake.db.t', limit => 1)").collect() == newest
    )  # with the catalog's own name
    needs_syntax(filled.spark, "SHOW PROCEDURES IN a.b")
    assert {row[3] for row in filled.rows("SHOW PROCEDURES IN lake.system")} >= {"history", "detail", "explain"}
