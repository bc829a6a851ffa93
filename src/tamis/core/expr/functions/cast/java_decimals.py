"""Casts of decimals to small integers and to text as Spark's ``Decimal`` does them.

It holds a value in one of two forms. In the mode ANSI, and for ``try_cast``, a BigDecimal goes to a small integer
through the nearest double: 0.999999999999999999 becomes 1. A long is cut. Stored decimals of more than 18 digits are
BigDecimals; of shorter ones, and of results, the form depends on the plan and the reader. Doubles tell all decimals of
15 digits apart, so that both forms agree about those.
"""

from __future__ import annotations

import decimal
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import Datum, Mask, Numbers, full_length, stored_numbers, wide_decimal
from tamis.core.expr.coerce import is_text
from tamis.core.expr.tree import Call, Column, Element, Mode
from tamis.core.types import BYTE, DOUBLE, INTEGER, SHORT, DataType, Decimal
from tamis.core.types.arrow import to_arrow_type

_SMALL: dict[DataType, int] = {BYTE: 8, SHORT: 16, INTEGER: 32}
"""The targets that Spark reaches through a double, with their bits."""
_LONG_DIGITS, _DOUBLE_DIGITS = 18, 15
_PLAIN_SCALE = 6
"""The longest scale of which Java prints every decimal without an exponent."""


@dataclass(frozen=True, slots=True)
class SmallIntegers:
    """Decimals as integers; ``unfit`` ones do not fit, and have the value 0."""

    values: Numbers
    unfit: Mask
    unsure: Mask
    """Where the two forms differ, and the type and the expression do not tell which one Spark has."""


def prints_exponents(source: DataType, target: DataType) -> bool:
    """Return whether the text of a decimal depends on the mode: outside of ANSI, small ones have an exponent."""
    return is_text(target) and isinstance(source, Decimal) and source.scale > _PLAIN_SCALE


def goes_through_double(source: DataType, target: DataType, mode: Mode) -> bool:
    """Return whether Spark may cast decimals of the type ``source`` through doubles that change the result."""
    return (
        mode is not Mode.LEGACY
        and target in _SMALL
        and isinstance(source, Decimal)
        and source.precision > _DOUBLE_DIGITS
    )


def small_integers(call: Call, x: Datum) -> SmallIntegers:
    """Cast decimals to the small integers ``call.type``, for ``goes_through_double``."""
    source = call.args[0].type
    assert isinstance(source, Decimal)
    array = full_length(x, 1)
    cut, near = _cut(array, call.type), _by_double(array, call.type)
    long = source.precision > _LONG_DIGITS
    certain = long and isinstance(call.args[0], Column | Element)
    unsure = np.zeros(len(array), bool) if certain else _differ(cut, near)
    return SmallIntegers(*(near if long else cut), unsure)


def _differ(cut: _Integers, near: _Integers) -> Mask:
    found: Mask = (cut[0] != near[0]) | (cut[1] != near[1])
    return found


def is_alike(call: Call, bound: Datum) -> Mask:
    """Return for which bounds all modes and forms give the same integer, or text: pruning computes with ANSI's."""
    array = full_length(bound, 1)
    if prints_exponents(call.args[0].type, call.type):
        plain = call.mode is not Mode.LEGACY
        found = np.array([plain or v is None or str(v) == format(v, "f") for v in array.to_pylist()], bool)
    elif call.mode is Mode.LEGACY:
        found = ~_differ(_cut(array, call.type), _by_double(array, call.type))
    else:
        found = ~small_integers(call, bound).unsure
    return np.asarray(found[0]) if isinstance(bound, pa.Scalar) else found


_Integers = tuple[Numbers, Mask]
"""Integers, and which of them do not fit; NULLs fit."""


def _cut(x: pa.Array, target: DataType) -> _Integers:
    whole = pc.trunc(wide_decimal(x)).cast(pa.decimal256(76, 0))
    least, greatest = (pa.scalar(decimal.Decimal(v), whole.type) for v in _limits(target))
    zero = pa.scalar(decimal.Decimal(0), whole.type)
    whole = pc.fill_null(whole, zero)
    outside = pc.or_(pc.less(whole, least), pc.greater(whole, greatest))
    inside = pc.if_else(outside, zero, whole).cast(pa.decimal128(20, 0)).cast(pa.int64())
    return stored_numbers(inside), np.asarray(outside.to_numpy(zero_copy_only=False))


def _by_double(x: pa.Array, target: DataType) -> _Integers:
    least, greatest = _limits(target)
    doubles = pc.fill_null(nearest_float(x, DOUBLE), 0.0).to_numpy(zero_copy_only=False)
    outside = ~((np.floor(doubles) <= greatest) & (np.ceil(doubles) >= least))
    return np.where(outside, 0.0, np.trunc(doubles)).astype(np.int64), outside


def nearest_float(x: Datum, target: DataType) -> Datum:
    """Return the floats nearest to decimals, rounded once.

    By way of their text, because a FLOAT rounded from the nearest DOUBLE may be its neighbour.
    """
    return x.cast(pa.string()).cast(to_arrow_type(target))


def _limits(target: DataType) -> tuple[int, int]:
    half = 1 << (_SMALL[target] - 1)
    return -half, half - 1
