"""Random trees over every function of the catalogue, with awkward constants; and random pieces of rows with awkward values."""

from __future__ import annotations

import math
from decimal import Decimal as PyDecimal
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core import expr
from tamis.core.expr import Call, Column, Expr, Literal, Literals, Mode
from tamis.core.expr.functions.nested.constructed import struct_of
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
    DataType,
    DayTimeInterval,
    Decimal,
    Field,
    Schema,
    Struct,
)
from tamis.core.types.arrow import to_arrow_schema, to_arrow_type

DAY = 86_400_000_000
INTERVAL = DayTimeInterval()
TYPES: list[DataType] = [
    BOOLEAN, BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE, Decimal(6, 2), Decimal(38, 10), STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ, INTERVAL,
]  # fmt: skip
NAMES = [
    "boolean",
    "tinyint",
    "smallint",
    "integer",
    "bigint",
    "float",
    "double",
    "decimal",
    "number",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "interval",
]
SCHEMA = Schema(
    (
        *(Field(f"{NAMES[i]}{j}", t, True, 2 * i + j + 1) for i, t in enumerate(TYPES) for j in (0, 1)),
        Field("st", Struct((Field("x", LONG, True, 101), Field("y", STRING, True, 102))), True, 100),
    )
)
ARROW = to_arrow_schema(SCHEMA)
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/St_Johns",
    "America/Sao_Paulo",
    "Australia/Lord_Howe",
    "+05:30",
    "Pacific/Apia",
)
FOLDS = [
    1_729_990_800_000_000,
    1_711_846_800_000_000,
    1_130_634_060_000_000,
    519_100_000_000_000,
    1_325_239_200_000_000,
    1_540_695_600_000_000,
]
"""Instants near which the zones above shift."""

_SPECIAL: dict[DataType, list[Any]] = {
    BOOLEAN: [True, False],
    BYTE: [-128, 127, 0, 1, -1, 5],
    SHORT: [-(2**15), 2**15 - 1, 0, 300],
    INTEGER: [-(2**31), 2**31 - 1, 0, 1, -1, 2, 12, 100_000],
    LONG: [-(2**63), 2**63 - 1, 0, 1, -7, 2**53 + 1, 1_700_000_000],
    FLOAT: [0.0, -0.0, 1.5, -2.5, math.nan, math.inf, -math.inf, 3.4028234663852886e38],
    DOUBLE: [0.0, -0.0, 1.5, -2.5, math.nan, math.inf, -math.inf, 1e300, 5e-324, 2.0**63, -(2.0**31)],
    Decimal(6, 2): [
        PyDecimal("0.00"),
        PyDecimal("9999.99"),
        PyDecimal("-9999.99"),
        PyDecimal("1.25"),
        PyDecimal("-0.01"),
    ],
    Decimal(38, 10): [PyDecimal(10**37).scaleb(-10), PyDecimal("-1.5"), PyDecimal(0), PyDecimal("99999999.9999999999")],
    STRING: [
        "",
        "a",
        "ab",
        "abc",
        "abz",
        "b",
        "12",
        " 7 ",
        "2024-01-31",
        "2024-02-30",
        "é",
        "\ud7ff",
        "\U0010ffff",
        "true",
        "1.5",
        "A",
        "ab%",
    ],
    BINARY: [b"", b"a", b"\xff", b"ab\x00"],
    DATE: [0, -1, -719_162, -141_428, 19_753, 19_754, 19_782, 2_932_896, 19_723, 19_722],
    TIMESTAMP: [0, -1, -12_219_292_800_000_001, 253_402_300_799_999_999, -62_135_596_800_000_000, 2**62, *FOLDS],
    TIMESTAMP_NTZ: [0, -1, 1_729_993_000_000_000, 1_711_851_000_000_000, 1_706_659_200_000_000 + 23 * 3_600_000_000],
    INTERVAL: [0, 1, -1, DAY, 30 * DAY, 36 * 3_600_000_000, -DAY - 1],
}


def one(rng: np.random.Generator, data_type: DataType) -> Any:
    """A value of the type: often an awkward one, else near another or anywhere."""
    special = _SPECIAL[data_type]
    value = special[rng.integers(len(special))]
    if rng.random() < 0.5:
        return value
    if data_type in (BYTE, SHORT):
        return int(rng.integers(-100, 100))
    if data_type in (INTEGER, LONG):
        return int(rng.integers(-1000, 1000))
    if data_type in (FLOAT, DOUBLE):
        return float(np.float32(rng.normal() * 10))
    if isinstance(data_type, Decimal):
        return PyDecimal(int(rng.integers(-99_999, 99_999))).scaleb(-data_type.scale)
    if data_type == DATE:
        return int(rng.integers(19_600, 19_900))
    if data_type in (TIMESTAMP, TIMESTAMP_NTZ):
        base = FOLDS[rng.integers(len(FOLDS))]
        return int(base + rng.integers(-40 * 3_600_000_000, 40 * 3_600_000_000))
    if data_type == STRING:
        return "".join(chr(c) for c in rng.integers(97, 101, rng.integers(0, 4)))
    return value


