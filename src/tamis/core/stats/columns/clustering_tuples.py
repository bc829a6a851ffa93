"""The first and last clustering tuple of a sorted part, used to prune by a prefix of the clustering columns.

Invariant: every row of the part lies between the two tuples in clustering order (NULL first, NaN last),
compared column by column. A part that is not known to be sorted has none. Long text is truncated downward in
the first tuple and upward in the last one, and is then not exact.

A column at position ``rank`` of the clustering order has ``<id>|rank``, ``<id>|edge`` (flags) and, for
values, ``<id>|<type>|first`` and ``<id>|<type>|last``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.stats.columns.bounds import cut_high, cut_low
from tamis.core.stats.statistics_columns import Figure, bound_name, count_name, has_bounds
from tamis.core.stats.whole_columns import whole_column
from tamis.core.types import DataType, Schema
from tamis.core.types.arrow import to_arrow_type

Bools = np.ndarray[Any, np.dtype[np.bool_]]

RANK, EDGE = pa.int8(), pa.uint8()
KINDS = ("rank", "edge", "first", "last")
"""The kinds of a column's place in the tuples; a column has all of them, or none."""
_MOST = 2**7
"""Columns of a tuple that are stored: as many as ``RANK`` can number."""
FIRST_EXACT, LAST_EXACT, FIRST_NULL, LAST_NULL = 1, 2, 4, 8
"""Flags of ``edge``. NaN is neither NULL nor a value: such an end is unknown."""


@dataclass(frozen=True, slots=True)
class Edges:
    """One column's rank in the clustering order of N parts, and its first and last value; NULL if unknown."""

    rank: np.ndarray[Any, np.dtype[np.int8]]
    """-1 if the part is not known to be sorted, or not by this column."""
    first: pa.Array
    last: pa.Array
    first_exact: Bools
    last_exact: Bools
    first_null: Bools
    last_null: Bools


def end_statistics(
    schema: Schema, cluster_by: Sequence[tuple[int, ...]], first: pa.RecordBatch, last: pa.RecordBatch
) -> Iterator[Figure]:
    """Yield the statistics of a sorted part with this first and last row.

    Columns after one without bounds (collated text) are omitted, because pruning cannot reach them.
    """
    for rank, ids in enumerate(cluster_by[:_MOST]):
        data_type = schema.by_id[ids[-1]].type
        if not has_bounds(data_type):
            return
        (low, low_exact, low_null), (high, high_exact, high_null) = (
            _end(_value(schema, ids, row), upper) for row, upper in ((first, False), (last, True))
        )
        flags = FIRST_EXACT * low_exact + LAST_EXACT * high_exact + FIRST_NULL * low_null + LAST_NULL * high_null
        arrow = to_arrow_type(data_type)
        yield count_name(ids[-1], "rank"), RANK, rank
        yield count_name(ids[-1], "edge"), EDGE, flags
        yield bound_name(ids[-1], data_type, "first"), arrow, low
        yield bound_name(ids[-1], data_type, "last"), arrow, high


def _value(schema: Schema, ids: tuple[int, ...], row: pa.RecordBatch) -> pa.Scalar:
    fields = schema.fields
    array: pa.Array | None = None
    for identifier in ids:
        at = next(i for i, f in enumerate(fields) if f.id == identifier)
        array = row.column(at) if array is None else array.flatten()[at]
        fields = fields[at].type.children
    assert array is not None
    return array[0]


def _end(value: pa.Scalar, upper: bool) -> tuple[pa.Scalar, bool, bool]:
    """Return the stored value, whether it is exact (both zeros are equal), and whether it is NULL."""
    if not value.is_valid:
        return value, False, True
    floating = pa.types.is_floating(value.type)
    if floating and value.as_py() != value.as_py():
        return pa.scalar(None, value.type), False, False
    kept, exact = (cut_high if upper else cut_low)(value)
    return kept, exact or floating, False


def order_edges(table: pa.Table, column_id: int, data_type: DataType) -> Edges | None:
    """Return a column's place in the clustering order from manifest rows, or None if no part has it.

    Stored values never cause an exception.
    """
    if not has_bounds(data_type):
        return None
    rank = whole_column(table, count_name(column_id, "rank"), RANK)
    flags = whole_column(table, count_name(column_id, "edge"), EDGE)
    arrow = to_arrow_type(data_type)
    first, last = (whole_column(table, bound_name(column_id, data_type, kind), arrow) for kind in ("first", "last"))
    if rank is None or flags is None or first is None or last is None:
        return None
    places = np.asarray(pc.fill_null(rank, -1))
    bits = np.asarray(pc.fill_null(flags, 0))
    low_null, high_null = (bits & FIRST_NULL) != 0, (bits & LAST_NULL) != 0
    low_known, high_known = np.asarray(first.is_valid()), np.asarray(last.is_valid())
    bad = (low_null & low_known) | (high_null & high_known) | np.asarray(flags.is_null())
    falls = np.asarray(pc.fill_null(pc.greater(first, last), False)) | (high_null & ~low_null)
    bad |= falls & (places == 0)
    if pa.types.is_floating(arrow):
        bad |= np.asarray(pc.fill_null(pc.or_kleene(pc.is_nan(first), pc.is_nan(last)), False))
    return Edges(
        np.where(bad, np.int8(-1), places).astype(np.int8),
        first,
        last,
        ((bits & FIRST_EXACT) != 0) & low_known,
        ((bits & LAST_EXACT) != 0) & high_known,
        low_null,
        high_null,
    )
