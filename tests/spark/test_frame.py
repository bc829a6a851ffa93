"""An embedded scan read by Spark's executors gives the scan's own rows, and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tamis

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
    """Types that Arrow lacks, too; the rows come by ``append``."""
    frame = spark.sql("SELECT 1L AS id, CAST('ab' AS CHAR(3)) AS c, parse_json('1') AS v, map('k', 1) AS m WHERE true")
    table = tamis.create(tmp_path / "t", frame)
    assert (table.schema.names, table.scan().count()) == (["id", "c", "v", "m"], 0)
    said = {row["name"]: row["type"] for row in table.metadata("columns").select(["name", "type"]).to_pylist()}
    assert (said["id"], said["v"]) == ("bigint", "variant")
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
