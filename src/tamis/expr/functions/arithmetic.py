"""Arithmetic on numbers. ANSI: overflow and division by zero fail. TRY: NULL. LEGACY: integers wrap, division by zero is NULL."""

from __future__ import annotations

import decimal
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.expr.catalogue import Bounds, Claim, Function, NaN, Partial, Signature, declare, sugar
from tamis.expr.coerce import MAX_PRECISION, as_decimal, brought, is_numeric, is_text, narrowest, wider_numeric
from tamis.expr.functions.casts import LIMITS
from tamis.expr.tree import Call, Expr, Literal, Mode
from tamis.expr.values import Datum, Evaluated, Mask, Numbers, build, either, fitted, full, is_true, nulls, outcome, raw, rows, wide_decimal
from tamis.types import DOUBLE, FLOAT, INTEGRAL, LONG, DataType, Decimal
from tamis.types.arrow import to_arrow_type

_FLOATS = (FLOAT, DOUBLE)


def _adjusted(precision: int, scale: int) -> Decimal:
    """Spark's ``adjustPrecisionScale``: whole digits first, at least 6 decimal places where there were so many."""
    if precision <= MAX_PRECISION:
        return Decimal(precision, scale)
    least = min(scale, 6)
    return Decimal(MAX_PRECISION, max(MAX_PRECISION - (precision - scale), least))


def decimal_result(name: str, a: Decimal, b: Decimal) -> Decimal:
    """The result type of decimal arithmetic."""
    (p1, s1), (p2, s2) = (a.precision, a.scale), (b.precision, b.scale)
    if name in {"add", "subtract"}:
        scale = max(s1, s2)
        return _adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)
    if name == "multiply":
        return _adjusted(p1 + p2 + 1, s1 + s2)
    if name == "divide":
        scale = max(6, s1 + p2 + 1)
        return _adjusted(p1 - s1 + s2 + scale, scale)
    return _adjusted(min(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2))


