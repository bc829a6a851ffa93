"""Filters over exports find every row: no statistic of an export lets a reader skip a file that has a match."""

from __future__ import annotations

from pathlib import Path

import deltalake
import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.expressions import EqualTo, GreaterThan, LessThan
from pyiceberg.table import StaticTable

import tamis
from tests.bridges.foreign_readers import metadata_file

NAN = float("nan")
TEXTS = ("\u00e9", "\uffff", "\U0001f600", "\U00020000", "\U000e0000", "\U0010ffff", "\x01\"'\\\n")
"""A text of each length in UTF-8, and pairs of surrogates with either value of their 17th bit."""


@pytest.mark.parametrize("text", TEXTS)
def test_texts_of_any_characters_are_found(tmp_path: Path, text: str) -> None:
    """Once alone in its file, once as bounds of other texts."""
    table = tamis.create(tmp_path / "t", "id BIGINT, s STRING, `a.𠀀é` INT")
    for number, value in enumerate((text, text * 40, "a" + text, "plain")):
        table.append(pa.table({"id": [number], "s": [value], "a.𠀀é": pa.array([number], pa.int32())}))
    table.export("delta")
    table.export("iceberg")
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table.path))
    for value in (text, text * 40, "a" + text):
        literal = value.replace("'", "''")
        wanted = table.scan(f"s = {_sql(value)}").to_arrow()["id"]
        assert len(wanted) == 1
        assert (
            pa.table(query.execute(f"SELECT id FROM t WHERE s = '{literal}'"))["id"].to_pylist() == wanted.to_pylist()
        )
        found = pl.scan_delta(table.path).filter(pl.col("s") == value).collect()
        assert found["id"].to_list() == wanted.to_pylist()
        assert found.columns == table.schema.names
        opened = StaticTable.from_metadata(metadata_file(table.path))
        assert opened.scan(EqualTo("s", value)).to_arrow()["id"].to_pylist() == wanted.to_pylist()


def _sql(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def test_files_with_nan_are_planned_for_large_numbers(tmp_path: Path) -> None:
    """To Spark and others NaN is larger than any number."""
    table = tamis.create(tmp_path / "t", "id BIGINT, d DOUBLE, f FLOAT")
    rows = ([1.0, NAN], [NAN, NAN], [1.0, 2.0], [None, NAN])
    for number, values in enumerate(rows):
        table.append(pa.table({"id": [number] * 2, "d": values, "f": pa.array(values, pa.float32())}))
    table.export("iceberg")
    opened = StaticTable.from_metadata(metadata_file(table.path))
    for name in ("d", "f"):
        assert len(list(opened.scan(GreaterThan(name, 5.0)).plan_files())) == 3
        assert len(list(opened.scan(LessThan(name, 0.5)).plan_files())) == 2
