"""ROUND, BROUND, FLOOR and CEIL to a number of places, SIGN and SQRT.

Floats are rounded by their decimal text, like Java's ``BigDecimal``.
"""

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
    build_array,
    full_length,
    mode_outcome,
    null_mask,
    stored_numbers,
)
from tamis.core.expr.calls import make_call
from tamis.core.expr.coerce import MAX_PRECISION, as_decimal, implicit_cast, is_numeric
from tamis.core.expr.functions.cast.cast_kernels import LIMITS
from tamis.core.expr.registry import (
    Bounds,
    Claim,
    Function,
    NaN,
    Partial,
    Signature,
    declare_function,
    declare_overload,
)
from tamis.core.expr.tree import Call, Expr, Literal, Mode
from tamis.core.types import DOUBLE, FLOAT, INTEGER, INTEGRAL, Decimal
from tamis.core.types.arrow import to_arrow_type

_FLOATS = (FLOAT, DOUBLE)
_HALF = {"round": "half_towards_infinity", "bround": "half_to_even", "round_floor": "down", "round_ceil": "up"}
_PYTHON = {"round": decimal.ROUND_HALF_UP, "bround": decimal.ROUND_HALF_EVEN}
_SAFE_DIGITS = 14
"""Decimal digits up to which every Java release prints a double alike."""


def _places(args: tuple[Expr, ...]) -> Literal | None:
    """Return the constant number of places (default 0); None if it is not a small constant."""
    if len(args) == 1:
        return Literal(INTEGER, 0)
    if len(args) != 2:
        return None
    scale = args[1]
    if (
        not isinstance(scale, Literal)
        or scale.type not in INTEGRAL
        or scale.value is None
        or abs(scale.value) > MAX_PRECISION
    ):
        return None
    return Literal(INTEGER, scale.value)


def _decimal(precision: int, scale: int, places: int) -> Decimal | None:
    """Return the result type of Spark's ``RoundBase`` for a decimal."""
    whole = precision - scale + 1
    if places < 0:
        return Decimal(min(max(whole, -places + 1), MAX_PRECISION), 0) if whole <= MAX_PRECISION else None
    kept = min(scale, places)
    return Decimal(min(whole + kept, MAX_PRECISION), kept)


