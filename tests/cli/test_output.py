"""Values as JSON has them, and as people read them."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tamis.cli.output import plain, print_json_rows, row_records, text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (1, 1),
        (1.5, 1.5),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (Decimal("1.10"), "1.10"),
        (b"\x00\xff", "00ff"),
        (datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), "2026-01-02T03:04:05.000006+00:00"),
        (date(1500, 1, 1), "1500-01-01"),
        (timedelta(days=1, microseconds=1), 86400.000001),
        ([1, [Decimal(2)]], [1, ["2"]]),
        ([("a", 1), ("b", None)], {"a": 1, "b": None}),
        ({"a": {"b": b"x"}}, {"a": {"b": "78"}}),
    ],
)
def test_plain(value: Any, expected: Any) -> None:
    assert plain(value) == expected
    json.dumps(plain(value), allow_nan=False)


def test_maps_are_objects_also_when_empty() -> None:
    kind = pa.struct([("m", pa.map_(pa.int64(), pa.list_(pa.map_(pa.string(), pa.int64()))))])
    rows = pa.table({"s": pa.array([{"m": []}, {"m": [(1, [[], [("a", 2)]])]}, None], kind), "l": [[], [1], None]})
    expected = [{"s": {"m": {}}, "l": []}, {"s": {"m": {"1": [{}, {"a": 2}]}}, "l": [1]}, {"s": None, "l": None}]
    assert [plain(row) for row in row_records(rows)] == expected


def test_texts_that_are_not_utf_8_are_shown() -> None:
    held = pa.array([b"\xe9a", b"ok"])
    texts = pa.Array.from_buffers(pa.string(), 2, held.buffers())
    structs = pa.StructArray.from_arrays([texts, pa.array([1, 2])], ["t", "n"])
    rows = pa.table(
        {
            "t": texts,
            "s": structs,
            "l": pa.ListArray.from_arrays([0, 1, 2], texts),
            "m": pa.MapArray.from_arrays([0, 1, 2], texts, texts),
            "b": [b"\xff", None],
        }
    )
    assert [plain(row) for row in row_records(rows)] == [
        {"t": "\ufffda", "s": {"t": "\ufffda", "n": 1}, "l": ["\ufffda"], "m": {"\ufffda": "\ufffda"}, "b": "ff"},
        {"t": "ok", "s": {"t": "ok", "n": 2}, "l": ["ok"], "m": {"ok": "ok"}, "b": None},
    ]


@pytest.mark.parametrize(
    ("value", "expected"), [(None, "NULL"), ("", ""), (b"\x01", "0x01"), ([1, None], "[1, null]"), (True, "True")]
)
def test_text(value: Any, expected: str) -> None:
    assert text(value) == expected


@pytest.mark.parametrize("rows", [[], [{"a": 1}], [{"a": 1}, {"a": float("nan")}]])
def test_rows_are_one_array(rows: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    print_json_rows(rows)
    assert json.loads(capsys.readouterr().out) == plain(rows)


def test_dates_and_times_that_python_does_not_have_are_texts() -> None:
    far = pa.array([5_000_000, 0, None], pa.int32()).view(pa.date32())
    late = pa.array([568_971_820_800_000_000, 0, None], pa.int64()).view(pa.timestamp("us"))
    rows = list(row_records(pa.table({"day": far, "at": late, "n": [1, 2, 3]})))
    assert [row["n"] for row in rows] == [1, 2, 3]
    assert [row["day"] for row in rows] == ["+15659-07-15", "1970-01-01", None]
    assert [row["at"] for row in rows] == ["+20000-01-01 00:00:00", "1970-01-01 00:00:00", None]
    farther = pa.array([2**60, -(2**62)], pa.int64()).view(pa.timestamp("us"))
    inside = pa.StructArray.from_arrays([farther, pa.array([10**7, 0], pa.int32()).view(pa.date32())], ["t", "d"])
    lists = pa.array([[2**60], None], pa.list_(pa.int64())).cast(pa.list_(pa.timestamp("us")))
    both = list(row_records(pa.table({"at": farther, "s": inside, "l": lists})))
    assert both[0]["at"] == "+38504-08-17 21:30:06.846976"
    assert [row["s"] for row in both] == [{"t": 2**60, "d": 10**7}, {"t": -(2**62), "d": 0}]
    assert [row["l"] for row in both] == [[2**60], None]
    kept = list(row_records(pa.table({"day": pa.array([0], pa.int32()).view(pa.date32())})))
    assert kept == [{"day": date(1970, 1, 1)}]
