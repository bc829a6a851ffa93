"""Resolves type names of SQL text, for CAST and for columns."""

from __future__ import annotations

from tamis.core.expr.syntax.nodes import Type, TypeField
from tamis.core.types import (
    STRING,
    Array,
    DataType,
    DayTimeInterval,
    Decimal,
    Field,
    Generation,
    Identity,
    Map,
    String,
    Struct,
    Time,
)
from tamis.core.types.logical import type_from_json
from tamis.errors import InvalidInput

_NAMES = {
    "tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long", "real": "float", "dec": "decimal",
    "numeric": "decimal", "timestamp_ltz": "timestamp", "character": "char", "time": "time(6)",
}  # fmt: skip
_KNOWN = frozenset(
    [
        "byte",
        "short",
        "integer",
        "long",
        "float",
        "double",
        "boolean",
        "string",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
        "variant",
        "decimal",
        "time(6)",
    ]
)
"""Types that are complete without parameters."""
_DAY_TIME = ("day", "hour", "minute", "second")
_MOST_DIGITS = 6
"""Largest number of digits in the fraction of a second."""


def type_of(node: Type, text: str) -> DataType | None:
    """Return the type that a CAST names, or None if it is unknown here.

    Raises ``InvalidInput`` (``BAD_TYPE``) for invalid sizes, as Spark does.
    """
    name = _NAMES.get(node.name.lower(), node.name.lower())
    zone = " ".join(node.words)
    if name in {"varchar", "char"}:
        if not node.sizes:
            raise bad_type(node, text, f"a length is missing, as in {name.upper()}(10); text of any length is STRING")
        if len(node.sizes) > 1 or not node.sizes[0]:
            raise bad_type(node, text, "it takes one whole number from 1 on")
        return STRING if not node.words else None  # Spark casts to text of any length
    if node.inner or node.fields or name not in _KNOWN or node.words[:1] == ("COLLATE",):
        return None
    if name == "decimal":
        return _decimal(node, text)
    if node.sizes and not (name == "time(6)" and node.sizes == (_MOST_DIGITS,)):
        raise bad_type(node, text, "a time of day has 6 digits" if name == "time(6)" else "it takes no parameter")
    if name == "timestamp" and zone == "WITHOUT TIME ZONE":
        name = "timestamp_ntz"
    return type_from_json(name)


def _decimal(node: Type, text: str) -> Decimal:
    if len(node.sizes) > 2:
        raise bad_type(node, text, "it takes a precision and a scale, as in DECIMAL(10,2)")
    precision, scale = (*node.sizes, *((10, 0)[len(node.sizes) :]))
    found = Decimal(precision, scale)
    if not found.possible:
        raise bad_type(node, text, "the precision is 1 to 38, the scale 0 to the precision")
    return found


def column_type(node: Type, text: str) -> DataType:
    """Return the type of a column. Raises ``InvalidInput`` (``BAD_TYPE``) if a column cannot have it."""
    if node.fields or (node.name == "STRUCT" and node.words):
        return Struct(tuple(column_field(part, text) for part in node.fields))
    if node.name == "ARRAY" and node.inner:
        return Array(Field("element", column_type(node.inner[0], text)))
    if node.name == "MAP" and node.inner:
        key, value = (column_type(inner, text) for inner in node.inner)
        return Map(Field("key", key, nullable=False), Field("value", value))
    if node.name == "INTERVAL" and node.words:
        return _interval(node, text)
    found = _sized(node, text) or type_of(node, text)
    if found is None:
        raise bad_type(node, text, "")
    return found


def column_field(part: TypeField, text: str) -> Field:
    """Return a column, or a field of a struct."""
    how = None if part.generated is None else Generation(part.generated)
    counted = None if part.identity is None else Identity(part.identity[1], part.identity[2], part.identity[0])
    kind = column_type(part.type, text)
    return Field(part.name, kind, nullable=part.nullable, generated=how, identity=counted)


def _sized(node: Type, text: str) -> DataType | None:
    """Resolve CHAR(n), VARCHAR(n) and TIME(n), which only columns can have; None for any other type."""
    name = _NAMES.get(node.name.lower(), node.name.lower()).removesuffix("(6)")
    if name not in {"char", "varchar", "time"} or not node.sizes or node.words:
        return None
    if len(node.sizes) > 1:
        raise bad_type(node, text, "it takes one whole number")
    size = node.sizes[0]
    if name == "time":
        if size > _MOST_DIGITS:
            raise bad_type(node, text, f"a time of day has at most {_MOST_DIGITS} digits")
        return Time(size)
    if not size:
        raise bad_type(node, text, "its length is 1 or more")
    return String(name, size)


def _interval(node: Type, text: str) -> DataType:
    first, last = node.words[0].lower(), node.words[-1].lower()
    if first not in _DAY_TIME:
        raise bad_type(node, text, "intervals of years and months cannot be stored")
    if _DAY_TIME.index(first) > _DAY_TIME.index(last) or (len(node.words) > 1 and first == last):
        raise bad_type(node, text, "fields go from DAY by HOUR and MINUTE to SECOND")
    return DayTimeInterval(first, last)


def bad_type(node: Type, text: str, why: str) -> InvalidInput:
    name = text[node.start : node.end].replace(", ", ",")
    return InvalidInput(
        f"Unknown type {name}{why and ': ' + why}.",
        code="BAD_TYPE",
        name=name,
        remedy="Write a type of Spark's, such as BIGINT, DECIMAL(10,2), TIMESTAMP or STRING.",
    )
