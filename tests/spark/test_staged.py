"""CREATE TABLE AS SELECT and CREATE OR REPLACE: never half a table."""

from __future__ import annotations

from typing import Any


def history(lake: Any, name: str) -> list[str]:
    return [row[0] for row in lake.rows(f"SELECT operation FROM lake.{name}.history ORDER BY version")]


def test_create_as_select_is_one_commit(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t USING tamis CLUSTER BY (id) AS SELECT id, id % 7 AS m FROM range(1000)")
    assert history(lake, "db.t") == ["create"]
    assert lake.rows("SELECT count(*), sum(m) FROM lake.db.t") == [(1000, sum(i % 7 for i in range(1000)))]


def test_a_select_that_fails_leaves_nothing(lake: Any) -> None:
    lake.refused(
        "CREATE TABLE lake.db.t USING tamis AS SELECT IF(id = 90, CAST(raise_error('boom') AS BIGINT), id) AS x FROM range(0, 100, 1, 4)",
        "USER_RAISED_EXCEPTION",
    )
    assert lake.rows("SHOW TABLES IN lake.db") == []
    lake.sql("CREATE TABLE lake.db.t (a INT) USING tamis")


def test_create_or_replace(lake: Any) -> None:
    lake.sql("CREATE OR REPLACE TABLE lake.db.t USING tamis AS SELECT id AS x FROM range(10)")
    lake.sql("CREATE OR REPLACE TABLE lake.db.t USING tamis COMMENT 'two' AS SELECT 'a' AS y, id AS x FROM range(3)")
    assert history(lake, "db.t") == ["create", "replace"]
    assert sorted(lake.rows("SELECT * FROM lake.db.t")) == [("a", 0), ("a", 1), ("a", 2)]
    assert lake.rows("SELECT count(*) FROM lake.db.t VERSION AS OF 0") == [(10,)]
    lake.sql("CREATE OR REPLACE TABLE lake.db.t (z INT) USING tamis")
    assert lake.rows("SELECT * FROM lake.db.t") == []


def test_a_replacement_that_fails_changes_nothing(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t USING tamis AS SELECT id AS x FROM range(10)")
    lake.refused(
        "CREATE OR REPLACE TABLE lake.db.t USING tamis AS SELECT CAST(raise_error('boom') AS INT) AS y",
        "USER_RAISED_EXCEPTION",
    )
    assert history(lake, "db.t") == ["create"]
    assert lake.rows("SELECT count(x) FROM lake.db.t") == [(10,)]


def test_a_table_may_replace_itself(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t USING tamis AS SELECT id AS x FROM range(10)")
    lake.sql("CREATE OR REPLACE TABLE lake.db.t USING tamis AS SELECT x, x * 2 AS y FROM lake.db.t WHERE x > 6")
    assert sorted(lake.rows("SELECT * FROM lake.db.t")) == [(7, 14), (8, 16), (9, 18)]


def test_errors_are_sparks_own(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t USING tamis AS SELECT 1 AS x")
    lake.refused("CREATE TABLE lake.db.t USING tamis AS SELECT 1 AS x", "TABLE_OR_VIEW_ALREADY_EXISTS")
    lake.refused("REPLACE TABLE lake.db.nope USING tamis AS SELECT 1 AS x", "TABLE_OR_VIEW_NOT_FOUND")


def test_the_dataframe_writer(lake: Any) -> None:
    name = f"{lake.name}.db.t"
    lake.spark.range(5).writeTo(name).using("tamis").tableProperty("k", "v").create()
    lake.spark.range(3).writeTo(name).using("tamis").createOrReplace()
    lake.spark.range(2).writeTo(name).append()
    assert sorted(lake.rows("SELECT * FROM lake.db.t")) == [(0,), (0,), (1,), (1,), (2,)]
