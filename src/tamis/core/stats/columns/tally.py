"""Counts and bounds of a run of values, gathered from batches by whole-array kernels."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.stats.columns.bounds import count_nans, cut_high, cut_low, extremes
from tamis.core.stats.statistics_columns import HI_EXACT, LO_EXACT
from tamis.core.types import DOUBLE, FLOAT, DataType
from tamis.core.types.arrow import orderable, to_arrow_type

_PENDING = 64
"""Batch extremes that are buffered before they are merged: merging costs as much as a batch."""


class Tally:
    """The number of values, NULLs and NaNs so far, and the least and greatest of ``measured``, if that is a type."""

    def __init__(self, measured: DataType | None) -> None:
        self.measured = measured
        self.floating = measured in (FLOAT, DOUBLE)
        self.count = self.nulls = self.nans = 0
        self._lows: list[pa.Scalar] = []
        self._highs: list[pa.Scalar] = []

    def update(self, array: pa.Array, measures: pa.Array | None = None) -> None:
        """Add a batch; ``measures`` has what is bounded, if that is not the values themselves."""
        self.count += len(array)
        self.nulls += array.null_count
        if self.measured is not None:
            self._widen(array if measures is None else measures)

    def _widen(self, array: pa.Array) -> None:
        nans = count_nans(array) if self.floating else 0
        self.nans += nans
        if array.null_count + nans == len(array):
            return
        low, high = extremes(array, nans)
        self._lows.append(low)
        self._highs.append(high)
        if len(self._lows) >= _PENDING:
            self._lows, self._highs = [self._pick(self._lows, "min")], [self._pick(self._highs, "max")]

    def bounds(self) -> tuple[pa.Scalar, pa.Scalar, int]:
        """Return the bounds, cut if they are long, and the flags that say which of them occur."""
        (low, low_exact), (high, high_exact) = (
            cut_low(self._pick(self._lows, "min")),
            cut_high(self._pick(self._highs, "max")),
        )
        return low, high, LO_EXACT * low_exact + HI_EXACT * high_exact

    def _pick(self, scalars: list[pa.Scalar], which: str) -> pa.Scalar:
        assert self.measured is not None
        if len(scalars) == 1:
            return scalars[0]
        arrow = to_arrow_type(self.measured)
        best = pc.min_max(orderable(pa.array(scalars, arrow)))[which]
        return best if best.type == arrow else best.cast(arrow)
