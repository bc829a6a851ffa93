"""Indexes through Spark: statements, procedures, the metadata table, builds by jobs, and scans whose answers are those of a scan without index."""

from __future__ import annotations

from typing import Any

import pytest

import tamis
from tests.index.tables import ROWS, key_in, rows_of

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


def held(spark: Any) -> tamis.Table:
    return tamis.open(spark.sql("DESCRIBE TABLE EXTENDED ix.db.t").where("col_name = 'Location'").collect()[0][1])


def answer(spark: Any, where: str, use: str = "auto") -> list[Any]:
    return sorted(
        map(tuple, spark.sql(f"SELECT k, g, s, f FROM ix.db.t WITH ('tamis.index.use' = '{use}') WHERE {where}").collect()), key=repr
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

    for where in [f"k = {key_in(1)}", f"k IN ({key_in(0)}, {key_in(2)})", "k BETWEEN 40 AND 60", f"k = {key_in(0)} AND f >= 0", "k > 500"]:
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
    from tamis.spark import index

    monkeypatch.setattr(index, "FEW_ROWS", 10)
    lake.sql("CALL ix.system.create_index(table => 'db.t', index => 'jobs', columns => 's, k')")
    found = next(i for i in held(lake).indexes() if i.name == "jobs")
    assert (len(found.missing), found.rows) == (0, held(lake).scan().count())
    text = rows_of(1)["s"][4].as_py()
    assert answer(lake, f"s = '{text}'", "jobs") == answer(lake, f"s = '{text}'", "off")
    lake.sql("DROP INDEX jobs ON ix.db.t")


def test_self_join_and_native(lake: Any) -> None:
    """Each side of a join has its own look-up; Spark's own reader is not chosen where an index says which rows to read."""
    a, b = key_in(0), key_in(1)
    query = (
        f"SELECT count(*) FROM (SELECT * FROM ix.db.t WHERE k = {a}) x JOIN (SELECT * FROM ix.db.t WHERE k IN ({a}, {b})) y ON x.k = y.k"
    )
    assert lake.sql(query).collect()[0][0] == 1
    native = f"SELECT k FROM ix.db.t WITH ('tamis.read.lazy' = 'native') WHERE k = {a}"
    assert [r[0] for r in lake.sql(native).collect()] == [a]
    assert tamis.reports()[0].reader != "native"
    assert ROWS
