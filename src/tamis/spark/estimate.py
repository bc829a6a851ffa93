"""How much of a row some columns are: what Spark's optimiser is told when it asks how large a pruned scan is, and how large tasks are made."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.expr import Expr, columns
from tamis.read import MOST_ROWS
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


def read_share(selected: Schema, conjuncts: Sequence[Expr], of: Schema, *, lazy: bool) -> float:
    """The part of a row of ``of`` that is likely to be read: of a filter's columns all, of the others what a lazy reader reads before it changes its mind."""
    named = {ids[0] for c in conjuncts for ids in columns(c)}
    leaders = Schema(tuple(f for f in of if f.id in named))
    followers = Schema(tuple(f for f in selected if f.id not in named))
    rest = share(followers, of) if followers.fields else 0.0
    return min(1.0, (share(leaders, of) + rest * MOST_ROWS) if named and lazy else share(leaders, of) + rest)
