"""Random filters as pyarrow and as Polars expressions, over rows at the edges of their types."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

UTC = dt.UTC
NAN, INF = math.nan, math.inf
SCHEMA = pa.schema(
    [
        ("byte", pa.int8()),
        ("whole", pa.int64()),
        ("other", pa.int32()),
        ("double", pa.float64()),
        ("text", pa.string()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("instant", pa.timestamp("us", tz="UTC")),
        ("local", pa.timestamp("us")),
    ]
)
VALUES: dict[str, list[Any]] = {
    "byte": [-128, -1, 0, 1, 5, 127],
    "whole": [-(2**63), -(2**53) - 1, -1, 0, 1, 5, 2**53 + 1, 2**63 - 1],
    "other": [-(2**31), -1, 0, 1, 5, 2**31 - 1],
    "double": [NAN, INF, -INF, -0.0, 0.0, 5e-324, 1.0, 1.5, 5.0, float(2**53), -1.7976931348623157e308],
    "text": ["", "a", "A", "a ", "ab", "é", "e\u0301", "\u0000", "\U0001f600", "\uffff", "a'b`\\\n"],
    "flag": [True, False],
    "day": [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31)],
    "instant": [
        dt.datetime(1, 1, 1, tzinfo=UTC),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        dt.datetime(2024, 3, 31, 1, 30, tzinfo=UTC),
        dt.datetime(2024, 3, 31, 1, 30, 0, 1, tzinfo=UTC),
        dt.datetime(9999, 12, 31, tzinfo=UTC),
    ],
}
VALUES["local"] = [value.replace(tzinfo=None) for value in VALUES["instant"]]
ORDERED = ("==", "!=", "<", "<=", ">", ">=")

ROWS = st.lists(
    st.fixed_dictionaries({name: st.one_of(st.none(), st.sampled_from(values)) for name, values in VALUES.items()}),
    min_size=1,
    max_size=20,
)


def constants(name: str) -> list[Any]:
    """What a column is compared with; a double also with whole numbers."""
    finite = [v for v in VALUES[name] if not (isinstance(v, float) and not math.isfinite(v))]
    return [*finite, 1, -5, 2**53] if name == "double" else finite


def _comparisons() -> st.SearchStrategy[Any]:
    made: list[st.SearchStrategy[Any]] = []
    for name, values in VALUES.items():
        signs = ORDERED[:2] if name == "flag" else ORDERED
        made.append(
            st.tuples(
                st.just("compare"),
                st.just(name),
                st.sampled_from(signs),
                st.sampled_from(constants(name)),
                st.booleans(),
            )
        )
        made.append(st.tuples(st.just("null"), st.just(name), st.booleans()))
        if name not in {"double", "flag", "instant", "local"}:
            members = st.lists(st.one_of(st.none(), st.sampled_from(values)), min_size=1, max_size=4)
            made.append(
                st.tuples(st.just("in"), st.just(name), members.filter(lambda m: any(v is not None for v in m)))
            )
    columns = st.sampled_from([("byte", "whole"), ("whole", "other"), ("text", "text"), ("day", "day")])
    made.append(st.tuples(st.just("columns"), columns, st.sampled_from(ORDERED)))
    made.append(st.just(("column", "flag")))
    return st.one_of(*made)


FILTERS: st.SearchStrategy[Any] = st.recursive(
    _comparisons(),
    lambda inner: st.one_of(
        st.tuples(st.just("and"), inner, inner),
        st.tuples(st.just("or"), inner, inner),
        st.tuples(st.just("not"), inner),
    ),
    max_leaves=6,
)


def compared(sign: str, a: Any, b: Any) -> Any:
    """``a sign b`` as Python's operators make it of expressions."""
    match sign:
        case "==":
            return a == b
        case "!=":
            return a != b
        case "<":
            return a < b
        case "<=":
            return a <= b
        case ">":
            return a > b
    return a >= b


def built(form: Any, column: Any, constant: Any, schema: pa.Schema = SCHEMA) -> Any:
    """The expression of a library, of its functions for a column and for a constant; pyarrow's lists take their type from ``schema``."""
    match form:
        case ("compare", name, sign, value, flipped):
            if flipped:
                return compared(sign, constant(value), column(name))
            return compared(sign, column(name), value)
        case ("columns", (left, right), sign):
            return compared(sign, column(left), column(right))
        case ("column", name):
            return column(name)
        case ("null", name, True):
            return column(name).is_null()
        case ("null", name, False):
            return ~column(name).is_null()
        case ("in", name, values):
            field = column(name)
            return (
                field.isin(pa.array(values, schema.field(name).type)) if hasattr(field, "isin") else field.is_in(values)
            )
        case ("and", left, right):
            return built(left, column, constant, schema) & built(right, column, constant, schema)
        case ("or", left, right):
            return built(left, column, constant, schema) | built(right, column, constant, schema)
        case ("not", inner):
            return ~built(inner, column, constant, schema)
    raise AssertionError(form)


def arrow_filter(form: Any) -> pc.Expression:
    made: pc.Expression = built(form, pc.field, pc.scalar)
    return made


def polars_filter(form: Any) -> pl.Expr:
    made: pl.Expr = built(form, pl.col, pl.lit)
    return made


def batch_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


EVERY = batch_of([{name: values[i % len(values)] for name, values in VALUES.items()} for i in range(11)] + [{}])
"""Rows in which each column has all of its values, and NULL."""
