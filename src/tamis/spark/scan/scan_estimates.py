"""Column estimates of a pruned scan, for Spark's optimizer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.pruning.evidence import ColumnEvidence
from tamis.core.types import (
    BINARY_COLLATION,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTEGRAL,
    LONG,
    SHORT,
    TIMESTAMP,
    DataType,
    Decimal,
    Schema,
    String,
)
from tamis.engine.part_reader import evidence_of
from tamis.engine.scan import Plan
from tamis.spark.jvm_bridge.wire_format import words_text

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
"""Spark's internal type code.

Spark compares no bounds of other types, and fails on statistics of TIMESTAMP_NTZ and collated columns.
"""
_NULLS_ONLY = ""


def estimated_columns(schema: Schema) -> frozenset[int]:
    """Ids of the columns that may have statistics for the cost-based optimizer."""
    return frozenset(f.id for f in schema if _code(f.type) is not None)


def column_statistics(plan: Plan, selected: Schema) -> str:
    """Column statistics of the plan's parts, as ``ScanAnswers.estimate`` reads them.

    For each column: name, code, minimum, maximum, number of NULLs, number of distinct values. The bounds of
    an all-NULL column are empty. Bounds include deleted rows; live rows are assumed to have the same share of
    NULLs. A column without complete statistics is left out, because Spark takes a column without bounds as
    all NULL.
    """
    found = evidence_of(plan.parts.table, plan.spec.part_schemas)
    rows, live = plan.parts.column("rows"), plan.parts.live_rows
    found_words: list[str] = []
    for f in selected:
        code = _code(f.type)
        column = found.column((f.id,)) if code is not None and live.any() else None
        if (
            column is not None
            and code is not None
            and (ends := _ends(column, code)) is not None
            and not column.nulls.null_count
        ):
            nulls = int((column.nulls.to_numpy() * live // np.maximum(rows, 1)).sum())
            found_words += [f.name, code, *map(str, ends), str(nulls), _distinct(f.type, ends, int(live.sum()) - nulls)]
    return words_text(found_words)


def _code(kind: DataType) -> str | None:
    if isinstance(kind, String):
        return _NULLS_ONLY if kind.collation == BINARY_COLLATION else None
    if isinstance(kind, Decimal):
        return "n"
    return _CODES.get(kind)


def _ends(column: ColumnEvidence, code: str) -> tuple[Any, ...] | None:
    """The bounds over all parts, "" if there are no values; None if bounds are unknown or NaN may occur."""
    empty = pc.fill_null(pc.equal(column.nulls, column.count), False)
    if code == _NULLS_ONLY or pc.all(empty).as_py():
        return "", ""
    unknown = pc.or_(column.lo.is_null(), column.hi.is_null())
    if pc.any(pc.and_not(unknown, empty)).as_py() or pc.any(pc.fill_null(pc.not_equal(column.nans, 0), True)).as_py():
        return None
    lo, hi = pc.min(_plain(column.lo)).as_py(), pc.max(_plain(column.hi)).as_py()
    return (lo, hi) if np.isfinite(float(lo)) and np.isfinite(float(hi)) else None


def _distinct(kind: DataType, ends: tuple[Any, ...], values: int) -> str:
    """An upper limit of the number of distinct values, as text, or "" if unknown.

    Known for a column of one value, and for integers and dates whose bounds enclose at most ``values``
    values.
    """
    lo, hi = ends
    if lo == "" or not values:
        return ""
    if lo == hi:
        return "1"
    return str(hi - lo + 1) if kind in {*INTEGRAL, DATE} and hi - lo < values else ""


def _plain(values: pa.Array) -> Any:
    """Dates and timestamps as the integers that Spark uses; other values unchanged."""
    if not pa.types.is_temporal(values.type):
        return values
    return values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
