"""The comparison of bounds; every rule that compares uses this module.

NaN is greater than any number, equal to itself, and outside the bounds, so each case is computed separately.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import Datum, Mask, Numbers, full_length, storage_dtype, stored_numbers
from tamis.core.expr.functions.logic.comparisons import compare_values
from tamis.core.pruning.value_spec import Spec, Truth, at_most, surely_below, surely_true

_MIRRORED = {"gt": "lt", "ge": "le"}


def compare_bounds(op: str, a: Spec, b: Spec) -> Truth:
    """Return the possible results of ``a op b`` (``eq, ne, lt, le, gt, ge``)."""
    if op in _MIRRORED:
        return compare_bounds(_MIRRORED[op], b, a)
    null, fail = a.null | b.null, a.fail | b.fail
    both = a.value & b.value
    if op in {"eq", "ne"}:
        same, other = _equal(a, b, both)
        return Truth(same, other, null, fail) if op == "eq" else Truth(other, same, null, fail)
    less, equal_or_more = ~at_most(b.hi, a.lo), ~surely_below(a.hi, b.lo)
    if op == "le":
        less, equal_or_more = ~surely_below(b.hi, a.lo), ~at_most(a.hi, b.lo)
    true = (both & less) | (a.value & b.nan)
    false = (both & equal_or_more) | (a.nan & b.value)
    true, false = (true | (a.nan & b.nan), false) if op == "le" else (true, false | (a.nan & b.nan))
    return Truth(true, false, null, fail)


def _equal(a: Spec, b: Spec, both: Mask) -> tuple[Mask, Mask]:
    """Return where the sides may be equal, and where they may differ."""
    overlap = ~(surely_below(a.hi, b.lo) | surely_below(b.hi, a.lo))
    one = (
        surely_true(compare_values("eq", a.lo, a.hi))
        & surely_true(compare_values("eq", b.lo, b.hi))
        & surely_true(compare_values("eq", a.lo, b.lo))
    )
    return (both & overlap) | (a.nan & b.nan), (both & ~one) | (a.nan & b.value) | (a.value & b.nan)


def null_safe(a: Spec, b: Spec) -> Truth:
    """Return the possible results of ``a <=> b``, which is never NULL."""
    plain = compare_bounds("eq", a, b)
    something_a, something_b = a.value | a.nan, b.value | b.nan
    return Truth(
        plain.true | (a.null & b.null),
        plain.false | (a.null & something_b) | (something_a & b.null),
        np.zeros((), bool),
        plain.fail,
    )


def list_membership(a: Spec, listed: Datum) -> Truth:
    """Return the possible results of ``a IN (listed constants)``.

    One search in the sorted list compares all values with every piece's bounds.
    """
    values = listed.drop_null()
    nan_listed = False
    if pa.types.is_floating(values.type):
        numbers = values.to_numpy(zero_copy_only=False)
        nan_listed = bool(np.isnan(numbers).any())
        values = pa.array(numbers[~np.isnan(numbers)], values.type)
    hit, surely = _search(a, ordered_values(values))
    true = (a.value & hit) | (a.nan & nan_listed)
    missed = (a.value & ~surely) | (a.nan & (not nan_listed))
    has_null = listed.null_count > 0
    nothing = np.zeros((), bool)
    return Truth(true, nothing if has_null else missed, a.null | (missed if has_null else nothing), a.fail)


def ordered_values(values: Datum) -> Datum:
    """Return the distinct values, sorted.

    Values already in order, such as the keys of a join, are not sorted again at every level of a scan.
    """
    if storage_dtype(values.type) is not None:
        numbers = stored_numbers(values)
        if (numbers[1:] > numbers[:-1]).all():
            return values
    return values.unique().sort()


def _search(a: Spec, among: Datum) -> tuple[Mask, Mask]:
    """Return where a listed value lies within the bounds, and where all values within them are listed."""
    count = len(among)
    if count == 0:
        return np.zeros((), bool), np.zeros((), bool)
    first, last = _rank(among, a.lo, "left", 0), _rank(among, a.hi, "right", count)
    hit = np.asarray(first < last)
    surely = surely_true(compare_values("eq", a.lo, a.hi)) & hit
    if hit.any() and storage_dtype(among.type) is not None and pa.types.is_integer(among.type):
        surely = surely | (
            hit
            & surely_true(compare_values("le", a.lo, a.hi))
            & (_steps(stored_numbers(a.lo), stored_numbers(a.hi)) < (last - first).astype(np.uint64))
        )
    return hit, surely


def _steps(lo: Numbers, hi: Numbers) -> Any:
    """Return the exact number of integers in (``lo``, ``hi``]; the unsigned difference wraps correctly."""
    return hi.astype(np.int64).view(np.uint64) - lo.astype(np.int64).view(np.uint64)


def _rank(ordered: Datum, bound: Datum, side: str, otherwise: int) -> Numbers:
    """Count the listed values before the bound (``left``), or before or at it (``right``).

    Returns ``otherwise`` where the bound is unknown.
    """
    scalar = isinstance(bound, pa.Scalar)
    bounds = full_length(bound, 1)
    missing = bounds.is_null().to_numpy(zero_copy_only=False)
    if storage_dtype(ordered.type) is not None:
        rank = np.searchsorted(stored_numbers(ordered), stored_numbers(bounds), side=side)  # type: ignore[call-overload]
    elif pa.types.is_decimal(ordered.type) and ordered.type.precision <= 18:
        rank = np.searchsorted(_unscaled(ordered), _unscaled(bounds), side=side)  # type: ignore[call-overload]
    elif len(ordered) <= 32 or pa.types.is_decimal(ordered.type) or pa.types.is_boolean(ordered.type):
        rank = _counted(ordered, bounds, side)
    else:
        rank = np.asarray(pc.search_sorted(ordered, bounds, side=side).fill_null(0).to_numpy(zero_copy_only=False))
    out = np.where(missing, otherwise, rank)
    return out.reshape(()) if scalar else out


def _counted(ordered: Datum, bounds: Datum, side: str) -> Numbers:
    """Rank by comparing with each listed value; lists of such types are short."""
    out = np.zeros(len(bounds), np.int64)
    for i in range(len(ordered)):
        out += surely_true(compare_values("lt" if side == "left" else "le", ordered[i], bounds)).astype(np.int64)
    return out


def _unscaled(x: Datum) -> Numbers:
    """View decimals of at most 18 digits as their unscaled 64-bit integers."""
    words = np.frombuffer(x.buffers()[1], np.int64).reshape(-1, 2)
    return words[x.offset : x.offset + len(x), 0]
