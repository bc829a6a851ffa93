"""Fields that are NOT NULL, below structs that are NULL: what a scan returns is a table that any writer takes."""

from __future__ import annotations

import io
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis

DOCUMENT = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x01"}
COLUMNS = """
    k BIGINT, s STRUCT<v: VARIANT, n: INT>, a ARRAY<STRUCT<v: VARIANT>>,
    r STRUCT<x: INT NOT NULL, y: STRING NOT NULL, z: STRUCT<w: DATE NOT NULL> NOT NULL, l: ARRAY<INT> NOT NULL,
        m: MAP<STRING, INT> NOT NULL, d: DECIMAL(9, 2) NOT NULL, b: BOOLEAN NOT NULL>
"""
FILLED = {"x": 1, "y": "a", "z": {"w": date(2020, 1, 1)}, "l": [1], "m": [("a", 1)], "d": Decimal("1.00"), "b": True}
ROWS = [
    {"k": 1, "s": {"v": DOCUMENT, "n": 1}, "a": [{"v": DOCUMENT}, None, {"v": None}], "r": FILLED},
    {"k": 2, "s": None, "a": None, "r": None},
    {"k": 3, "s": {"v": None, "n": None}, "a": [], "r": None},
]


@pytest.mark.parametrize("data_format", ["parquet", "orc", "vortex"])
def test_they_have_values_below_a_null(tmp_path: Path, data_format: str) -> None:
    table = tamis.create(tmp_path / "t", COLUMNS, format=data_format)
    table.append(pa.Table.from_pylist(ROWS, schema=table.schema))
    for found in (table.scan().to_arrow(), table.scan("k > 1").to_arrow()):
        found.validate(full=True)
        assert found.to_pylist() == ROWS[-len(found) :]
        written = io.BytesIO()
        pq.write_table(found, written)
        assert pq.read_table(written).to_pylist() == found.to_pylist()
