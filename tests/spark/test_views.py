"""Permanent views: Spark's statements about them, what they read, and that a name is a table or a view."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.spark.capabilities import needs_state_options, needs_views
from tests.spark.conftest import Lake

import tamis


@pytest.fixture
def filled(lake: Lake) -> Lake:
    needs_views(lake.spark)
    lake.sql("CREATE TABLE lake.db.t (id BIGINT, day DATE) USING tamis CLUSTER BY (day)")
    for month in (1, 2, 3):
        lake.sql(
            f"INSERT INTO lake.db.t SELECT id, date_add(DATE'2026-0{month}-01', CAST(id AS INT)) FROM range(0, 20, 1, 1)"
        )
    return lake


def names(lake: Lake, what: str) -> list[str]:
    return sorted(row[1] for row in lake.rows(f"SHOW {what} IN {lake.name}.db"))


def test_a_filter_of_a_view_reaches_the_scan(filled: Lake) -> None:
    filled.sql("CREATE VIEW lake.db.v AS SELECT id, day FROM lake.db.t WHERE day >= '2026-03-01'")
    assert filled.rows("SELECT count(*), min(id) FROM lake.db.v") == [(20, 0)]
    assert filled.rows("SELECT id FROM lake.db.v WHERE id = 7") == [(7,)]
    report = tamis.reports(1)[0]
    assert (report.parts.kept, report.parts.total) == (1, 3)
    filled.sql("INSERT INTO lake.db.t VALUES (99, DATE'2026-04-01')")
    assert filled.rows("SELECT count(*) FROM lake.db.v") == [(21,)]
    later = "CREATE VIEW lake.db.recent AS SELECT id FROM lake.db.t WHERE day > current_date() - INTERVAL 1000 YEAR"
    filled.sql(later)
    assert filled.rows("SELECT count(*) FROM lake.db.recent") == [(61,)]
    assert filled.spark.newSession().table(f"{filled.name}.db.recent").count() == 61


def test_a_view_keeps_its_columns_comments_catalog_and_settings(filled: Lake) -> None:
    spark = filled.spark
    filled.sql(f"USE {filled.name}.db")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        spark.sql(
            "CREATE VIEW v (number COMMENT 'its id', half) COMMENT 'numbers' TBLPROPERTIES ('owner_team' = 'a')"
            " AS SELECT id, id / 0 AS half FROM t WHERE id < 2"
        )
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")
        spark.sql("USE spark_catalog.default")
    assert filled.spark.table(f"{filled.name}.db.v").columns == ["number", "half"]
    assert sorted(set(filled.rows("SELECT * FROM lake.db.v"))) == [(0, None), (1, None)], "not ANSI, as it was made"
    filled.sql("CREATE VIEW lake.db.strict AS SELECT id / 0 AS half FROM lake.db.t")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        filled.refused("SELECT * FROM lake.db.strict", "DIVIDE_BY_ZERO")
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")
    described = {row[0]: row[1:] for row in filled.rows("DESCRIBE EXTENDED lake.db.v")}
    assert described["number"] == ("bigint", "its id")
    assert "numbers" in str(described)
    assert ("owner_team", "a") in filled.rows("SHOW TBLPROPERTIES lake.db.v")
    assert "id / 0" in filled.rows("SHOW CREATE TABLE lake.db.v")[0][0]
    filled.sql("ALTER VIEW lake.db.v SET TBLPROPERTIES ('owner_team' = 'b')")
    assert ("owner_team", "b") in filled.rows("SHOW TBLPROPERTIES lake.db.v")


def test_views_are_listed_replaced_renamed_and_dropped(filled: Lake) -> None:
    filled.sql("CREATE VIEW lake.db.v AS SELECT 1 AS a")
    assert names(filled, "VIEWS") == ["v"]
    filled.sql("CREATE VIEW IF NOT EXISTS lake.db.v AS SELECT 2 AS a")
    assert filled.rows("SELECT * FROM lake.db.v") == [(1,)]
    filled.sql("CREATE OR REPLACE VIEW lake.db.v AS SELECT 3 AS a, 'x' AS b")
    assert filled.rows("SELECT * FROM lake.db.v") == [(3, "x")]
    filled.sql("ALTER VIEW lake.db.v AS SELECT 4 AS a")
    assert filled.rows("SELECT * FROM lake.db.v") == [(4,)]
    filled.sql("CREATE VIEW lake.db.over AS SELECT a + 1 AS a FROM lake.db.v")
    assert filled.rows("SELECT * FROM lake.db.over") == [(5,)]
    filled.sql("ALTER VIEW lake.db.v RENAME TO lake.db.w")
    assert names(filled, "VIEWS") == ["over", "w"]
    filled.refused("SELECT * FROM lake.db.over", "TABLE_OR_VIEW_NOT_FOUND")
    filled.sql("DROP VIEW lake.db.w")
    filled.sql("DROP VIEW IF EXISTS lake.db.w")
    filled.refused("DROP VIEW lake.db.w", "VIEW_NOT_FOUND")
    filled.refused("SELECT * FROM lake.db.w", "TABLE_OR_VIEW_NOT_FOUND")
    assert not (filled.folder / "db" / "w").exists()


def test_a_name_is_a_table_or_a_view(filled: Lake) -> None:
    from pyspark.errors import PySparkException

    filled.sql("CREATE VIEW lake.db.v AS SELECT 1 AS id")
    for text in (
        "CREATE VIEW lake.db.t AS SELECT 1 AS a",
        "CREATE OR REPLACE VIEW lake.db.t AS SELECT 1 AS a",
        "ALTER VIEW lake.db.v RENAME TO lake.db.t",
        "ALTER VIEW lake.db.t AS SELECT 1 AS a",
        "DROP VIEW lake.db.t",
        "CREATE VIEW lake.db.v AS SELECT 2 AS id",
        "CREATE TABLE lake.db.v (id INT) USING tamis",
        "CREATE TABLE lake.db.v USING tamis AS SELECT 1 AS id",
        "CREATE OR REPLACE TABLE lake.db.v (id INT) USING tamis",
        "ALTER TABLE lake.db.t RENAME TO lake.db.v",
        "DROP TABLE lake.db.v",
        "INSERT INTO lake.db.v VALUES (2)",
        "DELETE FROM lake.db.v",
        "CREATE NAMESPACE lake.db.v",
        "CREATE VIEW lake.nosuch.v AS SELECT 1 AS a",
    ):
        with pytest.raises(PySparkException):
            filled.sql(text).collect()
    with pytest.raises(tamis.InvalidInput, match="_tamis_view"):
        tamis.create(filled.folder / "db" / "v", "id INT")
    filled.refused("CREATE TABLE lake.db.v (id INT) USING tamis", "TABLE_OR_VIEW_ALREADY_EXISTS")
    filled.refused("ALTER TABLE lake.db.t RENAME TO lake.db.v", "TABLE_OR_VIEW_ALREADY_EXISTS")
    filled.refused("CREATE VIEW lake.db.t AS SELECT 1 AS a", "TABLE_OR_VIEW_ALREADY_EXISTS")
    filled.sql("CREATE TABLE IF NOT EXISTS lake.db.v (id INT) USING tamis")
    assert filled.rows("SELECT * FROM lake.db.v") == [(1,)]
    assert filled.rows("SELECT count(*) FROM lake.db.t") == [(60,)]
    assert names(filled, "VIEWS") == ["v"]


def test_a_namespace_with_a_view_is_dropped_by_cascade_only(filled: Lake) -> None:
    filled.sql("CREATE NAMESPACE lake.only")
    filled.sql("CREATE VIEW lake.only.v AS SELECT 1 AS id")
    filled.refused("DROP NAMESPACE lake.only", "SCHEMA_NOT_EMPTY")
    assert filled.rows("SELECT * FROM lake.only.v") == [(1,)]
    filled.sql("DROP NAMESPACE lake.only CASCADE")
    assert not (filled.folder / "only").exists()


def test_a_damaged_view_is_no_missing_view(filled: Lake) -> None:
    filled.sql("CREATE VIEW lake.db.v AS SELECT 1 AS id")
    path = filled.folder / "db" / "v" / "_tamis_view.json"
    path.write_bytes(path.read_bytes()[:-5])
    filled.refused("SELECT * FROM lake.db.v", "BAD_CHECKSUM")
    filled.refused("CREATE VIEW lake.db.v AS SELECT 2 AS id", "TABLE_OR_VIEW_ALREADY_EXISTS")
    filled.sql("DROP VIEW lake.db.v")


def test_time_travel_of_a_view_is_refused(filled: Lake) -> None:
    from pyspark.errors import PySparkException

    filled.sql("CREATE VIEW lake.db.v AS SELECT * FROM lake.db.t VERSION AS OF 1")
    assert filled.rows("SELECT count(*) FROM lake.db.v") == [(20,)]
    with pytest.raises(PySparkException):
        filled.rows("SELECT * FROM lake.db.v VERSION AS OF 1")


def test_a_view_has_no_change_feed(filled: Lake) -> None:
    from pyspark.errors import PySparkException

    needs_state_options(filled.spark)
    filled.sql("CREATE VIEW lake.db.v AS SELECT * FROM lake.db.t")
    read = filled.spark.read.option("readChangeFeed", "true").option("startingVersion", 1)
    with pytest.raises(PySparkException, match="is a view: views have no change feed"):
        read.table(f"{filled.name}.db.v").collect()


def test_table_changes_in_a_view_are_of_the_session_that_made_it(filled: Lake) -> None:
    """Its names, and its times: Spark keeps both for the rest of the text."""
    filled.sql("CREATE NAMESPACE lake.other")
    filled.sql("CREATE TABLE lake.other.t (id BIGINT, day DATE) USING tamis")
    created = tamis.open(filled.folder / "db" / "t").snapshot.head.created_micros
    past = (datetime.fromtimestamp(created / 1e6, UTC) - timedelta(hours=1)).strftime("%Y-%m-%d %H:%M:%S")
    session = filled.spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.sql(f"USE {filled.name}.db")
    session.sql("CREATE VIEW changed AS SELECT id FROM table_changes('t', 0)")
    session.sql(f"CREATE VIEW lately AS SELECT id FROM table_changes('t', '{past}')")
    later = filled.spark.newSession()
    later.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    later.sql(f"USE {filled.name}.other")
    assert later.sql("SELECT id FROM table_changes('t', 0)").count() == 0
    for view in ("changed", "lately"):
        assert later.sql(f"SELECT id FROM {filled.name}.db.{view}").count() == 60