def piece(rng: np.random.Generator, rows: int = 4) -> pa.Table:
    """A few rows; each column with its own habit: one value, values near each other, NULLs or none."""
    columns = []
    for f in SCHEMA.fields:
        if isinstance(f.type, Struct):
            values: list[Any] = [
                None
                if rng.random() < 0.2
                else {"x": _maybe(rng, one(rng, LONG), 0.2), "y": _maybe(rng, one(rng, STRING), 0.2)}
                for _ in range(rows)
            ]
        else:
            habit, nulls = rng.random(), rng.choice([0.0, 0.0, 0.3, 1.0], p=[0.5, 0.2, 0.25, 0.05])
            pool = [one(rng, f.type) for _ in range(1 if habit < 0.3 else 2 if habit < 0.7 else rows)]
            values = [_maybe(rng, pool[rng.integers(len(pool))], nulls) for _ in range(rows)]
        columns.append(pa.array(values, to_arrow_type(f.type)))
    return pa.Table.from_arrays(columns, schema=ARROW)


def _maybe(rng: np.random.Generator, value: Any, share: float) -> Any:
    return None if rng.random() < share else value


def leaf(rng: np.random.Generator, data_type: DataType | None = None) -> Expr:
    """A column or a constant."""
    chosen = data_type if data_type in _SPECIAL else TYPES[rng.integers(len(TYPES))]
    assert chosen is not None
    if rng.random() < 0.6:
        ids = [f.id for f in SCHEMA.fields if f.type == chosen]
        if chosen == LONG and rng.random() < 0.3:
            return expr.column_by_ids(SCHEMA, (100, 101))
        return expr.column_by_ids(SCHEMA, (ids[rng.integers(len(ids))],))
    return Literal(chosen, _maybe(rng, one(rng, chosen), 0.05))


_TARGETS = [t for t in TYPES if t != INTERVAL]
_UNITS = ["month", "day", "hour", "week", "year", "quarter", "minute", "second", "dd", "mm"]
_ANY = [TIMESTAMP, DATE, INTEGER, LONG, DOUBLE, STRING, BOOLEAN, Decimal(6, 2)]


def built(rng: np.random.Generator, name: str, mode: Mode, zone: str, arguments: Any) -> Expr | None:
    """A call of this function over arguments from ``arguments(type)``, or None if they do not fit it."""
    if name == "cast":
        out = expr.make_call("cast", arguments(None), mode=mode, zone=zone, type=_TARGETS[rng.integers(len(_TARGETS))])
    elif name in {"date_trunc", "trunc"}:
        unit = Literal(STRING, _UNITS[rng.integers(len(_UNITS))])
        time = arguments([TIMESTAMP, DATE, TIMESTAMP_NTZ][rng.integers(3)])
        out = expr.make_call(name, *((unit, time) if name == "date_trunc" else (time, unit)), mode=mode, zone=zone)
    elif name == "like":
        patterns = ["a%", "ab", "%b", "a_c", "", "a\\%%", "é%", "_"]
        out = expr.make_call(name, arguments(STRING), Literal(STRING, patterns[rng.integers(len(patterns))]), mode=mode)
    elif name == "convert_timezone":
        names = [Literal(STRING, ZONES[rng.integers(len(ZONES))]) for _ in range(2)]
        out = expr.make_call(name, *names, arguments(TIMESTAMP_NTZ), mode=mode, zone=zone)
    elif name in {"interval_multiply", "interval_divide"}:
        other = Literal(LONG, int(rng.integers(1, 5))) if name == "interval_divide" else arguments(INTEGER)
        out = expr.make_call(name, arguments(INTERVAL), other, mode=mode, zone=zone)
    elif name == "translate":
        letters = [Literal(STRING, text) for text in ("abé", "ba")]
        out = expr.make_call(name, arguments(STRING), *letters, mode=mode, zone=zone)
    elif name == "bit_get":
        at = Literal(INTEGER, int(rng.integers(0, 8)))
        out = expr.make_call(name, arguments([BYTE, SHORT, INTEGER, LONG][rng.integers(4)]), at, mode=mode)
    elif name == "substring":
        out = expr.make_call(
            name, arguments(STRING), *(Literal(INTEGER, int(v)) for v in rng.integers(-2, 4, 2)), mode=mode
        )
    elif name == "in" and rng.random() < 0.7:
        value = arguments(None)
        if value.type not in _SPECIAL:
            return None
        options = [_maybe(rng, one(rng, value.type), 0.1) for _ in range(rng.integers(1, 5))]
        out = expr.make_call(
            "in", value, Literals(value.type, pa.array(options, to_arrow_type(value.type))), mode=mode, zone=zone
        )
    elif name == "case":
        kind = TYPES[rng.integers(len(TYPES))]
        out = expr.make_call(
            name, predicate(rng, mode, zone, arguments), arguments(kind), arguments(kind), mode=mode, zone=zone
        )
    else:
        first = arguments(_natural(rng, name))
        args = [first] + [
            arguments(first.type if rng.random() < 0.7 else _natural(rng, name, 1)) for _ in range(rng.integers(0, 3))
        ]
        out = expr.make_call(name, *args, mode=mode, zone=zone)
    return out if isinstance(out, Call) else None


