"""MAKE_DATE, TIMESTAMPDIFF, TIMESTAMPADD, conversion to and from UTC, and year-month intervals."""

from __future__ import annotations

import numpy as np

from tamis.core.expr.arrow_values import Datum, Evaluated, Numbers, mask_union, mode_outcome, null_mask, row_count
from tamis.core.expr.calls import make_call
from tamis.core.expr.coerce import implicit_cast, is_instant, is_text
from tamis.core.expr.far_times import cycles_away, has_wrapped, local_parts
from tamis.core.expr.functions.cast.cast_kernels import LIMITS
from tamis.core.expr.functions.datetime.clock_columns import HOUR, MILLI, MINUTE, month_days, month_start
from tamis.core.expr.functions.datetime.time_units import build_checked, build_typed, int64_numbers
from tamis.core.expr.registry import (
    Claim,
    Function,
    Partial,
    Signature,
    declare_function,
    declare_overload,
    declare_sugar,
)
from tamis.core.expr.time_zones import DAY, SECOND, Zone, zone_in_data, zone_named
from tamis.core.expr.tree import Call, Expr, Literal, Mode
from tamis.core.types import (
    DATE,
    INTEGER,
    INTEGRAL,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    YEAR_MONTH,
    DayTimeInterval,
)
from tamis.errors import InvalidInput

FAR_YEAR = 5_800_000
"""Years from about which Java's days overflow an integer: an error in every mode."""
_MOST_YEARS = 6_000_000
"""More than any year of which the days fit."""


def _three_integers(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:
    if len(args) != 3 or any(a.type not in INTEGRAL or a.type == LONG for a in args):
        return None
    return Signature(tuple(implicit_cast(a, INTEGER, mode, zone_name) for a in args), DATE)


def _make_date(call_: Call, args: list[Datum]) -> Evaluated:
    year, month, day = (np.broadcast_to(int64_numbers(a), (row_count(args),)) for a in args)
    good = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31) & (np.abs(year) < _MOST_YEARS)
    index = np.where(good, (year - 1970) * 12 + month - 1, 0)
    first = month_days(index)
    days = first + day - 1
    good &= (day <= month_days(index + 1) - first) & (days >= -(2**31)) & (days < 2**31)
    null = mask_union(*(null_mask(a) for a in args))
    bad = ~good if null is None else ~good & ~null
    return mode_outcome(
        build_typed(np.where(good, days, 0), args, DATE),
        bad,
        call_.mode,
        "[DATETIME_FIELD_OUT_OF_BOUNDS] There is no such date.",
    )


declare_function(
    Function(
        "make_date",
        _three_integers,
        _make_date,
        sql=("make_date",),
        catalyst=("MakeDate",),
        claims=lambda _: (Claim.UP, Claim.UP, Claim.UP),
        partial=lambda _: Partial.ANYWHERE,
        moded=lambda _args, _type: True,
        lenient=True,
        rule="make_date",
    )
)

_UNITS = {
    "microsecond": 1,
    "millisecond": MILLI,
    "second": SECOND,
    "minute": MINUTE,
    "hour": HOUR,
    "day": DAY,
    "week": 7 * DAY,
}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def _unit(arg: Expr) -> str | None:
    name = arg.value.lower() if isinstance(arg, Literal) and isinstance(arg.value, str) else ""
    return name if name in _UNITS or name in _MONTHS else None


