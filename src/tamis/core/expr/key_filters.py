"""Filters by the keys of a join or merge: which types and how many values can filter the other side.

A key filter keeps every row that equals one of the keys under SQL's ``=``. Callers therefore use it only for rows
that have no effect unless they match. ``table.key_filters`` reads the keys that a user passes to a scan; those mean
IN and have no such restrictions.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.calls import make_call
from tamis.core.expr.tree import Expr, Literals
from tamis.core.types import BINARY_COLLATION, DOUBLE, FLOAT, NULL, VARIANT, DataType, String
from tamis.core.types.arrow import to_arrow_type
from tamis.sizes import SIZES

MOST_KEYS = SIZES.key_values
"""Maximum number of distinct keys that filter a scan. More are a table rather than a set of keys."""
MOST_FETCHED_KEYS = SIZES.fetched_key_values
"""Maximum number of distinct keys that are fetched from Spark's executors for this purpose."""


def equal_as_arrow(kind: DataType) -> bool:
    """Whether two values are equal in SQL if and only if their Arrow values are.

    False for floats (SQL's −0.0 equals 0.0 and NaN equals itself), texts under a collation, nested types and
    VARIANT.
    """
    if isinstance(kind, String):
        return kind.collation == BINARY_COLLATION
    return kind not in {FLOAT, DOUBLE, VARIANT, NULL} and not kind.children


def key_filter(target: Expr, keys: pa.Array | pa.ChunkedArray, *, distinct: bool = False) -> Expr | None:
    """Return ``target IN keys`` without NULL keys, which equal nothing; or None if keys cannot filter ``target``.

    That is so if its type is not ``equal_as_arrow`` or not that of the keys, or if there are more than
    ``MOST_KEYS`` distinct ones. ``distinct``: the keys are distinct and not NULL.
    """
    wanted = to_arrow_type(target.type)
    if pa.types.is_timestamp(keys.type) and pa.types.is_timestamp(wanted) and bool(keys.type.tz) == bool(wanted.tz):
        keys = keys.cast(wanted)  # instants are equal: only the zone's name differs
    if keys.type != wanted or not equal_as_arrow(target.type):
        return None
    if not distinct:
        keys = pc.unique(keys).drop_null()
    return None if len(keys) > MOST_KEYS else make_call("in", target, Literals(target.type, keys))
