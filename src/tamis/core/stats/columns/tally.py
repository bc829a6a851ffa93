"""Counts and bounds of a run of values, gathered from batches by whole-array kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.stats.columns.bounds import array_extremes, count_nans, cut_high, cut_low
from tamis.core.stats.statistics_columns import HI_EXACT, LO_EXACT
from tamis.core.types import DOUBLE, FLOAT, DataType
from tamis.core.types.arrow import orderable_array, to_arrow_type

_PENDING = 64
"""Batch extremes that are buffered before they are merged: merging costs as much as a batch."""

Extremes: TypeAlias = Mapping[int, tuple[pa.Array, pa.Array]]
"""The least and greatest value of a column in each batch, by column id.

They leave out NULL and NaN, and are NULL where that is all there is.
"""


class Tally:
    """The number of values, NULLs and NaNs so far, and the least and greatest of ``measured``, if that is a type.

    The extremes of a batch may be added later than the batch, by ``resolve``. Until then the bounds are unknown.
    """

    def __init__(self, measured: DataType | None) -> None:
        self.measured = measured
        self.floating = measured in (FLOAT, DOUBLE)
        self.count = self.nulls = self.nans = 0
        self._lows: list[pa.Scalar] = []
        self._highs: list[pa.Scalar] = []
        self._deferred: list[int] = []
        """The numbers of the batches that have values, but no extremes yet."""

    def update(self, array: pa.Array, measures: pa.Array | None = None) -> None:
        """Add a batch; ``measures`` has what is bounded, if that is not the values themselves."""
        self.count += len(array)
        self.nulls += array.null_count
        if self.measured is not None:
            self._widen(array if measures is None else measures)

    def defer(self, array: pa.Array, number: int) -> None:
        """Add the batch of this number, whose extremes ``resolve`` will add."""
        self.count += len(array)
        self.nulls += array.null_count
        if self._counted_nans(array) + array.null_count < len(array):
            self._deferred.append(number)

    def resolve(self, lows: pa.Array, highs: pa.Array) -> None:
        """Add the extremes of deferred batches from those of all batches, by number.

        If one is missing, the bounds stay unknown.
        """
        if not self._deferred or self._deferred[-1] >= min(len(lows), len(highs)):
            return
        numbers = pa.array(self._deferred, pa.int64())
        lows, highs = lows.take(numbers), highs.take(numbers)
        if lows.null_count or highs.null_count:
            return
        self._deferred = []
        self._lows.append(self._pick(lows, "min"))
        self._highs.append(self._pick(highs, "max"))

    def _counted_nans(self, array: pa.Array) -> int:
        nans = count_nans(array) if self.floating else 0
        self.nans += nans
        return nans

    def _widen(self, array: pa.Array) -> None:
        nans = self._counted_nans(array)
        if array.null_count + nans == len(array):
            return
        low, high = array_extremes(array, nans)
        self._lows.append(low)
        self._highs.append(high)
        if len(self._lows) >= _PENDING:
            self._lows, self._highs = [self._best(self._lows, "min")], [self._best(self._highs, "max")]

    def bounds(self) -> tuple[pa.Scalar, pa.Scalar, int]:
        """Return the bounds, cut if they are long, and the flags that say which of them occur."""
        lows, highs = ([], []) if self._deferred else (self._lows, self._highs)
        (low, low_exact), (high, high_exact) = cut_low(self._best(lows, "min")), cut_high(self._best(highs, "max"))
        return low, high, LO_EXACT * low_exact + HI_EXACT * high_exact

    def _best(self, scalars: list[pa.Scalar], which: str) -> pa.Scalar:
        assert self.measured is not None
        return scalars[0] if len(scalars) == 1 else self._pick(pa.array(scalars, to_arrow_type(self.measured)), which)

    def _pick(self, values: pa.Array, which: str) -> pa.Scalar:
        best = pc.min_max(orderable_array(values))[which]
        return best if best.type == values.type else best.cast(values.type)
