"""Awkward values of every type, documents and arrays too, small parts of them, and random predicates over them, in Spark SQL. No predicate fails on any row, in ANSI mode either."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import combinations_with_replacement, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from tests.expr.documents import DOCUMENTS
from tests.stats.document_paths import variants

from tamis.core.expr.json_codec.jackson_reader import Malformed
from tamis.core.expr.json_codec.variant_encoding import encode_variant

NAN, INF = float("nan"), float("inf")
UTC = dt.UTC
INSTANTS = [
    dt.datetime(1582, 10, 10, 12),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(2018, 11, 4, 2, 30),  # São Paulo begins summer at midnight
    dt.datetime(2024, 1, 30, 23),
    dt.datetime(2024, 1, 31, 1),
    dt.datetime(2024, 2, 29, 12),
    dt.datetime(2024, 3, 10, 6, 59, 59),  # New York's gap, then its fold
    dt.datetime(2024, 3, 10, 7, 0),
    dt.datetime(2024, 11, 3, 5, 30),
    dt.datetime(2024, 11, 3, 6, 30),
    dt.datetime(2011, 12, 30, 9, 0),  # Apia skips this day
    dt.datetime(2500, 7, 1),
]
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int32(), [0, 1, -1, 5, 7, 2**31 - 1, -(2**31), 99]),
    "l": (pa.int64(), [0, 1, 2**63 - 1, -(2**63), 2**53, 2**53 + 1, 86_400]),
    "d": (pa.float64(), [0.0, -0.0, NAN, INF, -INF, 1.5, -2.5, 1e308, 5e-324, 0.1]),
    "f": (pa.float32(), [0.0, -0.0, NAN, INF, 0.1, -2.5, 16777217.0]),
    "c": (pa.decimal128(10, 2), [Decimal(x) for x in ("0.00", "1.00", "-1.00", "1.01", "99999999.99", "2.50")]),
    "t": (pa.date32(), [dt.date(1582, 10, 4), dt.date(1582, 10, 15), *(x.date() for x in INSTANTS[3:])]),
    "ts": (pa.timestamp("us", "UTC"), [x.replace(tzinfo=UTC) for x in INSTANTS]),
    "n": (pa.timestamp("us"), INSTANTS),
    "b": (pa.bool_(), [True, False]),
    "y": (pa.int8(), [0, 1, -1, 127, -128, 7]),
    "h": (pa.int16(), [0, -1, 2**15 - 1, -(2**15), 300]),
    "g": (pa.decimal128(38, 10), [Decimal(x) for x in ("0", "1", "-1.5", "0.0000000001", "9999999999999999999999999999.9999999999", "-9007199254740993")]),
    "x": (pa.binary(), [b"", b"\x00", b"a", b"a\x00", b"\x7f", b"\x80", b"\xff" * 66, b"\xff" * 64 + b"a"]),
    "s": (
        pa.string(),
        ["", "a", "A", "ab", "a ", "a\x00b", "ß", "SS", "ΑΣ", "\ud7ff", "\ue000", "\U0010ffff" * 65, "x" * 64, "x" * 64 + "y", "a%b", "a_b", "10", " 7 ", "1e1", "0x1p3", "NaN", "inf", "true", "2024-01-31", "2024-3-10 02:30:00", "2024-03-10 02:30:00 PST", "2024-02-30", "1."],
    ),
}  # fmt: skip
ARRAYS = [[], [1], [1, 2], [None], [5, None], [-1, 2**31 - 1], [7, 7, 7], None]


def _sound(text: str | None) -> bool:
    try:
        return text is not None and text.startswith('{"a"') and bool(encode_variant(text))
    except Malformed:
        return False


SOUND = [text for text in DOCUMENTS if _sound(text)]
"""Documents that every function reads alike: their paths are known; one of the others, and those of its part are not."""
PATHS = ("$.a", "$.a", "$.a", "$.a.b", "$.a[1]", "$.a.c[0]", "$", "$[0]", "$.nowhere")
NUMBERS, OPS = ("i", "l", "d", "f", "c"), ("=", "<>", "<", "<=", ">", ">=", "<=>")
_WHOLE, _REALS = (
    ("0", "1", "-7", "300", "9223372036854775807", "-9223372036854775807"),
    ("1.5", "1e38D", "0.1D", "10000000.0", "9223372036854775808", "-0.0D"),
)
_TEXTS = ("'1'", "'5'", "''", "'x'", "'{\"b\":1}'", "'true'", "'1.5'", "'a'", "'2020-01-01'")
SHAPES = ('{{"a":{x}}}', '{{"a": {x}, "k": {y}}}', '{{"k":"{t}","a":{{"b":{x},"c":[{y}]}}}}', '{{"a":["{t}",{x}],"k":[]}}', '{{"a":"{t}","k":{x}}}', '{{"a":{{"b":"{t}"}},"é":{{"ü":{y}}}}}')  # fmt: skip
"""Of documents that come again and again, with other values: such are read for their statistics by templates."""
_NEAR = (-7, 0, 1, 5, 300, 2**53, 10**17)
_SCALARS = ("-0", "-0.0", "1.0", "1e0", "1E-7", "1.50", "9007199254740993", "9223372036854775808", "0.10000000000000001", "1e38", "12345678901234567", "null", "true", '"5"', "[]", "{}")  # fmt: skip
LIKES = ("a%", "%a", "_", "a_%", "%", "", "a\\\\%%", "a\\\\_b", "x" * 64 + "%", "\ud7ff%", "\U0010ffff%", "SS", "2024%")


def random_parts(rng: np.random.Generator, wanted: int, larger: int = 0) -> list[pa.Table]:
    """Return parts of a few rows, and after them ``larger`` parts of many rows, whose documents have few shapes."""
    parts, first = [], 0
    for part in range(wanted + larger):
        small = part < wanted
        rows = int(rng.integers(1, 4)) if small else int(rng.choice([17, 40, 40, 40, 300]))
        columns = {"rid": pa.array(range(first, first + rows), pa.int64())}
        for name, (kind, values) in VALUES.items():
            columns[name] = pa.array(_some(rng, values, rows, single=rng.random() < 0.4 or part < 8), kind)
        present = rng.random(rows) < 0.7
        inner = pa.StructArray.from_arrays([columns["i"], columns["s"]], ["u", "v"], mask=pa.array(~present))
        texts = SOUND if rng.random() < 0.8 else DOCUMENTS
        documents = [texts[rng.integers(len(texts))] for _ in range(rows)] if small else repeated(rng, rows, texts)
        arrays = [ARRAYS[rng.integers(len(ARRAYS))] for _ in range(rows)]
        parts.append(pa.table({**columns, "st": inner, **_nested(documents, arrays)}))
        first += rows
    return parts


def repeated(rng: np.random.Generator, rows: int, others: list[str | None]) -> list[str | None]:
    """Documents of one to three shapes and near values, in some parts with an awkward scalar, a NULL, or one of the ``others`` between them."""
    chosen = [SHAPES[rng.integers(len(SHAPES))] for _ in range(rng.integers(1, 4))]
    near, scale, awkward = _NEAR[rng.integers(len(_NEAR))], int(rng.integers(3)), rng.random() < 0.3

    def scalar() -> str:
        if awkward and rng.random() < 2 / rows:
            return str(_SCALARS[rng.integers(len(_SCALARS))])
        value = near + int(rng.integers(12))
        return f"{value // 10**scale}.{value % 10**scale:0{scale}}" if scale and 0 < value < 2**40 else str(value)

    def text() -> str:
        return (
            str(rng.choice(["", "1", "5", "a", "é", "true", "1.5", "x" * 64, f"x{rng.integers(20):02}"]))
            if rng.random() < 0.9
            else "b" * int(rng.integers(90))
        )

    found: list[str | None] = [
        chosen[rng.integers(len(chosen))].format(x=scalar(), y=scalar(), t=text()) for _ in range(rows)
    ]
    for _ in range(int(rng.integers(1, 3)) if rng.random() < 0.3 else 0):
        found[rng.integers(rows)] = None if rng.random() < 0.3 else others[rng.integers(len(others))]
    return found


def _nested(documents: Sequence[str | None], arrays: list[Any]) -> dict[str, pa.Array]:
    """Documents as text and, those that are any, as VARIANT."""
    return {
        "j": pa.array(documents, pa.string()),
        "ar": pa.array(arrays, pa.list_(pa.int32())),
        "v": variants(documents),
    }


def _some(rng: np.random.Generator, values: list[Any], rows: int, *, single: bool) -> list[Any]:
    if single:
        return [values[rng.integers(len(values))]] * rows
    ordered = sorted((v for v in values if v == v), key=lambda v: v)
    start = int(rng.integers(len(ordered)))
    near = [*ordered[start : start + 3], None] if rng.random() < 0.7 else [*values, None]
    return [near[rng.integers(len(near))] for _ in range(rows)]


class Filters:
    """Predicates of Spark SQL that fail on no row, in ANSI mode too."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def one(self, *options: Any) -> Any:
        return options[self.rng.integers(len(options))]

    def constant(self, name: str) -> str:
        return self.spelled(name, self.one(*VALUES[name][1]))

    def spelled(self, name: str, value: Any) -> str:
        """A constant of the column's type."""
        match name:
            case "s":
                return "'" + value.replace("\\", "\\\\").replace("\x00", "\\0") + "'"
            case "t":
                return f"DATE'{value}'"
            case "ts":
                return f"TIMESTAMP'{value:%Y-%m-%d %H:%M:%S}+00:00'"
            case "n":
                return f"TIMESTAMP_NTZ'{value}'"
            case "x":
                return f"X'{value.hex()}'"
            case "g":
                return f"CAST('{value}' AS DECIMAL(38, 10))"
            case "y" | "h":
                return f"CAST({value} AS {'TINYINT' if name == 'y' else 'SMALLINT'})"
            case "d" | "f":
                return f"{'double' if name == 'd' else 'float'}('{value}')"
            case "l":
                return f"try_cast('{value}' AS BIGINT)"
        return f"({value})"

    def number(self) -> str:
        x = self.one(*NUMBERS)
        return str(
            self.one(
                x, x, f"try_add({x}, {self.constant(x)})", f"try_divide({x}, 2)", f"try_cast({x} AS {self.one('INT', 'TINYINT', 'DECIMAL(5, 1)', 'FLOAT')})",
                "st.u", "length(s)", "y", "h", "try_add(h, 1S)", f"coalesce({x}, 1)", f"greatest({x}, 1)", f"least({x}, 1.5)", f"CASE WHEN {self.comparison()} THEN {x} ELSE 2 END",
                "year(ts)", "month(t)", "hour(ts)", "dayofweek(ts)", "weekofyear(t)", "-d", "abs(f)", "CAST(ts AS BIGINT)",
                f"try_cast(s AS {self.one('INT', 'DOUBLE', 'BIGINT', 'DECIMAL(10, 2)')})",
            )
        )  # fmt: skip

    def instant(self) -> tuple[str, str]:
        unit, amount = self.one("MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"), self.one(1, -1, 13, 30)
        name, text = self.one(
            ("ts", "ts"), ("t", "t"), ("n", "n"), ("ts", f"date_trunc('{unit}', ts)"), ("ts", f"(ts + INTERVAL '{amount}' DAY)"),
            ("ts", f"(ts + INTERVAL '{amount}' MONTH)"), ("ts", f"(ts - INTERVAL '{amount}' HOUR)"), ("t", f"add_months(t, {amount})"),
            ("t", f"date_add(t, {amount})"), ("t", "CAST(ts AS DATE)"), ("ts", "CAST(t AS TIMESTAMP)"), ("ts", "CAST(n AS TIMESTAMP)"), ("n", "CAST(ts AS TIMESTAMP_NTZ)"),
            ("t", "last_day(t)"), ("t", "trunc(t, 'MONTH')"), ("ts", "try_cast(s AS TIMESTAMP)"), ("t", "try_cast(s AS DATE)"), ("n", "(n + INTERVAL '1' MONTH)"),
        )  # fmt: skip
        return text, name

    def text(self) -> str:
        return str(
            self.one(
                "s",
                "s",
                "st.v",
                "upper(s)",
                "lower(s)",
                "trim(s)",
                "substring(s, 1, 1)",
                "concat('a', s)",
                "CAST(c AS STRING)",
                "CAST(ts AS STRING)",
            )
        )

    def nested(self) -> str:
        """Of a document, or of an array."""
        path, op = self.one(*PATHS), self.one(*OPS)
        kind = self.one("INT", "BIGINT", "DOUBLE", "DECIMAL(10, 2)", "BOOLEAN")
        number = f"{op} {self.one(*_WHOLE, *_REALS)}"
        value = "IS NOT TRUE" if kind == "BOOLEAN" else number
        text = f"{op} {self.one(*_TEXTS)}"
        return str(
            self.one(
                f"get_json_object(j, '{path}') {text}", f"get_json_object(j, '{path}') IS NULL", f"from_json(j, 'a STRING').a {text}", f"try_variant_get(v, '{path}', 'string') {text}",
                f"try_variant_get(v, '{path}', '{kind}') {value}", f"try_variant_get(v, '{path}', '{kind}') {value}", f"try_variant_get(v, '{path}', '{kind}') IS NULL",
                f"try_cast(get_json_object(j, '{path}') AS {kind}) {value}", f"try_cast(get_json_object(j, '{path}') AS {kind}) {value}", f"from_json(j, 'a {kind.replace('DECIMAL(10, 2)', 'DOUBLE')}').a {value}",
                f"try_variant_get(try_parse_json(j), '{path}', '{kind}') {value}", f"is_variant_null(try_variant_get(v, '{path}', 'variant'))", "v IS NULL", "j IS NULL", "v:a IS NULL", "v:a.b IS NOT NULL",
                f"get_json_object(j, '{path}') {self.one('', 'NOT ')}LIKE '{self.one('1%', '%', '%5', '_', '{{%')}'", f"get_json_object(j, '{path}') IN ({self.one(*_TEXTS)}, {self.one(*_TEXTS)})",
                f"array_contains(ar, {self.one(1, 2, 5, -1, 3)})", f"size(ar) {op} {self.one(-1, 0, 1, 2, 3)}", f"try_element_at(ar, {self.one(1, 2, -1)}) {op} {self.one(1, 5, 7)}",
                "ar IS NULL", f"get(ar, {self.one(0, 1, 5)}) {op} {self.one(1, 5, -1)}",
            )
        )  # fmt: skip

    def comparison(self) -> str:
        match self.rng.integers(11):
            case 0 | 1:
                x = self.one(*VALUES)
                return f"{x} {self.one(*OPS)} {self.constant(x)}"
            case 2 | 3:
                x, y = self.one(*NUMBERS), self.one("0", "1", "1.5", "2.50", "1e0")
                return f"{self.number()} {self.one(*OPS)} {self.one(self.constant(x), y)}"
            case 4 | 5:
                instant, kind = self.instant()
                return f"{instant} {self.one(*OPS)} {self.constant(self.one(kind, kind, 't', 'ts'))}"
            case 6:
                return f"{self.text()} {self.one('', 'NOT ')}LIKE '{self.one(*LIKES)}'"
            case 7:
                x = self.one(*VALUES)
                members = ", ".join(
                    [*(self.constant(x) for _ in range(self.one(1, 3, 12))), *self.one((), (), ("NULL",))]
                )
                return f"{x} {self.one('', 'NOT ')}IN ({members})"
            case 8 | 9:
                return self.nested()
        return str(
            self.one(
                f"{self.text()} {self.one(*OPS)} {self.constant('s')}", "st IS NULL", "st.u IS NULL", "isnan(d)", "b IS NOT TRUE", f"{self.number()} IS NULL",
                f"d BETWEEN {self.constant('d')} AND {self.constant('d')}", "i < l", "f = d", "c < d", "t < ts", f"startswith(s, {self.constant('s')})",
            )
        )  # fmt: skip

    def predicate(self, depth: int = 0) -> str:
        kind = self.rng.random()
        if depth < 2 and kind < 0.4:
            return "(" + self.one(" AND ", " AND ", " OR ").join(self.predicate(depth + 1) for _ in range(2)) + ")"
        if depth < 2 and kind < 0.5:
            return self.one("(NOT {})", "(({}) IS NOT TRUE)", "(({}) <=> NULL)").format(self.predicate(depth + 1))
        return self.comparison()


