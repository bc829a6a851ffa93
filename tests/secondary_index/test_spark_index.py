"""Indexes through Spark: statements, procedures, the metadata table, builds by jobs, and scans whose answers are those of a scan without index."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import tamis
from tests.new_reports import all_reports, reports_since
from tests.secondary_index.tables import ROWS, key_in, rows_of
from tests.spark.capabilities import needs_syntax

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """``ix.db.t`` with three loads, clustered by nothing."""
    place = tmp_path_factory.mktemp("ix")
    tamis.attach(spark, "ix", place)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS ix.db")
    for segment in range(3):
        frame = spark.createDataFrame(rows_of(segment).drop_columns(["o"]).to_pandas())
        frame.createOrReplaceTempView("load")
        if segment == 0:
            spark.sql("CREATE TABLE ix.db.t USING tamis AS SELECT k, g, s, f, w FROM load")
        else:
            spark.sql("INSERT INTO ix.db.t SELECT k, g, s, f, w FROM load")
    return spark


def test_a_replaced_table_has_no_indexes(spark: Any, tmp_path: Path) -> None:
    """Those of its old columns could never be built, and their names were taken."""
    tamis.attach(spark, "replaced", tmp_path / "lake")
    spark.sql("CREATE NAMESPACE replaced.db")
    spark.sql("CREATE TABLE replaced.db.t USING tamis AS SELECT id AS k FROM range(100)")
    path = str(tmp_path / "lake" / "db" / "t")
    tamis.open(path).create_index("by_k", "k")
    spark.sql("CREATE OR REPLACE TABLE replaced.db.t USING tamis AS SELECT id AS k FROM range(200)")
    assert not tamis.open(path).indexes()
    tamis.open(path).create_index("by_k", "k")
    assert used_indexes(path) == {"by_k"}
    spark.range(300).selectExpr("id AS k").write.format("tamis").mode("overwrite").option("overwriteSchema", True).save(
        path
    )
    assert not tamis.open(path).indexes()
    spark.sql("INSERT INTO replaced.db.t VALUES (1000)")
    tamis.open(path).create_index("by_k", "k")
    assert used_indexes(path) == {"by_k"}
    assert tamis.open(path).verify().ok


def used_indexes(path: str) -> set[str]:
    scan = tamis.open(path).scan("k = 77", options={"tamis.index.use": "lookup"})
    assert scan.to_arrow().num_rows == 1
    return {found.name for found in scan.report.indexes}


def held(spark: Any) -> tamis.Table:
    return tamis.open(spark.sql("DESCRIBE TABLE EXTENDED ix.db.t").where("col_name = 'Location'").collect()[0][1])


def answer(spark: Any, where: str, use: str = "auto") -> list[Any]:
    """The rows, NaN as text: two objects of it are not equal."""
    found = spark.sql(f"SELECT k, g, s, f FROM ix.db.t WITH ('tamis.index.use' = '{use}') WHERE {where}").collect()
    return sorted(
        ((*row[:3], "NaN" if row[3] is not None and math.isnan(row[3]) else row[3]) for row in found), key=repr
    )


def test_statements_scans_and_procedures(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    spark = lake
    spark.sql("CREATE INDEX ik ON ix.db.t (k)")
    spark.sql("CREATE INDEX IF NOT EXISTS ik ON ix.db.t (k)")
    with pytest.raises(Exception, match="There is no index of type 'bloom'"):
        spark.sql("CREATE INDEX other ON ix.db.t USING bloom (k)")
    with pytest.raises(Exception, match="ik"):
        spark.sql("CREATE INDEX ik ON ix.db.t (k)")
    spark.sql("CREATE INDEX `by text` ON ix.db.t (s, g) OPTIONS (build = 'deferred')")
    rows = {r["name"]: r for r in spark.table("ix.db.t.indexes").collect()}
    assert (len(rows["ik"]["covered"]), len(rows["ik"]["missing"])) == (3, 0)
    assert (len(rows["by text"]["covered"]), len(rows["by text"]["missing"])) == (0, 3)

    for where in [
        f"k = {key_in(1)}",
        f"k IN ({key_in(0)}, {key_in(2)})",
        "k BETWEEN 40 AND 60",
        f"k = {key_in(0)} AND f >= 0",
        "k > 500",
    ]:
        assert answer(spark, where) == answer(spark, where, "off"), where
    answer(spark, f"k = {key_in(1)}")
    report = tamis.reports()[0]
    assert [(e["name"], e["segments"], e["missing"]) for e in report.indexes] == [("ik", 3, 0)]
    assert (report.parts["skipped_index"] >= 2, report.bytes["index"] > 0, report.reader) == (True, True, "lazy")

    spark.sql("INSERT INTO ix.db.t SELECT k + 100000, g, s, f, w FROM ix.db.t WHERE g = 3")
    assert len(next(i for i in held(spark).indexes() if i.name == "ik").missing) == 0
    assert len(answer(spark, f"k = {key_in(0) // 10 * 10 + 3 + 100000}")) in (0, 1)

    spark.conf.set("tamis.index.build", "fail")
    try:
        spark.sql("INSERT INTO ix.db.t SELECT k + 200000, g, s, f, w FROM ix.db.t WHERE g = 4 AND k < 100000")
        with pytest.raises(Exception, match="INDEX_BUILD_FAILED"):
            spark.sql("CALL ix.system.repair_index(table => 'db.t')")
    finally:
        spark.conf.unset("tamis.index.build")
    found = next(i for i in held(spark).indexes() if i.name == "ik")
    assert len(found.missing) == 1
    assert "told to fail" in next(iter(found.missing.values()))
    assert answer(spark, "k > 200100 AND k < 200200") == answer(spark, "k > 200100 AND k < 200200", "off") != []

    spark.sql("CALL ix.system.repair_index(table => 'db.t')")
    listed = {r["name"]: r for r in spark.sql("CALL ix.system.list_indexes(table => 'db.t')").collect()}
    assert [len(listed[name]["missing"]) for name in ("ik", "by text")] == [0, 0]
    first = listed["ik"]["covered"][0]
    spark.sql(f"CALL ix.system.drop_index_segments(table => 'db.t', index => 'ik', segments => '{first}')")
    found = next(i for i in held(spark).indexes() if i.name == "ik")
    assert list(found.missing) == [first]
    answer(spark, f"k = {key_in(1)}")
    assert [(e["segments"], e["missing"]) for e in tamis.reports()[0].indexes] == [(2, 1)]

    spark.sql("DROP INDEX `by text` ON ix.db.t")
    spark.sql("DROP INDEX IF EXISTS `by text` ON ix.db.t")
    with pytest.raises(Exception, match="by text"):
        spark.sql("DROP INDEX `by text` ON ix.db.t")


def test_builds_by_executors(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tamis.spark.write import spark_index as index

    monkeypatch.setattr(index, "FEW_ROWS", 10)
    lake.sql("CALL ix.system.create_index(table => 'db.t', index => 'jobs', columns => 's, k')")
    found = next(i for i in held(lake).indexes() if i.name == "jobs")
    assert (len(found.missing), found.rows) == (0, held(lake).scan().count())
    text = rows_of(1)["s"][4].as_py()
    assert answer(lake, f"s = '{text}'", "jobs") == answer(lake, f"s = '{text}'", "off")
    lake.sql("DROP INDEX jobs ON ix.db.t")


def test_tasks_ask_for_themselves_and_rows_come_from_the_index_alone(lake: Any) -> None:
    lake.sql("CALL ix.system.create_index(table => 'db.t', index => 'igk', columns => 'g, k')")
    lake.sql("DELETE FROM ix.db.t WHERE k IN (41, 42)")
    for where in ("k BETWEEN 40 AND 900 AND f >= 0", "g = 3 AND k < 2000", f"k = {key_in(1)}"):
        assert answer(lake, where, "plan") == answer(lake, where, "off") != [], where
    answer(lake, "k BETWEEN 40 AND 900 AND f >= 0", "plan")
    report = tamis.reports()[0]
    assert (report.parts["skipped_index"], report.bytes["index"] > 0, "each task asks" in report.index_reason) == (
        0,
        True,
        True,
    )
    query = "SELECT k, g FROM ix.db.t WITH ('tamis.index.use' = '{}') WHERE g = 3 AND k BETWEEN 40 AND 900 ORDER BY k"
    found = {use: lake.sql(query.format(use)).collect() for use in ("off", "lookup", "plan")}
    assert found["off"] == found["lookup"] == found["plan"] != []
    alone = tamis.reports()[0]
    assert (alone.bytes["leader"] + alone.bytes["follower"], alone.bytes["index"] > 0) == (0, True)
    counts = [
        lake.sql(f"SELECT count(*) FROM ix.db.t WITH ('tamis.index.use' = '{use}') WHERE k < 900").collect()
        for use in ("off", "plan")
    ]
    assert counts[0] == counts[1]
    with pytest.raises(Exception, match="bogus"):
        answer(lake, "k = 1", "bogus")
    lake.sql("DROP INDEX igk ON ix.db.t")


@pytest.mark.merge
def test_columns_that_change_types_of_spark_alone_and_confs(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fields of structs, CHAR and VARCHAR in CREATE INDEX; ALTER TABLE of indexed columns; what is built later, and by executors; the switches as confs."""
    from tamis.spark.write import spark_index as index

    lake.sql(
        "CREATE TABLE ix.db.n (k BIGINT, o STRUCT<a: BIGINT>, c CHAR(5), v VARCHAR(5), d INTERVAL DAY TO SECOND, x INT) USING tamis"
    )
    load = "INSERT INTO ix.db.n SELECT id * 7 % 101, struct(id), concat('c', id % 9), concat('v', id), make_dt_interval(0, id), 1 FROM range({}, {})"
    lake.sql(load.format(0, 60))
    for name, column in (("io", "o.a"), ("ic", "c"), ("iv", "v"), ("idt", "d"), ("ikx", "k")):
        lake.sql(f"CREATE INDEX {name} ON ix.db.n ({column})")
    with pytest.raises(Exception, match="arrays and structs are not indexed"):
        lake.sql("CREATE INDEX bad ON ix.db.n (o)")
    lake.conf.set("tamis.index.build", "deferred")
    try:
        lake.sql(load.format(60, 100)), lake.sql(load.format(100, 120))
    finally:
        lake.conf.unset("tamis.index.build")
    table = tamis.open(lake.sql("DESCRIBE TABLE EXTENDED ix.db.n").where("col_name = 'Location'").collect()[0][1])
    assert {len(i.missing) for i in table.indexes()} == {2}
    monkeypatch.setattr(index, "FEW_ROWS", 1)
    second = next(iter(table.indexes()[0].missing))
    lake.sql(f"CALL ix.system.repair_index(table => 'db.n', index => 'io', segments => '{second}')")
    assert [len(i.missing) for i in table.refresh().indexes()] == [1, 2, 2, 2, 2]
    lake.sql("CALL ix.system.repair_index(table => 'db.n')")
    listed = {r["name"]: r for r in lake.table("ix.db.n.indexes").collect()}
    assert listed["io"]["columns"] == ["o.a"]
    assert all(
        len(r["covered"]) == 3 and not r["missing"] and r["bytes"] > 0 and r["last_build"] >= r["created_at"]
        for r in listed.values()
    )
    lake.sql("ALTER TABLE ix.db.n DROP COLUMN x")
    with pytest.raises(Exception, match="part of the index 'ikx'"):
        lake.sql("ALTER TABLE ix.db.n DROP COLUMN k")
    lake.sql("ALTER TABLE ix.db.n RENAME COLUMN k TO renamed")
    for use, where, name in (
        ("lookup", "o.a = 77", "io"),
        ("lookup", "c = 'c7'", "ic"),
        ("lookup", "v LIKE 'v11%'", "iv"),
        ("plan", "d = INTERVAL '1' HOUR", "idt"),
        ("auto", "renamed = 14", "ikx"),
    ):
        lake.conf.set("tamis.index.use", "off")
        plain = lake.sql(f"SELECT * FROM ix.db.n WHERE {where}").collect()
        lake.conf.set("tamis.index.use", use)
        try:
            assert sorted(lake.sql(f"SELECT * FROM ix.db.n WHERE {where}").collect()) == sorted(plain) != [], where
        finally:
            lake.conf.unset("tamis.index.use")
        assert [entry["name"] for entry in tamis.reports()[0].indexes] == [name], where
    lake.sql("DROP TABLE ix.db.n")


