"""Rules of bit operations, from the bits that all integers between two bounds share.

Invariant: integers between two bounds of one sign share the leading bits that the bounds share; below the
first bit in which the bounds differ, nothing is known. A range that crosses zero shares no bit.
Integers are sign-extended to 64 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.expr.arrow_values import Datum, Numbers, build_array, null_mask, stored_numbers
from tamis.core.expr.functions.cast.cast_kernels import LIMITS
from tamis.core.expr.functions.numeric.bits import count_of
from tamis.core.expr.tree import Call, Expr, Literal
from tamis.core.pruning.value_spec import Abstract, Spec, piece_intersection, piece_union, spec_of
from tamis.core.types import DataType
from tamis.core.types.arrow import to_arrow_type

_SIGN = np.int64(-(2**63))


@dataclass(frozen=True, slots=True)
class _Bits:
    """The bits that are set in all integers of a piece, those that may be set in one, and its bounds."""

    set: Numbers
    possible: Numbers
    lo: Numbers
    hi: Numbers


def transfer_bits(run: Any, call: Call) -> Abstract:
    """Bound ``&``, ``|``, ``^``, BIT_COUNT and BIT_GET."""
    args = [spec_of(run(a)) for a in call.args]
    bits = [_bits_of(a) for a in args]
    lo, hi = _results(call, bits)
    low, high = LIMITS[call.type]  # type: ignore[index]
    return Spec(
        call.type,
        _bound(np.clip(lo, low, high), call.type),
        _bound(np.clip(hi, low, high), call.type),
        piece_intersection([a.value for a in args]),
        piece_union([a.null for a in args]),
        piece_union([a.fail for a in args]),
        np.zeros((), bool),
    )


def _results(call: Call, bits: list[_Bits]) -> tuple[Numbers, Numbers]:
    a = bits[0]
    if call.function == "bit_count":
        return count_of(a.set), count_of(a.possible)
    if call.function == "bit_get":
        at = np.int64(_constant(call.args[1]))
        return np.right_shift(a.set, at) & 1, np.right_shift(a.possible, at) & 1
    b = bits[1]
    if call.function == "bits_xor":
        open_ = (a.set ^ a.possible) | (b.set ^ b.possible)
        set_ = (a.set ^ b.set) & ~open_
        return _range(set_, set_ | open_)
    if call.function == "bits_and":
        lo, hi = _range(a.set & b.set, a.possible & b.possible)
        for one in bits:  # an integer above zero loses bits, and never its sign
            hi = np.where(one.lo >= 0, np.minimum(hi, one.hi), hi)
        return lo, hi
    lo, hi = _range(a.set | b.set, a.possible | b.possible)
    for one, other in ((a, b), (b, a)):  # it gains bits
        lo = np.where(other.lo >= 0, np.maximum(lo, one.lo), lo)
    return lo, hi


def _range(set_: Numbers, possible: Numbers) -> tuple[Numbers, Numbers]:
    """Return the least and the greatest integer with these bits; the sign's bit counts below zero."""
    either = ((set_ ^ possible) & _SIGN) != 0
    return np.where(either, set_ | _SIGN, set_), np.where(either, possible & ~_SIGN, possible)


def _bits_of(a: Spec) -> _Bits:
    least, greatest = LIMITS[a.type]  # type: ignore[index]
    lo, hi = _filled(a.lo, least), _filled(a.hi, greatest)
    open_ = _smeared((lo ^ hi).view(np.uint64)).view(np.int64)
    return _Bits(lo & ~open_, lo | open_, lo, hi)


def _smeared(bits: Numbers) -> Numbers:
    """Return the integers with every bit set below the highest one that is."""
    for step in (1, 2, 4, 8, 16, 32):
        bits = bits | (bits >> np.uint64(step))
    return bits


def _filled(bound: Datum, otherwise: int) -> Numbers:
    """Return the bound as 64-bit integers; an unknown one is the type's limit."""
    values, null = stored_numbers(bound).astype(np.int64), null_mask(bound)
    return np.asarray(values if null is None else np.where(null, np.int64(otherwise), values))


def _bound(values: Numbers, data_type: DataType) -> Datum:
    arrow = to_arrow_type(data_type)
    if not values.ndim:
        return pa.scalar(int(values), arrow)
    return build_array(values.astype(arrow.to_pandas_dtype()), None, arrow)


def _constant(arg: Expr) -> int:
    assert isinstance(arg, Literal)
    return int(arg.value)