def _rounded(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:  # noqa: ARG001
    scale = _places(args)
    if scale is None or not is_numeric(args[0].type):
        return None
    kind = args[0].type
    target = _decimal(kind.precision, kind.scale, scale.value) if isinstance(kind, Decimal) else kind
    return Signature((args[0], scale), target) if target is not None else None


def _scale(call: Call) -> int:
    scale = call.args[1]
    assert isinstance(scale, Literal)
    return int(scale.value)


def _round(call: Call, args: list[Datum]) -> Evaluated:
    x, kind = args[0], call.args[0].type
    if isinstance(kind, Decimal):
        return _round_decimal(call, x)
    if kind in _FLOATS:
        return _round_float(call, x)
    places = _scale(call)
    if places >= 0:
        return Evaluated(full_length(x, 1)[0] if isinstance(x, pa.Scalar) else x)
    wide = full_length(x, 1).cast(pa.decimal128(38, 0)) if places >= -37 else None
    arrow, null = to_arrow_type(call.type), null_mask(full_length(x, 1))
    if wide is None or -places > 19:
        return Evaluated(build_array(np.zeros(len(full_length(x, 1)), arrow.to_pandas_dtype()), null, arrow))
    out = pc.round(wide.cast(pa.decimal256(76, 0)), ndigits=places, round_mode=_HALF[call.function])
    least, greatest = (pa.scalar(decimal.Decimal(v), out.type) for v in LIMITS[call.type])  # type: ignore[index]
    bad = np.asarray(
        pc.or_(pc.less(out, least), pc.greater(out, greatest)).fill_null(False).to_numpy(zero_copy_only=False)
    )
    if call.mode is Mode.LEGACY and bad.any():
        bits = arrow.bit_width
        values = np.array(
            [0 if v is None else (int(v) + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1) for v in out.to_pylist()],
            np.int64,
        )
        return Evaluated(build_array(values.astype(arrow.to_pandas_dtype()), null, arrow))
    good = pc.if_else(pa.array(bad), pa.scalar(None, out.type), out)
    return mode_outcome(
        good.cast(pa.decimal128(38, 0)).cast(arrow), bad, call.mode, f"[ARITHMETIC_OVERFLOW] {call.type} overflow."
    )


def _round_decimal(call: Call, x: Datum) -> Evaluated:
    """Round by Arrow in 76 digits, which is exact."""
    places, mode = min(_scale(call), x.type.scale), _HALF[call.function]
    wide = full_length(x, 1).cast(pa.decimal256(76, x.type.scale))
    if x.type.precision - x.type.scale < -places:  # coarser than any value of the type: 0, or one unit beyond it
        units = [None if v is None else _coarse(v, places, call.function) for v in wide.to_pylist()]
        return Evaluated(pa.array(units, to_arrow_type(call.type)))
    return Evaluated(pc.round(wide, ndigits=places, round_mode=mode).cast(to_arrow_type(call.type)))


def _coarse(value: decimal.Decimal, places: int, name: str) -> decimal.Decimal:
    with decimal.localcontext(decimal.Context(prec=80)):
        unit = decimal.Decimal(1).scaleb(-places)
        rounding = _PYTHON.get(name) or (decimal.ROUND_FLOOR if name == "round_floor" else decimal.ROUND_CEILING)
        return (value / unit).quantize(decimal.Decimal(1), rounding) * unit


def _round_float(call: Call, x: Datum) -> Evaluated:
    """Round in doubles unless a tie is near, else by decimal text, value by value."""
    arrow, places = to_arrow_type(call.type), _scale(call)
    array = full_length(x, 1)
    values, null = stored_numbers(array).astype(np.float64), null_mask(array)
    with np.errstate(all="ignore"):
        moved = values * 10.0**places if places >= 0 else values / 10.0**-places
        whole = np.floor(moved + 0.5)
        near = np.abs(moved - np.floor(moved) - 0.5) < 1e-4
        easy = np.isfinite(values) & (np.abs(moved) < 2.0**36) & ~near & (abs(places) <= 22)
        out = whole / 10.0**places if places >= 0 else whole * 10.0**-places
    out = np.where(np.isfinite(values), out, values)
    for row in np.flatnonzero(~easy & np.isfinite(values)):
        out[row] = _by_text(float(values[row]), places, _PYTHON[call.function])
    out = np.where(easy & (out == 0), 0.0, out)  # Java's decimal has no negative zero
    return Evaluated(build_array(out.astype(arrow.to_pandas_dtype()), null, arrow))


def _by_text(value: float, places: int, rounding: str) -> float:
    with decimal.localcontext(decimal.Context(prec=800, Emax=10_000, Emin=-10_000)):
        return float(decimal.Decimal(repr(value)).quantize(decimal.Decimal(1).scaleb(-places), rounding)) + 0.0


def few_digits(call: Call, bounds: Bounds) -> Mask:
    """Return where a float's decimal text cannot differ between Java releases in a place that matters."""
    if call.args[0].type not in _FLOATS:
        return np.ones((), bool)
    limit = 10.0 ** (_SAFE_DIGITS - max(_scale(call), 0))
    ok: Mask = np.ones((), bool)
    for bound in bounds[0]:
        values: Numbers = stored_numbers(bound)
        mask = null_mask(bound)
        ok = ok & ((np.abs(values) < limit) | np.isinf(values) | (False if mask is None else mask))
    return np.asarray(ok)


for _name, _catalyst in (("round", ("Round",)), ("bround", ("BRound",))):
    declare_function(
        Function(
            _name,
            _rounded,
            _round,
            sql=(_name,),
            catalyst=_catalyst,
            claims=lambda _: (Claim.UP, Claim.FIXED),
            partial=lambda c: Partial.OUTSIDE if c.type in INTEGRAL and _scale(c) < 0 else Partial.NEVER,
            nan=lambda _: NaN.KEPT,
            reliable=few_digits,
            moded=lambda args, t: t in INTEGRAL and isinstance(args[1], Literal) and args[1].value < 0,
        )
    )


_AS_DECIMAL = {FLOAT: Decimal(14, 7), DOUBLE: Decimal(30, 15)}


def _cut_to(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    """Resolve FLOOR and CEIL with places, which work on decimals."""
    scale = _places(args)
    kind = (_AS_DECIMAL.get(args[0].type) or as_decimal(args[0].type)) if args and is_numeric(args[0].type) else None  # type: ignore[call-overload]
    if scale is None or kind is None:
        return None
    target = _decimal(kind.precision, kind.scale, scale.value)
    return Signature((implicit_cast(args[0], kind, mode, zone), scale), target) if target is not None else None


for _name, _catalyst in (("round_floor", ("RoundFloor",)), ("round_ceil", ("RoundCeil",))):
    declare_function(Function(_name, _cut_to, _round, catalyst=_catalyst, claims=lambda _: (Claim.UP, Claim.FIXED)))


def _with_places(name: str) -> None:
    @declare_overload(name)
    def build_(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
        return make_call(f"round_{name}", *args, mode=mode, zone=zone) if len(args) == 2 else None


_with_places("floor")
_with_places("ceil")


def _signed(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:
    if len(args) != 1 or not is_numeric(args[0].type):
        return None
    return Signature((implicit_cast(args[0], DOUBLE, mode, zone),), DOUBLE)


def _sign(call: Call, args: list[Datum]) -> Evaluated:  # noqa: ARG001
    x = full_length(args[0], 1)
    values = stored_numbers(x)
    return Evaluated(
        build_array(np.where(np.isnan(values) | (values == 0), values, np.sign(values)), null_mask(x), pa.float64())
    )


declare_function(
    Function(
        "sign",
        _signed,
        _sign,
        sql=("sign", "signum"),
        catalyst=("Signum",),
        claims=lambda _: (Claim.UP,),
        limits=lambda _: (-1.0, 1.0),
        nan=lambda _: NaN.KEPT,
    )
)


def _root(call: Call, args: list[Datum]) -> Evaluated:  # noqa: ARG001
    """Compute SQRT, which IEEE 754 requires to be correctly rounded; NaN below 0."""
    x = full_length(args[0], 1)
    with np.errstate(invalid="ignore"):
        return Evaluated(build_array(np.sqrt(stored_numbers(x)), null_mask(x), pa.float64()))


declare_function(
    Function(
        "sqrt",
        _signed,
        _root,
        sql=("sqrt",),
        catalyst=("Sqrt",),
        claims=lambda _: (Claim.UP,),
        nan=lambda _: NaN.SAME,
    )
)
