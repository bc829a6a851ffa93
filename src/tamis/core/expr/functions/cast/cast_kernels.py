"""The kernels of CAST, one for each kind of pair of types."""

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
    fit_decimal,
    mode_outcome,
    null_mask,
    null_where,
    stored_numbers,
    wide_decimal,
)
from tamis.core.expr.coerce import is_instant, is_numeric, is_text
from tamis.core.expr.far_times import has_wrapped, local_days
from tamis.core.expr.functions.cast import cast_text
from tamis.core.expr.functions.cast.java_decimals import goes_through_double, nearest_float, small_integers
from tamis.core.expr.functions.datetime.clock_columns import HOUR, MINUTE
from tamis.core.expr.java_doubles import is_left_to_spark
from tamis.core.expr.time_zones import DAY, SECOND, Zone, zone_named
from tamis.core.expr.tree import Call, Mode
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
    TIMESTAMP,
    DataType,
    DayTimeInterval,
    Decimal,
    Time,
)
from tamis.core.types.arrow import to_arrow_type

FLOATS = (FLOAT, DOUBLE)
LIMITS = {
    BYTE: (-(2**7), 2**7 - 1),
    SHORT: (-(2**15), 2**15 - 1),
    INTEGER: (-(2**31), 2**31 - 1),
    LONG: (-(2**63), 2**63 - 1),
}
"""Least and greatest value of the integer types."""


def _same(call: Call, x: Datum) -> Evaluated:
    target = to_arrow_type(call.type)
    return Evaluated(x if x.type == target else x.cast(target))


INTERVAL_UNITS = {"day": DAY, "hour": HOUR, "minute": MINUTE, "second": 1}
"""Microseconds of the last field of an interval; its seconds have six digits."""


def _interval(call: Call, x: Datum) -> Evaluated:
    """Cut an interval off behind the last field of the target, towards zero."""
    assert isinstance(call.type, DayTimeInterval)
    unit, values = INTERVAL_UNITS[call.type.end], stored_numbers(x)
    return Evaluated(
        x if unit == 1 else build_array(values - np.fmod(values, unit), null_mask(x), to_arrow_type(call.type))
    )


def _number(call: Call, x: Datum) -> Evaluated:
    """Cast between integers, floats and booleans."""
    source, target, mode = call.args[0].type, call.type, call.mode
    values, null = stored_numbers(x), null_mask(x)
    if target == BOOLEAN:
        return Evaluated(build_array(values != 0, null, pa.bool_()))
    arrow = to_arrow_type(target)
    dtype = arrow.to_pandas_dtype()
    if target in FLOATS or source == BOOLEAN:
        with np.errstate(over="ignore", invalid="ignore"):
            return Evaluated(build_array(values.astype(dtype), null, arrow))
    least, greatest = LIMITS[target]  # type: ignore[index]
    if source in FLOATS:
        return _from_float(values, null, call)
    bad = (values < least) | (values > greatest) if LIMITS[source][0] < least else None  # type: ignore[index]
    if mode is Mode.LEGACY:
        return Evaluated(build_array(values.astype(dtype), null, arrow))
    return mode_outcome(build_array(values.astype(dtype), null, arrow), _present(bad, null), mode, _overflow(call))


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
    array = build_array(whole.astype(arrow.to_pandas_dtype()), null, arrow)
    return (
        Evaluated(array)
        if call.mode is Mode.LEGACY
        else mode_outcome(array, _present(bad, null), call.mode, _overflow(call))
    )


def _present(bad: Mask | None, null: Mask | None) -> Mask | None:
    return bad if bad is None or null is None else bad & ~null


def _overflow(call: Call) -> str:
    return f"[CAST_OVERFLOW] A value of type {call.args[0].type} does not fit {call.type}."


def _instants(call: Call, x: Datum) -> Evaluated:
    """Cast between dates and timestamps; TIMESTAMP has a zone, the others are local."""
    source, target = call.args[0].type, call.type
    z = zone_named(call.zone or "UTC")
    values, null = stored_numbers(x).astype(np.int64), null_mask(x)
    if target == DATE:
        return Evaluated(build_array(local_days(z, values).astype(np.int32), null, pa.date32()))
    if source == DATE:
        bad = np.abs(values) > 106_751_990
        values = np.where(bad, 0, values) * DAY
        out = day_start(z, values) if target == TIMESTAMP else values
    else:
        out = z.local(values) if source == TIMESTAMP else z.instants(values)
        bad = has_wrapped(out, values)
    return mode_outcome(build_array(out, null, to_arrow_type(target)), _present(bad, null), Mode.ANSI, _overflow(call))


def day_start(z: Zone, local: Numbers) -> Numbers:
    """Return the first instant of a local day: if midnight falls into a gap, the end of the gap."""
    out = z.instants(local)
    return out if z.fixed is not None else z.gap_start(local, out)


def _seconds(call: Call, x: Datum) -> Evaluated:
    """Cast between TIMESTAMP and numbers, which are seconds since the epoch."""
    target = call.type
    if call.args[0].type in FLOATS:
        return _fractional_seconds(call, x)
    values, null = stored_numbers(x).astype(np.int64), null_mask(x)
    if target == TIMESTAMP:
        top = np.iinfo(np.int64).max // SECOND
        low = np.where(values < -top - 1, np.iinfo(np.int64).min, np.clip(values, -top, top) * SECOND)
        return Evaluated(
            build_array(np.where(values > top, np.iinfo(np.int64).max, low), null, to_arrow_type(TIMESTAMP))
        )
    if target == DOUBLE:
        return Evaluated(build_array(values / SECOND, null, pa.float64()))
    whole = values // SECOND
    if target == LONG:
        return Evaluated(build_array(whole, null, pa.int64()))
    bad = (whole < LIMITS[INTEGER][0]) | (whole > LIMITS[INTEGER][1])
    array = build_array(whole.astype(np.int32), null, pa.int32())
    return mode_outcome(array, _present(bad, null), call.mode, _overflow(call))


