"""Claims that are read from the bounds and counts in Iceberg manifests are true of every row."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.bridges.sources.iceberg_bounds import decoded_bounds
from tamis.bridges.sources.iceberg_source import read_iceberg
from tamis.core.types import BOOLEAN, DATE, DOUBLE, FLOAT, LONG, STRING, TIMESTAMP_NTZ
from tamis.core.types import Decimal as Decimals
from tests.bridges import iceberg_tables as ice
from tests.bridges.foreign_tables import check_claims, live_rows, sorted_rows

TEXTS = st.text(st.sampled_from(["a", "z", "é", "\uffff", "😀", "\U0010ffff"]), max_size=24)
MOMENTS = st.integers(-(10**15), 10**15).map(lambda us: datetime(1970, 1, 1) + timedelta(microseconds=us))
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "i": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "l": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "s": (pa.string(), TEXTS),
    "x": (pa.binary(), st.binary(max_size=24)),
    "f": (pa.float64(), st.sampled_from([math.nan, -0.0, 0.0, 1.5, -1e300, math.inf])),
    "d": (pa.decimal128(12, 2), st.integers(-(10**11), 10**11).map(lambda n: Decimal(n) / 100)),
    "e": (pa.decimal128(38, 0), st.integers(-(10**37), 10**37).map(Decimal)),
    "day": (pa.date32(), st.dates()),
    "c": (pa.time64("us"), st.times()),
    "t": (pa.timestamp("us", "UTC"), MOMENTS.map(lambda m: m.replace(tzinfo=UTC))),
    "n": (pa.timestamp("us"), MOMENTS),
    "b": (pa.bool_(), st.booleans()),
}
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | s for name, (_, s) in VALUES.items()}), min_size=1, max_size=6)
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in VALUES.items()])


@pytest.mark.slow
@given(st.lists(ROWS, min_size=1, max_size=2))
def test_claims_of_tables_of_pyiceberg_are_true(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[dict[str, Any]]]
) -> None:
    folder = tmp_path_factory.mktemp("iceberg")
    nested = pa.field("p", pa.struct([("y", pa.int64()), ("q", pa.string())]))
    table = ice.catalog(folder).create_table("n.t", SCHEMA.append(nested))
    for rows in parts:
        nested_rows = [{**r, "p": {"y": r["l"], "q": r["s"]} if r["i"] is not None else None} for r in rows]
        table.append(pa.Table.from_pylist(nested_rows, SCHEMA.append(nested)))
    source = read_iceberg(str(ice.metadata_of(table)))
    assert check_claims(source) >= 10
    assert sorted_rows(live_rows(source)) == sorted_rows(table.scan().to_arrow())


def test_bounds_are_decoded_by_the_specification() -> None:
    def raw(*values: bytes | None) -> list[bytes | None]:
        return [*values, None]

    def number(value: float, kind: str) -> bytes:
        return np.array(value, kind).tobytes()

    cases: list[tuple[Any, list[bytes | None], list[Any]]] = [
        (LONG, raw(number(-5, "<i8"), number(-5, "<i4"), b"", b"abc"), [-5, -5, None, None, None]),
        (
            DOUBLE,
            raw(number(0.1, "<f8"), number(0.1, "<f4"), number(math.nan, "<f8")),
            [0.1, 0.10000000149011612, None, None],
        ),
        (FLOAT, raw(number(0.5, "<f4")), [0.5, None]),
        (BOOLEAN, raw(b"\1", b"\0"), [True, False, None]),
        (STRING, raw("é".encode(), b"\xff"), ["é", None, None]),
        (DATE, raw(number(1, "<i4")), [date(1970, 1, 2), None]),
        (
            TIMESTAMP_NTZ,
            raw(number(1, "<i8"), number(-1, "<i4")),
            [datetime(1970, 1, 1, 0, 0, 0, 1), datetime(1969, 12, 31), None],
        ),
        (
            Decimals(9, 2),
            raw(b"\xff", b"\x00\xff", b"", b"\x7f" * 16),
            [Decimal("-0.01"), Decimal("2.55"), None, None, None],
        ),
    ]
    for data_type, values, expected in cases:
        found = decoded_bounds(values, data_type)
        assert found is not None
        assert found.to_pylist() == expected, data_type


def test_bounds_of_floats_need_a_count_of_nan(tmp_path: Path) -> None:
    table = ice.catalog(tmp_path).create_table("n.t", pa.schema([("f", pa.float64())]))
    table.append(pa.table({"f": [1.0, math.nan]}))
    assert read_iceberg(str(ice.metadata_of(table))).files["1|double|lo"].to_pylist() == [None]


def test_a_table_without_rows(tmp_path: Path) -> None:
    table = ice.catalog(tmp_path).create_table("n.t", SCHEMA)
    source = read_iceberg(str(ice.metadata_of(table)))
    assert (len(source.files), source.version, source.schema.names) == (0, None, tuple(SCHEMA.names))