def pairs(longest: int) -> list[pa.Table]:
    """Parts of two rows, and of one: for every type each of its (first ``longest``) values beside each, itself included; where a type has no more pairs, NULL comes beside them.

    Bounds of one value cannot show what bounds of two do: NaN of either sign, −0.0 and 0.0, a cut text and its neighbour.
    """
    by_name = {name: list(combinations_with_replacement(values[:longest], 2)) for name, (_, values) in VALUES.items()}
    texts = list(combinations_with_replacement(SOUND[:longest], 2))
    lists = list(combinations_with_replacement(ARRAYS[:longest], 2))
    parts = []
    for number in range(max(map(len, [*by_name.values(), texts, lists]))):
        columns = {"rid": pa.array([3 * number, 3 * number + 1, 3 * number + 2], pa.int64())}
        for name, (kind, _) in VALUES.items():
            first, second = by_name[name][number % len(by_name[name])]
            third = None if number >= len(by_name[name]) else second
            columns[name] = pa.array([first, second, third], kind)
        inner = pa.StructArray.from_arrays([columns["i"], columns["s"]], ["u", "v"])
        documents, arrays = texts[number % len(texts)], lists[number % len(lists)]
        nested = _nested([*documents, documents[number % 2]], [*arrays, arrays[number % 2]])
        parts.append(pa.table({**columns, "st": inner, **nested}))
    return parts


