"""Decimal arithmetic: result types, and computation in more digits than they have."""

from __future__ import annotations

import decimal
import operator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import (
    Datum,
    Evaluated,
    fit_decimal,
    full_length,
    mask_union,
    mode_outcome,
    row_count,
    wide_decimal,
)
from tamis.core.expr.coerce import MAX_PRECISION, as_decimal, implicit_cast, narrowest_type
from tamis.core.expr.functions.cast.cast_kernels import wrap_integer
from tamis.core.expr.registry import Signature
from tamis.core.expr.tree import Call, Expr, Mode
from tamis.core.types import LONG, DataType, Decimal
from tamis.core.types.arrow import to_arrow_type


def _adjusted(precision: int, scale: int) -> Decimal:
    """Apply Spark's ``adjustPrecisionScale``: integer digits first, but keep up to 6 decimal places."""
    if precision <= MAX_PRECISION:
        return Decimal(precision, scale)
    least = min(scale, 6)
    return Decimal(MAX_PRECISION, max(MAX_PRECISION - (precision - scale), least))


def decimal_result(name: str, a: Decimal, b: Decimal) -> Decimal:
    """Return the result type of decimal arithmetic."""
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


def operands(name: str, a: Expr, b: Expr, mode: Mode, zone: str | None) -> Signature | None:
    first, second = as_decimal(narrowest_type(a)), as_decimal(narrowest_type(b))
    if first is None or second is None:
        return None
    result: DataType = LONG if name == "div" else decimal_result(name, first, second)
    return Signature((implicit_cast(a, first, mode, zone), implicit_cast(b, second, mode, zone)), result)


_CONTEXT = decimal.Context(prec=MAX_PRECISION + 1, rounding=decimal.ROUND_DOWN)
"""The context of Spark's decimals. What it cuts off products and quotients does not change how they are rounded."""
_WITH_REST = frozenset({"div", "remainder", "pmod"})
_IMPOSSIBLE = f"Division impossible: the whole quotient has more than {_CONTEXT.prec} digits."


def may_be_impossible(call: Call) -> bool:
    """Return whether a whole quotient of decimals may have so many digits that Spark fails, in every mode."""
    if call.function not in _WITH_REST:
        return False
    a, b = (arg.type for arg in call.args)
    return isinstance(a, Decimal) and isinstance(b, Decimal) and a.precision - a.scale + b.scale > _CONTEXT.prec


def compute(call: Call, args: list[Datum]) -> Evaluated:
    """Compute in 76 digits (add, subtract, multiply), else value by value; round half up to the result."""
    n, target = row_count(args), call.type
    mode = Mode.TRY if call.mode is Mode.LEGACY else call.mode
    first, second = args[0].type, args[1].type
    digits = (
        first.precision + second.precision
        if call.function == "multiply"
        else max(first.precision - first.scale, second.precision - second.scale) + max(first.scale, second.scale)
    )
    if call.function in {"add", "subtract", "multiply"} and digits < 76:
        a, b = (full_length(x, n).cast(pa.decimal256(x.type.precision, x.type.scale)) for x in args)
        exact = {"add": pc.add, "subtract": pc.subtract, "multiply": pc.multiply}[call.function](a, b)
        assert isinstance(target, Decimal)
        return fit_decimal(
            wide_decimal(exact), target, mode, f"[NUMERIC_VALUE_OUT_OF_RANGE] A value does not fit {target}."
        )
    return _decimal_slowly(call, full_length(args[0], n).to_pylist(), full_length(args[1], n).to_pylist(), mode)


def _decimal_slowly(call: Call, a: list[Any], b: list[Any], mode: Mode) -> Evaluated:
    out: list[Any] = []
    bad, impossible = np.zeros(len(a), bool), np.zeros(len(a), bool)
    error = f"[NUMERIC_VALUE_OUT_OF_RANGE] A value does not fit {call.type}."
    with decimal.localcontext(decimal.Context(prec=200, rounding=decimal.ROUND_HALF_UP)):
        for row, (x, y) in enumerate(zip(a, b, strict=True)):
            if x is None or y is None:
                out.append(None)
                continue
            zero = y == 0 and call.function not in {"add", "subtract", "multiply"}
            impossible[row] = not zero and call.function in _WITH_REST and _is_impossible(x / y)
            value = None if zero or impossible[row] else _divided(call, x, y)
            bad[row] = value is None and not impossible[row]
            if zero:
                error = "[DIVIDE_BY_ZERO] Division by zero."
            out.append(value)
    found = mode_outcome(pa.array(out, to_arrow_type(call.type)), bad, mode, error)
    if not impossible.any():
        return found
    return Evaluated(found.values, mask_union(found.failed, impossible), found.error or _IMPOSSIBLE)


def _is_impossible(quotient: decimal.Decimal) -> bool:
    """Return whether the whole part of a quotient has digits behind those that Java computes."""
    whole = quotient.to_integral_value(decimal.ROUND_DOWN)
    return _CONTEXT.plus(whole) != whole


def _divided(call: Call, x: decimal.Decimal, y: decimal.Decimal) -> decimal.Decimal | int | None:
    if call.function == "div":
        whole = int(x / y)  # a decimal of 38 digits, whose low 64 bits count, in every mode
        return wrap_integer(whole, LONG) if abs(whole) < 10**MAX_PRECISION else None
    assert isinstance(call.type, Decimal)
    simple = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv}
    value = simple.get(call.function, operator.mod)(x, y)
    if call.function == "pmod" and value < 0:
        value = (value + y) % y
    value = value.quantize(decimal.Decimal(1).scaleb(-call.type.scale))
    return value if abs(value) < decimal.Decimal(10) ** (call.type.precision - call.type.scale) else None
