"""What the interpreter asks of statistics, wherever they are kept (segments, parts, blocks): one small protocol.

Everything is a column over N pieces, and NULL in it means unknown. Meaning is here, storage is elsewhere: the same rules serve
segments, parts and row groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from tamis.types import DataType


@dataclass(frozen=True, slots=True)
class ColumnEvidence:
    """Statistics of one column (or nested field, or list element) over N pieces of data. Each array has length N; NULL means unknown.

    ``lo`` and ``hi`` are inclusive bounds, in the Arrow type of ``type``, of the values that are neither NULL nor NaN; they need not occur
    (``lo_exact``/``hi_exact`` say where they do). ``nulls`` and ``nans`` count, out of ``count`` values. For a nested field NULL is
    counted where the field *reads* as NULL, its parents included. Emptiness is never read from bounds: a piece has only NULLs iff ``nulls == count``.
    """

    type: DataType
    count: pa.Int64Array
    lo: pa.Array
    hi: pa.Array
    lo_exact: pa.BooleanArray
    hi_exact: pa.BooleanArray
    nulls: pa.Int64Array
    nans: pa.Int64Array


class Evidence(Protocol):
    """Statistics of N pieces. Must never raise because of what is stored: what cannot be decoded is unknown."""

    def __len__(self) -> int:
        """The number of pieces, N."""
        ...

    def rows(self) -> pa.Int64Array:
        """Physical rows per piece, deleted ones included."""
        ...

    def column(self, ids: tuple[int, ...]) -> ColumnEvidence | None:
        """What is known about the column with this id path, or None if nothing is."""
        ...