def _natural(rng: np.random.Generator, name: str, position: int = 0) -> DataType | None:
    if name in {"and", "or", "not"}:
        return BOOLEAN
    if name.startswith(
        (
            "timestamp_add",
            "add_months",
            "date_",
            "year",
            "month",
            "day",
            "hour",
            "minute",
            "unix",
            "last",
            "quarter",
            "week",
        )
    ):
        return ([TIMESTAMP, DATE, TIMESTAMP_NTZ] if position == 0 else [INTEGER, INTERVAL, DATE])[rng.integers(3)]
    if name.startswith(("interval", "timestamp_")):
        return INTERVAL if name.startswith("interval") else LONG
    if name.startswith(("bits_", "bit_count", "shift_")):
        return [BYTE, SHORT, INTEGER, LONG][rng.integers(4)]
    if name in {"starts_with", "ends_with", "contains", "concat", "upper", "lower", "trim", "length"}:
        return STRING
    return None


def predicate(rng: np.random.Generator, mode: Mode, zone: str, arguments: Any) -> Expr:
    """A comparison (or a boolean column) over ``arguments``."""
    if rng.random() < 0.1 and (made := _of_items(rng, mode, zone, arguments)) is not None:
        return made
    for _ in range(20):
        name = ["eq", "ne", "lt", "le", "gt", "ge", "null_safe_eq", "is_null", "is_not_null", "in"][rng.integers(10)]
        a = arguments(None)
        out = expr.make_call(name, a, mode=mode, zone=zone) if name.startswith("is_") else None
        if out is None:
            out = expr.make_call(name, a, leaf(rng, a.type if a.type in _SPECIAL else None), mode=mode, zone=zone)
        if isinstance(out, Call) and expr.is_supported(out):
            return out
    return expr.column_by_ids(SCHEMA, (1,))


def _of_items(rng: np.random.Generator, mode: Mode, zone: str, arguments: Any) -> Expr | None:
    """A comparison of structs, or a test of an array, that the filter makes; None if it is left to Spark."""
    first, second = (arguments(None) for _ in range(2))
    if rng.random() < 0.5:
        sides = [struct_of(("a", "b"), (x, leaf(rng, second.type)), "a struct") for x in (first, leaf(rng, first.type))]
        name = ["eq", "ne", "lt", "le", "gt", "ge", "in", "null_safe_eq"][rng.integers(8)]
        out = expr.make_call(name, *sides, mode=mode, zone=zone)
    else:
        array = expr.make_call("array", first, leaf(rng, first.type), mode=mode, zone=zone)
        name = ["array_contains", "arrays_overlap", "array_max", "element_at"][rng.integers(4)]
        wanted = leaf(rng, first.type)
        others = {
            "array_contains": (wanted,),
            "arrays_overlap": (expr.make_call("array", wanted),),
            "element_at": (Literal(INTEGER, 1),),
        }
        out = expr.make_call(name, array, *others.get(name, ()), mode=mode, zone=zone)
        out = out if out.type == BOOLEAN else expr.make_call("ge", out, wanted, mode=mode, zone=zone)
    return out if isinstance(out, Call) and expr.is_supported(out) else None


def tree(
    rng: np.random.Generator, depth: int, name: str | None = None, *, mode: Mode | None = None, zone: str | None = None
) -> Expr:
    """A random predicate; ``name`` is a function that is in it if it can be."""
    mode = mode or [Mode.ANSI, Mode.ANSI, Mode.ANSI, Mode.TRY, Mode.LEGACY][rng.integers(5)]
    zone = zone or ZONES[rng.integers(len(ZONES))]
    names = [f.name for f in expr.all_entries()]

    def arguments(level: int) -> Any:
        def make(data_type: DataType | None) -> Expr:
            if level <= 0 or rng.random() < 0.4:
                return leaf(rng, data_type)
            for _ in range(12):
                out = built(rng, names[rng.integers(len(names))], mode, zone, arguments(level - 1))
                if out is not None and expr.is_supported(out) and (data_type is None or out.type == data_type):
                    return out
            return leaf(rng, data_type)

        return make

    wanted: Expr | None = None
    for _ in range(40 if name else 0):
        wanted = built(rng, str(name), mode, zone, arguments(depth - 1))
        if wanted is not None and expr.is_supported(wanted):
            break
        wanted = None
    out = predicate(rng, mode, zone, lambda t: wanted if wanted is not None else arguments(depth)(t))
    if wanted is not None and wanted.type == BOOLEAN:
        out = wanted
    for _ in range(int(rng.integers(0, 3))):
        other = predicate(rng, mode, zone, arguments(depth - 1))
        joined = [
            expr.make_call("not", out),
            expr.make_call("and", out, other),
            expr.make_call("or", other, out),
            expr.make_call("and", other, out),
        ]
        out = joined[rng.integers(4)]
    return out


def is_column(node: Expr) -> bool:
    return isinstance(node, Column)
