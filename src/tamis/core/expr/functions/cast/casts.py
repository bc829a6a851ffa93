"""CAST between the types that pruning supports; other pairs are opaque.

ANSI: a value that does not fit fails. TRY: it is NULL. LEGACY: text that does not parse is NULL, and numbers
wrap or saturate as in Java.
"""

from __future__ import annotations

import numpy as np

from tamis.core.expr import java_doubles
from tamis.core.expr.arrow_values import Datum, Evaluated, Mask, null_mask, stored_numbers
from tamis.core.expr.calls import make_call
from tamis.core.expr.coerce import is_instant, is_numeric, is_text
from tamis.core.expr.functions.cast import cast_text
from tamis.core.expr.functions.cast.cast_kernels import FLOATS, LIMITS, PAIRS
from tamis.core.expr.functions.cast.java_decimals import goes_through_double, is_alike, prints_exponents
from tamis.core.expr.registry import Bounds, Claim, Function, NaN, Partial, Signature, declare_function, declare_sugar
from tamis.core.expr.time_zones import DAY, zone_named
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
    TIMESTAMP_NTZ,
    DataType,
    DayTimeInterval,
    Decimal,
    Time,
)


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
        return is_instant(source) or text or (target == TIMESTAMP and source in (*INTEGRAL, *FLOATS))
    if is_text(target):
        return text or source in (*INTEGRAL, *FLOATS, BOOLEAN) or is_instant(source) or isinstance(source, Decimal)
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
    for applies, convert in PAIRS:
        if applies(source, target):
            return convert(call, args[0])
    raise AssertionError(f"no cast from {source} to {target}")


def is_lossless_cast(source: DataType, target: DataType) -> bool:
    """Return whether every value of ``source`` has a value in ``target``: the cast never fails or wraps."""
    if source == target or target in FLOATS:
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
        return target == DATE
    return (source == TIMESTAMP and target in (LONG, DOUBLE)) or (target == TIMESTAMP and source in INTEGRAL)


def _partial(call: Call) -> Partial:
    source, target = call.args[0].type, call.type
    if is_lossless_cast(source, target) or isinstance(target, DayTimeInterval | Time):
        return Partial.NEVER
    if {source, target} == {TIMESTAMP, TIMESTAMP_NTZ} and zone_named(call.zone or "UTC").fixed == 0:
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
    if prints_exponents(args[0].type, target):
        return True
    return not is_lossless_cast(args[0].type, target) and not (is_instant(args[0].type) and is_instant(target))


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
    if source not in FLOATS or not is_text(call.type):
        return np.ones((), bool)
    ok: Mask = np.ones((), bool)
    for bound in bounds[0]:
        values = stored_numbers(bound).astype(np.float64)
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
        values, mask = stored_numbers(bound).astype(np.int64), null_mask(bound)
        ok = ok & (values >= -719_161 * day) & (values < 2_932_896 * day) & (True if mask is None else ~mask)
    return np.asarray(ok)


def _as_function(target: DataType) -> None:
    """Declare ``double(x)`` and similar functions as casts."""

    def build(args: tuple[Expr, ...], mode: Mode, zone: str | None) -> Expr | None:
        return make_call("cast", args[0], mode=mode, zone=zone, type=target) if len(args) == 1 else None

    declare_sugar(str(target))(build)


for _type in (BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE, BOOLEAN, STRING, BINARY, DATE, TIMESTAMP):
    _as_function(_type)


def _everywhere_alike(call_: Call, bounds: Bounds) -> Mask:
    """Return where the result is the same in all Java releases and independent of the current date.

    The second excludes a time of day alone, which takes the date from the planner's clock. A region in a text may
    have other offsets in the JVM.
    """
    alike = _whole_numbers(call_, bounds)
    source = call_.args[0].type
    if goes_through_double(source, call_.type, Mode.ANSI) or prints_exponents(source, call_.type):
        return alike & is_alike(call_, bounds[0][0]) & is_alike(call_, bounds[0][1])
    if isinstance(call_.type, Decimal) and call_.args[0].type in FLOATS:
        return (
            alike
            & java_doubles.has_stable_text(stored_numbers(bounds[0][0]), call_.type.scale)
            & java_doubles.has_stable_text(stored_numbers(bounds[0][1]), call_.type.scale)
        )
    if call_.type != TIMESTAMP or not is_text(call_.args[0].type):
        return alike
    for bound in bounds[0]:
        alike = alike & ~cast_text.of_today(bound) & ~cast_text.names_region(bound)
    return alike


declare_function(
    Function(
        "cast",
        _resolve,
        _kernel,
        sql=("cast",),
        catalyst=("Cast",),
        claims=_claims,
        guard=_plain_years,
        partial=_partial,
        nan=lambda c: NaN.KEPT if c.type in FLOATS and not is_text(c.args[0].type) else NaN.ANYTHING,
        rule="cast",
        moded=_moded,
        zoned=_zoned,
        reliable=_everywhere_alike,
        note=(
            "monotone between numbers, dates and timestamps; from text only single values; dates and timestamps to text"
        ),
    )
)
