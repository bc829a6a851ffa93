"""SHOW, CREATE, ALTER and DROP NAMESPACE."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import tamis


def test_a_namespace_comes_and_goes(lake: Any) -> None:
    lake.sql("CREATE NAMESPACE lake.ns COMMENT 'of mine'")
    assert lake.rows(f"SHOW NAMESPACES IN {lake.name}") == [("db",), ("ns",)]
    described = dict(row[:2] for row in lake.rows("DESCRIBE NAMESPACE EXTENDED lake.ns"))
    assert described["Comment"] == "of mine"
    assert described["Location"] == f"{lake.folder}/ns"
    lake.sql("DROP NAMESPACE lake.ns")
    assert lake.rows(f"SHOW NAMESPACES IN {lake.name}") == [("db",)]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE lake.nodb.t (a INT) USING tamis",
        "CREATE TABLE lake.nodb.t USING tamis AS SELECT 1 AS a",
        "CREATE OR REPLACE TABLE lake.nodb.t USING tamis AS SELECT 1 AS a",
        "ALTER TABLE lake.db.t RENAME TO nodb.t",
    ],
)
def test_a_table_needs_its_namespace(lake: Any, sql: str) -> None:
    lake.sql("CREATE TABLE lake.db.t (a INT) USING tamis")
    lake.refused(sql, "SCHEMA_NOT_FOUND")
    assert not (lake.folder / "nodb").exists()
    assert lake.rows("SHOW TABLES IN lake.db") == [("db", "t", False)]


def test_a_folder_with_tables_is_a_namespace_and_stays_one(lake: Any) -> None:
    tamis.create(lake.folder / "made" / "t", pa.schema({"a": pa.int64()}))
    lake.sql("CREATE TABLE lake.made.u (a INT) USING tamis")
    lake.sql("DROP TABLE lake.made.t")
    lake.sql("ALTER TABLE lake.made.u RENAME TO db.u")
    lake.sql("CREATE TABLE lake.made.t (a INT) USING tamis")


def test_use_and_plain_names(lake: Any) -> None:
    lake.sql("CREATE NAMESPACE lake.ns")
    lake.sql("USE lake.ns")
    lake.sql("CREATE TABLE t (a INT)")
    assert lake.rows("SHOW TABLES") == [("ns", "t", False)]


def test_nested_namespaces(lake: Any) -> None:
    lake.sql("CREATE NAMESPACE lake.a.b")
    lake.sql("CREATE TABLE lake.a.b.t (x INT) USING tamis")
    assert lake.rows("SHOW NAMESPACES IN lake.a") == [("a.b",)]
    assert lake.rows("SHOW TABLES IN lake.a.b") == [("a.b", "t", False)]


def test_properties_of_a_namespace(lake: Any) -> None:
    lake.sql("CREATE NAMESPACE lake.ns WITH PROPERTIES ('k' = 'v')")
    lake.sql("ALTER NAMESPACE lake.ns SET PROPERTIES ('l' = 'w')")
    assert "((k,v), (l,w))" in str(lake.rows("DESCRIBE NAMESPACE EXTENDED lake.ns"))


def test_errors_are_sparks_own(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t (a INT) USING tamis")
    lake.refused("CREATE NAMESPACE lake.db", "SCHEMA_ALREADY_EXISTS")
    lake.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
    lake.refused("SHOW TABLES IN lake.nope", "SCHEMA_NOT_FOUND")
    lake.refused("DROP NAMESPACE lake.nope", "SCHEMA_NOT_FOUND")
    lake.sql("DROP NAMESPACE IF EXISTS lake.nope")
    lake.refused("DROP NAMESPACE lake.db", "SCHEMA_NOT_EMPTY")
    lake.sql("DROP NAMESPACE lake.db CASCADE")
    assert not (lake.folder / "db").exists()
    lake.refused("CREATE NAMESPACE lake.`..`", "BAD_NAME")


@pytest.mark.parametrize("using", ["USE lake.db", "USE spark_catalog.default"])
def test_files_are_queried_by_their_path_whatever_the_current_catalog_is(lake: Any, using: str) -> None:
    """Spark asks the current catalog first: a path is the name of no table in it."""
    path = lake.folder.parent / "plain"
    lake.spark.range(3).write.parquet(str(path))
    lake.sql(using)
    assert lake.spark.sql(f"SELECT count(*) FROM parquet.`{path}`").first()[0] == 3
    for name in (f"parquet.`{path}/none`", f"lake.db.`{path}`", f"lake.`{path}`.t"):
        for verb in ("SELECT * FROM", "DESCRIBE", "DROP TABLE"):
            with pytest.raises(Exception, match=r"NOT_FOUND|PATH_NOT_FOUND|BAD_NAME") as caught:
                lake.sql(f"{verb} {name}").collect()
            assert "BAD_NAME" not in str(caught.value), (verb, name)


def test_no_namespace_below_a_table(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t (id INT) USING tamis")
    for name in ("db.t", "db.t.inner", "db.t.inner.deep"):
        lake.refused(f"CREATE NAMESPACE lake.{name}", "TABLE_EXISTS")
    assert lake.rows("SELECT * FROM lake.db.t") == []


def test_names_may_begin_with_an_underscore(lake: Any) -> None:
    lake.sql("CREATE NAMESPACE lake._ns")
    lake.sql("CREATE TABLE lake._ns._staging (a INT) USING tamis")
    assert lake.rows("SHOW TABLES IN lake._ns") == [("_ns", "_staging", False)]
    assert ("_ns",) in lake.rows(f"SHOW NAMESPACES IN {lake.name}")
    lake.refused("DROP NAMESPACE lake._ns", "SCHEMA_NOT_EMPTY")
    lake.sql("DROP NAMESPACE lake._ns CASCADE")
    assert not (lake.folder / "_ns").exists()
