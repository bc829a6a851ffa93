"""CAST between the types that pruning supports; other pairs are opaque.

ANSI: a value that does not fit fails. TRY: it is NULL. LEGACY: text that does not parse is NULL, and numbers
wrap or saturate as in Java.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr import java_doubles
from tamis.core.expr.arrow_values import (
    Datum,
    Evaluated,
    Mask,
    Numbers,
    blank,
    build,
    fitted,
    nulls,
    outcome,
    raw,
    wide_decimal,
)
from tamis.core.expr.calls import call
from tamis.core.expr.coerce import is_instant, is_numeric, is_text
from tamis.core.expr.functions.cast import cast_text
from tamis.core.expr.registry import Bounds, Claim, Function, NaN, Partial, Signature, declare, sugar
from tamis.core.expr.time_zones import DAY, SECOND, Zone, zone
from tamis.core.expr.tree import Call, Expr, Mode
from tamis.core.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTEGRAL,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    DataType,
    DayTimeInterval,
    Decimal,
    Time,
)
from tamis.core.types.arrow import to_arrow_type

_FLOATS = (FLOAT, DOUBLE)
LIMITS = {
    BYTE: (-(2**7), 2**7 - 1),
    SHORT: (-(2**15), 2**15 - 1),
    INTEGER: (-(2**31), 2**31 - 1),
    LONG: (-(2**63), 2**63 - 1),
}
"""Least and greatest value of the integer types."""


def _castable(source: DataType, target: DataType) -> bool:
    """Return whether this pair of types is computed here."""
    if source == target:
        return True
    number, text = is_numeric(source) or source == BOOLEAN, is_text(source)
    if is_numeric(target):
        return (
            number
            or text
            or (source == TIMESTAMP and target in (LONG, DOUBLE))
            or (source == TIMESTAMP and target == INTEGER)
        )
    if target == BOOLEAN:
        return number or text
    if is_instant(target):
        return is_instant(source) or text or (target == TIMESTAMP and source in (*INTEGRAL, *_FLOATS))
    if is_text(target):
        return text or source in (*INTEGRAL, *_FLOATS, BOOLEAN) or is_instant(source) or isinstance(source, Decimal)
    if target == BINARY:
        return text
    return (isinstance(target, DayTimeInterval) and isinstance(source, DayTimeInterval)) or (
        isinstance(target, Time) and isinstance(source, Time) and target.precision >= source.precision
    )


def _resolve(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Signature | None:  # noqa: ARG001
    value, target = args
    return Signature((value,), target.type) if _castable(value.type, target.type) else None


def _kernel(call: Call, args: list[Datum]) -> Evaluated:
    source, target = call.args[0].type, call.type
    for applies, convert in _PAIRS:
        if applies(source, target):
            return convert(call, args[0])
    raise AssertionError(f"no cast from {source} to {target}")


def _same(call: Call, x: Datum) -> Evaluated:
    target = to_arrow_type(call.type)
    return Evaluated(x if x.type == target else x.cast(target))


def _number(call: Call, x: Datum) -> Evaluated:
    """Cast between integers, floats and booleans."""
    source, target, mode = call.args[0].type, call.type, call.mode
    values, null = raw(x), nulls(x)
    if target == BOOLEAN:
        return Evaluated(build(values != 0, null, pa.bool_()))
    arrow = to_arrow_type(target)
    dtype = arrow.to_pandas_dtype()
    if target in _FLOATS or source == BOOLEAN:
        with np.errstate(over="ignore", invalid="ignore"):
            return Evaluated(build(values.astype(dtype), null, arrow))
    least, greatest = LIMITS[target]  # type: ignore[index]
    if source in _FLOATS:
        return _from_float(values, null, call)
    bad = (values < least) | (values > greatest) if LIMITS[source][0] < least else None  # type: ignore[index]
    if mode is Mode.LEGACY:
        return Evaluated(build(values.astype(dtype), null, arrow))
    return outcome(build(values.astype(dtype), null, arrow), _present(bad, null), mode, _overflow(call))


def _from_float(values: Numbers, null: Mask | None, call: Call) -> Evaluated:
    arrow = to_arrow_type(call.type)
    least, greatest = LIMITS[call.type]  # type: ignore[index]
    wide = values.astype(np.float64)
    with np.errstate(invalid="ignore"):
        # 2^63 - 1 is not a double: Spark compares with the rounded 2^63, then Java's conversion saturates.
        bad = ~((np.floor(wide) <= float(greatest)) & (np.ceil(wide) >= float(least)))
        if call.mode is Mode.LEGACY:
            least, greatest = LIMITS[LONG if call.type == LONG else INTEGER]
        clipped = np.where(np.isnan(wide), 0.0, np.trunc(wide))
        whole = np.where(clipped >= float(greatest), greatest, np.where(clipped <= float(least), least, 0)).astype(
            np.int64
        )
        inside = (clipped < float(greatest)) & (clipped > float(least))
        whole = np.where(inside, np.where(inside, clipped, 0).astype(np.int64), whole)
    array = build(whole.astype(arrow.to_pandas_dtype()), null, arrow)
    return (
        Evaluated(array)
        if call.mode is Mode.LEGACY
        else outcome(array, _present(bad, null), call.mode, _overflow(call))
    )


def _present(bad: Mask | None, null: Mask | None) -> Mask | None:
    return bad if bad is None or null is None else bad & ~null


def _overflow(call: Call) -> str:
    return f"[CAST_OVERFLOW] A value of type {call.args[0].type} does not fit {call.type}."


def _instants(call: Call, x: Datum) -> Evaluated:
    """Cast between dates and timestamps; TIMESTAMP has a zone, the others are local."""
    source, target = call.args[0].type, call.type
    z = zone(call.zone or "UTC")
    values, null = raw(x).astype(np.int64), nulls(x)
    bad: Mask | None = None
    if source == DATE:
        bad = np.abs(values) > 106_751_990
        values = np.where(bad, 0, values) * DAY
    local = z.local(values) if source == TIMESTAMP else values
    if target == DATE:
        return Evaluated(build((local // DAY).astype(np.int32), null, pa.date32()))
    if target == TIMESTAMP:
        local = day_start(z, local) if source == DATE else z.instants(local)
    return outcome(build(local, null, to_arrow_type(target)), _present(bad, null), Mode.ANSI, _overflow(call))


def day_start(z: Zone, local: Numbers) -> Numbers:
    """Return the first instant of a local day: if midnight falls into a gap, the end of the gap."""
    out = z.instants(local)
    return out if z.fixed is not None else z.gap_start(local, out)


def _seconds(call: Call, x: Datum) -> Evaluated:
    """Cast between TIMESTAMP and numbers, which are seconds since the epoch."""
    target = call.type
    if call.args[0].type in _FLOATS:
        return _fractional_seconds(call, x)
    values, null = raw(x).astype(np.int64), nulls(x)
    if target == TIMESTAMP:
        top = np.iinfo(np.int64).max // SECOND
        low = np.where(values < -top - 1, np.iinfo(np.int64).min, np.clip(values, -top, top) * SECOND)
        return Evaluated(build(np.where(values > top, np.iinfo(np.int64).max, low), null, to_arrow_type(TIMESTAMP)))
    if target == DOUBLE:
        return Evaluated(build(values / SECOND, null, pa.float64()))
    whole = values // SECOND
    if target == LONG:
        return Evaluated(build(whole, null, pa.int64()))
    bad = (whole < LIMITS[INTEGER][0]) | (whole > LIMITS[INTEGER][1])
    array = build(whole.astype(np.int32), null, pa.int32())
    return (
        Evaluated(array)
        if call.mode is Mode.LEGACY
        else outcome(array, _present(bad, null), call.mode, _overflow(call))
    )


def _fractional_seconds(call: Call, x: Datum) -> Evaluated:
    """Convert seconds to microseconds, rounding towards zero.

    LEGACY: what is out of range saturates, and NaN and infinities are NULL.
    """
    seconds, null = raw(x).astype(np.float64), nulls(x)
    with np.errstate(all="ignore"):
        micros = seconds * float(SECOND)
        finite = np.isfinite(seconds)
        whole = np.where(np.isnan(micros), 0.0, np.trunc(micros))
        inside = (whole < 2.0**63) & (whole >= -(2.0**63))
        bad = ~finite | ~((whole <= 2.0**63) & (whole >= -(2.0**63))) if call.mode is not Mode.LEGACY else ~finite
        out = np.where(
            inside, np.where(inside, whole, 0.0).astype(np.int64), np.where(whole > 0, LIMITS[LONG][1], LIMITS[LONG][0])
        )
    return outcome(build(out, null, to_arrow_type(TIMESTAMP)), _present(bad, null), call.mode, _overflow(call))


def _to_decimal(call: Call, x: Datum) -> Evaluated:
    """Cast numbers to a decimal, rounding half up; one with too many digits does not fit."""
    target = call.type
    assert isinstance(target, Decimal)
    if call.args[0].type in _FLOATS or is_text(call.args[0].type):
        return cast_text.by_decimal(call, x)
    source = x.cast(pa.int8()) if pa.types.is_boolean(x.type) else x
    return fitted(wide_decimal(source), target, call.mode, _overflow(call))


def _from_decimal(call: Call, x: Datum) -> Evaluated:
    """Cast a decimal to an integer (towards zero), a float (nearest) or a boolean."""
    target, null = call.type, nulls(x)
    if target == BOOLEAN:
        return Evaluated(pc.not_equal(x, pa.scalar(decimal.Decimal(0), x.type)))
    if target in _FLOATS:
        values = np.array([float(v) if v is not None else 0.0 for v in x.to_pylist()], np.float64)
        with np.errstate(over="ignore"):
            return Evaluated(build(values.astype(to_arrow_type(target).to_pandas_dtype()), null, to_arrow_type(target)))
    whole = pc.trunc(wide_decimal(x)).cast(pa.decimal256(76, 0))
    least, greatest = (pa.scalar(decimal.Decimal(v), pa.decimal256(76, 0)) for v in LIMITS[target])  # type: ignore[index]
    outside = pc.or_(pc.less(whole, least), pc.greater(whole, greatest))
    bad = np.asarray(outside.fill_null(False).to_numpy(zero_copy_only=False))
    if call.mode is Mode.LEGACY and bad.any():
        values = np.array([_wrap(int(v), target) if v is not None else 0 for v in whole.to_pylist()], np.int64)
        return Evaluated(build(values.astype(to_arrow_type(target).to_pandas_dtype()), null, to_arrow_type(target)))
    return outcome(
        blank(whole, bad).cast(pa.decimal128(20, 0)).cast(to_arrow_type(target)), bad, call.mode, _overflow(call)
    )


def _wrap(value: int, target: DataType) -> int:
    """Wrap as Java's ``longValue().toInt`` does."""
    bits = {BYTE: 8, SHORT: 16, INTEGER: 32, LONG: 64}[target]  # type: ignore[index]
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


