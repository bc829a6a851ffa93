"""Translation of Catalyst types and constants (from ``TreeText.java``) to logical types and Python values.

Raises ``Inexpressible`` for a type without a logical type (such as user-defined types) or a constant without an
exact value; the caller makes the expression opaque.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from decimal import Decimal as Number
from typing import Any

import pyarrow as pa

from tamis.core import types as t
from tamis.core.expr.tree import Constructed, Expr, Literal, Literals
from tamis.core.types.arrow import to_arrow_type
from tamis.core.types.logical import type_from_json
from tamis.errors import InvalidInput

_NANOS = 1_000
_YEAR_MONTH = frozenset({"interval year", "interval month", "interval year to month"})


class Inexpressible(Exception):  # stays internal: tells the caller to make the expression opaque
    """Raised for what the filter language cannot express exactly."""


def data_type(value: Any) -> t.DataType:
    """The logical type of a Catalyst type's JSON form, without column ids.

    Raises ``Inexpressible`` if there is none.
    """
    if isinstance(value, dict):
        match value.get("type"):
            case "struct":
                return t.Struct(tuple(t.Field(f["name"], data_type(f["type"]), f["nullable"]) for f in value["fields"]))
            case "array":
                return t.Array(t.Field("element", data_type(value["elementType"]), value["containsNull"]))
            case "map":
                inner = t.Field("value", data_type(value["valueType"]), value["valueContainsNull"])
                return t.Map(t.Field("key", data_type(value["keyType"]), nullable=False), inner)
    if isinstance(value, str) and value in _YEAR_MONTH:
        return t.YEAR_MONTH
    try:
        return type_from_json(value)
    except InvalidInput:
        raise Inexpressible(f"type {value}") from None


def same_values(a: t.DataType, b: t.DataType) -> bool:
    """Whether two types hold the same values, ignoring ids, field names, text lengths, interval fields."""
    if isinstance(a, t.String) and isinstance(b, t.String):
        return a.collation == b.collation
    if isinstance(a, t.DayTimeInterval | t.Time):
        return type(a) is type(b)
    if a.children or b.children:
        inner = zip(a.children, b.children, strict=False)
        return (
            type(a) is type(b)
            and len(a.children) == len(b.children)
            and all(same_values(x.type, y.type) for x, y in inner)
        )
    return a == b


def _time(value: int) -> int:
    micros, rest = divmod(value, _NANOS)
    if rest:
        raise Inexpressible("a time finer than microseconds")
    return micros


_VALUE: list[tuple[Callable[[t.DataType], bool], Callable[[Any], Any]]] = [
    (
        lambda d: (
            d in t.INTEGRAL
            or d in {t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ, t.YEAR_MONTH}
            or isinstance(d, t.DayTimeInterval)
        ),
        int,
    ),
    (lambda d: d in {t.FLOAT, t.DOUBLE}, float),
    (lambda d: isinstance(d, t.Decimal), Number),
    (lambda d: isinstance(d, t.String), str),
    (lambda d: d == t.BOOLEAN, bool),
    (lambda d: d == t.BINARY, base64.b64decode),
    (lambda d: isinstance(d, t.Time), _time),
]


def _reader(kind: t.DataType) -> Callable[[Any], Any]:
    for matches, read in _VALUE:
        if matches(kind):
            return read
    raise Inexpressible(f"a constant of type {kind}")


def as_constant(kind: t.DataType, value: Any) -> Expr:
    """The constant ``value`` of a tree. Raises ``Inexpressible`` if it has no exact plain form."""
    if value is None:
        return Literal(kind, None)
    if isinstance(value, dict):
        return _made(kind, value)
    return Literal(kind, _reader(kind)(value))


def _made(kind: t.DataType, value: dict[str, Any]) -> Constructed:
    """The items of a constant struct or array."""
    if isinstance(kind, t.Struct) and len(value.get("row", ())) == len(kind.fields) > 0:
        items = tuple(as_constant(f.type, v) for f, v in zip(kind.fields, value["row"], strict=True))
    elif isinstance(kind, t.Array) and value.get("items"):
        items = tuple(as_constant(kind.element.type, v) for v in value["items"])
    else:
        raise Inexpressible(str(value.get("strange")))
    return Constructed(kind, str(kind), items, total=True)


def list_constants(kind: t.DataType, values: list[Any]) -> Expr:
    """The constants of an IN list, as one array."""
    if any(isinstance(v, dict) for v in values):
        raise Inexpressible("a constant without a plain form")
    read = _reader(kind)
    plain = [None if v is None else read(v) for v in values]
    return Literals(kind, constant_array(kind, plain))


def constant_array(kind: t.DataType, plain: Any) -> pa.Array:
    """An Arrow array of ``kind`` from plain values in the units of ``Literal`` (microseconds, days)."""
    arrow = to_arrow_type(kind)
    if pa.types.is_temporal(arrow):
        return pa.array(plain, pa.int32() if kind == t.DATE else pa.int64()).cast(arrow)
    return pa.array(plain, arrow)
