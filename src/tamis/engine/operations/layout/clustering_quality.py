"""Clustering quality: how much the runs of a table's parts overlap, per column.

A run was sorted together, so its parts do not overlap. The depth at a value is the number of runs that a
reader of that value must visit; one is perfect. Computed from the parts' bounds alone; a part with unknown
bounds overlaps everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.pruning import ColumnEvidence
from tamis.core.types.arrow import sortable_array

Ints = np.ndarray[Any, np.dtype[np.int64]]
BARS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Intervals:
    """The closed range of each part in one column, on an ordinal scale."""

    low: Ints
    high: Ints

    def __len__(self) -> int:
        return len(self.low)

    @property
    def end(self) -> int:
        return int(self.high.max()) + 1 if len(self) else 0

    def where(self, mask: np.ndarray[Any, np.dtype[np.bool_]]) -> Intervals:
        return Intervals(self.low[mask], self.high[mask])


@dataclass(frozen=True, slots=True)
class Clustering:
    """The clustering figures of one column: average overlap of a part with others, and depths."""

    column: str
    average_overlap: float
    average_depth: float
    max_depth: int
    depths: tuple[int, ...]
    """The maximum depth in each of at most 64 equal ranges of the column, lowest values first."""

    def picture(self) -> str:
        """Draw the depths as a line of bars."""
        top = max(self.max_depth, 1)
        return "".join(BARS[-(-d * (len(BARS) - 1) // top)] for d in self.depths)


def part_intervals(column: ColumnEvidence | None, runs: Ints) -> Intervals:
    """Return each part's range; parts of the same run (``runs``) that touch at one value do not overlap."""
    count = len(runs)
    if column is None or not count:
        return Intervals(np.zeros(count, dtype=np.int64), np.ones(count, dtype=np.int64))
    low, high = _flat(column.lo), _flat(column.hi)
    places = pc.rank(pa.concat_arrays([_rankable(low), _rankable(high)]), tiebreaker="dense")
    ranks = 2 * places.to_numpy().astype(np.int64)
    start, end = ranks[:count].copy(), ranks[count:].copy()
    has_nulls = pc.fill_null(pc.greater(_flat(column.nulls), 0), True).to_numpy(zero_copy_only=False)
    only_nulls = pc.fill_null(pc.equal(_flat(column.nulls), _flat(column.count)), False).to_numpy(zero_copy_only=False)
    unknown = (
        ~low.is_valid().to_numpy(zero_copy_only=False) | ~high.is_valid().to_numpy(zero_copy_only=False)
    ) & ~only_nulls
    bottom, top = 0, int(ranks.max(initial=0)) + 1
    start[has_nulls | unknown] = bottom  # NULLs sort first in clustering order
    end[only_nulls] = bottom
    end[unknown] = top
    return _apart(Intervals(start, np.maximum(start, end)), runs)


def _apart(found: Intervals, runs: Ints) -> Intervals:
    """Make the intervals of each run disjoint, as its rows are.

    Bounds may be truncated, and neighbours may share a value.
    """
    order = np.lexsort((found.high, found.low, runs))
    low, high, run = found.low[order], found.high[order], runs[order]
    same = run[1:] == run[:-1]
    high[:-1] = np.where(same, np.minimum(high[:-1], np.maximum(low[1:], low[:-1])), high[:-1])
    low[1:] += same & (low[1:] == high[:-1])
    back = np.argsort(order)
    return Intervals(low[back], high[back])


def overlap_depth(found: Intervals) -> Ints:
    """Return the number of parts covering each position of the scale.

    A part with low > high has lost its only value to its neighbour.
    """
    steps = np.zeros(found.end + 2, dtype=np.int64)
    real = found.low <= found.high
    np.add.at(steps, found.low[real], 1)
    np.add.at(steps, found.high[real] + 1, -1)
    return np.cumsum(steps)[: max(found.end, 1)]


def clustering_figures(name: str, found: Intervals, width: int = 64) -> Clustering:
    """Compute the clustering figures of one column."""
    if not len(found):
        return Clustering(name, 0.0, 0.0, 0, ())
    deep = overlap_depth(found)
    starts, ends = np.sort(found.low), np.sort(found.high)
    over = np.searchsorted(starts, found.high, side="right") - np.searchsorted(ends, found.low, side="left") - 1
    # odd positions lie between values
    values = np.maximum.reduceat(deep, np.arange(0, len(deep), 2))[int(found.low.min()) // 2 :]
    edges = np.unique(np.linspace(0, len(values), min(width, len(values)), endpoint=False).astype(np.int64))
    by_part = _most(deep, found)
    return Clustering(
        name,
        float(np.maximum(over, 0).mean()),
        float(by_part.mean()),
        int(deep.max()),
        tuple(np.maximum.reduceat(values, edges).tolist()),
    )


def _most(deep: Ints, found: Intervals) -> Ints:
    """Return the maximum depth within each interval."""
    level, tables = deep, [deep]
    while len(level) > 1:  # maxima over ranges of 2, 4, 8 … positions
        step = 1 << (len(tables) - 1)
        if len(level) <= step:
            break
        level = np.maximum(level[:-step], level[step:])
        tables.append(level)
    length = np.maximum(found.high - found.low + 1, 1)
    size = np.minimum(np.floor(np.log2(length)).astype(np.int64), len(tables) - 1)
    out = np.empty(len(found), dtype=np.int64)
    for at, table in enumerate(tables):
        of = size == at
        left = np.minimum(found.low[of], len(table) - 1)
        right = np.clip(found.high[of] - (1 << at) + 1, 0, len(table) - 1)
        out[of] = np.maximum(table[left], table[right])
    return out


def _flat(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _rankable(array: pa.Array) -> pa.Array:
    """Convert ``array`` to a type that can be ranked; bounds of other types are unknown."""
    return (
        pa.nulls(len(array), pa.int8())
        if pa.types.is_nested(array.type) or pa.types.is_null(array.type)
        else sortable_array(array)
    )