def test_json_paths(lake: Any) -> None:
    needs_syntax(lake, "SELECT v:a.b::int FROM t")
    lake.sql("CREATE TABLE ix.db.j (k BIGINT, s STRING, v VARIANT) USING tamis")
    document = """concat('{"user": {"id": ', id * 3, ', "name": "n', id, '"}}')"""
    for low in (0, 500):
        lake.sql(f"INSERT INTO ix.db.j SELECT id, {document}, parse_json({document}) FROM range({low}, {low} + 500)")
    lake.sql("CREATE INDEX iv ON ix.db.j (v) OPTIONS (path = 'user.id::bigint')")
    lake.sql("CREATE INDEX both ON ix.db.j (s OPTIONS (path = '$.user.name'), k)")
    lake.sql("CALL ix.system.create_index(table => 'db.j', index => 'ic', columns => 'v:user.name::string, k')")
    for name, options in (
        ("a", "(k) OPTIONS (path = 'x', soon = 'y')"),
        ("b", "(k, v) OPTIONS (path = 'x')"),
        ("c", "(k OPTIONS (as = 'x'))"),
    ):
        with pytest.raises(Exception, match="UNKNOWN_OPTION"):
            lake.sql(f"CREATE INDEX {name} ON ix.db.j {options}")
    listed = {r["name"]: list(r["columns"]) for r in lake.table("ix.db.j.indexes").collect()}
    assert listed == {"iv": ["v:user.id::bigint"], "both": ["s:user.name", "k"], "ic": ["v:user.name::string", "k"]}
    for where, index in (
        ("v:user.id::bigint = 1200", "iv"),
        ("get_json_object(s, '$.user.name') = 'n17'", "both"),
        ("v:user.name::string = 'n700'", "ic"),
        ("variant_get(v, '$.user.id', 'bigint') BETWEEN 30 AND 60", "iv"),
    ):
        query = f"SELECT k FROM ix.db.j WITH ('tamis.index.use' = '{{}}') WHERE {where} ORDER BY k"
        assert lake.sql(query.format("off")).collect() == lake.sql(query.format("auto")).collect() != [], where
        assert [entry["name"] for entry in tamis.reports()[0].indexes] == [index], where
    lake.sql("DROP TABLE ix.db.j")


def test_self_join_and_native(lake: Any) -> None:
    """Each side of a join has its own look-up; Spark's own reader is not chosen where an index says which rows to read."""
    lake.sql("CREATE INDEX IF NOT EXISTS ik ON ix.db.t (k)")
    a, b = key_in(0), key_in(1)
    query = f"SELECT count(*) FROM (SELECT * FROM ix.db.t WHERE k = {a}) x JOIN (SELECT * FROM ix.db.t WHERE k IN ({a}, {b})) y ON x.k = y.k"
    before = all_reports()
    assert lake.sql(query).collect()[0][0] == 1
    made = reports_since(before)
    assert [[entry["name"] for entry in report.indexes] for report in made] == [["ik"], ["ik"]]
    native = f"SELECT k FROM ix.db.t WITH ('tamis.read.lazy' = 'native') WHERE k = {a}"
    assert [r[0] for r in lake.sql(native).collect()] == [a]
    assert tamis.reports()[0].reader != "native"
    assert ROWS
