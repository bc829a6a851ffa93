"""What Spark's optimiser is told when it asks how large a pruned scan is, and what its columns hold; and how large tasks are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr import Expr, columns
from tamis.core.pruning.evidence import ColumnEvidence
from tamis.core.types import (
    BINARY,
    BINARY_COLLATION,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTEGRAL,
    LONG,
    SHORT,
    TIMESTAMP,
    VARIANT,
    Array,
    DataType,
    Decimal,
    Map,
    Schema,
    String,
    Struct,
)
from tamis.engine.part_reader import MOST_ROWS, evidence_of
from tamis.engine.scan import Plan

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


_CODES: dict[DataType, str] = {
    BYTE: "b",
    SHORT: "s",
    INTEGER: "i",
    DATE: "i",
    LONG: "l",
    TIMESTAMP: "l",
    FLOAT: "f",
    DOUBLE: "d",
}
"""As what Java type Spark holds a value. Of others it compares no bounds, and fails over TIMESTAMP_NTZ and collations of which anything is told."""
_NULLS_ONLY = ""


def told(schema: Schema) -> frozenset[int]:
    """The columns of which the cost-based optimiser may be told something."""
    return frozenset(f.id for f in schema if _code(f.type) is not None)


def column_statistics(plan: Plan, selected: Schema) -> str:
    """What the parts kept say of each column, as ``Partitions.estimate`` reads it: name, code, least and greatest value, NULLs, distinct values; no bounds where a column holds nothing but NULL.

    Bounds are those of the parts' rows, deleted ones among them, of which as large a share is taken to be NULL as of all. A column about which something is not known is left out: Spark takes one without bounds for NULL throughout.
    """
    found = evidence_of(plan.parts.table, plan.spec.part_schemas)
    rows, live = plan.parts.column("rows"), plan.parts.live_rows
    words: list[str] = []
    for f in selected:
        code = _code(f.type)
        column = found.column((f.id,)) if code is not None and live.any() else None
        if column is not None and code is not None and (ends := _ends(column, code)) is not None and not column.nulls.null_count:
            nulls = int((column.nulls.to_numpy() * live // np.maximum(rows, 1)).sum())
            words += [f.name, code, *map(str, ends), str(nulls), _distinct(f.type, ends, int(live.sum()) - nulls)]
    return "\0".join(words)


def _code(kind: DataType) -> str | None:
    if isinstance(kind, String):
        return _NULLS_ONLY if kind.collation == BINARY_COLLATION else None
    if isinstance(kind, Decimal):
        return "n"
    return _CODES.get(kind)


def _ends(column: ColumnEvidence, code: str) -> tuple[Any, ...] | None:
    """Bounds of all pieces together, empty texts where no piece has a value; None where they are not known, or NaN lies beyond them."""
    empty = pc.fill_null(pc.equal(column.nulls, column.count), False)
    if code == _NULLS_ONLY or pc.all(empty).as_py():
        return "", ""
    unknown = pc.or_(column.lo.is_null(), column.hi.is_null())
    if pc.any(pc.and_not(unknown, empty)).as_py() or pc.any(pc.fill_null(pc.not_equal(column.nans, 0), True)).as_py():
        return None
    lo, hi = pc.min(_plain(column.lo)).as_py(), pc.max(_plain(column.hi)).as_py()
    return (lo, hi) if np.isfinite(float(lo)) and np.isfinite(float(hi)) else None


def _distinct(kind: DataType, ends: tuple[Any, ...], values: int) -> str:
    """As many as lie between the bounds, at most, where that says something: of a column of one value, and of whole numbers and days that leave no room for more than there are values."""
    lo, hi = ends
    if lo == "" or not values:
        return ""
    if lo == hi:
        return "1"
    return str(hi - lo + 1) if kind in {*INTEGRAL, DATE} and hi - lo < values else ""


def _plain(values: pa.Array) -> Any:
    """Moments as the whole numbers that Spark holds."""
    if not pa.types.is_temporal(values.type):
        return values
    return values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
