"""CREATE, DROP, RENAME, ALTER and DESCRIBE TABLE."""

from __future__ import annotations

from typing import Any

import pytest

import tamis


def test_what_a_table_was_created_with_is_shown(lake: Any) -> None:
    lake.sql(
        "CREATE TABLE lake.db.t (a INT NOT NULL COMMENT 'the a', b STRING, c DECIMAL(10,2) DEFAULT 1.5, s STRUCT<x: INT>) USING tamis "
        "CLUSTER BY (a, s.x) COMMENT 'hello' TBLPROPERTIES ('k' = 'v', 'tamis.write.part_bytes' = '64MB')"
    )
    described = lake.rows("DESCRIBE lake.db.t")
    assert described[:4] == [
        ("a", "int", "the a"),
        ("b", "string", None),
        ("c", "decimal(10,2)", None),
        ("s", "struct<x:int>", None),
    ]
    assert described[6:] == [("a", "int", "the a"), ("s.x", "int", None)]
    shown = lake.rows("SHOW CREATE TABLE lake.db.t")[0][0]
    for part in (
        "a INT NOT NULL COMMENT 'the a'",
        "DEFAULT 1.5",
        "USING tamis",
        "cluster_by(a, s.x)",
        "COMMENT 'hello'",
        "'k' = 'v'",
    ):
        assert part in shown
    assert "LOCATION" not in shown
    table = tamis.open(lake.folder / "db" / "t")
    assert table.schema.names == ["a", "b", "c", "s"]
    assert table.properties == {"k": "v", "tamis.write.part_bytes": "64MB"}


def test_what_is_shown_can_be_run_again(lake: Any) -> None:
    lake.sql(
        "CREATE TABLE lake.db.t (a INT NOT NULL, b STRING) USING tamis CLUSTER BY (b, a) TBLPROPERTIES ('k' = 'v')"
    )
    shown = lake.rows("SHOW CREATE TABLE lake.db.t")[0][0]
    lake.sql("DROP TABLE lake.db.t")
    lake.spark.sql(shown)
    assert lake.rows("SHOW CREATE TABLE lake.db.t")[0][0] == shown


@pytest.mark.parametrize("written", ["cluster_by(a, s.x)", "CLUSTER_BY(a, s.x)"])
def test_clustering_as_it_is_shown_is_clustering(lake: Any, written: str) -> None:
    rest = "TBLPROPERTIES ('tamis.format' = 'parquet')"
    lake.sql(f"CREATE TABLE lake.db.t (a INT, s STRUCT<x: INT>) USING tamis PARTITIONED BY ({written}) {rest}")
    table = tamis.open(lake.folder / "db" / "t")
    assert table.snapshot.head.cluster_by == ((1,), (2, 3))
    assert table.properties == {}


