"""Awkward values of every type, for property tests: what broke other engines, and what Hypothesis finds beside it."""

from __future__ import annotations

import struct
from decimal import Decimal as PyDecimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tamis.core.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    DataType,
    DayTimeInterval,
    Decimal,
    Field,
    Map,
    Schema,
    String,
    Struct,
    Time,
)
from tamis.core.types.arrow import to_arrow_type

NAN = float("nan")
NEGATIVE_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]
FLOATS = [
    0.0,
    -0.0,
    1.5,
    -1.5,
    NAN,
    NEGATIVE_NAN,
    float("inf"),
    float("-inf"),
    5e-324,
    1.7976931348623157e308,
    2.0**53 + 2,
]
SINGLES = [
    0.0,
    -0.0,
    1.5,
    -1.5,
    NAN,
    NEGATIVE_NAN,
    float("inf"),
    float("-inf"),
    1.401298464324817e-45,
    3.4028234663852886e38,
]
LONG_TEXT = "k" * 64
TEXTS = [
    *("", " ", "a", "a ", "A", "ab", "é", "\u0000", "\ud7ff", "\ue000", "\U0010ffff", "\U0010ffff" * 70, "\ud7ff" * 70),
    *(
        LONG_TEXT,
        LONG_TEXT + "a",
        LONG_TEXT[:-1] + "\U0010ffff" + "x",
        LONG_TEXT[:-1] + "\ud7ff" + "x",
        "é" * 65,
        "z" * 200,
    ),
]
BINARIES = [
    b"",
    b"\x00",
    b"\xff",
    b"\xff" * 64,
    b"\xff" * 65,
    b"a" * 64,
    b"a" * 65,
    b"a" * 63 + b"\xff\x00",
    b"\x7f\x80",
    "é".encode(),
]
MICROS = [
    0,
    1,
    -1,
    999_999,
    -62_135_596_800_000_000,
    253_402_300_799_999_999,
    -12_219_292_800_000_001,
    1_711_846_800_000_000,
]
DAYS = [0, -1, 1, -719_162, 2_932_896, -141_428, -141_427, 19_782]
DAY = 86_400_000_000


def _integers(bits: int, extra: list[int] | None = None) -> st.SearchStrategy[int]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return st.sampled_from([low, high, low + 1, 0, 1, -1, *(extra or [])]) | st.integers(low, high)


def _decimals(precision: int, scale: int) -> st.SearchStrategy[PyDecimal]:
    top = 10**precision - 1
    whole = st.sampled_from([0, 1, -1, top, -top]) | st.integers(-top, top)
    return whole.map(lambda n: PyDecimal(f"{n}E-{scale}"))


def values(data_type: DataType) -> st.SearchStrategy[Any]:
    """Values of an atomic type in the form that ``array`` takes: times as integers."""
    match data_type:
        case Decimal(precision, scale):
            return _decimals(precision, scale)
        case String():
            return st.sampled_from(TEXTS) | st.text(max_size=5)
        case Time():
            return st.sampled_from([0, 1, DAY - 1]) | st.integers(0, DAY - 1)
        case DayTimeInterval():
            return _integers(64, [2**53 + 1])
    by_type: dict[DataType, st.SearchStrategy[Any]] = {
        BOOLEAN: st.booleans(),
        BYTE: _integers(8),
        SHORT: _integers(16),
        INTEGER: _integers(32),
        LONG: _integers(64, [2**53, 2**53 + 1]),
        FLOAT: st.sampled_from(SINGLES) | st.floats(width=32),
        DOUBLE: st.sampled_from(FLOATS) | st.floats(),
        BINARY: st.sampled_from(BINARIES) | st.binary(max_size=5),
        DATE: st.sampled_from(DAYS) | st.integers(-719_162, 2_932_896),
        TIMESTAMP: st.sampled_from(MICROS) | st.integers(MICROS[4], MICROS[5]),
        TIMESTAMP_NTZ: st.sampled_from(MICROS) | st.integers(MICROS[4], MICROS[5]),
    }
    return by_type[data_type]


ATOMIC: list[DataType] = [
    *(
        BOOLEAN,
        BYTE,
        SHORT,
        INTEGER,
        LONG,
        FLOAT,
        DOUBLE,
        Decimal(10, 2),
        Decimal(18, 0),
        Decimal(38, 10),
        STRING,
        BINARY,
        DATE,
    ),
    *(TIMESTAMP, TIMESTAMP_NTZ, Time(6), DayTimeInterval()),
]
"""Every atomic type that has bounds."""


def array(items: list[Any], data_type: DataType) -> pa.Array:
    """Items drawn from ``values`` as an Arrow array."""
    arrow = to_arrow_type(data_type)
    if isinstance(data_type, Time | DayTimeInterval) or data_type in (TIMESTAMP, TIMESTAMP_NTZ):
        return pa.array(items, pa.int64()).view(arrow)
    if data_type == DATE:
        return pa.array(items, pa.int32()).view(arrow)
    return pa.array(items, arrow)


def column(data_type: DataType, max_size: int = 12) -> st.SearchStrategy[pa.Array]:
    """Arrays of an atomic type, with NULLs, often of two or three distinct values."""
    few_distinct = st.lists(values(data_type), min_size=1, max_size=3).flatmap(
        lambda some: st.lists(st.none() | st.sampled_from(some), max_size=max_size)
    )
    many_distinct = st.lists(st.none() | values(data_type), max_size=max_size)
    return (few_distinct | many_distinct).map(lambda items: array(items, data_type))


def nested_schema() -> Schema:
    """Structs in structs, lists of structs, maps: with ids 1 … n in the order of ``Schema.walk``."""
    inner = Struct(
        (
            Field("x", LONG),
            Field("y", DOUBLE),
            Field("deep", Struct((Field("s", STRING), Field("flag", BOOLEAN, nullable=False)))),
        )
    )
    schema = Schema(
        (
            Field("plain", INTEGER, nullable=False),
            Field("st", inner),
            Field("tags", Array(Field("element", STRING))),
            Field(
                "items",
                Array(Field("element", Struct((Field("q", DOUBLE), Field("w", Array(Field("element", INTEGER))))))),
            ),
            Field(
                "m", Map(Field("key", STRING, nullable=False), Field("value", Struct((Field("v", Decimal(10, 2)),))))
            ),
        )
    )
    return schema.assign_ids(0)


def _plain(data_type: DataType) -> st.SearchStrategy[Any]:
    match data_type:
        case Struct(fields):
            return st.fixed_dictionaries({f.name: _optional(f) for f in fields})
        case Array(element):
            return st.lists(_optional(element), max_size=3)
        case Map(key, value):
            return st.dictionaries(values(key.type), _optional(value), max_size=3).map(lambda d: list(d.items()))
    return values(data_type)


def _optional(field: Field) -> st.SearchStrategy[Any]:
    inner = _plain(field.type)
    return (st.none() | inner) if field.nullable else inner


def nested_rows(schema: Schema, max_size: int = 8) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Rows of a schema whose leaves have plain Python forms, as dictionaries."""
    return st.lists(st.fixed_dictionaries({f.name: _optional(f) for f in schema}), max_size=max_size)


def kind_of(data_type: DataType) -> str:
    """An id for parametrised tests."""
    return str(String("string")) if isinstance(data_type, String) else str(data_type)