def _fractional_seconds(call: Call, x: Datum) -> Evaluated:
    """Convert seconds to microseconds, rounding towards zero.

    LEGACY: what is out of range saturates, and NaN and infinities are NULL.
    """
    seconds, null = stored_numbers(x).astype(np.float64), null_mask(x)
    with np.errstate(all="ignore"):
        micros = seconds * float(SECOND)
        finite = np.isfinite(seconds)
        whole = np.where(np.isnan(micros), 0.0, np.trunc(micros))
        inside = (whole < 2.0**63) & (whole >= -(2.0**63))
        bad = ~finite | ~((whole <= 2.0**63) & (whole >= -(2.0**63))) if call.mode is not Mode.LEGACY else ~finite
        out = np.where(
            inside, np.where(inside, whole, 0.0).astype(np.int64), np.where(whole > 0, LIMITS[LONG][1], LIMITS[LONG][0])
        )
    return mode_outcome(
        build_array(out, null, to_arrow_type(TIMESTAMP)), _present(bad, null), call.mode, _overflow(call)
    )


def _to_decimal(call: Call, x: Datum) -> Evaluated:
    """Cast numbers to a decimal, rounding half up; one with too many digits does not fit."""
    target = call.type
    assert isinstance(target, Decimal)
    if call.args[0].type in FLOATS or is_text(call.args[0].type):
        return cast_text.by_decimal(call, x)
    source = x.cast(pa.int8()) if pa.types.is_boolean(x.type) else x
    return fit_decimal(wide_decimal(source), target, call.mode, _overflow(call))


def _from_decimal(call: Call, x: Datum) -> Evaluated:
    """Cast a decimal to an integer (towards zero), a float (nearest) or a boolean."""
    target, null = call.type, null_mask(x)
    if target == BOOLEAN:
        return Evaluated(pc.not_equal(x, pa.scalar(decimal.Decimal(0), x.type)))
    if target in FLOATS:
        return Evaluated(nearest_float(x, target))
    if goes_through_double(call.args[0].type, target, call.mode):
        return _to_small_integer(call, x, null)
    whole = pc.trunc(wide_decimal(x)).cast(pa.decimal256(76, 0))
    least, greatest = (pa.scalar(decimal.Decimal(v), pa.decimal256(76, 0)) for v in LIMITS[target])  # type: ignore[index]
    outside = pc.or_(pc.less(whole, least), pc.greater(whole, greatest))
    bad = np.asarray(outside.fill_null(False).to_numpy(zero_copy_only=False))
    if call.mode is Mode.LEGACY and bad.any():
        values = np.array([wrap_integer(int(v), target) if v is not None else 0 for v in whole.to_pylist()], np.int64)
        return Evaluated(
            build_array(values.astype(to_arrow_type(target).to_pandas_dtype()), null, to_arrow_type(target))
        )
    return mode_outcome(
        null_where(whole, bad).cast(pa.decimal128(20, 0)).cast(to_arrow_type(target)), bad, call.mode, _overflow(call)
    )


def _to_small_integer(call: Call, x: Datum, null: Mask | None) -> Evaluated:
    found, arrow = small_integers(call, x), to_arrow_type(call.type)
    values = build_array(found.values.astype(arrow.to_pandas_dtype()), null, arrow)
    cast_ = mode_outcome(values, found.unfit, call.mode, _overflow(call))
    return cast_text.left_to_spark(cast_, found.unsure) if is_left_to_spark() and found.unsure.any() else cast_


def wrap_integer(value: int, target: DataType) -> int:
    """Wrap as Java's ``longValue().toInt`` does."""
    bits = {BYTE: 8, SHORT: 16, INTEGER: 32, LONG: 64}[target]  # type: ignore[index]
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


_Pair = Callable[[DataType, DataType], bool]
_NUMBERS = (*INTEGRAL, FLOAT, DOUBLE, BOOLEAN)
PAIRS: list[tuple[_Pair, Callable[[Call, Datum], Evaluated]]] = [
    (lambda s, t: s == t or (is_text(s) and is_text(t)), _same),
    (lambda s, t: isinstance(s, DayTimeInterval) and isinstance(t, DayTimeInterval), _interval),
    (lambda s, t: isinstance(s, Time) and isinstance(t, Time), _same),
    (lambda s, t: is_text(s) and t == BINARY, _same),
    (lambda s, t: s in _NUMBERS and t in _NUMBERS, _number),
    (lambda s, t: is_instant(s) and is_instant(t), _instants),
    (lambda s, t: (s == TIMESTAMP and is_numeric(t)) or (t == TIMESTAMP and s in (*INTEGRAL, *FLOATS)), _seconds),
    (lambda _s, t: isinstance(t, Decimal), _to_decimal),
    (lambda s, _t: isinstance(s, Decimal) and not is_text(_t), _from_decimal),
    (lambda s, _t: is_text(s), cast_text.parse),
    (lambda _s, t: is_text(t), cast_text.render),
]
"""Kernels by pairs of types; the first that applies is taken."""
