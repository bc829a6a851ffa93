"""Rows that lack a column, whose values have required fields inside: VARIANT, and structs with NOT NULL."""

from pathlib import Path

import pyarrow as pa
import pytest

import tamis


@pytest.mark.parametrize("kind", ["VARIANT", "STRUCT<a: INT NOT NULL, s: STRUCT<b: STRING NOT NULL> NOT NULL>"])
@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_a_column_that_rows_lack_is_null(kind: str, file_format: str, tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", f"id BIGINT, v {kind}", format=file_format)
    table.append(pa.table({"id": [1, 2]}))
    held = tamis.open(table.path)
    table.alter().add_column("w", kind).commit()
    table.append(pa.table({"id": [3]}))
    held.append(pa.table({"id": [4]}))  # under the schema without w
    assert tamis.open(table.path).scan("v IS NULL AND w IS NULL").count() == 4


REQUIRED = ["VARIANT", "STRUCT<a: INT NOT NULL, v: VARIANT>", "STRUCT<s: STRUCT<b: STRING NOT NULL> NOT NULL, c: INT>"]


@pytest.mark.parametrize("kind", REQUIRED)
@pytest.mark.parametrize("column", ["w", "s.w"])
@pytest.mark.parametrize("rewrite", ["compact", "overwrite", "cluster"])
def test_rows_older_than_a_column_can_be_rewritten(kind: str, column: str, rewrite: str, tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", "id BIGINT, s STRUCT<x: INT>")
    for rows in (
        [{"id": 1, "s": {"x": 1}}, {"id": 2, "s": None}],
        [{"id": 3, "s": {"x": 3}}],
        [{"id": 4, "s": {"x": None}}],
    ):
        table.append(pa.Table.from_pylist(rows, pa.schema([("id", pa.int64()), ("s", pa.struct([("x", pa.int32())]))])))
    table.alter().add_column(column, kind).commit()
    before = table.scan().to_arrow().to_pylist()
    if rewrite == "overwrite":
        table.overwrite(table.scan("id = 1").to_arrow(), "id = 1")
    else:
        table.compact(cluster_by=["id", "s.x"] if rewrite == "cluster" else ())
        assert table.detail()["num_parts"].to_pylist() == [1]
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == before


@pytest.mark.parametrize("kind", REQUIRED)
def test_a_field_that_rows_lack_is_null(kind: str, tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", f"id BIGINT, s STRUCT<x: INT, w: {kind}>")
    table.append(pa.table({"id": [1, 2], "s": pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())]))}))
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "s": {"x": 1, "w": None}}, {"id": 2, "s": None}]
