"""Day-time intervals multiplied by integers, divided by constant ones, and made of integers."""

from __future__ import annotations

from functools import reduce

import numpy as np

from tamis.core.expr.arrow_values import Datum, Evaluated
from tamis.core.expr.calls import make_call
from tamis.core.expr.coerce import implicit_cast
from tamis.core.expr.functions.cast.cast_kernels import LIMITS
from tamis.core.expr.functions.datetime.clock_columns import HOUR, MINUTE
from tamis.core.expr.functions.datetime.time_units import build_checked, build_typed, int64_numbers
from tamis.core.expr.functions.numeric.arithmetic import product_overflows
from tamis.core.expr.registry import (
    Claim,
    Function,
    Partial,
    Signature,
    declare_function,
    declare_overload,
    declare_sugar,
)
from tamis.core.expr.time_zones import DAY, SECOND
from tamis.core.expr.tree import Call, Expr, Literal, Mode
from tamis.core.types import BYTE, INTEGER, INTEGRAL, LONG, SHORT, DayTimeInterval, Decimal

_INTS = (BYTE, SHORT, INTEGER)
_SECONDS = Decimal(18, 6)
"""The type of ``make_dt_interval``'s seconds."""


def _by_an_integer(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    if len(args) != 2 or not isinstance(args[0].type, DayTimeInterval) or args[1].type not in INTEGRAL:
        return None
    return Signature((args[0], implicit_cast(args[1], LONG, mode, zone)), DayTimeInterval())


def _by_a_constant(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    """Resolve a division by a constant above zero; others are left to Spark."""
    divisor = args[1] if len(args) == 2 else None
    if not isinstance(divisor, Literal) or divisor.type not in INTEGRAL or (divisor.value or 0) <= 0:
        return None
    return _by_an_integer(args, mode, zone)


def _multiplied(call_: Call, args: list[Datum]) -> Evaluated:
    a, b = np.broadcast_arrays(int64_numbers(args[0]), int64_numbers(args[1]))
    with np.errstate(all="ignore"):
        out = a * b
        near = np.abs(a.astype(np.float64) * b.astype(np.float64)) >= 2.0**62
    return build_checked(out, near & product_overflows(a, b), args, call_.type)


def _divided(call_: Call, args: list[Datum]) -> Evaluated:
    """Divide to the nearest microsecond, halves away from zero."""
    a, b = np.broadcast_arrays(int64_numbers(args[0]), int64_numbers(args[1]))
    quotient, rest = a // b, a % b
    up = (rest > b - rest) | ((rest == b - rest) & (a > 0))
    return Evaluated(build_typed(quotient + up, args, call_.type))


declare_function(
    Function(
        "interval_multiply",
        _by_an_integer,
        _multiplied,
        catalyst=("MultiplyDTInterval",),
        claims=lambda _: (Claim.EITHER, Claim.EITHER),
        partial=lambda _: Partial.OUTSIDE,
    )
)
declare_function(
    Function(
        "interval_divide",
        _by_a_constant,
        _divided,
        catalyst=("DivideDTInterval",),
        claims=lambda _: (Claim.UP, Claim.FIXED),
    )
)


@declare_overload("multiply")
def _product(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    """Build a product in either order; ``try_multiply`` is left to Spark."""
    if len(args) != 2 or mode is Mode.TRY:
        return None
    a, b = args if isinstance(args[0].type, DayTimeInterval) else args[::-1]
    fits = isinstance(a.type, DayTimeInterval) and b.type in INTEGRAL
    return make_call("interval_multiply", a, b, mode=mode, zone=zone) if fits else None


@declare_overload("divide")
def _quotient(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    fits = mode is not Mode.TRY and _by_a_constant(args, mode, zone) is not None
    return make_call("interval_divide", *args, mode=mode, zone=zone) if fits else None


@declare_sugar("make_dt_interval", catalyst=("MakeDTInterval",))
def _made_of_numbers(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
    """Rewrite ``make_dt_interval(days, hours, minutes, seconds)`` of integers to a sum of products.

    Seconds that may have fractions are left to Spark, unless they are constant.
    """
    if len(args) > 4:
        return None
    units = [*zip((DAY, HOUR, MINUTE, SECOND), args, strict=False)]
    terms = list[Expr]()
    for size, count in (*units[3:], *units[:3]):  # as Spark adds them
        term = _units_of(size, count, mode, zone)
        if term is None:
            return None
        terms.append(term)
    return reduce(lambda a, b: make_call("add", a, b), terms) if terms else Literal(DayTimeInterval(), 0)


def _units_of(size: int, count: Expr, mode: Mode, zone: str | None) -> Expr | None:
    """Return ``count`` units of ``size`` microseconds; None if only Spark can tell."""
    whole = _without_decimals(count)
    if not isinstance(whole, Literal):
        unit = Literal(DayTimeInterval(), size)
        return make_call("interval_multiply", unit, whole, mode=mode, zone=zone) if whole.type in _INTS else None
    if whole.value is None or not (whole.type in _INTS or (size == SECOND and isinstance(whole.type, Decimal))):
        return None
    micros = whole.value * size
    fits = micros == int(micros) and LIMITS[LONG][0] <= micros <= LIMITS[LONG][1]
    return Literal(DayTimeInterval(), int(micros)) if fits else None


def _without_decimals(count: Expr) -> Expr:
    """Return the integer that Spark casts to the type of seconds, in which every INT fits; else ``count``."""
    if isinstance(count, Call) and count.function == "cast" and count.type == _SECONDS:
        return count.args[0] if count.args[0].type in _INTS else count
    return count
