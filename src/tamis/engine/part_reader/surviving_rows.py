"""The rows of a piece that pass the filter: their number, and what is left of columns and positions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.expr.short_circuit import packed_mask
from tamis.cost_model import COSTS
from tamis.storage.files import Piece

Mask = np.ndarray[Any, np.dtype[np.bool_]]
Ordinals = np.ndarray[Any, np.dtype[np.int64]]


class Survivors:
    """The rows that ``keep`` marks."""

    def __init__(self, keep: Mask) -> None:
        self._keep = keep
        self.count = int(np.count_nonzero(keep))

    @property
    def _all(self) -> bool:
        return self.count == len(self._keep)

    @cached_property
    def _indices(self) -> Ordinals:
        return np.flatnonzero(self._keep)

    def positions(self, piece: Piece) -> Ordinals:
        """Return their positions within the part; ``piece`` holds the rows that were filtered."""
        return piece.positions if self._all else piece.positions_of(self._indices)

    def filter_columns(self, arrays: Mapping[int, pa.Array]) -> dict[int, pa.Array]:
        """Return their values, by index or by mask, whichever is cheaper."""
        if self._all or not arrays:
            return dict(arrays)
        if self.count < COSTS.taken_share * len(self._keep):
            indices = pa.array(self._indices)
            return {i: a.take(indices) for i, a in arrays.items()}
        mask = packed_mask(self._keep)
        return {i: a.filter(mask) for i, a in arrays.items()}
