"""The values of a column of which a part has few: a status, a country, a level.

Law: every value of the part that is neither NULL nor NaN is in the set; more may be. What has too many values, or too long ones, has no set.
Kept as ``<id>|<type>|values``, a list; NULL is unknown. Emptiness is never read from a set.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.sizes import SIZES
from tamis.stats.bounds import LIMIT
from tamis.types import BINARY_COLLATION, DATE, INTEGRAL, TIMESTAMP, TIMESTAMP_NTZ, DataType, Decimal, String

MOST = SIZES.set_values
"""Values of a set."""
_SAMPLE = SIZES.set_sample_rows
"""Rows of a batch by which it is told that a column has too many."""


def listable(data_type: DataType) -> bool:
    """Whether values of this type are told apart by what they are equal to (both zeros are equal), and kept as they are."""
    if isinstance(data_type, String):
        return data_type.collation == BINARY_COLLATION
    return data_type in (*INTEGRAL, DATE, TIMESTAMP, TIMESTAMP_NTZ) or isinstance(data_type, Decimal)


class Values:
    """The distinct values of one column so far; None once there are too many."""

    def __init__(self) -> None:
        self._found: pa.Array | None = None
        self._lost = False

    def update(self, array: pa.Array) -> None:
        if self._lost or not len(array):
            return
        step = -(-len(array) // _SAMPLE)
        if step > 1 and len(pc.unique(array.take(pa.array(np.arange(0, len(array), step))))) > MOST + 1:
            self._lost = True
            return
        self._found = _merged([array] if self._found is None else [self._found, array])
        self._lost = self._found is None

    def finish(self) -> pa.Array | None:
        """In order; None where there are too many, or none."""
        if self._found is None or not len(self._found):
            return None
        return self._found.take(pc.array_sort_indices(self._found))


def _merged(arrays: list[pa.Array]) -> pa.Array | None:
    found = pc.unique(arrays[0] if len(arrays) == 1 else pa.concat_arrays([arrays[0], pc.unique(arrays[1])])).drop_null()
    if len(found) > MOST:
        return None
    if pa.types.is_string(found.type):
        try:
            found.validate(full=True)
        except pa.ArrowException:  # no UTF-8, which Spark allows
            return None
        if len(found) and pc.max(pc.utf8_length(found)).as_py() > LIMIT:
            return None
    return found


def union(sets: pa.ListArray, empty: pa.BooleanArray) -> pa.Array | None:
    """All values of several sets; None where one is not known that may hold values, or there are too many."""
    if pc.any(pc.and_(sets.is_null(), pc.invert(pc.fill_null(empty, False)))).as_py():
        return None
    found = pc.unique(sets.flatten())
    return found.take(pc.array_sort_indices(found)) if 0 < len(found) <= MOST else None
