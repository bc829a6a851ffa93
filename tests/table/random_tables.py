"""Strategies: small tables whose values collide often, and filters over them, some with pyarrow's own form beside the SQL text."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

Rows = list[dict[str, Any]]
Segments = list[Rows]

SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", tz="UTC")),
        ("b", pa.bool_()),
        ("r", pa.struct([("x", pa.int32()), ("y", pa.string())])),
    ]
)
INTEGERS = [-3, -1, 0, 1, 2, 5, 2**62]
FLOATS = [-math.inf, -1.5, -0.0, 0.0, 1.0, 2.5, math.nan]
STRINGS = ["", "a", "aa", "ab", "b", "é", "a\U0001f600", "a" * 70]
DATES = [dt.date(1500, 1, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29)]
INSTANTS = [
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC),
    dt.datetime(2024, 3, 1, 0, 0, 0, 1, dt.UTC),
    dt.datetime(2024, 3, 2, tzinfo=dt.UTC),
]


def _maybe(values: Sequence[object]) -> st.SearchStrategy[object]:
    return st.one_of(st.none(), st.sampled_from(values))


ROWS = st.fixed_dictionaries(
    {
        "i": _maybe(INTEGERS),
        "f": _maybe(FLOATS),
        "s": _maybe(STRINGS),
        "d": _maybe(DATES),
        "t": _maybe(INSTANTS),
        "b": st.one_of(st.none(), st.booleans()),
        "r": st.one_of(st.none(), st.fixed_dictionaries({"x": _maybe([-1, 0, 7]), "y": _maybe(STRINGS)})),
    }
)
SEGMENTS = st.lists(st.lists(ROWS, min_size=1, max_size=6), min_size=1, max_size=5)


def segment(rows: Rows) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def literal(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case float():
            return f"double('{value}')" if not math.isfinite(value) else f"double({value!r})"
        case str():
            return "'" + value + "'"
        case dt.datetime():
            return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f}+00:00'"
        case dt.date():
            return f"DATE '{value:%Y-%m-%d}'"
    raise AssertionError(value)


VALUES: dict[str, list[Any]] = {
    "i": INTEGERS,
    "f": FLOATS,
    "s": STRINGS,
    "d": DATES,
    "t": INSTANTS,
    "r.x": [-1, 0, 7],
    "r.y": STRINGS,
}
COMPARISONS = {
    "<": pc.less,
    "<=": pc.less_equal,
    "=": pc.equal,
    ">=": pc.greater_equal,
    ">": pc.greater,
    "<>": pc.not_equal,
}


@st.composite
def simple(draw: st.DrawFn) -> tuple[str, object]:
    """A filter, and a function that gives pyarrow's own mask for it. No floats: pyarrow orders NaN otherwise."""
    column = draw(st.sampled_from([c for c in VALUES if c != "f"]))

    def array(table: pa.Table) -> pa.ChunkedArray:
        top, _, below = column.partition(".")
        return pc.struct_field(table[top], below) if below else table[top]

    kind = draw(st.sampled_from([*COMPARISONS, "in", "null", "not null"]))
    if kind == "in":
        values = draw(st.lists(st.sampled_from(VALUES[column]), min_size=1, max_size=3))
        return f"{column} IN ({', '.join(map(literal, values))})", lambda t: pc.is_in(
            array(t), pa.array(values, array(t).type)
        )
    if kind in {"null", "not null"}:
        return (
            f"{column} IS {kind.upper()}",
            lambda t: pc.is_null(array(t)) if kind == "null" else pc.is_valid(array(t)),
        )
    value = draw(st.sampled_from(VALUES[column]))
    return f"{column} {kind} {literal(value)}", lambda t: COMPARISONS[kind](array(t), pa.scalar(value, array(t).type))


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    column = draw(st.sampled_from(list(VALUES)))
    value = draw(st.sampled_from(VALUES[column]))
    op = draw(st.sampled_from([*COMPARISONS, "<=>"]))
    return f"{column} {op} {literal(value)}"


OTHERS = st.sampled_from(
    [
        *(
            "b",
            "NOT b",
            "b IS NULL",
            "isnan(f)",
            "f = double('NaN')",
            "i IN (1, NULL)",
            "i NOT IN (1, 2)",
            "i NOT IN (1, NULL)",
        ),
        *(
            "s LIKE 'a%'",
            "s LIKE 'a_'",
            "NOT s LIKE 'a%'",
            "s LIKE ''",
            "i BETWEEN 0 AND 2",
            "NOT i BETWEEN 0 AND 2",
            "r IS NULL",
            "r.x IS NOT NULL",
        ),
        *("i + 1 > 2", "i * 4 > 0", "10 / i > 2", "i = r.x", "f > i", "true", "false", "NULL"),
    ]
)
FILTERS = st.recursive(
    st.one_of(comparisons(), comparisons(), OTHERS),
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=5,
)
