"""An embedded scan read by Spark's executors gives the scan's own rows, and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.spark.conftest import Lake

import tamis
from tamis.core.types.identifiers import backquote

pytestmark = pytest.mark.spark


def test_the_rows_are_the_scans_own(spark: Any, tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", pa.schema({"id": pa.int64(), "s": pa.string()}))
    for n in range(3):
        table.append(pa.table({"id": pa.array(range(n * 10, n * 10 + 10)), "s": [f"v{i}" for i in range(10)]}))
    scan = table.scan("id >= 15", ("s", "id"))
    found = scan.to_spark(spark)
    assert found.columns == ["s", "id"]
    assert [tuple(r) for r in found.collect()] == [tuple(r.values()) for r in scan.to_arrow().to_pylist()]
    assert table.scan("id >= 15", limit=3).to_spark(spark).count() == 3
    assert table.scan("id > 99").to_spark(spark).collect() == []


def test_its_execution_is_reported(spark: Any, tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", pa.schema({"id": pa.int64()}))
    table.append(pa.table({"id": pa.array(range(10))}))
    table.append(pa.table({"id": pa.array(range(10, 20))}))
    table.scan("id >= 15").to_spark(spark).collect()
    (report,) = tamis.reports()
    assert (report.parts["kept"], report.parts["total"], report.rows["matched"]) == (1, 2, 5)


def test_an_error_of_the_filter_is_raised(spark: Any, tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", pa.schema({"s": pa.string()}))
    table.append(pa.table({"s": ["1", "x"]}))
    with pytest.raises(Exception, match="FILTER_FAILED"):
        table.scan("cast(s AS INT) = 1").to_spark(spark).collect()
    with pytest.raises(tamis.InvalidInput, match=r"UNKNOWN_FUNCTION.*tamis\.attach\(spark"):
        table.scan("soundex(s) = 'x'").to_spark(spark)


def test_a_table_takes_the_schema_of_a_frame(spark: Any, tmp_path: Path) -> None:
    """The schema has types that Arrow lacks, too; the rows come by ``append``."""
    frame = spark.sql("SELECT 1L AS id, CAST('ab' AS CHAR(3)) AS c, parse_json('1') AS v, map('k', 1) AS m WHERE true")
    table = tamis.create(tmp_path / "t", frame)
    assert (table.schema.names, table.scan().count()) == (["id", "c", "v", "m"], 0)
    types = {row["name"]: row["type"] for row in table.metadata("columns").select(["name", "type"]).to_pylist()}
    assert (types["id"], types["v"]) == ("bigint", "variant")
    assert table.append(frame).rows_inserted == 1
    assert table.to_arrow()["id"].to_pylist() == [1]


def test_expressions_of_other_libraries_filter_what_executors_change(spark: Any, tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", "id BIGINT, x DOUBLE")
    table.append(pa.table({"id": list(range(10)), "x": [float("nan"), *map(float, range(9))]}))
    assert table.scan(pc.field("x") > 6.5).to_spark(spark).count() == 2, "NaN is not greater in pyarrow"
    assert table.delete(pc.field("x") > 6.5, spark=spark).rows_deleted == 2
    assert table.update({"x": "0"}, pl.col("x") > 5.5, spark=spark).rows_updated == 2, "and it is in Polars"
    frame = spark.createDataFrame([(1, 1.0)], "id BIGINT, x DOUBLE")
    assert table.overwrite(frame, pc.field("id") == 1).rows_deleted == 1
    assert table.scan().count() == 8


def test_texts_with_lengths_are_compared_as_in_a_table(lake: Lake) -> None:
    """Spark makes STRING of them, and pads what is compared with CHAR by what it knows of the column."""
    lake.sql(
        "CREATE TABLE lake.db.t (id INT, c CHAR(5), d CHAR(7), v VARCHAR(3), s STRUCT<x: CHAR(4), n: INT>, "
        "l ARRAY<CHAR(3)>, m MAP<VARCHAR(2), STRUCT<c: CHAR(2)>>) USING tamis"
    )
    lake.sql(
        "INSERT INTO lake.db.t VALUES (1, 'ab', 'ab', 'v', named_struct('x', 'x', 'n', 1), array('l'), "
        "map('k', named_struct('c', 'y'))), (2, 'abc', 'ab', 'v ', NULL, array(), NULL), (3, NULL, 'z', NULL, NULL, NULL, NULL)"
    )
    found = tamis.open(lake.folder / "db" / "t").scan().to_spark(lake.spark)
    table = lake.spark.table(f"{lake.name}.db.t")
    assert found.schema.simpleString() == table.schema.simpleString()
    assert sorted(found.collect(), key=lambda row: row.id) == table.orderBy("id").collect()
    filters = ["c = 'ab'", "c = d", "'ab' = c", "c IN ('abc', 'ab')", "v = 'v'", "s.x = 'x'", "l = array('l')"]
    assert {f: found.where(f).count() for f in filters} == {f: table.where(f).count() for f in filters}
    assert found.where("c = 'ab'").count() == 1
    assert found.select("m", "l").limit(1).count() == 1


@pytest.mark.parametrize(("name", "kept"), [("x", True), ("a b,c`d", False)], ids=["plain", "strange"])
def test_a_frame_is_written_again(lake: Lake, tmp_path: Path, name: str, kept: bool) -> None:
    """With the types that are declared inside a struct, too, where Spark can read what it quotes no names in."""
    table = tamis.create(tmp_path / "t", f"c CHAR(3), s STRUCT<{backquote(name)}: CHAR(4), n: INT>")
    table.append(pa.table({"c": ["c"], "s": pa.array([{name: "x", "n": 1}])}))
    found = table.scan().to_spark(lake.spark)
    assert [(row.c, tuple(row.s)) for row in found.collect()] == [("c  ", ("x   ", 1))]
    found.writeTo(f"{lake.name}.db.t").using("tamis").create()
    for copy in (tamis.open(lake.folder / "db" / "t"), tamis.create(tmp_path / "copy", found)):
        types = [row["type"] for row in copy.metadata("columns").select(["type"]).to_pylist()]
        assert types[:2] == ["char(3)", f"struct<{name}:{'char(4)' if kept else 'string'},n:int>"]
    assert lake.spark.table(f"{lake.name}.db.t").collect() == found.collect()


def test_a_collation_beside_texts_with_lengths(lake: Lake) -> None:
    lake.sql("CREATE TABLE lake.db.t (s STRUCT<c: CHAR(4), t: STRING COLLATE UTF8_LCASE>) USING tamis")
    lake.sql("INSERT INTO lake.db.t VALUES (named_struct('c', 'y', 't', 'Z'))")
    found = tamis.open(lake.folder / "db" / "t").scan().to_spark(lake.spark)
    assert found.where("s.t = 'z'").collect() == lake.rows("SELECT * FROM lake.db.t") != []