def _operands(name: str) -> Callable[[tuple[Expr, ...], Mode, str | None], Signature | None]:
    def resolve(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
        if len(args) != 2:
            return None
        a, b = (_from_text(arg, args, mode, zone) for arg in args)
        if not (is_numeric(a.type) and is_numeric(b.type)):
            return None
        if (isinstance(a.type, Decimal) or isinstance(b.type, Decimal)) and a.type not in _FLOATS and b.type not in _FLOATS:
            return _decimals(name, a, b, mode, zone)
        target = wider_numeric(a.type, b.type)
        if name == "divide":
            target = DOUBLE
        if name == "div":
            if target in _FLOATS:
                return None
            target = LONG
        assert target is not None
        return Signature((brought(a, target, mode, zone), brought(b, target, mode, zone)), target)

    return resolve


def _from_text(arg: Expr, args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr:
    """Text beside a number counts as one: LONG beside an integer (ANSI), else DOUBLE."""
    if not is_text(arg.type):
        return arg
    other = next((a.type for a in args if is_numeric(a.type)), DOUBLE)
    return brought(arg, LONG if other in INTEGRAL and mode is not Mode.LEGACY else DOUBLE, mode, zone)


def _decimals(name: str, a: Expr, b: Expr, mode: Mode, zone: str | None) -> Signature | None:
    first, second = as_decimal(narrowest(a)), as_decimal(narrowest(b))
    if first is None or second is None:
        return None
    result: DataType = LONG if name == "div" else decimal_result(name, first, second)
    return Signature((brought(a, first, mode, zone), brought(b, second, mode, zone)), result)


def _kernel(call: Call, args: list[Datum]) -> Evaluated:
    if isinstance(call.args[0].type, Decimal):
        return _decimal(call, args)
    a, b = raw(args[0]), raw(args[1])
    null = either(nulls(args[0]), nulls(args[1]))
    n = rows(args)
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
    return outcome(build(values, null, to_arrow_type(call.type)), bad, mode, message)


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


def _whole(call: Call, a: Numbers, b: Numbers) -> tuple[Numbers, Mask | None]:
    """Integers; for the narrow ones in 64 bits, then cut."""
    name, (least, greatest) = call.function, LIMITS[call.args[0].type]  # type: ignore[index]
    x, y = a.astype(np.int64), b.astype(np.int64)
    bad: Mask
    if name in {"div", "remainder", "pmod"}:
        bad = y == 0
        divisor = np.where(bad, 1, y)
        quotient = np.where(divisor == -1, -x, np.sign(x) * np.sign(divisor) * (np.abs(x) // np.abs(divisor)))
        quotient = np.where((x == np.iinfo(np.int64).min) & (divisor != -1), _truncated(x, divisor), quotient)
        if name == "div":
            return quotient, bad | ((x == np.iinfo(np.int64).min) & (divisor == -1) & (call.mode is not Mode.LEGACY))
        rest = np.where(divisor == -1, 0, x - quotient * divisor)
        values = rest if name == "remainder" else np.where(rest < 0, np.fmod(rest + divisor, divisor), rest)
        return values.astype(a.dtype), bad
    if name == "multiply":
        wide = x * y
        bad = (wide < least) | (wide > greatest)
        if least == np.iinfo(np.int64).min:
            near = np.abs(x.astype(np.float64) * y.astype(np.float64)) >= 2.0**62
            bad = near & _product_overflows(x, y)
        return wide.astype(a.dtype), bad
    wide = x + y if name == "add" else x - y
    wrapped = ((x ^ wide) & ((y if name == "add" else ~y) ^ wide)) < 0
    bad = wrapped if least == np.iinfo(np.int64).min else (wide < least) | (wide > greatest)
    return wide.astype(a.dtype), bad


def _truncated(x: Numbers, divisor: Numbers) -> Numbers:
    """Quotient towards zero where the absolute value does not exist (the least long)."""
    floor = x // divisor
    return np.asarray(floor + ((floor * divisor != x) & (floor < 0)).astype(np.int64))


def _product_overflows(x: Numbers, y: Numbers) -> Mask:
    product = x * y
    safe = np.where(y == 0, 1, y)
    back = _truncated(product, safe)
    return np.asarray((y != 0) & ((back != x) | ((y == -1) & (x == np.iinfo(np.int64).min))))


def _decimal(call: Call, args: list[Datum]) -> Evaluated:
    """Decimals in 76 digits (add, subtract, multiply), else value by value; rounded half up to the result's scale."""
    n, target = rows(args), call.type
    mode = Mode.TRY if call.mode is Mode.LEGACY else call.mode
    first, second = args[0].type, args[1].type
    digits = (
        first.precision + second.precision
        if call.function == "multiply"
        else max(first.precision - first.scale, second.precision - second.scale) + max(first.scale, second.scale)
    )
    if call.function in {"add", "subtract", "multiply"} and digits < 76:
        a, b = (full(x, n).cast(pa.decimal256(x.type.precision, x.type.scale)) for x in args)
        exact = {"add": pc.add, "subtract": pc.subtract, "multiply": pc.multiply}[call.function](a, b)
        assert isinstance(target, Decimal)
        return fitted(wide_decimal(exact), target, mode, f"[NUMERIC_VALUE_OUT_OF_RANGE] A value does not fit {target}.")
    return _decimal_slowly(call, full(args[0], n).to_pylist(), full(args[1], n).to_pylist(), mode)


def _decimal_slowly(call: Call, a: list[Any], b: list[Any], mode: Mode) -> Evaluated:
    out: list[Any] = []
    bad = np.zeros(len(a), bool)
    with decimal.localcontext(decimal.Context(prec=200, rounding=decimal.ROUND_HALF_UP)):
        for row, (x, y) in enumerate(zip(a, b, strict=True)):
            zero = y == 0 and call.function not in {"add", "subtract", "multiply"}
            value = None if x is None or y is None or zero else _divided(call, x, y)
            bad[row] = value is None and x is not None and y is not None
            out.append(value)
    return outcome(pa.array(out, to_arrow_type(call.type)), bad, mode, "[DIVIDE_BY_ZERO] Division by zero, or a result that does not fit.")


def _divided(call: Call, x: decimal.Decimal, y: decimal.Decimal) -> decimal.Decimal | int | None:
    if call.function == "div":
        whole = int(x / y)
        return whole if LIMITS[LONG][0] <= whole <= LIMITS[LONG][1] else None
    assert isinstance(call.type, Decimal)
    simple = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv}
    value = simple.get(call.function, operator.mod)(x, y)
    if call.function == "pmod" and value < 0:
        value = (value + y) % y
    value = value.quantize(decimal.Decimal(1).scaleb(-call.type.scale))
    return value if abs(value) < decimal.Decimal(10) ** (call.type.precision - call.type.scale) else None


def _overflows(call: Call) -> Partial:
    return Partial.NEVER if call.type in _FLOATS else Partial.OUTSIDE


def _away_from_zero(call: Call, bounds: Bounds) -> Mask:  # noqa: ARG001
    """Where the divisor is on one side of zero, and far enough that the quotient stays finite."""
    lo, hi = bounds[1]
    zero = pa.scalar(0, pa.int64()).cast(lo.type) if not pa.types.is_decimal(lo.type) else pa.scalar(decimal.Decimal(0), lo.type)
    positive, negative = pc.greater(lo, zero), pc.less(hi, zero)
    return is_true(positive) | is_true(negative)


def _divisor(call: Call) -> int | float | None:
    """The constant by which is divided, if it is one that is not 0."""
    by = call.args[1]
    return by.value if isinstance(by, Literal) and call.type in (*INTEGRAL, *_FLOATS) and by.value else None


def _rest_limits(call: Call) -> tuple[object, object] | None:
    """A rest is smaller than the divisor; ``pmod`` by a positive one is never below 0."""
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
    declare(
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
    declare(
        Function(
            _name,
            _operands(_name),
            _kernel,
            sql=_sql,
            catalyst=_catalyst,
            claims=lambda _: _EITHER + _EITHER,
            partial=lambda _: Partial.OUTSIDE,
            guard=_away_from_zero,
            backwards=True,
            nan=lambda _: NaN.SAME,
            moded=lambda _args, _type: True,
            note="where the divisor keeps its sign",
        )
    )
for _name, _sql, _catalyst in (("remainder", ("%", "mod"), ("Remainder",)), ("pmod", ("pmod",), ("Pmod",))):
    declare(
        Function(
            _name,
            _operands(_name),
            _kernel,
            sql=_sql,
            catalyst=_catalyst,
            partial=lambda c: Partial.ANYWHERE if _divisor(c) is None else Partial.NEVER,
            limits=_rest_limits,
            backwards=True,
            nan=lambda _: NaN.SAME,
            moded=lambda _args, _type: True,
            note="single values, and less than a constant divisor",
        )
    )


def _single(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    if len(args) != 1:
        return None
    arg = brought(args[0], DOUBLE, mode, zone) if is_text(args[0].type) else args[0]
    return Signature((arg,), arg.type) if is_numeric(arg.type) else None


def _sign_kernel(call: Call, args: list[Datum]) -> Evaluated:
    x, target = args[0], call.type
    if isinstance(target, Decimal):
        return Evaluated(pc.negate(x) if call.function == "negate" else pc.abs(x))
    values, null = raw(x), nulls(x)
    bad: Mask | None = None
    if target not in _FLOATS:
        bad = np.asarray(values == LIMITS[target][0])  # type: ignore[index]
        bad = bad if null is None else bad & ~null
        bad = None if call.mode is Mode.LEGACY else bad
    with np.errstate(over="ignore"):
        result = -values if call.function == "negate" else np.abs(values)
    return outcome(build(result, null, x.type), bad, call.mode, f"[ARITHMETIC_OVERFLOW] {target} overflow.")


def _one_sided(call: Call, bounds: Bounds) -> Mask:  # noqa: ARG001
    """Where the argument keeps its sign."""
    lo, hi = bounds[0]
    low, high = raw_or_zero(lo), raw_or_zero(hi)
    known = ~np.asarray(nulls(lo) if nulls(lo) is not None else False) & ~np.asarray(nulls(hi) if nulls(hi) is not None else False)
    return np.asarray(known & ((low >= 0) | (high <= 0)))


def raw_or_zero(x: Datum) -> Numbers:
    """Stored numbers; decimals by their sign."""
    if pa.types.is_decimal(x.type):
        sign = pc.sign(x)
        return raw(sign.cast(pa.int8()))
    return raw(x)


declare(
    Function(
        "negate",
        _single,
        _sign_kernel,
        sql=("negative",),
        catalyst=("UnaryMinus",),
        claims=lambda _: _DOWN,
        partial=lambda c: Partial.NEVER if c.type in _FLOATS or isinstance(c.type, Decimal) else Partial.OUTSIDE,
        nan=lambda _: NaN.KEPT,
        moded=lambda _args, t: t in INTEGRAL,
    )
)
declare(
    Function(
        "abs",
        _single,
        _sign_kernel,
        sql=("abs",),
        catalyst=("Abs",),
        claims=lambda _: _EITHER,
        partial=lambda c: Partial.NEVER if c.type in _FLOATS or isinstance(c.type, Decimal) else Partial.OUTSIDE,
        guard=_one_sided,
        rule="abs",
        limits=lambda c: None if c.mode is Mode.LEGACY else (decimal.Decimal(0) if isinstance(c.type, Decimal) else 0, None),
        nan=lambda _: NaN.KEPT,
        moded=lambda _args, t: t in INTEGRAL,
    )
)
sugar("positive")(lambda args, _mode, _zone: args[0] if len(args) == 1 and is_numeric(args[0].type) else None)


def _rounded(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    """To LONG, and decimals to a decimal without places."""
    if len(args) != 1:
        return None
    arg = args[0]
    if is_text(arg.type) or (arg.type in (FLOAT, *INTEGRAL) and arg.type != LONG):
        arg = brought(arg, DOUBLE, mode, zone)
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
    values = np.where(np.isnan(raw(x)), 0.0, np.floor(raw(x)) if call.function == "floor" else np.ceil(raw(x)))
    inside = (values > -(2.0**63)) & (values < 2.0**63)
    whole = np.where(inside, np.where(inside, values, 0).astype(np.int64), np.where(values > 0, LIMITS[LONG][1], LIMITS[LONG][0]))
    null = nulls(x)
    bad = ~inside if null is None else ~inside & ~null  # NaN becomes 0 in every mode
    if call.mode is Mode.LEGACY:  # Java's conversion to long saturates, NaN is 0
        return Evaluated(build(whole, null, pa.int64()))
    return outcome(build(whole, null, pa.int64()), bad, call.mode, "[ARITHMETIC_OVERFLOW] BIGINT overflow.")


for _name, _sql, _catalyst in (("floor", ("floor",), ("Floor",)), ("ceil", ("ceil", "ceiling"), ("Ceil",))):
    declare(
        Function(
            _name,
            _rounded,
            _round_kernel,
            sql=_sql,
            catalyst=_catalyst,
            claims=lambda _: _UP,
            rule="whole",
            partial=lambda c: Partial.OUTSIDE if c.args[0].type == DOUBLE else Partial.NEVER,
            moded=lambda args, _type: args[0].type == DOUBLE,
        )
    )