def comparisons() -> Iterator[str]:
    """Every column against every awkward value of its type, by every comparison, and the tests that have no other side."""
    spell = Filters(np.random.default_rng(0))
    for name, (_, values) in VALUES.items():
        texts = [spell.spelled(name, value) for value in values]
        yield from (f"{name} {op} {text}" for op in OPS for text in texts)
        yield from (f"NOT ({name} {op} {text})" for op in ("<", "=", "<=>") for text in texts)
        yield from (f"{name} IN ({a}, {b})" for a, b in pairwise(texts))
        yield from (f"{name} BETWEEN {a} AND {b}" for a, b in pairwise(texts))
        yield from (
            f"{name} IS NULL",
            f"{name} IS NOT NULL",
            f"coalesce({name}, {texts[0]}) = {texts[-1]}",
            f"{name} <=> NULL",
        )
    for kind, spelled in (("BIGINT", _WHOLE), ("DOUBLE", _REALS), ("DECIMAL(38, 10)", _REALS), ("STRING", _TEXTS)):
        for place in (
            f"try_variant_get(v, '$.a', '{kind}')",
            f"try_cast(get_json_object(j, '$.a') AS {kind})",
            f"from_json(j, 'a {kind}').a",
        ):
            yield from (f"{place} {op} {text}" for op in OPS for text in spelled)
            yield f"{place} IS NULL"
    yield from (
        f"{place} {op} {text}"
        for place in ("size(ar)", "try_element_at(ar, 1)", "get(ar, 1)")
        for op in OPS
        for text in "0125"
    )
    yield from (f"array_contains(ar, {text})" for text in "1257")
