"""Value sets: the distinct values of a column that has few of them in a part, such as a country.

A set holds every value of the part that is neither NULL nor NaN, and may hold more. A column with too many
values, or with values that are too long, has no set. Sets are stored as ``<id>|<type>|set``, a list; NULL
means unknown. An empty set is never stored.

Tables of earlier writers have sets named ``<id>|<type>|values``. Some of those are incomplete, because the
collector kept the sets of the batches before the one at which it gave up. They are therefore never read, and
``verify`` reports them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.stats.collector_state import GAVE_UP, GaveUp
from tamis.core.stats.columns.bounds import LIMIT
from tamis.core.types import BINARY_COLLATION, DATE, INTEGRAL, TIMESTAMP, TIMESTAMP_NTZ, DataType, Decimal, String
from tamis.sizes import SIZES

MOST = SIZES.set_values
"""Largest number of values in a set."""
_FEW = MOST + 2
"""Rows that hold too many values if no two are equal: one of them may be NULL."""
_SAMPLE = SIZES.set_sample_rows
"""Rows of a batch that are sampled to detect early that a column has too many values."""


def is_listable(data_type: DataType) -> bool:
    """Whether equal values of this type have one stored form, so that sets can be compared.

    Floating-point types are excluded: both zeros are equal.
    """
    if isinstance(data_type, String):
        return data_type.collation == BINARY_COLLATION
    return data_type in (*INTEGRAL, DATE, TIMESTAMP, TIMESTAMP_NTZ) or isinstance(data_type, Decimal)


class ValueSetCollector:
    """Collects the distinct values of one column over the batches of a part."""

    def __init__(self) -> None:
        self._state: pa.Array | GaveUp | None = None
        """The values so far, ``GAVE_UP``, or None before the first batch."""

    def update(self, array: pa.Array) -> pa.Array:
        """Add the values of one batch; return its distinct values, or ``array`` where they were not determined."""
        if isinstance(self._state, GaveUp) or not len(array):
            return array
        if _has_too_many(array):
            self._state = GAVE_UP
            return array
        found = pc.unique(array).drop_null()
        self._state = _listed(found if self._state is None else pc.unique(pa.concat_arrays([self._state, found])))
        return found

    def finish(self) -> pa.Array | None:
        """Return the sorted values, or None if the collector gave up or saw no value."""
        if self._state is None or isinstance(self._state, GaveUp) or not len(self._state):
            return None
        return self._state.take(pc.array_sort_indices(self._state))


def _has_too_many(array: pa.Array) -> bool:
    """Return whether a few of the values show that there are too many for a set."""
    if len(array) > _FEW and len(pc.unique(array.slice(0, _FEW))) == _FEW:
        return True
    step = -(-len(array) // _SAMPLE)
    return step > 1 and len(pc.unique(array.take(pa.array(np.arange(0, len(array), step))))) > MOST + 1


def _listed(found: pa.Array) -> pa.Array | GaveUp:
    """Return distinct values as a set, or ``GAVE_UP`` if they are too many, too long or not text."""
    if len(found) > MOST:
        return GAVE_UP
    if pa.types.is_string(found.type):
        try:
            found.validate(full=True)
        except pa.ArrowException:  # Spark allows strings that are not UTF-8
            return GAVE_UP
        if len(found) and pc.max(pc.utf8_length(found)).as_py() > LIMIT:
            return GAVE_UP
    return found


def union(sets: pa.ListArray, empty: pa.BooleanArray) -> pa.Array | None:
    """Return the union of several sets, or None if it is unknown or too large.

    It is unknown if a set that may hold values is unknown.
    """
    if pc.any(pc.and_(sets.is_null(), pc.invert(pc.fill_null(empty, False)))).as_py():
        return None
    found = pc.unique(sets.flatten())
    return found.take(pc.array_sort_indices(found)) if 0 < len(found) <= MOST else None
