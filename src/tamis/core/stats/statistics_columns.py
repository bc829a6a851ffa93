"""The names of statistics columns in a manifest, and which types have bounds.

A name is ``<column id>|<kind>`` or, for bounds and value sets, ``<column id>|<type>|<kind>``: ``7|nulls``,
``7|long|lo``. Bounds carry the type under which they were collected, so that they are never read as another
one. Unknown kinds are ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import pyarrow as pa

from tamis.core.types import BINARY_COLLATION, NULL, VARIANT, Array, DataType, Map, String, Struct
from tamis.core.types.arrow import to_arrow_type
from tamis.core.types.logical import type_from_json
from tamis.errors import InvalidInput

BOUNDS = ("lo", "hi")
VALUES = "set"
"""The kind of a value set (see ``value_sets``)."""
UNRELIABLE_VALUES = "values"
"""The kind under which earlier writers stored value sets, some of them incomplete.

Only ``verify`` reads it.
"""
COUNTS = {"nulls": pa.int64(), "nans": pa.int64(), "count": pa.int64(), "exact": pa.uint8()}
"""The kinds without a type.

The bits of ``exact``: 0 the lower bound occurs, 1 the upper bound occurs, 2 bounds were dropped for lack of
space.
"""

PLACES, PLACED, LISTED = "places", "placed_", "listed"
"""The kinds of statistics of single positions and keys (see ``placed_statistics``).

They are the list of places, lists of bounds and counts, which have a prefix before the kinds of columns, and whether
all places are listed.
"""

LO_EXACT, HI_EXACT, NO_ROOM = 1, 2, 4

DROPPED = "statistics_dropped"
"""The number of a part's statistics that were dropped for lack of space."""
EXCESS = "statistics_excess_bytes"
"""The bytes of a part's statistics beyond their budget, which kept statistics can cause."""

Figure = tuple[str, pa.DataType, Any]
"""A statistics column: its name, type, and value for one piece."""


class Name(NamedTuple):
    """A parsed column name; ``type`` is None for counts."""

    id: int
    kind: str
    type: DataType | None


def has_bounds(data_type: DataType) -> bool:
    """Return whether the type has an order usable for bounds: not nested, not VARIANT, not collated."""
    if isinstance(data_type, String):
        return data_type.collation == BINARY_COLLATION
    return not isinstance(data_type, Struct | Array | Map) and data_type not in (VARIANT, NULL)


def bound_name(column_id: int, data_type: DataType, kind: str) -> str:
    return f"{column_id}|{data_type.to_json()}|{kind}"


def count_name(column_id: int, kind: str) -> str:
    return f"{column_id}|{kind}"


def parse_name(name: str) -> Name | None:
    """Parse a name made by ``bound_name`` or ``count_name``; None for any other, such as a fact of parts."""
    head, *rest = name.split("|")
    if not rest or not head.isdecimal() or not head.isascii():
        return None
    *middle, kind = rest
    if not middle:
        return Name(int(head), kind, None) if kind in COUNTS else None
    if len(middle) > 1 or kind not in (*BOUNDS, VALUES):
        return None
    try:
        data_type = type_from_json(middle[0])
    except InvalidInput:
        return None
    return Name(int(head), kind, data_type) if has_bounds(data_type) else None


def columns_of_ids(names: Iterable[str], ids: Collection[int]) -> list[str]:
    """Return the manifest's column names that belong to these column ids, in order."""
    return [
        name for name in names if (head := name.partition("|")[0]) != name and head.isdecimal() and int(head) in ids
    ]


def arrow_type(name: Name) -> pa.DataType:
    """Return the Arrow type of a column of this name; a column of another type is not trusted."""
    if name.type is None:
        return COUNTS[name.kind]
    return pa.list_(to_arrow_type(name.type)) if name.kind == VALUES else to_arrow_type(name.type)
