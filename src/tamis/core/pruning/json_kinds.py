"""Specs of each kind of value at a path of JSON documents, and their casts.

Each kind is cast by the rule of its own type. A kind is admitted only where its mask holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import Datum, Mask
from tamis.core.expr.calls import make_call
from tamis.core.expr.tree import Call, Column, Mode, Opaque
from tamis.core.pruning.cast_rules import cast_rule
from tamis.core.pruning.evidence import DocumentEvidence
from tamis.core.pruning.value_spec import (
    NO,
    YES,
    Abstract,
    Spec,
    Truth,
    at_most,
    choose_where,
    join_specs,
    no_bound,
    restrict_pieces,
    spec_of,
    surely_below,
    truth_of,
    unknown_spec,
)
from tamis.core.types import BOOLEAN, DOUBLE, FLOAT, INTEGRAL, LONG, STRING, TIMESTAMP, DataType, Decimal


def kind_spec(data_type: DataType, mask: Mask, lo: Datum | None = None, hi: Datum | None = None) -> Spec:
    """A spec of values within bounds, where the mask holds."""
    nothing = no_bound(data_type)
    return Spec(data_type, nothing if lo is None else lo, nothing if hi is None else hi, mask, NO, NO, NO)


def joined_kinds(data_type: DataType, specs: Sequence[Spec], null: Mask) -> Abstract:
    out = Spec(data_type, no_bound(data_type), no_bound(data_type), NO, null, NO, NO)
    for spec in specs:
        out = join_specs(out, spec)
    return truth_of(out) if data_type == BOOLEAN else out


def cast_kind(spec: Spec, mask: Mask, target: DataType, mode: Mode, zone: str | None) -> Spec:
    """Cast one kind of value by the rule of the cast, where the mask holds."""
    if spec.type == target:
        return spec
    tree = make_call("cast", Column(spec.type, (0,), "value"), mode=mode, zone=zone, type=target)
    if isinstance(tree, Opaque) or not isinstance(tree, Call):
        out = replace(unknown_spec(target), fail=NO if mode is Mode.TRY else YES)
    else:
        out = spec_of(cast_rule(tree, [spec]))
    return spec_of(restrict_pieces(out, mask))


def no_value(mask: Mask, target: DataType, mode: Mode) -> Spec:
    """The spec of a cast that has no result: NULL, or a failure in ANSI mode."""
    nothing = no_bound(target)
    trying = mode is not Mode.ANSI
    return Spec(target, nothing, nothing, NO, mask if trying else NO, NO if trying else mask, NO)


def boolean_kind(e: DocumentEvidence) -> Spec:
    return spec_of(Truth(e.true, e.false, NO, NO))


def long_kind(e: DocumentEvidence) -> Spec:
    return kind_spec(LONG, e.long, e.long_lo, e.long_hi)


def real_kind(e: DocumentEvidence, target: DataType) -> Spec:
    """All other numbers as doubles, to be cast to ``target``.

    The bounds are the nearest doubles for DOUBLE; else they contain the exact number. A FLOAT is rounded from all
    digits, so for it even a bound that fits a double is moved. A TIMESTAMP is cut from the exact microseconds of a
    decimal, but a double's are rounded, so that a bound is moved by as much again.
    """
    lo, hi = e.real_lo, e.real_hi
    if target != DOUBLE:
        exact = NO if target in (FLOAT, TIMESTAMP) else e.real_exact
        lo, hi = _next_outward(lo, exact, -np.inf), _next_outward(hi, exact, np.inf)
    if target == TIMESTAMP:
        lo, hi = _next_outward(lo, NO, -np.inf), _next_outward(hi, NO, np.inf)
    return kind_spec(DOUBLE, e.real, lo, hi)


def _next_outward(bound: pa.Array, exact: Mask, towards: float) -> pa.Array:
    """Move a bound to the next double outward where it is not exact."""
    values = np.asarray(pc.fill_null(bound, 0.0))
    with np.errstate(over="ignore"):  # beyond the greatest double lies infinity
        moved = pa.array(np.nextafter(values, towards), mask=np.asarray(bound.is_null()))
    return choose_where(exact, bound, moved)


def with_whole_reals(e: DocumentEvidence) -> DocumentEvidence:
    """Let other numbers be integers, too: as a text, the decimal 5.0 in a VARIANT is ``5``."""
    bounds = _next_outward(e.real_lo, NO, -np.inf), _next_outward(e.real_hi, NO, np.inf)
    spec = join_specs(long_kind(e), kind_spec(LONG, e.real, *map(_whole_bound, bounds, (np.floor, np.ceil))))
    return replace(e, long=e.long | e.real, long_lo=spec.lo, long_hi=spec.hi)


def _whole_bound(bound: pa.Array, rounded: np.ufunc) -> pa.Array:
    """Round a bound to an integer; unknown where it has none of 64 bits."""
    values = rounded(np.asarray(pc.fill_null(bound, np.inf)))
    fits = np.abs(values) < 2.0**63
    return pa.array(np.where(fits, values, 0).astype(np.int64), mask=~fits)


def number_text(mask: Mask) -> Spec:
    return kind_spec(STRING, mask, pa.scalar("-"), pa.scalar(":"))


def nested_text(e: DocumentEvidence) -> Iterator[Spec]:
    yield kind_spec(STRING, e.list, pa.scalar("["), pa.scalar("\\"))
    yield kind_spec(STRING, e.map, pa.scalar("{"), pa.scalar("|"))


def word_text(e: DocumentEvidence) -> Iterator[Spec]:
    yield kind_spec(STRING, e.false, pa.scalar("false"), pa.scalar("false"))
    yield kind_spec(STRING, e.true, pa.scalar("true"), pa.scalar("true"))


_FAR = 9 * 10**12
"""Seconds from the epoch that are certainly a valid instant."""


def instant_kind(spec: Spec, call: Call) -> Spec:
    """Cast seconds to instants, strictly: seconds too far from the epoch have no instant."""
    mask, target = spec.value, call.type
    out, limit = (
        cast_kind(spec, mask, target, call.mode, call.zone),
        pa.scalar(_FAR if spec.type == LONG else float(_FAR), spec.lo.type),
    )
    safe = at_most(pc.negate(limit), spec.lo) & at_most(spec.hi, limit)
    far, trying = mask & ~safe, call.mode is Mode.TRY
    lo, hi = (choose_where(safe, bound, no_bound(target)) for bound in (out.lo, out.hi))
    return Spec(target, lo, hi, out.value, out.null | (far if trying else NO), out.fail | (NO if trying else far), NO)


def without_digits(e: DocumentEvidence, target: DataType) -> Mask:
    """Return where no text can be cast to ``target``, because all begin with a letter or a sign like one."""
    if target not in INTEGRAL and not isinstance(target, Decimal):  # others have words such as NaN
        return NO
    return at_most(pa.scalar(":"), e.string_lo) & surely_below(e.string_hi, pa.scalar("\x7f"))
