"""The rule for monotone functions: maps bounds through the function's kernel, over whole columns.

A function's claims (``Claim``) say which corner of the arguments' box gives which end of the result. An end
that is unknown, fails, is NULL or is NaN gives no bound on that side. A function that can fail between two
values that do not (``Partial.ANYWHERE``) may fail on every range of more than one value. Results without a
claim are computed exactly where all arguments are single values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr import registry
from tamis.core.expr.arrow_values import Datum, Evaluated, Mask, null_mask, stored_numbers
from tamis.core.expr.evaluate import apply_function
from tamis.core.expr.functions.cast.cast_kernels import LIMITS
from tamis.core.expr.registry import Claim, Function, NaN, Partial
from tamis.core.expr.tree import Call, Mode
from tamis.core.pruning.value_spec import (
    NO,
    Spec,
    choose_where,
    extreme_bound,
    no_bound,
    one_value,
    piece_intersection,
    piece_union,
    surely_true,
)
from tamis.core.types import BOOLEAN, DOUBLE, FLOAT, DataType
from tamis.core.types.arrow import to_arrow_type

_FLOATS = (FLOAT, DOUBLE)


@dataclass(frozen=True, slots=True)
class _Corner:
    """A function's value at one corner of each piece's box; NULL where unknown.

    The masks give the reasons.
    """

    value: Datum
    missing: Mask
    nan: Mask


def monotone_bounds(call: Call, args: list[Spec]) -> Spec:
    """Bound ``call`` by its claims."""
    entry = registry.function_entry(call.function)
    claims = entry.claims(call) if entry.claims else (Claim.FIXED,) * len(args)
    singles = [one_value(a) for a in args]
    exact = piece_intersection(singles)
    holds = piece_intersection([s for s, c in zip(singles, claims, strict=True) if c is Claim.FIXED])
    ends = [_ends(a) for a in args]
    if entry.guard is not None:
        holds = holds & (entry.guard(call, ends) | exact)
    if entry.reliable is not None:
        holds = holds & entry.reliable(call, ends)
    if not holds.any():
        return _unbounded(entry, call, args, exact)
    lows, highs = _corners(call, claims, ends)
    lo = choose_where(holds, extreme_bound([c.value for c in lows], True), no_bound(call.type))
    hi = choose_where(holds, extreme_bound([c.value for c in highs], False), no_bound(call.type))
    corners = [*lows, *highs]
    missing = ~holds | piece_union([c.missing for c in corners])
    strange = ~holds | piece_union([c.nan for c in corners])
    return _finished(entry, call, args, exact, lo, hi, missing, strange)


def _finished(
    entry: Function, call: Call, args: list[Spec], exact: Mask, lo: Datum, hi: Datum, missing: Mask, strange: Mask
) -> Spec:
    """Complete the bounds with the possible NULL, NaN, failure, and other values of legacy mode."""
    any_ = piece_intersection([a.value | a.nan for a in args])
    null, fail = piece_union([a.null for a in args]), piece_union([a.fail for a in args])
    nan_in = piece_union([a.nan for a in args])
    policy = entry.nan(call)
    partial = entry.partial(call)
    bad = NO if partial is Partial.NEVER else any_ & (missing if partial is Partial.OUTSIDE else missing | ~exact)
    if policy is NaN.ANYTHING and nan_in.any():
        lo, hi = choose_where(nan_in, no_bound(call.type), lo), choose_where(nan_in, no_bound(call.type), hi)
        bad = bad if partial is Partial.NEVER else bad | (any_ & nan_in)
    null = null | bad
    if call.mode is Mode.ANSI or entry.raises(call):
        fail = fail | bad
    if call.mode is Mode.LEGACY and bad.any():
        lo, hi = choose_where(bad, no_bound(call.type), lo), choose_where(bad, no_bound(call.type), hi)
    lo, hi = _limited(entry, call, lo, hi)
    value = any_ if policy is NaN.ANYTHING else piece_intersection([a.value for a in args])
    return Spec(call.type, lo, hi, value, null, fail, _nan(call, args, policy, any_, nan_in, strange))


def _nan(call: Call, args: list[Spec], policy: NaN, any_: Mask, nan_in: Mask, strange: Mask) -> Mask:
    """Return where the result may be NaN."""
    if call.type not in _FLOATS:
        return NO
    if policy is NaN.KEPT:
        return any_ & nan_in
    if policy is NaN.SAME:
        return any_ & (nan_in | strange | ~piece_intersection([_finite(a) for a in args]))
    return any_ & (nan_in | strange)


def _finite(a: Spec) -> Mask:
    """Return where both bounds are finite numbers."""
    if a.type not in _FLOATS:
        return np.ones((), bool)
    return surely_true(pc.is_finite(a.lo)) & surely_true(pc.is_finite(a.hi))


def _unbounded(entry: Function, call: Call, args: list[Spec], exact: Mask) -> Spec:
    nothing = no_bound(call.type)
    yes = np.ones((), bool)
    return _finished(entry, call, args, exact, nothing, nothing, yes, yes)


def _ends(a: Spec) -> tuple[Datum, Datum]:
    """Return the bounds, with unknown ones replaced by the type's limits."""
    limits = LIMITS.get(a.type)  # type: ignore[call-overload]
    if limits is None:
        return a.lo, a.hi
    arrow = to_arrow_type(a.type)
    return tuple(_filled(b, pa.scalar(v, arrow)) for b, v in zip((a.lo, a.hi), limits, strict=True))


def _filled(bound: Datum, value: Datum) -> Datum:
    return bound if null_mask(bound) is None else pc.fill_null(bound, value)


def _corners(
    call: Call, claims: tuple[Claim, ...], ends: list[tuple[Datum, Datum]]
) -> tuple[list[_Corner], list[_Corner]]:
    """Return the corners that bound the result from below and from above."""
    low = [{Claim.UP: (0,), Claim.DOWN: (1,), Claim.FIXED: (0,), Claim.EITHER: (0, 1)}[c] for c in claims]
    high = [{Claim.UP: (1,), Claim.DOWN: (0,), Claim.FIXED: (0,), Claim.EITHER: (0, 1)}[c] for c in claims]
    probe = replace(call, mode=Mode.ANSI)
    seen: dict[tuple[int, ...], _Corner] = {}
    for choice in (*product(*low), *product(*high)):
        if choice not in seen:
            seen[choice] = _corner(probe, [end[i] for end, i in zip(ends, choice, strict=True)])
    return [seen[c] for c in product(*low)], [seen[c] for c in product(*high)]


def _corner(call: Call, at: list[Datum]) -> _Corner:
    out = apply_function(call, [Evaluated(a) for a in at])
    missing = null_mask(out.values)
    missing = NO if missing is None else missing
    if out.failed is not None:
        missing = missing | out.failed
    if call.type not in _FLOATS:
        return _Corner(out.values, missing, NO)
    nan = np.isnan(stored_numbers(out.values)) & ~missing
    value = choose_where(nan, no_bound(call.type), out.values) if nan.any() else out.values
    return _Corner(value, missing, nan | missing)


def _limited(entry: Function, call: Call, lo: Datum, hi: Datum) -> tuple[Datum, Datum]:
    """Replace unknown ends by limits that hold for every result."""
    limits = entry.limits(call) if entry.limits else None
    if limits is None or call.type == BOOLEAN:
        return lo, hi
    least, greatest = (no_bound(call.type) if v is None else _as(v, call.type) for v in limits)
    return pc.coalesce(lo, least), pc.coalesce(hi, greatest)


def _as(value: object, data_type: DataType) -> Datum:
    return pa.scalar(value, to_arrow_type(data_type))
