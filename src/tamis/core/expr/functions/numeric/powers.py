"""Powers, exponentials and logarithms of doubles.

Their last digits depend on the implementation (Java's intrinsics, Java's own library, C's), so bounds move
outward by more than that, and rows are left to Spark. Powers of integers that a double holds are exact
everywhere and are folded.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import (
    Datum,
    Evaluated,
    Mask,
    Numbers,
    build_array,
    is_true,
    literal_scalar,
    mask_union,
    mode_outcome,
    null_mask,
    row_count,
    stored_numbers,
)
from tamis.core.expr.calls import make_call
from tamis.core.expr.coerce import implicit_cast, is_numeric, is_text
from tamis.core.expr.registry import Bounds, Claim, Function, NaN, Partial, Signature, declare_function, declare_sugar
from tamis.core.expr.tree import Call, Expr, Literal, Mode
from tamis.core.types import DOUBLE
from tamis.core.types.arrow import to_arrow_type

_WHOLE = 2**53
"""Integers below this are exact doubles."""


def _doubles(count: int) -> Callable[[tuple[Expr, ...], Mode, str | None], Signature | None]:
    def resolve(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
        if len(args) != count or not all(is_numeric(a.type) or is_text(a.type) for a in args):
            return None
        return Signature(tuple(implicit_cast(a, DOUBLE, mode, zone) for a in args), DOUBLE)

    return resolve


def _computed(call_: Call, args: list[Datum]) -> Evaluated:
    """Compute the function; a missing logarithm is NULL and marked, so that corners recognize it."""
    values = [stored_numbers(a) for a in args]
    null = mask_union(*(null_mask(a) for a in args))
    n = row_count(args)
    with np.errstate(all="ignore"):
        out = np.broadcast_to(_KERNELS[call_.function](*values), (n,))
        bad = np.broadcast_to(values[0] <= 0, (n,)) if call_.function in _LOGARITHMS else None
    null = None if null is None else np.broadcast_to(null, (n,))
    if bad is not None and null is not None:
        bad = bad & ~null
    return mode_outcome(build_array(out, null, to_arrow_type(DOUBLE)), bad, call_.mode, "It has no logarithm.")


def _java_power(base: Numbers, exponent: Numbers) -> Numbers:
    """Return powers; like Java, and other than C, without a value for 1 or -1 to an infinite one, or 1 to NaN."""
    no_number = np.isnan(exponent) | ((np.abs(base) == 1) & np.isinf(exponent))
    return np.where(no_number, np.nan, np.power(base, exponent))


_KERNELS: dict[str, Callable[..., Numbers]] = {
    "raised": _java_power,
    "exp": np.exp,
    "ln": np.log,
    "log10": np.log10,
    "log2": np.log2,
}
_LOGARITHMS = frozenset({"ln", "log10", "log2"})


def _at_least(number: float, *, strictly: bool, bounds: tuple[Datum, Datum]) -> Mask:
    return is_true((pc.greater if strictly else pc.greater_equal)(bounds[0], literal_scalar(number, DOUBLE)))


def _power_turns_once(call_: Call, bounds: Bounds) -> Mask:  # noqa: ARG001
    """Return where a power is monotone in each argument.

    That is so for a base above zero, or of zero if the exponent is positive. Between the bounds, the base 1 must not
    meet an infinite exponent: that gives NaN.
    """
    base, exponent = bounds
    above = _at_least(0.0, strictly=True, bounds=base)
    rises = above | (_at_least(0.0, strictly=False, bounds=base) & _at_least(0.0, strictly=True, bounds=exponent))
    beside_one = _at_least(1.0, strictly=True, bounds=base) | is_true(pc.less(base[1], literal_scalar(1.0, DOUBLE)))
    return rises & (beside_one | (is_true(pc.is_finite(exponent[0])) & is_true(pc.is_finite(exponent[1]))))


declare_function(
    Function(
        "raised",
        _doubles(2),
        _computed,
        catalyst=("Pow",),
        claims=lambda _: (Claim.EITHER, Claim.EITHER),
        guard=_power_turns_once,
        rule="approximate",
        approximate=True,
        note="where the base is not below zero",
    )
)


@declare_sugar("power", "pow")
def _power(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    """Build a power; fold one of two integer constants if a double holds the result.

    Java guarantees such a result to be exact.
    """
    if len(args) == 2 and all(
        isinstance(a, Literal) and isinstance(a.value, int) and not isinstance(a.value, bool) for a in args
    ):
        base, exponent = (a.value for a in args if isinstance(a, Literal))
        if 0 <= exponent <= 64 and abs(base) < _WHOLE and abs(base**exponent) <= _WHOLE:
            return Literal(DOUBLE, float(base**exponent))
    return make_call("raised", *args, mode=mode, zone=zone)


for _name, _sql, _catalyst in (
    ("exp", ("exp",), ("Exp",)),
    ("ln", ("ln",), ("Log",)),
    ("log10", ("log10",), ("Log10",)),
    ("log2", ("log2",), ("Log2",)),
):
    declare_function(
        Function(
            _name,
            _doubles(1),
            _computed,
            sql=_sql,
            catalyst=_catalyst,
            claims=lambda _: (Claim.UP,),
            partial=lambda c: Partial.OUTSIDE if c.function in _LOGARITHMS else Partial.NEVER,
            nan=lambda _: NaN.KEPT,
            rule="approximate",
            approximate=True,
            note="NULL where there is no logarithm" if _name in _LOGARITHMS else "",
        )
    )


@declare_sugar("log")
def _log(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    return make_call("ln", *args, mode=mode, zone=zone) if len(args) == 1 else None


@declare_sugar("e")
def _e(args: tuple[Expr, ...], _mode: Mode, _zone: str | None) -> Expr | None:
    return None if args else Literal(DOUBLE, math.e)


@declare_sugar("pi")
def _pi(args: tuple[Expr, ...], _mode: Mode, _zone: str | None) -> Expr | None:
    return None if args else Literal(DOUBLE, math.pi)