_Pair = Callable[[DataType, DataType], bool]
_NUMBERS = (*INTEGRAL, FLOAT, DOUBLE, BOOLEAN)
_PAIRS: list[tuple[_Pair, Callable[[Call, Datum], Evaluated]]] = [
    (lambda s, t: s == t or (is_text(s) and is_text(t)), _same),
    (lambda s, t: isinstance(s, DayTimeInterval | Time) and isinstance(t, DayTimeInterval | Time), _same),
    (lambda s, t: is_text(s) and t == BINARY, _same),
    (lambda s, t: s in _NUMBERS and t in _NUMBERS, _number),
    (lambda s, t: is_instant(s) and is_instant(t), _instants),
    (lambda s, t: (s == TIMESTAMP and is_numeric(t)) or (t == TIMESTAMP and s in (*INTEGRAL, *_FLOATS)), _seconds),
    (lambda _s, t: isinstance(t, Decimal), _to_decimal),
    (lambda s, _t: isinstance(s, Decimal) and not is_text(_t), _from_decimal),
    (lambda s, _t: is_text(s), cast_text.parse),
    (lambda _s, t: is_text(t), cast_text.render),
]


def lossless(source: DataType, target: DataType) -> bool:
    """Return whether every value of ``source`` has a value in ``target``: the cast never fails or wraps."""
    if source == target or target in _FLOATS:
        return is_numeric(source) or source in (BOOLEAN, target)
    if BOOLEAN in (source, target):
        return is_numeric(source) or (source == BOOLEAN and (target in INTEGRAL or is_text(target)))
    if source in INTEGRAL and target in INTEGRAL:
        return INTEGRAL.index(source) <= INTEGRAL.index(target)
    if isinstance(target, Decimal) and (source in INTEGRAL or isinstance(source, Decimal)):
        digits = source if isinstance(source, Decimal) else Decimal(len(str(LIMITS[source][1])), 0)
        return digits.precision - digits.scale < target.precision - target.scale or (
            digits.precision - digits.scale == target.precision - target.scale and digits.scale <= target.scale
        )
    if is_text(target) or target == BINARY:
        return True
    if is_instant(source) and is_instant(target):
        return source != DATE
    return (source == TIMESTAMP and target in (LONG, DOUBLE)) or (target == TIMESTAMP and source in INTEGRAL)


