"""Keys along a space-filling curve: rows close in several columns at once get close keys.

Each column's values are cut into ranges with about equally many rows, so that skew does not matter; the range
numbers are the coordinates. Hilbert's curve never jumps, so its bounding boxes are tighter than Z-order's at
the same cost; Z-order is offered because other tools use that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.types import Schema
from tamis.core.types.arrow import sortable_array
from tamis.engine.part_writer.clustering_order import ClusteringOrder

Codes = np.ndarray[Any, np.dtype[np.uint64]]

CURVES = ("hilbert", "zorder")
MOST_BITS = 10
"""Bits per coordinate: a thousand ranges per column are finer than any table's parts."""
KEY_BITS = 60


def bits_of(dimensions: int) -> int:
    return min(MOST_BITS, KEY_BITS // dimensions)


def curve_boundaries(sample: pa.Array, bits: int) -> pa.Array:
    """Return sorted values that cut ``sample`` into at most 2^bits ranges of equally many values."""
    known = sortable_array(sample).drop_null()
    if pa.types.is_floating(known.type):
        known = known.filter(pc.invert(pc.is_nan(known)))
    ordered = known.take(pc.array_sort_indices(known))
    places = np.linspace(0, len(ordered), 2**bits, endpoint=False)[1:].astype(np.int64)
    return pc.unique(ordered.take(pa.array(places))) if len(ordered) else ordered


def coordinates(values: pa.Array, cuts: pa.Array) -> Codes:
    """Return the range of each value; NULL in the first, NaN in the last."""
    flat = sortable_array(values)
    ranks = pc.rank(pa.concat_arrays([cuts, flat]), tiebreaker="dense").to_numpy().astype(np.int64)
    found: Codes = np.searchsorted(ranks[: len(cuts)], ranks[len(cuts) :], side="right").astype(np.uint64)
    found[~flat.is_valid().to_numpy(zero_copy_only=False)] = 0
    if pa.types.is_floating(flat.type):
        found[pc.fill_null(pc.is_nan(flat), False).to_numpy(zero_copy_only=False)] = len(cuts)
    return found


def row_curve_keys(
    batch: pa.RecordBatch, schema: Schema, paths: Sequence[tuple[int, ...]], cuts: Sequence[pa.Array], curve: str
) -> pa.Int64Array:
    """Return the key of each row of ``batch`` (in the schema's Arrow form) by the columns ``paths``."""
    bits = bits_of(len(paths))
    columns = ClusteringOrder(schema, paths).columns(batch)
    axes = [coordinates(column, c) for column, c in zip(columns, cuts, strict=True)]
    return pa.array((_hilbert(axes, bits) if curve == "hilbert" else _interleaved(axes, bits)).astype(np.int64))


def _interleaved(axes: Sequence[Codes], bits: int) -> Codes:
    """Interleave the bits of all axes, highest first: Z-order."""
    key = np.zeros_like(axes[0])
    for bit in range(bits - 1, -1, -1):
        for axis in axes:
            key = (key << np.uint64(1)) | ((axis >> np.uint64(bit)) & np.uint64(1))
    return key


def _hilbert(axes: Sequence[Codes], bits: int) -> Codes:
    """Return positions on Hilbert's curve by Skilling's transformation.

    See Skilling, Programming the Hilbert curve, 2004.
    """
    x = [axis.copy() for axis in axes]
    nothing = np.uint64(0)
    for shift in range(bits - 1, 0, -1):
        high, low = np.uint64(1 << shift), np.uint64((1 << shift) - 1)
        for axis in range(len(x)):
            hit = (x[axis] & high) != 0
            swap = np.where(hit, nothing, (x[0] ^ x[axis]) & low)
            x[0] ^= np.where(hit, low, nothing)
            x[0] ^= swap
            x[axis] ^= swap
    for axis in range(1, len(x)):
        x[axis] ^= x[axis - 1]
    turn = np.zeros_like(x[0])
    for shift in range(bits - 1, 0, -1):
        turn ^= np.where((x[-1] & np.uint64(1 << shift)) != 0, np.uint64((1 << shift) - 1), nothing)
    return _interleaved([axis ^ turn for axis in x], bits)
