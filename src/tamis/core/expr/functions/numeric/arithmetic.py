"""Arithmetic on numbers.

Overflow and division by zero fail in ANSI mode and are NULL in TRY mode. In LEGACY mode integers wrap, and
division by zero is NULL.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import (
    Datum,
    Evaluated,
    Mask,
    Numbers,
    build_array,
    is_true,
    mask_union,
    mode_outcome,
    null_mask,
    row_count,
    stored_numbers,
)
from tamis.core.expr.coerce import implicit_cast, is_numeric, is_text, wider_numeric
from tamis.core.expr.functions.cast.cast_kernels import LIMITS
from tamis.core.expr.functions.numeric import decimals
from tamis.core.expr.registry import Bounds, Claim, Function, NaN, Partial, Signature, declare_function
from tamis.core.expr.tree import Call, Expr, Literal, Mode
from tamis.core.types import DOUBLE, FLOAT, INTEGRAL, LONG, DataType, Decimal
from tamis.core.types.arrow import to_arrow_type

_FLOATS = (FLOAT, DOUBLE)


def _operands(name: str) -> Callable[[tuple[Expr, ...], Mode, str | None], Signature | None]:
    def resolve(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
        if len(args) != 2:
            return None
        a, b = (_from_text(arg, args, mode, zone) for arg in args)
        if not (is_numeric(a.type) and is_numeric(b.type)):
            return None
        if (
            (isinstance(a.type, Decimal) or isinstance(b.type, Decimal))
            and a.type not in _FLOATS
            and b.type not in _FLOATS
        ):
            return decimals.operands(name, a, b, mode, zone)
        target = DOUBLE if name == "divide" else wider_numeric(a.type, b.type, mode)
        if name == "div":
            if a.type in _FLOATS or b.type in _FLOATS:
                return None
            target = LONG
        if target is None:
            return None
        return Signature((implicit_cast(a, target, mode, zone), implicit_cast(b, target, mode, zone)), target)

    return resolve


def _from_text(arg: Expr, args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr:
    """Cast text beside a number: to LONG beside an integer (ANSI), else to DOUBLE."""
    if not is_text(arg.type):
        return arg
    other = next((a.type for a in args if is_numeric(a.type)), DOUBLE)
    return implicit_cast(arg, LONG if other in INTEGRAL and mode is not Mode.LEGACY else DOUBLE, mode, zone)


def _kernel(call: Call, args: list[Datum]) -> Evaluated:
    if isinstance(call.args[0].type, Decimal):
        return decimals.compute(call, args)
    a, b = stored_numbers(args[0]), stored_numbers(args[1])
    null = mask_union(null_mask(args[0]), null_mask(args[1]))
    n = row_count(args)
    with np.errstate(all="ignore"):
        if call.type in _FLOATS:
            values, bad = _floating(call.function, a, b)
        else:
            values, bad = _whole(call, a, b)
    values = np.broadcast_to(values, (n,))
    zero = call.function in {"divide", "div", "remainder", "pmod"}
    mode = Mode.TRY if zero and call.mode is Mode.LEGACY else call.mode
    if bad is not None:
        bad = np.broadcast_to(bad, (n,))
        bad = bad if null is None else bad & ~null
        if mode is Mode.LEGACY:
            bad = None
    null = None if null is None else np.broadcast_to(null, (n,))
    message = "[DIVIDE_BY_ZERO] Division by zero." if zero else f"[ARITHMETIC_OVERFLOW] {call.type} overflow."
    return mode_outcome(build_array(values, null, to_arrow_type(call.type)), bad, mode, message)


def _floating(name: str, a: Numbers, b: Numbers) -> tuple[Numbers, Mask | None]:
    if name == "add":
        return a + b, None
    if name == "subtract":
        return a - b, None
    if name == "multiply":
        return a * b, None
    if name == "divide":
        return a / b, b == 0
    rest = np.fmod(a, b)
    return (rest if name == "remainder" else np.where(rest < 0, np.fmod(rest + b, b), rest)), b == 0


_LEAST = np.iinfo(np.int64).min
"""The least long, which has no absolute value."""


def _whole(call: Call, a: Numbers, b: Numbers) -> tuple[Numbers, Mask | None]:
    """Compute with integers in 64 bits, then narrow the result."""
    name, (least, greatest) = call.function, LIMITS[call.args[0].type]  # type: ignore[index]
    x, y = a.astype(np.int64), b.astype(np.int64)
    bad: Mask
    if name in {"div", "remainder", "pmod"}:
        bad = y == 0
        divisor = np.where(bad, 1, y)
        quotient = np.where(divisor == -1, -x, np.sign(x) * np.sign(divisor) * (np.abs(x) // np.abs(divisor)))
        quotient = np.where((x == _LEAST) & (divisor != -1), _truncated(x, divisor), quotient)
        quotient = np.where(divisor == _LEAST, x == _LEAST, quotient)
        if name == "div":
            return quotient, bad | ((x == _LEAST) & (divisor == -1) & (call.mode is not Mode.LEGACY))
        rest = np.where(divisor == -1, 0, x - quotient * divisor)
        if name == "pmod":
            # Java adds INTs in 32 bits, and shorter ones as INT
            total = (rest + divisor).astype(np.int32).astype(np.int64) if a.dtype == np.int32 else rest + divisor
            rest = np.where(rest < 0, np.fmod(total, divisor), rest)
        return rest.astype(a.dtype), bad
    if name == "multiply":
        wide = x * y
        bad = (wide < least) | (wide > greatest)
        if least == np.iinfo(np.int64).min:
            near = np.abs(x.astype(np.float64) * y.astype(np.float64)) >= 2.0**62
            bad = near & product_overflows(x, y)
        return wide.astype(a.dtype), bad
    wide = x + y if name == "add" else x - y
    wrapped = ((x ^ wide) & ((y if name == "add" else ~y) ^ wide)) < 0
    bad = wrapped if least == np.iinfo(np.int64).min else (wide < least) | (wide > greatest)
    return wide.astype(a.dtype), bad


def _truncated(x: Numbers, divisor: Numbers) -> Numbers:
    """Divide towards zero where the absolute value does not exist (the least long)."""
    floor = x // divisor
    return np.asarray(floor + ((floor * divisor != x) & (floor < 0)).astype(np.int64))


def product_overflows(x: Numbers, y: Numbers) -> Mask:
    product = x * y
    safe = np.where(y == 0, 1, y)
    back = _truncated(product, safe)
    return np.asarray((y != 0) & ((back != x) | ((y == -1) & (x == np.iinfo(np.int64).min))))


def _overflows(call: Call) -> Partial:
    return Partial.NEVER if call.type in _FLOATS else Partial.OUTSIDE


def _away_from_zero(call: Call, bounds: Bounds) -> Mask:  # noqa: ARG001
    """Return where the divisor is entirely above or below zero."""
    lo, hi = bounds[1]
    zero = (
        pa.scalar(0, pa.int64()).cast(lo.type)
        if not pa.types.is_decimal(lo.type)
        else pa.scalar(decimal.Decimal(0), lo.type)
    )
    positive, negative = pc.greater(lo, zero), pc.less(hi, zero)
    return is_true(positive) | is_true(negative)


_FITS_LONG = 9.2e18
"""Less than the greatest BIGINT by more than doubles are off."""


def _unwrapped(call: Call, bounds: Bounds) -> Mask:
    """Return where the divisor keeps its sign and no quotient of decimals is beyond BIGINT, where it wraps."""
    plain = _away_from_zero(call, bounds)
    if call.function != "div" or not isinstance(call.args[0].type, Decimal):
        return plain
    (lo, hi), (least, greatest) = ([np.abs(stored_numbers(end.cast(pa.float64()))) for end in pair] for pair in bounds)
    with np.errstate(all="ignore"):
        small = np.fmax(lo, hi) < _FITS_LONG * np.fmin(least, greatest)
    unknown = mask_union(*(null_mask(end) for pair in bounds for end in pair))
    return plain & small if unknown is None else plain & small & ~unknown


def _divisor(call: Call) -> int | float | None:
    """Return the constant divisor if it is not 0, else None."""
    by = call.args[1]
    return by.value if isinstance(by, Literal) and call.type in (*INTEGRAL, *_FLOATS) and by.value else None


def _rest_limits(call: Call) -> tuple[object, object] | None:
    """Return the limits of a remainder: less than the divisor; ``pmod`` by a positive one is not negative."""
    by = _divisor(call)
    if not isinstance(by, int):
        return None
    most = abs(by) - 1
    return (0 if call.function == "pmod" and by > 0 else -most), most


def _moded(_args: tuple[Expr, ...], data_type: DataType) -> bool:
    return data_type not in _FLOATS


_UP, _DOWN, _EITHER = (Claim.UP,), (Claim.DOWN,), (Claim.EITHER,)
_sql: tuple[str, ...]
_catalyst: tuple[str, ...]
for _name, _sql, _catalyst, _claim in (
    ("add", ("+",), ("Add",), _UP + _UP),
    ("subtract", ("-",), ("Subtract",), _UP + _DOWN),
    ("multiply", ("*",), ("Multiply",), _EITHER + _EITHER),
):
    declare_function(
        Function(
            _name,
            _operands(_name),
            _kernel,
            sql=_sql,
            catalyst=_catalyst,
            claims=lambda _c, claim=_claim: claim,  # type: ignore[misc]
            partial=_overflows,
            nan=lambda _: NaN.SAME,
            moded=_moded,
        )
    )
for _name, _sql, _catalyst in (("divide", ("/",), ("Divide",)), ("div", ("div",), ("IntegralDivide",))):
    declare_function(
        Function(
            _name,
            _operands(_name),
            _kernel,
            sql=_sql,
            catalyst=_catalyst,
            claims=lambda _: _EITHER + _EITHER,
            partial=lambda _: Partial.OUTSIDE,
            guard=_unwrapped,
            raises=decimals.may_be_impossible,
            backwards=True,
            nan=lambda _: NaN.SAME,
            moded=lambda _args, _type: True,
            note="where the divisor keeps its sign",
        )
    )
for _name, _sql, _catalyst in (("remainder", ("%", "mod"), ("Remainder",)), ("pmod", ("pmod",), ("Pmod",))):
    declare_function(
        Function(
            _name,
            _operands(_name),
            _kernel,
            sql=_sql,
            catalyst=_catalyst,
            partial=lambda c: Partial.ANYWHERE if _divisor(c) is None else Partial.NEVER,
            limits=_rest_limits,
            raises=decimals.may_be_impossible,
            backwards=True,
            nan=lambda _: NaN.SAME,
            moded=lambda _args, _type: True,
            note="single values, and less than a constant divisor",
        )
    )