def _partial(call: Call) -> Partial:
    source, target = call.args[0].type, call.type
    if lossless(source, target) or isinstance(target, DayTimeInterval | Time):
        return Partial.NEVER
    # Numbers that fit form an interval. Text may fail anywhere between two texts that parse.
    return Partial.ANYWHERE if is_text(source) else Partial.OUTSIDE


def _claims(call: Call) -> tuple[Claim, ...]:
    source, target = call.args[0].type, call.type
    if source == target or (is_text(source) and (is_text(target) or target == BINARY)):
        return (Claim.UP,)
    if is_text(source) or target == BOOLEAN:
        return (Claim.FIXED,)
    if is_text(target):
        return (Claim.UP if source == BOOLEAN or is_instant(source) else Claim.FIXED,)
    return (Claim.UP,)


def _moded(args: tuple[Expr, ...], target: DataType) -> bool:
    return not lossless(args[0].type, target) and not (is_instant(args[0].type) and is_instant(target))


def _zoned(args: tuple[Expr, ...], target: DataType) -> bool:
    source = args[0].type
    if source == target:
        return False
    return (
        (TIMESTAMP in (source, target))
        and (is_instant(source) or is_text(source))
        and (is_instant(target) or is_text(target))
    )


def _whole_numbers(call: Call, bounds: Bounds) -> Mask:
    """Return where Java releases print all floats within the bounds alike.

    These are integers of at most 15 digits, and halves, quarters … of few digits.
    """
    source = call.args[0].type
    if source not in _FLOATS or not is_text(call.type):
        return np.ones((), bool)
    ok: Mask = np.ones((), bool)
    for bound in bounds[0]:
        values = raw(bound).astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            ok = (
                ok & (values * 8 == np.floor(values * 8)) & (np.abs(values) < (2.0**20 if source == FLOAT else 2.0**40))
            )
    return np.asarray(ok)


