"""A wide table for lazy reading, and a query with and without it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tamis

BLOCK, BLOCKS = 16_384, 7  # rows of 70 columns: see write_part.block_rows_for

ROWS = BLOCK * BLOCKS


def wide(folder: Path, columns: int = 70, segments: int = 1, form: str = "parquet") -> Any:
    """``k`` matches no statistics, ``hit`` is 1 where a test wants it, ``block`` and ``n`` rise, the rest is noise."""
    random = np.random.default_rng(4)
    k = random.integers(0, 2**40, ROWS) * 2
    k[::BLOCK], k[1::BLOCK] = 0, 2**41  # no bounds exclude anything
    hits = np.zeros(ROWS, dtype=np.int64)
    hits[[2 * BLOCK + 5, 5 * BLOCK + 77]] = 1
    hits[::BLOCK], hits[1::BLOCK] = -1, 3
    last = np.full(ROWS, 7)
    last[::BLOCK], last[1::BLOCK], last[ROWS - 3] = 0, 9, 5
    data = {"n": np.arange(ROWS), "k": k, "hit": hits, "last": last, "few": random.integers(0, 100, ROWS)}
    data |= {f"f{i}": random.integers(0, 2**50, ROWS) for i in range(columns - len(data))}
    table = tamis.create(folder, pa.table(data).schema, format=form)
    for segment in range(segments):
        table.append(pa.table({**data, "n": np.arange(ROWS) + segment * ROWS}))
    return table


def run(table: Any, text: str, fields: tuple[str, ...] = ("*",), lazy: str = "auto") -> tuple[pa.Table, Any]:
    scan = table.scan(text, fields, options={"tamis.read.lazy": lazy})
    found = scan.to_arrow()
    return found, scan.report


def data_bytes(report: Any) -> int:
    return int(report.bytes["leader"] + report.bytes["follower"])


ODD = pa.table(
    {
        "n": pa.array([1, 2, None, 3, 1, None] * 4, pa.int64()),
        "x": [float("nan"), float("inf"), -0.0, 0.0, -1.5, None] * 4,
        "c": ["ab", "ab ", "ab  ", "", None, "b"] * 4,
        "d": pa.array([Decimal("1.10"), Decimal("1.25"), None, Decimal("-3.00"), Decimal("0.00"), Decimal("99.99")] * 4, pa.decimal128(4, 2)),
        "at": pa.array([dt.datetime(1500, 1, 1), dt.datetime(1850, 6, 1), None, dt.datetime(1970, 1, 1), dt.datetime(2024, 3, 31, 2, 30), dt.datetime(9999, 1, 1)] * 4, pa.timestamp("us", tz="UTC")),
        "s": [{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}, {"a": 2, "b": None}, {"a": 3, "b": "z"}, {"a": 1, "b": "w"}] * 4,
        "l": [[1, None], None, [], [2], [3, 3, 3], [4]] * 4,
        "m": pa.array([[("k", 1)], None, [], [("a", 2)], [("a", None), ("b", 3)], []] * 4, pa.map_(pa.string(), pa.int64())),
    }
)  # fmt: skip


def same(
    table: Any,
    text: str,
    expected: list[int] | None = None,
    fields: tuple[str, ...] = ("*",),
    options: dict[str, Any] | None = None,
) -> None:
    """Lazy, eager and (of every six rows) the places expected."""
    scans = [
        table.scan(text, fields, options={"tamis.read.lazy": lazy, **(options or {})}).to_arrow()
        for lazy in ("on", "off", "auto")
    ]
    assert str(scans[0].to_pylist()) == str(scans[1].to_pylist()) == str(scans[2].to_pylist())
    if expected is not None:
        rows = [6 * turn + at for turn in range(4) for at in expected]
        chosen = (
            ODD.take(pa.array(rows, pa.int64()))
            if fields == ("*",)
            else ODD.take(pa.array(rows, pa.int64())).select(list(fields))
        )
        assert str(scans[0].to_pylist()) == str(chosen.to_pylist())
