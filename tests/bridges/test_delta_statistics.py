"""Claims that are read from the statistics of a Delta log are true of every row."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tamis
from tamis.bridges.sources.delta_source import read_delta
from tamis.bridges.sources.text_bounds import above_cut_text
from tests.bridges import delta_logs as logs
from tests.bridges.foreign_tables import check_claims, live_rows, sorted_rows

TEXTS = st.text(st.sampled_from(["a", "z", "\x7f", "é", "\ufffd", "\uffff", "😀", "\U0010ffff", "\t"]), max_size=40)
MOMENTS = st.integers(-(10**15), 10**15).map(lambda us: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us))
WIDE = Context(prec=38)
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "i": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "l": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "s": (pa.string(), TEXTS),
    "f": (pa.float64(), st.sampled_from([math.nan, -0.0, 0.0, 1.5, -1e300, math.inf, -math.inf])),
    "r": (pa.float32(), st.floats(width=32)),
    "d": (pa.decimal128(12, 2), st.integers(-(10**11), 10**11).map(lambda n: Decimal(n) / 100)),
    "m": (pa.decimal128(16, 3), st.integers(-(10**16) + 1, 10**16 - 1).map(lambda n: Decimal(n).scaleb(-3))),
    "w": (pa.decimal128(38, 10), st.integers(-(10**37), 10**37).map(lambda n: Decimal(n).scaleb(-10, WIDE))),
    "small": (pa.decimal128(15, 14), st.integers(-(10**15) + 1, 10**15 - 1).map(lambda n: Decimal(n).scaleb(-14))),
    "day": (pa.date32(), st.dates()),
    "t": (pa.timestamp("us", "UTC"), MOMENTS),
    "b": (pa.bool_(), st.booleans()),
}
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | s for name, (_, s) in VALUES.items()}), min_size=1, max_size=6)
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in VALUES.items()])


@given(st.lists(ROWS, min_size=1, max_size=3), st.booleans())
def test_claims_of_tables_of_deltalake_are_true(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[dict[str, Any]]], checkpoint: bool
) -> None:
    folder = tmp_path_factory.mktemp("delta")
    for rows in parts:
        nested = pa.array([{"x": r["l"], "y": r["s"]} if r["i"] is not None else None for r in rows])
        data = pa.Table.from_pylist(rows, SCHEMA).append_column("n", nested.cast(NESTED))
        deltalake.write_deltalake(folder, data, mode="append")
    if checkpoint:
        deltalake.DeltaTable(folder).create_checkpoint()
    source = read_delta(str(folder))
    assert check_claims(source) > 10
    assert sorted_rows(live_rows(source)) == sorted_rows(deltalake.DeltaTable(folder).to_pyarrow_table())


NESTED = pa.struct([("x", pa.int64()), ("y", pa.string())])


def spark_maximum(values: list[str]) -> str | None:
    """The maximum as Delta wrote it before 3.3: cut by UTF-16 units, with a mark that is not above all characters."""
    units = max(values, key=lambda v: v.encode()).encode("utf-16-le", "surrogatepass")
    if len(units) <= 64:
        return units.decode("utf-16-le")
    return units[:64].decode("utf-16-le", "surrogatepass").encode("utf-8", "replace").decode() + "\ufffd"


@example(["a" + "😀" * 20], "old")
@given(st.lists(TEXTS, min_size=1, max_size=5), st.sampled_from(["plain", "old", "newest"]))
def test_an_upper_bound_of_text_holds_however_it_was_cut(values: list[str], how: str) -> None:
    highest = max(values, key=lambda v: v.encode())
    cut = {"plain": highest[:32], "old": spark_maximum(values), "newest": highest[:32] + "\U0010ffff"}[how]
    bound = above_cut_text(pa.array([cut, None, "short"]))
    assert bound[1].as_py() is None
    assert bound[2].as_py() == "short"
    if bound[0].is_valid:
        assert all(v.encode() <= bound[0].as_py().encode() for v in values)


def test_bounds_of_long_decimals_are_widened_by_what_a_double_loses(tmp_path: Path) -> None:
    """deltalake computes them with doubles: 57000000000000007 becomes 57000000000000010 on either side."""
    value = Decimal("57000000000000007.1234567891")
    deltalake.write_deltalake(tmp_path / "d", pa.table({"w": pa.array([value], pa.decimal128(38, 10))}))
    source = read_delta(str(tmp_path / "d"))
    assert check_claims(source) == 3
    low, high = (source.files[f"1|decimal(38,10)|{side}"][0].as_py() for side in ("lo", "hi"))
    assert value - 1000 < low < value < high < value + 1000
    tamis.adopt(tmp_path / "d", tmp_path / "t")
    assert tamis.open(tmp_path / "t").scan(f"w = {value}").count() == 1


def test_a_long_bound_is_still_near() -> None:
    assert above_cut_text(pa.array(["a" * 40])).to_pylist() == ["a" * 30 + "b"]


FIELDS = [
    logs.field("a", "long"),
    logs.field("s", "string"),
    logs.field("f", "double"),
    logs.field("t", "timestamp"),
    logs.field("n", "timestamp_ntz"),
]


def adversarial(folder: Path) -> None:
    """A log as Spark and others may have written it."""
    naive = datetime(1969, 12, 31, 23, 59, 59, 999_999)
    data = pa.table(
        {
            "a": [1, None, 3],
            "s": ["b" * 31 + "\U0010ffff" * 9, "a" * 40, None],
            "f": [math.nan, -0.0, 0.0],
            "t": pa.array([datetime(2020, 1, 1, 0, 0, 0, 123_999, UTC)] * 3, pa.timestamp("us", "UTC")),
            "n": pa.array([naive, naive, None], pa.timestamp("us")),
        }
    )
    spark = {
        "minValues": {
            "a": 1,
            "s": "a" * 32,
            "f": 0.0,
            "t": "2020-01-01T01:00:00.123+01:00",
            "n": "1970-01-01T00:00:00.000",  # truncated towards 1970
        },
        "maxValues": {
            "a": 3,
            "s": "b" * 31 + "\U0010ffff\ufffd",
            "f": "NaN",
            "t": "2020-01-01T00:00:00.123Z",
            "n": "1970-01-01T00:00:00.000",
        },
        "nullCount": {"a": 1, "s": 1, "f": 0, "t": 0, "n": 1},
    }
    odd: list[Any] = [
        spark,
        None,
        "",
        "no JSON",
        "[1]",
        {"numRecords": 3, "minValues": None, "maxValues": 7, "nullCount": {"a": 9}},
        {"minValues": {"a": 1.0, "s": 5, "t": "12020-01-01T00:00:00Z"}, "maxValues": {"a": "3", "t": "yesterday"}},
        {"minValues": {"a": 1, "s": "a"}, "nullCount": {"a": 1, "s": True, "f": -1}},
        {"minValues": {"gone": 1}, "maxValues": {"gone": 1}, "nullCount": {"gone": 0}},
        '{"numRecords":3,"minValues":{"s":"a\\ud83d"},"maxValues":{"a":3,"a":3}}',
        '{"numRecords":\n3,\n"nullCount":{"a":1}}',
    ]
    logs.create(folder, FIELDS, [logs.add(folder, f"{at}.parquet", data, each) for at, each in enumerate(odd)])


def test_claims_of_an_odd_log_are_true(tmp_path: Path) -> None:
    adversarial(tmp_path)
    source = read_delta(str(tmp_path))
    assert check_claims(source) >= 20
    first = source.files.to_pylist()[0]
    assert (first["3|double|lo"], first["3|double|hi"]) == (0.0, None)  # what NaN hides is not known
    assert first["1|nulls"] == 1
    assert first["rows"] == 3
    assert source.files["rows"].to_pylist().count(None) == 4
    assert source.files["1|nulls"].to_pylist()[-1] == 1  # a document on several lines