def _plain_years(call: Call, bounds: Bounds) -> Mask:
    """Return where texts of dates and timestamps have four-digit years, so that they sort like the times."""
    source = call.args[0].type
    ok: Mask = np.ones((), bool)
    if not is_text(call.type) or not is_instant(source):
        return ok
    day = 1 if source == DATE else DAY
    for bound in bounds[0]:
        values, mask = raw(bound).astype(np.int64), nulls(bound)
        ok = ok & (values >= -719_161 * day) & (values < 2_932_896 * day) & (True if mask is None else ~mask)
    return np.asarray(ok)


def _as_function(target: DataType) -> None:
    """Declare ``double(x)`` and similar functions as casts."""

    def build(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
        return call("cast", args[0], mode=mode, zone=zone, type=target) if len(args) == 1 else None

    sugar(str(target))(build)


for _type in (BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE, BOOLEAN, STRING, BINARY, DATE, TIMESTAMP):
    _as_function(_type)


def _everywhere_alike(call_: Call, bounds: Bounds) -> Mask:
    """Return where the result is the same in all Java releases and independent of the current date.

    The second excludes a time of day alone, which takes the date from the planner's clock.
    """
    alike = _whole_numbers(call_, bounds)
    if isinstance(call_.type, Decimal) and call_.args[0].type in _FLOATS:
        return (
            alike
            & java_doubles.alike(raw(bounds[0][0]), call_.type.scale)
            & java_doubles.alike(raw(bounds[0][1]), call_.type.scale)
        )
    if call_.type != TIMESTAMP or not is_text(call_.args[0].type):
        return alike
    return alike & ~cast_text.of_today(bounds[0][0]) & ~cast_text.of_today(bounds[0][1])


declare(
    Function(
        "cast",
        _resolve,
        _kernel,
        sql=("cast",),
        catalyst=("Cast",),
        claims=_claims,
        guard=_plain_years,
        partial=_partial,
        nan=lambda c: NaN.KEPT if c.type in _FLOATS and not is_text(c.args[0].type) else NaN.ANYTHING,
        rule="cast",
        moded=_moded,
        zoned=_zoned,
        reliable=_everywhere_alike,
        note=(
            "monotone between numbers, dates and timestamps; from text only single values; dates and timestamps to text"
        ),
    )
)
