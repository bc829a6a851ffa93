"""Estimates of the bytes of columns: Spark's default sizes of their types, and the share of a row that is read."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.core.expr import Expr, column_paths
from tamis.core.types import (
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
from tamis.engine.part_reader import MOST_ROWS

_ROW = 8
"""Bytes that Spark adds for each row."""
_WIDTH: dict[DataType, int] = {BOOLEAN: 1, BYTE: 1, SHORT: 2, INTEGER: 4, FLOAT: 4, DATE: 4, BINARY: 100, VARIANT: 256}


def width(data_type: DataType) -> int:
    """Spark's default size in bytes of a value."""
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


def width_share(selected: Schema, of: Schema) -> float:
    """The share of a row of ``of`` that ``selected`` makes up, between 0 and 1."""
    return min(1.0, (_ROW + width(selected.as_struct())) / (_ROW + width(of.as_struct())))


def read_share(selected: Schema, conjuncts: Sequence[Expr], of: Schema, *, lazy: bool) -> float:
    """The share of a row of ``of`` that is likely to be read.

    Filter columns are read whole. For the other columns a lazy reader is assumed to read the largest share
    (``MOST_ROWS``) at which it stays lazy.
    """
    named = {ids[0] for c in conjuncts for ids in column_paths(c)}
    leaders = Schema(tuple(f for f in of if f.id in named))
    followers = Schema(tuple(f for f in selected if f.id not in named))
    rest = width_share(followers, of) if followers.fields else 0.0
    return min(
        1.0, (width_share(leaders, of) + rest * MOST_ROWS) if named and lazy else width_share(leaders, of) + rest
    )
