"""Type widening, an extension of the migration rules (``widen=True``, ``ALTER COLUMN … TYPE``).

Invariant: every value of the old type is exactly a value of the new one. Only DATE, which has days up to the year
5,881,580, goes beyond TIMESTAMP_NTZ: whoever widens a column tests its dates (``tamis.core.expr.unfit_dates``).
"""

from __future__ import annotations

from collections.abc import Hashable

from tamis.core.types import DATE, DOUBLE, FLOAT, INTEGRAL, TIMESTAMP_NTZ, DataType, Decimal


def type_widens(old: Hashable, new: Hashable) -> bool:
    """Return whether a column of type ``old`` can become ``new`` by metadata alone.

    Takes logical or Arrow types.
    """
    before, after = _logical(old), _logical(new)
    if before is None or after is None:
        return False
    if before in INTEGRAL and after in INTEGRAL:
        return INTEGRAL.index(before) <= INTEGRAL.index(after)
    if isinstance(before, Decimal) and isinstance(after, Decimal):
        return after.scale >= before.scale and after.precision - after.scale >= before.precision - before.scale
    return (before, after) in {(FLOAT, DOUBLE), (DATE, TIMESTAMP_NTZ)} or before == after


def _logical(value: Hashable) -> DataType | None:
    if isinstance(value, DataType):
        return value
    from tamis.core.types.arrow import from_arrow_type, to_arrow_type
    from tamis.errors import InvalidInput

    try:
        logical = from_arrow_type(value)
    except InvalidInput:
        return None
    return logical if to_arrow_type(logical) == value else None
