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
