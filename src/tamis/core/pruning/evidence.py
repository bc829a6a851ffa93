"""The statistics protocol of the interpreter, independent of where statistics are stored.

Every value is a column over N pieces, in which NULL means unknown. The same rules serve segments, parts and
row groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from tamis.core.expr.arrow_values import Mask, Numbers
from tamis.core.expr.generated_columns import GeneratedColumn
from tamis.core.types import DataType


@dataclass(frozen=True, slots=True)
class ColumnEvidence:
    """Statistics of one column (or nested field, or list element) over N pieces of data.

    Each array has length N; NULL means unknown. ``lo`` and ``hi`` are inclusive bounds, in the Arrow type of
    ``type``, of the values that are neither NULL nor NaN. They need not occur (``lo_exact``/``hi_exact`` say
    where they do). ``nulls`` and ``nans`` are counts out of ``count`` values. A nested field counts as NULL
    where it *reads* as NULL, including because of a NULL parent. Bounds never imply emptiness: a piece has
    only NULLs iff ``nulls == count``.
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
    """The kinds of values that may occur at one path in a column's JSON documents, over N pieces.

    All fields are masks, except bounds, which are Arrow arrays where NULL is unknown. ``long`` are 64-bit
    integers. ``real`` are all other numbers, whose bounds are the nearest doubles; ``real_exact`` marks where
    the shortest decimals of both are the exact bounds. Where ``known`` is false, any value may occur.
    """

    known: Mask
    trimmed: Mask
    """Statistics were dropped for lack of space."""
    missing: Mask
    """The value may be missing: no such key, or NULL instead of a document."""
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
    """Scalars that JSON lacks."""
    invalid: Mask
    """Invalid JSON text instead of a document, in which no step finds anything."""
    time_form: Numbers | int = 0
    """The form of all texts, or of all scalars that JSON lacks, as dates or times (``iso_times``); 0 if unknown."""
    time_lo: pa.Array | None = None
    time_hi: pa.Array | None = None
    """Bounds of these times in microseconds."""


class Evidence(Protocol):
    """Statistics of N pieces.

    Stored values must never cause an exception: what cannot be decoded is unknown.
    """

    def __len__(self) -> int:
        """The number of pieces, N."""
        ...

    def rows(self) -> pa.Int64Array:
        """Physical rows per piece, including deleted ones."""
        ...

    def column(self, ids: tuple[int, ...]) -> ColumnEvidence | None:
        """Return the statistics of the column with this id path, or None."""
        ...


class NestedEvidence(Evidence, Protocol):
    """Evidence with statistics of the contents of arrays and maps; without it they are unknown."""

    def elements(self, ids: tuple[int, ...]) -> ColumnEvidence | None:
        """Return the statistics of an array's elements (a map's keys, values), or of a struct field in them.

        ``count`` is the number of elements.
        """
        ...

    def place(self, ids: tuple[int, ...], place: str) -> ColumnEvidence | None:
        """Return the statistics of an array's elements at one position, or of a map's values under one key.

        ``count`` is the number of elements there; of a map, the number of maps, where a missing key is a NULL. It is
        NULL where nothing is known of the place.
        """
        ...

    def sizes(self, ids: tuple[int, ...]) -> ColumnEvidence | None:
        """Return the statistics of the sizes of an array or map, as integers."""
        ...


class DerivedEvidence(Evidence, Protocol):
    """Evidence that knows generated columns; without it, nothing follows from their expressions."""

    def generated(self) -> Sequence[tuple[GeneratedColumn, Mask]]:
        """Return the generated columns, each with the pieces in all of whose rows its expression holds."""
        ...
