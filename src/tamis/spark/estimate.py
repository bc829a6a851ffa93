"""How much of a row some columns are: what Spark's optimiser is told when it asks how large a pruned scan is."""

from __future__ import annotations

from tamis.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    FLOAT,
    INTEGER,
    SHORT,
    VARIANT,
    Array,
    DataType,
    Decimal,
    Map,
    Schema,
    String,
    Struct,
)

_ROW = 8
"""A row itself, as Spark counts it."""
_WIDTH: dict[DataType, int] = {BOOLEAN: 1, BYTE: 1, SHORT: 2, INTEGER: 4, FLOAT: 4, DATE: 4, BINARY: 100, VARIANT: 256}


def width(data_type: DataType) -> int:
    """Bytes of a typical value, as Spark assumes them."""
    match data_type:
        case Decimal(precision):
            return 8 if precision <= 18 else 16
        case String():
            return 20
        case Struct(fields):
            return sum(width(f.type) for f in fields)
        case Array(element):
            return width(element.type)
        case Map(key, value):
            return width(key.type) + width(value.type)
    return _WIDTH.get(data_type, 8)


def share(selected: Schema, of: Schema) -> float:
    """The part of a row of ``of`` that ``selected`` is, between 0 and 1."""
    return min(1.0, (_ROW + width(selected.as_struct())) / (_ROW + width(of.as_struct())))
