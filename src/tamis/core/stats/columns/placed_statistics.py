"""Statistics of single places in an array or map column: of each of the first positions, and under some keys.

A place is the text of a position from 0 on, or a key. The values at a place have counts and bounds as those of a
column have: ``count`` is in how many rows the place is, ``nulls`` in how many of these it is NULL. They are stored as
lists, one entry per place, in the order of ``<id>|places``; ``<id>`` is that of the element or value, or of a struct
field in it. ``<id>|listed`` says whether no row of the part has another place. So the number of columns does not
depend on the keys, and keys may differ from part to part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.stats.columns.map_keys import MapKeys, Places, has_text_keys
from tamis.core.stats.columns.tally import Tally
from tamis.core.stats.statistics_columns import (
    COUNTS,
    LISTED,
    PLACED,
    PLACES,
    Figure,
    bound_name,
    count_name,
    has_bounds,
)
from tamis.core.types import Array, DataType, Field, Map, Struct
from tamis.core.types.arrow import to_arrow_type

POSITIONS = 8
"""Positions of arrays that have statistics of their own."""
Sizes = np.ndarray[Any, np.dtype[np.int64]]


def has_places(data_type: DataType) -> bool:
    """Return whether single elements or values of the type can have statistics."""
    return isinstance(data_type, Array) or has_text_keys(data_type)


class PlacedStatistics:
    """The statistics so far of the places of one array or map column."""

    def __init__(self, data_type: DataType) -> None:
        assert isinstance(data_type, Array | Map)
        self._keys = MapKeys() if isinstance(data_type, Map) else None
        self._inner = _Leaf(data_type.value if isinstance(data_type, Map) else data_type.element)
        self._longer = False
        """Whether an array has more elements than positions have statistics."""

    def update(self, array: pa.Array, below: list[pa.Array]) -> None:
        """Add a batch; ``below`` are its elements, or its keys and values, without those of NULL rows."""
        offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        sizes = np.diff(offsets)
        if array.null_count:
            sizes = sizes[np.asarray(array.is_valid())]
        if self._keys is not None:
            places = self._keys.places(below[0], sizes)
        else:
            places = _of_positions(sizes)
            self._longer = self._longer or bool(len(sizes) and sizes.max() > POSITIONS)
        if places:
            self._inner.update(below[-1], {place: pa.array(at) for place, at in places.items()})

    def figures(self) -> Iterator[Figure]:
        """Yield the statistics columns; none if nothing is known of any place."""
        if self._keys is not None and self._keys.gave_up:
            return iter(())
        return self._inner.figures(self._keys.listed if self._keys is not None else not self._longer)


class _Leaf:
    """An element or value, or a field of structs in it, and its statistics by place."""

    def __init__(self, field: Field) -> None:
        self._id, self._type = field.id, field.type
        self._children = [_Leaf(child) for child in field.type.children] if isinstance(field.type, Struct) else []
        self._by_place: dict[str, Tally] = {}

    def update(self, values: pa.Array, places: dict[str, pa.Array]) -> None:
        measured = self._type if has_bounds(self._type) else None
        counted = values if measured is not None else _validity(values)
        for place, at in places.items():
            self._by_place.setdefault(place, Tally(measured)).update(counted.take(at))
        for child, inner in zip(self._children, values.flatten() if self._children else (), strict=True):
            child.update(inner, places)

    def figures(self, listed: bool) -> Iterator[Figure]:
        found = list(self._by_place.values())
        yield count_name(self._id, PLACES), pa.list_(pa.string()), pa.array(list(self._by_place), pa.string())
        yield count_name(self._id, LISTED), pa.bool_(), listed
        yield self._counts("count", [one.count for one in found])
        yield self._counts("nulls", [one.nulls for one in found])
        if has_bounds(self._type):
            arrow, bounds = to_arrow_type(self._type), [one.bounds() for one in found]
            for at, kind in enumerate(("lo", "hi")):
                name = bound_name(self._id, self._type, PLACED + kind)
                yield name, pa.list_(arrow), pa.array([each[at] for each in bounds], arrow)
        if found and found[0].floating:
            yield self._counts("nans", [one.nans for one in found])
        for child in self._children:
            yield from child.figures(listed)

    def _counts(self, kind: str, counts: list[int]) -> Figure:
        return count_name(self._id, PLACED + kind), pa.list_(COUNTS[kind]), pa.array(counts, COUNTS[kind])


def _validity(values: pa.Array) -> pa.BooleanArray:
    """Return an array that is NULL where ``values`` is, and cheap to take from."""
    null = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    return pa.array(np.ones(len(values), np.bool_), mask=null)


def _of_positions(sizes: Sizes) -> dict[str, Places]:
    """Return where the elements at each position are, among those of all rows."""
    starts = np.cumsum(sizes) - sizes
    found: dict[str, Places] = {}
    for position in range(POSITIONS):
        reached = sizes > position
        if not reached.all():
            starts, sizes = starts[reached], sizes[reached]
        if not len(starts):
            break
        found[str(position)] = starts + position
    return found
