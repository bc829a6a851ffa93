"""Specs: the possible results of an expression over N pieces of data, as columns, and their lattice.

For each piece, a ``Spec`` admits values between ``lo`` and ``hi`` (NULL = unbounded) if ``value``, NULL if
``null``, a failure if ``fail``, and NaN if ``nan`` (NaN lies outside the bounds). A ``Truth`` is the same for
booleans, which have two values. Invariants:

- soundness: a spec admits whatever the piece's rows give; an operation may admit more, never less;
- ``join_specs`` admits what either side admits; ``meet_specs`` admits at least what both admit;
- unknown is the top, which admits everything. Contradictory evidence is unknown, never empty.

Masks have N entries, or are 0-dimensional if all pieces agree; bounds are Arrow arrays or, likewise, scalars.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import Datum, Mask, full_length, has_value, is_true, row_count
from tamis.core.expr.functions.logic.comparisons import compare_values
from tamis.core.types import BOOLEAN, DOUBLE, FLOAT, DataType
from tamis.core.types.arrow import to_arrow_type

YES: Mask = np.ones((), bool)
NO: Mask = np.zeros((), bool)


@dataclass(frozen=True, slots=True)
class Spec:
    """The possible results of a non-boolean expression."""

    type: DataType
    lo: Datum
    hi: Datum
    value: Mask
    null: Mask
    fail: Mask
    nan: Mask


@dataclass(frozen=True, slots=True)
class Truth:
    """The possible results of a predicate, as four independent masks."""

    true: Mask
    false: Mask
    null: Mask
    fail: Mask


Abstract = Spec | Truth
UNKNOWN_TRUTH = Truth(YES, YES, YES, YES)


def no_bound(data_type: DataType) -> Any:
    """The bound that admits everything."""
    return pa.scalar(None, to_arrow_type(data_type))


def unknown_spec(data_type: DataType) -> Spec:
    """The top: any value, NULL, NaN or a failure."""
    bound = no_bound(data_type)
    return Spec(data_type, bound, bound, YES, YES, YES, YES if data_type in (FLOAT, DOUBLE) else NO)


def constant_spec(data_type: DataType, value: Any) -> Spec:
    """The spec of exactly one value (an Arrow scalar), or of NULL."""
    if not value.is_valid:
        return Spec(data_type, value, value, NO, YES, NO, NO)
    if pa.types.is_floating(value.type) and value.as_py() != value.as_py():
        bound = no_bound(data_type)
        return Spec(data_type, bound, bound, NO, NO, NO, YES)
    return Spec(data_type, value, value, YES, NO, NO, NO)


def truth_of(spec: Spec) -> Truth:
    """Convert a boolean spec to a truth."""
    return Truth(
        spec.value & ~surely_true(pc.invert(spec.hi)), spec.value & ~surely_true(spec.lo), spec.null, spec.fail
    )


def spec_of(abstract: Abstract) -> Spec:
    """Convert a truth to a range from false to true."""
    if isinstance(abstract, Spec):
        return abstract
    shape = np.broadcast_shapes(abstract.true.shape, abstract.false.shape)
    lo, hi = np.broadcast_to(~abstract.false, shape), np.broadcast_to(abstract.true, shape)
    return Spec(BOOLEAN, _bools(lo), _bools(hi), abstract.true | abstract.false, abstract.null, abstract.fail, NO)


def _bools(mask: Mask) -> Datum:
    return pa.scalar(bool(mask)) if mask.ndim == 0 else pa.array(mask)


def surely_true(x: Datum) -> Mask:
    """Return where a boolean datum is certainly true; unknown counts as false."""
    return is_true(x)


def surely_below(a: Datum, b: Datum) -> Mask:
    """Return where bound ``a`` is known to be less than bound ``b``."""
    return surely_true(compare_values("lt", a, b))


def at_most(a: Datum, b: Datum) -> Mask:
    """Return where bound ``a`` is known to be at most bound ``b``."""
    return surely_true(compare_values("le", a, b))


def one_value(spec: Spec) -> Mask:
    """Return the pieces whose values are all identical.

    Floating zero never counts, since −0.0 = 0.0 but some functions tell them apart.
    """
    same = surely_true(compare_values("eq", spec.lo, spec.hi)) & ~spec.nan
    if spec.type in (FLOAT, DOUBLE):
        zero = pa.scalar(0.0, spec.lo.type)
        same = same & ~surely_true(compare_values("eq", spec.lo, zero))
    return same


def choose_where(mask: Mask, a: Datum, b: Datum) -> Datum:
    """Return ``a`` where the mask holds, else ``b``."""
    if mask.ndim == 0:
        return a if bool(mask) else b
    return pc.if_else(pa.array(mask), a, b)


def choose_spec(mask: Mask, a: Spec, b: Spec) -> Spec:
    """Return ``a`` for the pieces in the mask, ``b`` for the others."""
    return Spec(
        a.type,
        choose_where(mask, a.lo, b.lo),
        choose_where(mask, a.hi, b.hi),
        np.where(mask, a.value, b.value),
        np.where(mask, a.null, b.null),
        np.where(mask, a.fail, b.fail),
        np.where(mask, a.nan, b.nan),
    )


def extreme_bound(options: list[Datum], least: bool) -> Datum:
    """Return the least (greatest) of several bounds; unknown if one of them is."""
    out = options[0]
    for option in options[1:]:
        if isinstance(out, pa.Scalar) and isinstance(option, pa.Scalar):
            pair = pa.repeat(out, 1), pa.repeat(option, 1)
            out = _pick(*pair, least)[0]
        else:
            out = _pick(out, option, least)
    return out


def _pick(a: Datum, b: Datum, least: bool) -> Datum:
    first = compare_values("le" if least else "ge", a, b)
    n = row_count([a, b])
    return pc.if_else(full_length(first, n), a, b)  # NULL if the comparison is


def join_specs(a: Spec, b: Spec) -> Spec:
    """Admit what either side admits."""
    lo, hi = extreme_bound([a.lo, b.lo], True), extreme_bound([a.hi, b.hi], False)
    lo, hi = (
        choose_where(~b.value, a.lo, choose_where(~a.value, b.lo, lo)),
        choose_where(~b.value, a.hi, choose_where(~a.value, b.hi, hi)),
    )
    return Spec(a.type, lo, hi, a.value | b.value, a.null | b.null, a.fail | b.fail, a.nan | b.nan)


def meet_specs(a: Spec, b: Spec) -> Spec:
    """Admit at least what both sides admit."""
    lo = choose_where(~has_value(a.lo) | surely_below(a.lo, b.lo), choose_where(~has_value(b.lo), a.lo, b.lo), a.lo)
    hi = choose_where(~has_value(a.hi) | surely_below(b.hi, a.hi), choose_where(~has_value(b.hi), a.hi, b.hi), a.hi)
    return Spec(
        a.type, lo, hi, a.value & b.value & ~surely_below(hi, lo), a.null & b.null, a.fail & b.fail, a.nan & b.nan
    )


def join_truth(a: Truth, b: Truth) -> Truth:
    """Admit what either side admits."""
    return Truth(a.true | b.true, a.false | b.false, a.null | b.null, a.fail | b.fail)


def restrict_pieces(abstract: Abstract, mask: Mask) -> Abstract:
    """Restrict what is admitted to the pieces in ``mask``."""
    if isinstance(abstract, Truth):
        return Truth(abstract.true & mask, abstract.false & mask, abstract.null & mask, abstract.fail & mask)
    return replace(
        abstract,
        value=abstract.value & mask,
        null=abstract.null & mask,
        fail=abstract.fail & mask,
        nan=abstract.nan & mask,
    )


def join_any(a: Abstract, b: Abstract) -> Abstract:
    """Join specs or truths."""
    if isinstance(a, Truth) and isinstance(b, Truth):
        return join_truth(a, b)
    return join_specs(spec_of(a), spec_of(b))


def piece_intersection(masks: list[Mask]) -> Mask:
    """The intersection of masks of either shape."""
    out = YES
    for mask in masks:
        out = np.asarray(out & mask)
    return out


def piece_union(masks: list[Mask]) -> Mask:
    """The union of masks of either shape."""
    out = NO
    for mask in masks:
        out = np.asarray(out | mask)
    return out
