"""NaNs of other bits than a constant's: arithmetic on x86 gives a negative one. Spark has one NaN."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.bridges.sources.iceberg_equality import matching

NANS = np.array([0xFFF8_0000_0000_0000, 0x7FF8_0000_0000_0001, 0x7FF8_0000_0000_0000], np.uint64).view(np.float64)
ROWS = np.concatenate([NANS, [1.0, -0.0, 0.0, 5.0]])
ALL_NANS = [0, 1, 2]


@pytest.fixture(params=["double", "float"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tamis.Table:
    values: Any = pa.array(ROWS)
    if request.param == "float":
        bits = np.array([0xFFC0_0000, 0x7FC0_0001, 0x7FC0_0000], np.uint32).view(np.float32)
        values = pa.array(np.concatenate([bits, ROWS[3:].astype(np.float32)]))
    made = tamis.create(tmp_path / "t", f"id BIGINT, x {request.param}")
    made.append(pa.table({"id": range(7), "x": values}))
    return made


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("x IN (double('NaN'), 1.0)", [*ALL_NANS, 3]),
        ("x IN (double('NaN'))", ALL_NANS),
        ("x NOT IN (double('NaN'), 1.0)", [4, 5, 6]),
        ("x IN (0.0, double('NaN'), NULL)", [*ALL_NANS, 4, 5]),
        ("sqrt(-x - 1) IN (double('NaN'), 9.0)", [*ALL_NANS, 3, 4, 5, 6]),
        ("x IN (1.0, 5.0)", [3, 6]),
    ],
)
def test_lists_hold_every_nan(table: tamis.Table, text: str, rows: list[int]) -> None:
    assert table.scan(text, ["id"]).to_arrow()["id"].to_pylist() == rows


def test_keys_hold_every_nan(table: tamis.Table) -> None:
    assert table.scan(keys={"x": [float("nan"), 0.0]}).to_arrow()["id"].to_pylist() == [*ALL_NANS, 4, 5]


def test_a_deletion_keeps_what_is_listed(table: tamis.Table) -> None:
    table.delete("x NOT IN (double('NaN'), 5.0)")
    assert table.scan().to_arrow()["id"].to_pylist() == [*ALL_NANS, 6]


def test_deletes_of_iceberg_match_every_nan() -> None:
    """Zeros of both signs differ there."""
    gone = pa.table({"x": [float("nan"), 0.0]})
    assert matching(pa.table({"x": ROWS}), gone).tolist() == [*ALL_NANS, 5]
