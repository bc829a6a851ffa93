"""The kinds of columns: their SQL type, how data of them is made from small numbers, awkward values, and literals."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from random import Random  # noqa: TID251  # seeded by the caller
from typing import Any

import pyarrow as pa

from tests.expr.documents import DOCUMENTS
from tests.oracle.typed_variants import POOL, staged_sql, typed_array, typed_values
from tests.spark.oracle_cases import ARRAYS, SHAPES, VALUES
from tests.stats.document_paths import variants

DAY0, INSTANT0 = dt.date(2024, 1, 1), dt.datetime(2024, 1, 1)
HOUR = dt.timedelta(hours=1)


@dataclass(frozen=True)
class Kind:
    """``value(i)`` rises with ``i`` where the type has an order; ``pool`` holds awkward values."""

    sql: str
    arrow: pa.DataType
    value: Callable[[int], Any]
    pool: tuple[Any, ...]
    literal: Callable[[Any], str]
    ordered: bool = True
    staged: str = "{0}"
    """How SQL makes the value of what a staging file holds."""
    plain: str = ""
    """The type of plain Parquet that holds the values, where Spark reads no files as ``sql``."""
    kept: str = "{0}"
    """How SQL makes the value that the model keeps of an assigned one."""
    metadata: tuple[tuple[str, str], ...] = ()
    """What tells Spark that a plain column is of the type ``sql``."""

    @property
    def plain_sql(self) -> str:
        return self.plain or self.sql


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\x00", "\\0") + "'"


def _number(kind: str) -> Callable[[Any], str]:
    return lambda v: f"CAST('{v}' AS {kind})"


def _instant(value: dt.datetime) -> str:
    return f"TIMESTAMP'{value.replace(tzinfo=None)}+00:00'"


def _interval(value: dt.timedelta) -> str:
    sign, whole = ("-", -value) if value < dt.timedelta(0) else ("", value)
    return f"INTERVAL '{sign}{whole.days} {whole.seconds // 3600:02}:{whole.seconds // 60 % 60:02}:{whole.seconds % 60:02}' DAY TO SECOND"


def _struct(i: int) -> dict[str, Any]:
    return {"u": i, "v": f"k{i:03}"}


def _orders(i: int) -> dict[str, Any]:
    """Lines of an order; a line may be missing, or its product."""
    lines = [
        {"sku": i, "p": {"code": f"k{i % 20:03}"}},
        {"sku": i + 1, "p": None},
        None,
        {"sku": None, "p": {"code": None}},
    ]
    return {"items": None if i % 11 == 10 else lines[: i % 5]}


def _keyed(i: int) -> list[tuple[str, Any]]:
    return [(f"k{i % 4}", {"v": i, "l": [i, i + 2]}), ("n", {"v": None, "l": None}), ("m", None)][: i % 4]


def _document(i: int) -> str:
    shape = SHAPES[i % 3 if i % 10 else i % len(SHAPES)]
    body = shape.format(x=i, y=i % 7, t=f"x{i % 20:02}")
    if not body.startswith('{"'):
        return body
    moment = (INSTANT0 + i * HOUR).isoformat()
    # Nearly all times are of one form, so that many parts have bounds of times.
    written = {0: moment[:10], 1: moment, 2: moment + "+02:00"}.get(i % 40, moment + "Z")
    elements = (str(i), f'"x{i % 20:02}"', f'{{"x":{i}}}', f"[{i + 1},{i}]", *["null"] * 5, str(i + 2))
    within = f'{{"a":{i}}}' if i // 20 % 2 else f'"{{\\"a\\":{i}}}"'  # an object, or a text with one in it, by parts
    return f'{{"ts":"{written}","q":{within},"p":[{",".join(elements[: 3 + i % 8])}],{body[1:]}'


def _long_decimal(i: int) -> Decimal:
    """A value of more digits than Spark keeps when it changes a sign."""
    return Decimal(f"{i * (10**33 + 7)}E-10")


def _pool(name: str) -> tuple[Any, ...]:
    return tuple(VALUES[name][1])


KINDS: dict[str, Kind] = {
    "int": Kind("INT", pa.int32(), lambda i: i, _pool("i"), str),
    "bigint": Kind("BIGINT", pa.int64(), lambda i: i * 3, _pool("l"), lambda v: f"CAST('{v}' AS BIGINT)"),
    "tinyint": Kind("TINYINT", pa.int8(), lambda i: min(i, 127), _pool("y"), _number("TINYINT")),
    "smallint": Kind("SMALLINT", pa.int16(), lambda i: min(i * 7, 32_767), _pool("h"), _number("SMALLINT")),
    "double": Kind("DOUBLE", pa.float64(), lambda i: i / 2, _pool("d"), lambda v: f"double('{v}')"),
    "float": Kind("FLOAT", pa.float32(), lambda i: i / 4, _pool("f"), lambda v: f"float('{v}')"),
    "decimal": Kind("DECIMAL(10,2)", pa.decimal128(10, 2), lambda i: Decimal(i) / 4, _pool("c"), _number("DECIMAL(10,2)")),
    "decimal38": Kind("DECIMAL(38,10)", pa.decimal128(38, 10), _long_decimal, _pool("g"), _number("DECIMAL(38,10)")),
    "boolean": Kind("BOOLEAN", pa.bool_(), lambda i: i > 20, (True, False), lambda v: str(v).lower()),
    "string": Kind("STRING", pa.string(), lambda i: f"k{i:03}", _pool("s"), _text),
    "char": Kind("CHAR(5)", pa.string(), lambda i: f"k{i:03}", ("", "a", "ab", "a b", "abcde", "k01", "é", "\U0001f600", "a\x01", "a\t", "\x01"), _text,
                 plain="STRING", kept="rpad({0}, 5, ' ')", metadata=(("__CHAR_VARCHAR_TYPE_STRING", "char(5)"),)),
    "binary": Kind("BINARY", pa.binary(), lambda i: b"b%03d" % i, _pool("x"), lambda v: f"X'{v.hex()}'"),
    "date": Kind("DATE", pa.date32(), lambda i: DAY0 + dt.timedelta(days=i), _pool("t"), lambda v: f"DATE'{v}'"),
    "timestamp": Kind("TIMESTAMP", pa.timestamp("us", "UTC"), lambda i: (INSTANT0 + i * HOUR).replace(tzinfo=dt.UTC), _pool("ts"), _instant),
    "ntz": Kind("TIMESTAMP_NTZ", pa.timestamp("us"), lambda i: INSTANT0 + i * HOUR, _pool("n"), lambda v: f"TIMESTAMP_NTZ'{v}'"),
    "interval": Kind("INTERVAL DAY TO SECOND", pa.duration("us"), lambda i: dt.timedelta(seconds=i), (dt.timedelta(0), dt.timedelta(days=-3)),
                     _interval, staged="make_dt_interval(0, 0, 0, {0} / 1000000)"),
    "struct": Kind("STRUCT<u: INT, v: STRING>", pa.struct([("u", pa.int32()), ("v", pa.string())]), _struct,
                   ({"u": None, "v": None}, {"u": -1, "v": ""}), lambda v: "named_struct('u', {}, 'v', {})".format(
                       *("NULL" if x is None else _text(x) if isinstance(x, str) else str(x) for x in v.values())), ordered=False),
    "array": Kind("ARRAY<INT>", pa.list_(pa.int32()), lambda i: [i, i + 1][: i % 3], tuple(a for a in ARRAYS if a is not None),
                  lambda v: "array(" + ", ".join("NULL" if x is None else str(x) for x in v) + ")", ordered=False),
    "map": Kind("MAP<STRING, INT>", pa.map_(pa.string(), pa.int32()), lambda i: [(f"k{i % 4}", i), ("n", i + 1)][: 1 + i % 2],
                ([], [("a", None)]), str, ordered=False),
    "orders": Kind("STRUCT<items: ARRAY<STRUCT<sku: INT, p: STRUCT<code: STRING>>>>",
                   pa.struct([("items", pa.list_(pa.struct([("sku", pa.int32()), ("p", pa.struct([("code", pa.string())]))])))]),
                   _orders, ({"items": None}, {"items": []}, {"items": [None]}), str, ordered=False),
    "keyed": Kind("MAP<STRING, STRUCT<v: INT, l: ARRAY<INT>>>", pa.map_(pa.string(), pa.struct([("v", pa.int32()), ("l", pa.list_(pa.int32()))])),
                  _keyed, ([], [("a", None)]), str, ordered=False),
    "json": Kind("STRING", pa.string(), _document, tuple(d for d in DOCUMENTS if d is not None), _text, ordered=False),
    "typed": Kind("VARIANT", pa.null(), typed_values, POOL, _text, ordered=False, staged=staged_sql()),
    "variant": Kind("VARIANT", pa.null(), _document, tuple(d for d in DOCUMENTS if d is not None), _text, ordered=False, staged="try_parse_json({0})"),
}  # fmt: skip
PLAIN = tuple(name for name, kind in KINDS.items() if kind.ordered)
NUMBERS = ("int", "bigint", "tinyint", "smallint", "double", "float", "decimal", "decimal38")
WHOLE = ("int", "bigint", "tinyint", "smallint")
WIDER = {"tinyint": "smallint", "smallint": "int", "int": "bigint", "float": "double"}
SPAN = 60
"""Numbers from which data and literals of small tables are made."""


def embedded_array(kind: str, values: list[Any]) -> pa.Array:
    """The values as an embedded append takes them."""
    return (
        (variants(values) if values else variants([None])[:0])
        if kind == "variant"
        else typed_array(values)
        if kind == "typed"
        else pa.array(values, KINDS[kind].arrow)
    )


def staged_array(kind: str, values: list[Any]) -> pa.Array:
    """The values as plain Parquet holds them; ``Kind.staged`` makes SQL's value of that."""
    if kind in {"variant", "typed"}:
        return pa.array(values, pa.string())
    array = pa.array(values, KINDS[kind].arrow)
    return array.cast(pa.int64()) if kind == "interval" else array


