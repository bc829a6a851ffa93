"""What the interpreter asks of statistics, wherever they are kept (segments, parts, blocks): one small protocol.

Everything is a column over N pieces, and NULL in it means unknown. Meaning is here, storage is elsewhere: the same rules serve
segments, parts and row groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from tamis.core.expr.arrow_values import Mask
from tamis.core.types import DataType


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


@dataclass(frozen=True, slots=True)
class DocumentEvidence:
    """What is known of one path in the JSON documents of a column, over N pieces: which kinds of values may be there, side by side.

    Masks; bounds are Arrow arrays, NULL unknown. ``long`` are integers of 64 bits, ``real`` all other numbers, whose bounds are the nearest doubles: ``real_exact`` says where the
    shortest decimals of both are the very bounds. Where ``known`` does not hold, anything may be there.
    """

    known: Mask
    trimmed: Mask
    """Nothing is known because there was no room."""
    missing: Mask
    """Nothing may be there: no such key, or a NULL instead of a document."""
    null: Mask
    false: Mask
    true: Mask
    long: Mask
    long_lo: pa.Array
    long_hi: pa.Array
    real: Mask
    real_lo: pa.Array
    real_hi: pa.Array
    real_exact: Mask
    string: Mask
    string_lo: pa.Array
    string_hi: pa.Array
    list: Mask
    map: Mask
    other: Mask
    """Scalars that JSON has none of."""
    invalid: Mask
    """Instead of a document, text that is none (and in which no step leads anywhere)."""


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


class NestedEvidence(Evidence, Protocol):
    """Evidence that also knows what lies in arrays and maps. What has none of this says nothing about them."""

    def elements(self, ids: tuple[int, ...]) -> ColumnEvidence | None:
        """What is known about the elements of an array (keys, values of a map), or a struct field below them; ``count`` counts elements."""
        ...

    def sizes(self, ids: tuple[int, ...]) -> ColumnEvidence | None:
        """What is known about the sizes of an array or map, as integers."""
        ...
