"""Unary functions that keep integers: negation, absolute value, FLOOR and CEIL."""

from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import (
    Datum,
    Evaluated,
    Mask,
    Numbers,
    any_set,
    build_array,
    full_length,
    mode_outcome,
    null_mask,
    null_where,
    row_count,
    stored_numbers,
    wide_decimal,
)
from tamis.core.expr.coerce import JAVA_CONTEXT_DIGITS, implicit_cast, is_numeric, is_text
from tamis.core.expr.functions.cast.cast_kernels import LIMITS
from tamis.core.expr.registry import Bounds, Claim, Function, NaN, Partial, Signature, declare_function, declare_sugar
from tamis.core.expr.tree import Call, Expr, Mode
from tamis.core.types import DOUBLE, FLOAT, INTEGRAL, LONG, Decimal
from tamis.core.types.arrow import to_arrow_type

_FLOATS = (FLOAT, DOUBLE)


def _single(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    if len(args) != 1:
        return None
    arg = implicit_cast(args[0], DOUBLE, mode, zone) if is_text(args[0].type) else args[0]
    return Signature((arg,), arg.type) if is_numeric(arg.type) else None


def _sign_kernel(call: Call, args: list[Datum]) -> Evaluated:
    x, target = args[0], call.type
    if isinstance(target, Decimal):
        exact = pc.negate(x) if call.function == "negate" else pc.abs(x)
        return Evaluated(exact) if target.precision <= JAVA_CONTEXT_DIGITS else _long_decimal(call, x, exact, target)
    values, null = stored_numbers(x), null_mask(x)
    bad: Mask | None = None
    if target not in _FLOATS:
        bad = np.asarray(values == LIMITS[target][0])  # type: ignore[index]
        bad = bad if null is None else bad & ~null
        bad = None if call.mode is Mode.LEGACY else bad
    with np.errstate(over="ignore"):
        result = -values if call.function == "negate" else np.abs(values)
    return mode_outcome(build_array(result, null, x.type), bad, call.mode, f"[ARITHMETIC_OVERFLOW] {target} overflow.")


def _long_decimal(call: Call, x: Datum, exact: Datum, target: Decimal) -> Evaluated:
    """Round the results with more than 34 digits half to even, unless ``x`` keeps its sign.

    One that then has more digits than its type fails in every mode.
    """
    rows = row_count([x])
    before, values = (wide_decimal(full_length(one, rows)) for one in (x, exact))
    rounded = values
    for more in range(1, target.precision - JAVA_CONTEXT_DIGITS + 1):
        long = pc.greater_equal(pc.abs(values), _power_of_ten(JAVA_CONTEXT_DIGITS + more - 1, target.scale))
        rounded = pc.if_else(long, pc.round(values, target.scale - more, "half_to_even"), rounded)
    if call.function == "abs":
        rounded = pc.if_else(pc.less(before, _power_of_ten(None, target.scale)), rounded, values)
    over = pc.greater_equal(pc.abs(rounded), _power_of_ten(target.precision, target.scale))
    bad = any_set(np.asarray(over.fill_null(False).to_numpy(zero_copy_only=False)))
    fitting = null_where(rounded, bad).cast(to_arrow_type(target))
    error = f"[NUMERIC_VALUE_OUT_OF_RANGE] A value does not fit {target}."
    return Evaluated(fitting) if bad is None else Evaluated(fitting, bad, error)


def _power_of_ten(digits: int | None, scale: int) -> pa.Scalar:
    """Return the least decimal of this scale with one digit more; None: zero."""
    value = decimal.Decimal(0) if digits is None else decimal.Decimal(10).scaleb(digits - scale - 1)
    return pa.scalar(value, pa.decimal256(76, scale))


def _one_sided(call: Call, bounds: Bounds) -> Mask:  # noqa: ARG001
    """Return where the argument keeps its sign."""
    lo, hi = bounds[0]
    low, high = raw_or_zero(lo), raw_or_zero(hi)
    known = ~np.asarray(null_mask(lo) if null_mask(lo) is not None else False) & ~np.asarray(
        null_mask(hi) if null_mask(hi) is not None else False
    )
    return np.asarray(known & ((low >= 0) | (high <= 0)))


def raw_or_zero(x: Datum) -> Numbers:
    """Return the stored numbers; for decimals, their signs."""
    if pa.types.is_decimal(x.type):
        sign = pc.sign(x)
        return stored_numbers(sign.cast(pa.int8()))
    return stored_numbers(x)


def _fails_at_least_integer(call: Call) -> Partial:
    """Return whether the function can fail.

    The least integer of a type has no positive counterpart; floats and short decimals always have one.
    """
    if isinstance(call.type, Decimal):
        return Partial.NEVER if call.type.precision <= JAVA_CONTEXT_DIGITS else Partial.OUTSIDE
    return Partial.NEVER if call.type in _FLOATS else Partial.OUTSIDE


declare_function(
    Function(
        "negate",
        _single,
        _sign_kernel,
        sql=("negative",),
        catalyst=("UnaryMinus",),
        claims=lambda _: (Claim.DOWN,),
        partial=_fails_at_least_integer,
        nan=lambda _: NaN.KEPT,
        moded=lambda _args, t: t in INTEGRAL,
    )
)
declare_function(
    Function(
        "abs",
        _single,
        _sign_kernel,
        sql=("abs",),
        catalyst=("Abs",),
        claims=lambda _: (Claim.EITHER,),
        partial=_fails_at_least_integer,
        guard=_one_sided,
        rule="abs",
        limits=lambda c: (
            None if c.mode is Mode.LEGACY else (decimal.Decimal(0) if isinstance(c.type, Decimal) else 0, None)
        ),
        nan=lambda _: NaN.KEPT,
        moded=lambda _args, t: t in INTEGRAL,
    )
)
declare_sugar("positive")(lambda args, _mode, _zone: args[0] if len(args) == 1 and is_numeric(args[0].type) else None)


def _rounded(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    """Resolve to LONG, and for decimals to a decimal without places."""
    if len(args) != 1:
        return None
    arg = args[0]
    if is_text(arg.type) or (arg.type in (FLOAT, *INTEGRAL) and arg.type != LONG):
        arg = implicit_cast(arg, DOUBLE, mode, zone)
    if arg.type in (DOUBLE, LONG):
        return Signature((arg,), LONG)
    if isinstance(arg.type, Decimal):
        d = arg.type
        return Signature((arg,), Decimal(min(38, d.precision - d.scale + 1) if d.scale else d.precision, 0))
    return None


def _round_kernel(call: Call, args: list[Datum]) -> Evaluated:
    x = args[0]
    round_to = pc.floor if call.function == "floor" else pc.ceil
    if pa.types.is_decimal(x.type):
        return Evaluated(round_to(x.cast(pa.decimal256(76, x.type.scale))).cast(to_arrow_type(call.type)))
    if pa.types.is_integer(x.type):
        return Evaluated(x)
    values = np.where(
        np.isnan(stored_numbers(x)),
        0.0,
        np.floor(stored_numbers(x)) if call.function == "floor" else np.ceil(stored_numbers(x)),
    )
    inside = (values > -(2.0**63)) & (values < 2.0**63)
    whole = np.where(
        inside, np.where(inside, values, 0).astype(np.int64), np.where(values > 0, LIMITS[LONG][1], LIMITS[LONG][0])
    )
    null = null_mask(x)
    bad = ~inside if null is None else ~inside & ~null  # NaN becomes 0 in every mode
    if call.mode is Mode.LEGACY:  # Java's conversion to long saturates, and NaN is 0
        return Evaluated(build_array(whole, null, pa.int64()))
    return mode_outcome(build_array(whole, null, pa.int64()), bad, call.mode, "[ARITHMETIC_OVERFLOW] BIGINT overflow.")


for _name, _sql, _catalyst in (("floor", ("floor",), ("Floor",)), ("ceil", ("ceil", "ceiling"), ("Ceil",))):
    declare_function(
        Function(
            _name,
            _rounded,
            _round_kernel,
            sql=_sql,
            catalyst=_catalyst,
            claims=lambda _: (Claim.UP,),
            rule="whole",
            partial=lambda c: Partial.OUTSIDE if c.args[0].type == DOUBLE else Partial.NEVER,
            moded=lambda args, _type: args[0].type == DOUBLE,
        )
    )