def some_literal(rng: Random, kind: str) -> str:
    known = KINDS[kind]
    if kind in {"double", "float"} and rng.random() < 0.12:
        return known.literal(math.nan)
    return known.literal(known.value(rng.randrange(-2, SPAN + 5)) if rng.random() < 0.75 else rng.choice(known.pool))


def rank(value: Any) -> tuple[bool, Any]:
    """By which Spark orders values: NaN is the greatest of all numbers."""
    nan = isinstance(value, float) and math.isnan(value)
    return nan, 0 if nan else value


CHARACTERS = ("constant", "few", "few_then_many", "few_then_many", "blocks", "many_then_few", "nulls_first", "nulls_last", "nulls", "sorted", "reversed",
              "sorted_but_one", "constant_but_last", "blocks", "pool", "awkward_last", "random", "few_random", "narrow", "narrow")  # fmt: skip


def apart_values(rng: Random, kind: str, rows: int) -> list[Any]:
    """Few values near each other, so that those of two parts seldom overlap, and NULLs."""
    made, share = [KINDS[kind].value(n or 0) for n in _numbers(rng, "narrow", rows)], rng.choice((0, 0.1, 0.5))
    return [None if rng.random() < share else v for v in made]


def column_values(rng: Random, kind: str, rows: int, long: float = 0.2) -> list[Any]:
    """Return values whose character changes midway, at the end, or never; ``long`` is the chance of long texts."""
    value, pool, character = KINDS[kind].value, KINDS[kind].pool, rng.choice(CHARACTERS)
    made = [None if n is None else value(n) for n in _numbers(rng, character, rows)]
    if character == "pool":
        pool_values = rng.sample(pool, min(len(pool), rng.choice((1, 2, 20))))
        made = [rng.choice((*pool_values, None)) for _ in range(rows)]
    elif character == "awkward_last" and rows:
        made[-1] = rng.choice(pool)
    elif kind in {"double", "float"} and rng.random() < 0.3:
        made = [rng.choice((math.nan, -math.nan)) if rng.random() < 0.2 else v for v in made]
    elif character == "long" and kind in {"string", "binary"}:
        made = _long(rng, made)
    if kind in {"string", "binary"} and rng.random() < long:
        made = _long(rng, made)
    if rng.random() < 0.2:
        share = rng.choice((0.1, 0.5, 0.9))
        made = [None if rng.random() < share else v for v in made]
    return made


