"""MAKE_TIMESTAMP and MONTHS_BETWEEN."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from tamis.core.expr.arrow_values import (
    Datum,
    Evaluated,
    Mask,
    Numbers,
    mask_union,
    mode_outcome,
    null_mask,
    row_count,
)
from tamis.core.expr.coerce import implicit_cast, is_instant, is_numeric, is_text
from tamis.core.expr.far_times import cycles_away, has_wrapped, local_days
from tamis.core.expr.functions.datetime.clock_columns import HOUR, MINUTE, month_days, month_start
from tamis.core.expr.functions.datetime.time_units import build_checked, build_typed, int64_numbers
from tamis.core.expr.registry import Claim, Function, Partial, Signature, declare_function
from tamis.core.expr.time_zones import DAY, SECOND, Zone, zone_named
from tamis.core.expr.tree import Call, Expr, Literal, Mode
from tamis.core.types import BOOLEAN, DOUBLE, INTEGER, INTEGRAL, LONG, TIMESTAMP, TIMESTAMP_NTZ, DataType, Decimal

_SECONDS = Decimal(16, 6)
_NEAR = 290_000
"""Years whose microseconds fit in 64 bits."""


def _six(args: tuple[Expr, ...], mode: Mode, zone_name: str | None, made_type: DataType) -> Signature | None:
    """Resolve year, month, day, hour, minute, and seconds with six decimal places.

    TRY does not cover the cast of the seconds, so there it takes none that can overflow.
    """
    if (
        len(args) != 6
        or any(a.type not in INTEGRAL or a.type == LONG for a in args[:5])
        or not is_numeric(args[5].type)
    ):
        return None
    if not (args[5].type in INTEGRAL or isinstance(args[5].type, Decimal)):
        return None
    if mode is Mode.TRY and not _fits_seconds(args[5].type):
        return None
    return Signature(
        (
            *(implicit_cast(a, INTEGER, mode, zone_name) for a in args[:5]),
            implicit_cast(args[5], _SECONDS, mode, zone_name),
        ),
        made_type,
    )


def _fits_seconds(data_type: DataType) -> bool:
    if isinstance(data_type, Decimal):
        return data_type.precision - data_type.scale <= _SECONDS.precision - _SECONDS.scale
    return data_type != LONG


def _micros(x: Datum) -> Numbers:
    """Convert seconds with six decimal places to whole microseconds."""
    return np.array(
        [
            0 if v is None else int(v.scaleb(6))
            for v in (pa.repeat(x, 1) if isinstance(x, pa.Scalar) else x).to_pylist()
        ],
        np.int64,
    )


def _make_timestamp(call_: Call, args: list[Datum]) -> Evaluated:
    n = row_count(args)
    year, month, day, hour, minute = (np.broadcast_to(int64_numbers(a), (n,)) for a in args[:5])
    micros = np.broadcast_to(_micros(args[5]), (n,))
    good = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31) & (np.abs(year) < _NEAR)
    index = np.where(good, (year - 1970) * 12 + month - 1, 0)
    first = month_days(index)
    good &= day <= month_days(index + 1) - first
    good &= (
        (hour >= 0) & (hour < 24) & (minute >= 0) & (minute < 60) & (micros >= 0) & (micros <= 60 * SECOND)
    )  # 60 is the next minute
    local = np.where(good, (first + day - 1) * DAY + hour * HOUR + minute * MINUTE + micros, 0)
    null = mask_union(*(null_mask(a) for a in args))
    bad = ~good if null is None else ~good & ~null
    at = zone_named(call_.zone or "UTC").instants(local) if call_.type == TIMESTAMP else local
    return mode_outcome(
        build_typed(at, args, call_.type), bad, call_.mode, "[DATETIME_FIELD_OUT_OF_BOUNDS] There is no such time."
    )


declare_function(
    Function(
        "make_timestamp",
        partial(_six, made_type=TIMESTAMP),
        _make_timestamp,
        sql=("make_timestamp", "make_timestamp_ltz"),
        catalyst=("MakeTimestamp",),
        claims=lambda _: (Claim.UP,) * 6,
        partial=lambda _: Partial.ANYWHERE,
        moded=lambda _args, _type: True,
        lenient=True,
        zoned=lambda _args, _type: True,
        local=True,
    )
)
declare_function(
    Function(
        "make_timestamp_ntz",
        partial(_six, made_type=TIMESTAMP_NTZ),
        _make_timestamp,
        sql=("make_timestamp_ntz",),
        claims=lambda _: (Claim.UP,) * 6,
        partial=lambda _: Partial.ANYWHERE,
        moded=lambda _args, _type: True,
        lenient=True,
    )
)


def _two_times(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:
    """Resolve two instants and whether to round, which must be true (the default)."""
    round_off = args[2] if len(args) == 3 else Literal(BOOLEAN, True)
    if len(args) not in (2, 3) or not isinstance(round_off, Literal) or round_off.value is not True:
        return None
    if not all(is_instant(a.type) or is_text(a.type) for a in args[:2]):
        return None
    return Signature((*(implicit_cast(a, TIMESTAMP, mode, zone_name) for a in args[:2]), round_off), DOUBLE)


def _months_between(call_: Call, args: list[Datum]) -> Evaluated:
    """Return months between two times.

    They are whole between equal days of the month and between last days; otherwise a day is 1/31 of a month. Then it
    fails for a time whose midnight is before the least time of 64 bits.
    """
    z = zone_named(call_.zone or "UTC")
    (month_a, day_a, last_a, time_a, lost_a), (month_b, day_b, last_b, time_b, lost_b) = (
        _calendar(z, np.atleast_1d(int64_numbers(a))) for a in args[:2]
    )
    whole = (day_a == day_b) | (last_a & last_b)
    seconds = (day_a - day_b) * 86_400 + time_a - time_b
    months = (month_a - month_b).astype(np.float64)
    parts = np.floor((months + seconds / (31 * 86_400)) * 1e8 + 0.5) / 1e8
    return build_checked(np.where(whole, months, parts), (lost_a | lost_b) & ~whole, args[:2], DOUBLE)


def _calendar(z: Zone, instants: Numbers) -> tuple[Numbers, Numbers, Mask, Numbers, Mask]:
    """Return months since 1970, the day of the month, whether it is the last, seconds since midnight.

    The last mask tells where midnight is beyond 64 bits.
    """
    days = local_days(z, instants)
    month, day = month_start(days)
    away = cycles_away(instants)
    midnight = z.instants((days - away // DAY) * DAY)
    elapsed = (instants - away - midnight) // SECOND
    return month, day, days == month_days(month + 1) - 1, elapsed, has_wrapped(midnight + away, instants)


declare_function(
    Function(
        "months_between",
        _two_times,
        _months_between,
        sql=("months_between",),
        catalyst=("MonthsBetween",),
        claims=lambda _: (Claim.UP, Claim.DOWN, Claim.FIXED),
        partial=lambda _: Partial.OUTSIDE,
        rule="months_between",
        zoned=lambda _args, _type: True,
        note="as the calendar has it, give or take the days by which months differ",
    )
)