def _unit_and_instants(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:
    if len(args) != 3 or _unit(args[0]) is None or not all(is_instant(a.type) or is_text(a.type) for a in args[1:]):
        return None
    return Signature((args[0], *(implicit_cast(a, TIMESTAMP, mode, zone_name) for a in args[1:])), LONG)


def _difference(call_: Call, args: list[Datum]) -> Evaluated:
    """Compute whole units between local times, towards zero (Java's ``ChronoUnit.between``)."""
    unit = _unit(call_.args[0])
    assert unit is not None
    z = zone_named(call_.zone or "UTC")
    (from_day, from_clock), (to_day, to_clock) = (local_parts(z, int64_numbers(a)) for a in args[1:])
    days, clock = to_day - from_day, to_clock - from_clock
    unfinished = np.where(np.sign(days) * np.sign(clock) < 0, np.sign(days), 0)  # the last day, without its full time
    days, clock = days - unfinished, clock + unfinished * DAY
    if unit == "microsecond":
        micros = days * DAY + clock
        return build_checked(micros, has_wrapped(micros, days * float(DAY)), args[1:], LONG)
    if unit in _MONTHS:
        out = _towards_zero(_months_between(from_day, from_day + days), _MONTHS[unit])
    elif _UNITS[unit] >= DAY:
        out = _towards_zero(days, _UNITS[unit] // DAY)
    else:
        out = days * (DAY // _UNITS[unit]) + _towards_zero(clock, _UNITS[unit])
    return Evaluated(build_typed(out, args[1:], LONG))


def _towards_zero(values: Numbers, size: int) -> Numbers:
    return np.asarray(np.sign(values) * (np.abs(values) // size))


def _months_between(from_day: Numbers, to_day: Numbers) -> Numbers:
    """Return whole months between days."""
    (m1, d1), (m2, d2) = month_start(from_day), month_start(to_day)
    return _towards_zero((m2 * 32 + d2) - (m1 * 32 + d1), 32)


declare_function(
    Function(
        "timestampdiff",
        _unit_and_instants,
        _difference,
        sql=("timestampdiff", "timestamp_diff"),
        catalyst=("TimestampDiff",),
        claims=lambda _: (Claim.FIXED, Claim.DOWN, Claim.UP),
        partial=lambda c: Partial.OUTSIDE if _unit(c.args[0]) == "microsecond" else Partial.NEVER,
        guard=lambda _c, bounds: _centuries(bounds),
        zoned=lambda _args, _type: True,
        local=True,
    )
)


def _centuries(bounds: object) -> Numbers:
    """Return where local times are far from the ends of 64 bits."""
    ok = np.ones((), bool)
    for pair in list(bounds)[1:]:  # type: ignore[call-overload]
        for bound in pair:
            mask = null_mask(bound)
            ok = ok & (np.abs(int64_numbers(bound)) < 2**61) & (True if mask is None else ~mask)
    return np.asarray(ok)


@declare_overload("datediff")
def _datediff(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Expr | None:
    return make_call("timestampdiff", *args, mode=mode, zone=zone_name) if len(args) == 3 else None


@declare_sugar("timestampadd", "dateadd", catalyst=("TimestampAdd",))
def _timestampadd(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Expr | None:
    """Rewrite ``timestampadd(unit, n, time)`` to the addition of an interval; months only with a constant ``n``.

    ``dateadd(day, n)`` is ``date_add``.
    """
    if len(args) == 2:
        return make_call("date_add", *args, mode=mode, zone=zone_name)
    if len(args) != 3 or not (is_instant(args[2].type) or is_text(args[2].type)):
        return None
    unit, count = _unit(args[0]), args[1]
    if unit is None or count.type not in INTEGRAL:
        return None
    time = (
        args[2]
        if is_instant(args[2].type) and args[2].type != DATE
        else implicit_cast(args[2], TIMESTAMP, mode, zone_name)
    )
    if not isinstance(count, Literal):
        return None if unit in _MONTHS else _add_units(unit, count, time, zone_name)
    if count.value is None:
        return None
    if unit in _MONTHS:
        months = count.value * _MONTHS[unit]
        fits = LIMITS[INTEGER][0] <= months <= LIMITS[INTEGER][1]
        return (
            make_call("timestamp_add_months", time, Literal(INTEGER, months), mode=mode, zone=zone_name)
            if fits
            else None
        )
    micros = count.value * _UNITS[unit]
    if not LIMITS[LONG][0] <= micros <= LIMITS[LONG][1]:
        return None
    if unit not in {"day", "week"} and time.type == TIMESTAMP:  # elapsed time, not calendar days
        return make_call("timestamp_micros", make_call("add", make_call("unix_micros", time), Literal(LONG, micros)))
    return make_call("timestamp_add", time, Literal(DayTimeInterval(), micros), mode=mode, zone=zone_name)


def _add_units(unit: str, count: Expr, time: Expr, zone_name: str | None) -> Expr:
    """Return ``time`` moved by a number of units that depends on the row. An overflow is an error in either mode."""
    if unit not in {"day", "week"} and time.type == TIMESTAMP:  # elapsed time, not calendar days
        micros = make_call("multiply", Literal(LONG, _UNITS[unit]), implicit_cast(count, LONG, Mode.ANSI, zone_name))
        return make_call("timestamp_micros", make_call("add", micros, make_call("unix_micros", time)))
    interval = make_call("interval_multiply", Literal(DayTimeInterval(), _UNITS[unit]), count)
    return make_call("timestamp_add", time, interval, zone=zone_name)


@declare_overload("date_add")
def _date_add_unit(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Expr | None:
    return make_call("timestampadd", *args, mode=mode, zone=zone_name) if len(args) == 3 else None


def _to_zone(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:
    if len(args) != 2 or not (is_instant(args[0].type) or is_text(args[0].type)) or named_zone(args[1]) is None:
        return None
    return Signature((implicit_cast(args[0], TIMESTAMP, mode, zone_name), args[1]), TIMESTAMP)


def named_zone(arg: Expr) -> Zone | None:
    """Return the zone named by a constant text; None if there is none (Spark fails)."""
    if not isinstance(arg, Literal) or not isinstance(arg.value, str):
        return None
    try:
        return zone_in_data(arg.value)
    except InvalidInput:
        return None


def _moved(call_: Call, args: list[Datum]) -> Evaluated:
    z, values = named_zone(call_.args[1]), int64_numbers(args[0])
    assert z is not None
    found = z.local(values) if call_.function == "from_utc_timestamp" else z.instants(values)
    return build_checked(found, has_wrapped(found, values), args[:1], TIMESTAMP)


for _name, _catalyst in (("from_utc_timestamp", ("FromUTCTimestamp",)), ("to_utc_timestamp", ("ToUTCTimestamp",))):
    declare_function(
        Function(
            _name,
            _to_zone,
            _moved,
            sql=(_name,),
            catalyst=_catalyst,
            partial=lambda _: Partial.OUTSIDE,
            rule="utc",
            note="through the zone's envelope",
        )
    )


def _between_zones(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:  # noqa: ARG001
    """Resolve CONVERT_TIMEZONE of a local time; without a first zone, it is in the session's."""
    given = args if len(args) == 3 else (Literal(STRING, zone_name or "UTC"), *args)
    if len(given) != 3 or given[2].type != TIMESTAMP_NTZ or any(named_zone(a) is None for a in given[:2]):
        return None
    return Signature(given, TIMESTAMP_NTZ)


def _converted(call_: Call, args: list[Datum]) -> Evaluated:
    source, target = (named_zone(a) for a in call_.args[:2])
    assert source is not None
    assert target is not None
    local = int64_numbers(args[2])
    away = cycles_away(local)
    found = target.local(source.instants(local - away)) + away
    return build_checked(found, has_wrapped(found, local), args, TIMESTAMP_NTZ)


declare_function(
    Function(
        "convert_timezone",
        _between_zones,
        _converted,
        sql=("convert_timezone",),
        catalyst=("ConvertTimezone",),
        partial=lambda _: Partial.OUTSIDE,
        rule="utc",
        note="of local times, through the envelopes of both zones",
    )
)


# Intervals of years and months, in months


def _months_resolve(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:
    given = (*args, Literal(INTEGER, 0), Literal(INTEGER, 0))[:2]
    if len(args) > 2 or any(a.type not in INTEGRAL or a.type == LONG for a in given):
        return None
    return Signature(tuple(implicit_cast(a, INTEGER, mode, zone_name) for a in given), YEAR_MONTH)


def _make_months(call_: Call, args: list[Datum]) -> Evaluated:
    months = int64_numbers(args[0]) * 12 + int64_numbers(args[1])
    return build_checked(months, (months < LIMITS[INTEGER][0]) | (months > LIMITS[INTEGER][1]), args, call_.type)


declare_function(
    Function(
        "make_ym_interval",
        _months_resolve,
        _make_months,
        sql=("make_ym_interval",),
        catalyst=("MakeYMInterval",),
        claims=lambda _: (Claim.UP, Claim.UP),
        partial=lambda _: Partial.OUTSIDE,
    )
)


def _two_months(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:  # noqa: ARG001
    return Signature(args, YEAR_MONTH) if len(args) == 2 and all(a.type == YEAR_MONTH for a in args) else None


def _sum_of_months(call_: Call, args: list[Datum]) -> Evaluated:
    out = int64_numbers(args[0]) + (1 if call_.function == "months_add" else -1) * int64_numbers(args[1])
    return build_checked(out, (out < LIMITS[INTEGER][0]) | (out > LIMITS[INTEGER][1]), args, YEAR_MONTH)


for _name, _claim in (("months_add", Claim.UP), ("months_subtract", Claim.DOWN)):
    declare_function(
        Function(
            _name,
            _two_months,
            _sum_of_months,
            claims=lambda _c, claim=_claim: (Claim.UP, claim),  # type: ignore[misc]
            partial=lambda _: Partial.OUTSIDE,
        )
    )


def _as_months(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:  # noqa: ARG001
    return Signature(args, INTEGER) if len(args) == 1 and args[0].type == YEAR_MONTH else None


declare_function(
    Function(
        "months_of",
        _as_months,
        lambda _c, args: Evaluated(build_typed(int64_numbers(args[0]), args, INTEGER)),
        claims=lambda _: (Claim.UP,),
    )
)
