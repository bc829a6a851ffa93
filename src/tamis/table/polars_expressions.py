"""Decodes Polars expressions, such as ``pl.col("a") > 5``, from the JSON that Polars writes of them.

Whatever is not known here, as of another release of Polars, becomes ``other``: it is never guessed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from tamis.table.foreign_expressions import (
    Constant,
    Name,
    Node,
    Operation,
    and_operation,
    other_operation,
    set_constants,
)

_BINARY = {
    "Eq": "eq",
    "NotEq": "ne",
    "Lt": "lt",
    "LtEq": "le",
    "Gt": "gt",
    "GtEq": "ge",
    "And": "and",
    "LogicalAnd": "and",
    "Or": "or",
    "LogicalOr": "or",
}
_UNARY = {"Not": "not", "IsNull": "is_null", "IsNotNull": "is_not_null"}
_BOUNDS = {"Both": ("ge", "le"), "Left": ("ge", "lt"), "Right": ("gt", "le"), "None": ("gt", "lt")}
_WHOLE = {"Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"}
_WORDS = {"String": "string", "Boolean": "boolean", "Date": "date", "Float64": "double"}


def decode_expression(expression: Any) -> Node:
    """Return the tree of ``expression``; ``other`` if Polars cannot serialize it."""
    try:
        text = expression.meta.serialize(format="json")
    except Exception:  # noqa: BLE001  # Polars raises many kinds, panics among them; none of them is the user's
        return other_operation("an expression that Polars cannot serialize")
    return _node(json.loads(text))


def _node(json_node: Any) -> Node:
    match json_node:
        case {"Column": str(name)}:
            return Name(name)
        case {"Literal": literal}:
            return _constant(literal)
        case {"BinaryExpr": {"left": left, "op": op, "right": right, **rest}} if not rest:
            made = (_node(left), _node(right))
            return Operation(_BINARY[op], made, text=op) if op in _BINARY else other_operation(op, *made)
        case {"Function": {"input": list(given), "function": {"Boolean": function}, **rest}} if not rest:
            return _function(given, function)
    return other_operation(next(iter(json_node), "?") if isinstance(json_node, dict) else str(json_node))


def _function(given: list[Any], function: Any) -> Node:
    match function, given:
        case (str(name), [one]) if name in _UNARY:
            return Operation(_UNARY[name], (_node(one),), text=name)
        case ({"IsBetween": {"closed": str(closed)}}, [value, low, high]) if closed in _BOUNDS:
            above, below = _BOUNDS[closed]
            return and_operation(
                Operation(above, (_node(value), _node(low)), text="is_between"),
                Operation(below, (_node(value), _node(high)), text="is_between"),
            )
        case ({"IsIn": {"nulls_equal": False}}, [{"Column": str(name)}, {"Literal": literal}]):
            values = _values(literal)
            if values is not None and len(values):
                return Operation("in", (Name(name),), values, "is_in")
    name = function if isinstance(function, str) else next(iter(function), "?")
    return other_operation(str(name), *map(_node, given))


def _values(literal: Any) -> pa.Array | None:
    """Return the constants of ``is_in`` without NULLs: a series, or a list with one row, as a stream of Arrow."""
    match literal:
        case {"Series": list(content)}:
            return _column(content)
        case {"Scalar": {"List": list(content)}}:
            return _column(content)
    return None


def _column(content: list[int]) -> pa.Array | None:
    try:
        column = pa.ipc.open_stream(bytes(content)).read_all().column(0).combine_chunks()
    except (pa.ArrowException, ValueError, IndexError):
        return None
    return set_constants(column)


def _constant(literal: Any) -> Node:
    match literal:
        case {"Dyn": {"Int": int(value)}}:
            return Constant("integer", value)
        case {"Dyn": {"Float": float(value)}}:
            return Constant("double", value)
        case {"Dyn": {"Str": str(value)}}:
            return Constant("string", value)
        case {"Scalar": Mapping() as scalar} if len(scalar) == 1:
            ((kind, value),) = scalar.items()
            if kind in _WHOLE and isinstance(value, int):
                return Constant("integer", value)
            if kind in _WORDS and isinstance(value, str | bool | int | float):
                return Constant(_WORDS[kind], value)
            match kind, value:
                case ("Datetime", [int(micros), "Microseconds", None]):
                    return Constant("local time", micros)
                case ("Datetime", [int(micros), "Microseconds", {"inner": "UTC"}]):
                    return Constant("instant", micros)
            return other_operation("a comparison with NULL" if kind == "Null" else f"a constant of the type {kind}")
    return other_operation("a constant of another type")