def test_a_table_is_there_once(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t (a INT) USING tamis")
    lake.refused("CREATE TABLE lake.db.t (b INT) USING tamis", "TABLE_OR_VIEW_ALREADY_EXISTS")
    lake.sql("CREATE TABLE IF NOT EXISTS lake.db.t (b INT) USING tamis")
    assert lake.rows("DESCRIBE lake.db.t") == [("a", "int", None)]


def test_drop(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t (a INT) USING tamis")
    lake.sql("DROP TABLE lake.db.t")
    assert lake.rows("SHOW TABLES IN lake.db") == []
    assert not (lake.folder / "db" / "t").exists()
    lake.refused("DROP TABLE lake.db.t", "TABLE_OR_VIEW_NOT_FOUND")
    lake.sql("DROP TABLE IF EXISTS lake.db.t")
    lake.refused("SELECT * FROM lake.db.t", "TABLE_OR_VIEW_NOT_FOUND")


def test_rename(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t (a INT) USING tamis")
    lake.sql("CREATE TABLE lake.db.u (b INT) USING tamis")
    lake.sql("ALTER TABLE lake.db.t RENAME TO db.`new name`")
    assert lake.rows("DESCRIBE lake.db.`new name`") == [("a", "int", None)]
    assert {row[1] for row in lake.rows("SHOW TABLES IN lake.db")} == {"new name", "u"}
    lake.refused("ALTER TABLE lake.db.u RENAME TO db.`new name`", "TABLE_OR_VIEW_ALREADY_EXISTS")
    lake.refused("ALTER TABLE lake.db.t RENAME TO db.v", "TABLE_OR_VIEW_NOT_FOUND")
    lake.sql("ALTER TABLE lake.db.u RENAME TO lake.db.v")
    assert {row[1] for row in lake.rows("SHOW TABLES IN lake.db")} == {"new name", "v"}


def test_properties_and_comments_change(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t (a INT, s STRUCT<x: INT>) USING tamis TBLPROPERTIES ('k' = 'v')")
    lake.sql("ALTER TABLE lake.db.t SET TBLPROPERTIES ('l' = 'w', 'comment' = 'all of it')")
    lake.sql("ALTER TABLE lake.db.t UNSET TBLPROPERTIES ('k')")
    lake.sql("ALTER TABLE lake.db.t ALTER COLUMN a COMMENT 'the a'")
    assert ("l", "w") in lake.rows("SHOW TBLPROPERTIES lake.db.t")
    assert ("k", "v") not in lake.rows("SHOW TBLPROPERTIES lake.db.t")
    assert ("Comment", "all of it", "") in lake.rows("DESCRIBE EXTENDED lake.db.t")
    assert lake.rows("DESCRIBE lake.db.t")[0] == ("a", "int", "the a")
    lake.refused("ALTER TABLE lake.db.t SET TBLPROPERTIES ('tamis.bogus' = '1')", "UNKNOWN_OPTION")


@pytest.mark.push_cases(3)
@pytest.mark.parametrize("name", ["my table", "it's", 'say "hi"', "größe", "表", "a.b", "100%", "a#b?c"])
def test_names_of_many_kinds(lake: Any, name: str) -> None:
    lake.sql("CREATE NAMESPACE lake.`d b`")
    lake.sql(f"CREATE TABLE lake.`d b`.`{name}` (a INT) USING tamis")
    lake.sql(f"INSERT INTO lake.`d b`.`{name}` VALUES (1)")
    assert lake.rows("SHOW TABLES IN lake.`d b`")[0][1] == name
    assert lake.rows(f"SELECT operation FROM lake.`d b`.`{name}`.history") == [("append",), ("create",)]
    assert tamis.open(lake.folder / "d b" / name).version == 1


@pytest.mark.parametrize("name", ["a/b", "..", "a\\b", "_tamis", ".x"])
def test_names_that_lead_elsewhere(lake: Any, name: str) -> None:
    lake.refused(f"CREATE TABLE lake.db.`{name}` (a INT) USING tamis", "BAD_NAME")


@pytest.mark.parametrize(
    ("sql", "condition", "says"),
    [
        ("CREATE TABLE lake.db.t (a INT, b INT) USING tamis PARTITIONED BY (b)", "UNSUPPORTED_STATEMENT", "CLUSTER BY"),
        (
            "CREATE TABLE lake.db.t (a INT) USING tamis PARTITIONED BY (bucket(4, a))",
            "UNSUPPORTED_STATEMENT",
            "CLUSTER BY",
        ),
        ("CREATE TABLE lake.db.t (a INT) USING orc", "UNSUPPORTED_STATEMENT", "USING orc"),
        ("CREATE TABLE lake.db.t (a INT) USING tamis LOCATION '/somewhere'", "UNSUPPORTED_STATEMENT", "LOCATION"),
        ("CREATE TABLE lake.db.t (a INT, b INTERVAL YEAR) USING tamis", "UNSUPPORTED_TYPE", "'b': Type interval year"),
        ("CREATE TABLE lake.db.t (a ARRAY<INT>) USING tamis CLUSTER BY (a)", "BAD_CLUSTERING", "'a' is array<int>"),
        (
            "CREATE TABLE lake.db.t (a INT) USING tamis TBLPROPERTIES ('tamis.read.lzy' = 'on')",
            "UNKNOWN_OPTION",
            "tamis.read.lzy",
        ),
        ("CREATE TABLE lake.db.t (`_tamis_position` INT) USING tamis", "RESERVED_NAME", "_tamis_position"),
        ("CREATE TABLE lake.db.t (a INT) USING tamis TBLPROPERTIES ('tamis.format' = 'csv')", "UNKNOWN_FORMAT", "csv"),
    ],
)
def test_what_cannot_be_is_refused_by_name(lake: Any, sql: str, condition: str, says: str) -> None:
    assert says in lake.refused(sql, condition)
    assert not (lake.folder / "db" / "t").exists()


@pytest.mark.parametrize("columns", ["a INT, A INT", "s STRUCT<x: INT, X: INT>"])
def test_names_that_differ_by_case_are_one_name(lake: Any, columns: str) -> None:
    lake.sql("SET spark.sql.caseSensitive = true")
    try:
        assert "names are compared ignoring case" in lake.refused(
            f"CREATE TABLE lake.db.t ({columns}) USING tamis", "DUPLICATE_COLUMN"
        )
    finally:
        lake.sql("RESET spark.sql.caseSensitive")
    assert not (lake.folder / "db" / "t").exists()