def _long(rng: Random, values: list[Any]) -> list[Any]:
    """The values, or some of them, behind one long beginning: bounds of them are cut, and above some there is none."""
    length, share = rng.choice((7, 31, 64, 64, 70, 100)), rng.choice((1, 1, 0.3, 0.3, 0.1, 0.05))
    letter = rng.choice(("a", "é", "\U0010ffff", "\U0010ffff"))
    start, data = letter * length, rng.choice((b"a", b"\xff")) * length
    long = [v if v is None else data + v if isinstance(v, bytes) else start + v for v in values]
    return [after if rng.random() < share else before for before, after in zip(values, long, strict=True)]


def _numbers(rng: Random, character: str, rows: int) -> list[int | None]:  # noqa: C901  # one case a character
    """From which values are made."""
    base, half, many = rng.randrange(SPAN), max(rows // 2, 1), [rng.randrange(SPAN) for _ in range(rows)]
    rising = [i * SPAN // max(rows, 1) for i in range(rows)]
    match character:
        case "constant":
            return [base] * rows
        case "narrow":
            return [base + rng.randrange(6) for _ in range(rows)]
        case "few_random":
            return [rng.choice((base, base + 2, base + 5, None)) for _ in range(rows)]
        case "few":
            return [base + i % 3 for i in range(rows)]
        case "few_then_many":
            return [base + i % 2 if i < half else many[i] for i in range(rows)]
        case "many_then_few":
            return [many[i] if i < half else base for i in range(rows)]
        case "nulls_first":
            return [None if i < half else many[i] for i in range(rows)]
        case "nulls_last":
            return [many[i] if i < half else None for i in range(rows)]
        case "nulls":
            return [None] * rows
        case "sorted":
            return [*rising]
        case "reversed":
            return [*reversed(rising)]
        case "sorted_but_one":
            odd = rng.randrange(rows) if rows else -1
            return [base if i == odd else n for i, n in enumerate(rising)]
        case "constant_but_last":
            return [base + 7 * (i == rows - 1) for i in range(rows)]
        case "blocks":
            return [(i // 16) % SPAN for i in range(rows)]
    return [*many]
