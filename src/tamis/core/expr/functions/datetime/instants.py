"""Functions of instants and day-time intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tamis.core.expr.arrow_values import Datum, Evaluated, Numbers
from tamis.core.expr.calls import make_call
from tamis.core.expr.coerce import common_type, implicit_cast, is_instant
from tamis.core.expr.evaluate import constant_value
from tamis.core.expr.far_times import cycles_away, has_wrapped, local_parts
from tamis.core.expr.functions.datetime.clock_columns import add_months
from tamis.core.expr.functions.datetime.time_units import build_checked, int64_numbers
from tamis.core.expr.registry import Claim, Function, Partial, Signature, declare_function, declare_overload
from tamis.core.expr.time_zones import DAY, zone_named
from tamis.core.expr.tree import Call, Expr, Literal, Mode
from tamis.core.types import DATE, INTEGER, INTEGRAL, TIMESTAMP, TIMESTAMP_NTZ, YEAR_MONTH, DayTimeInterval


def _instant_and_interval(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:
    if len(args) != 2 or not isinstance(args[1].type, DayTimeInterval) or not is_instant(args[0].type):
        return None
    arg = implicit_cast(args[0], TIMESTAMP, mode, zone_name) if args[0].type == DATE else args[0]
    interval = replace(args[1], type=DayTimeInterval()) if isinstance(args[1], Literal) else args[1]
    return Signature((arg, interval), arg.type)


def split_interval(interval: Numbers) -> tuple[Numbers, Numbers]:
    """Split a day-time interval into whole days (towards zero) and the rest, both in microseconds."""
    rest = np.fmod(interval, DAY)
    return interval - rest, rest


def _timestamp_add(call: Call, args: list[Datum]) -> Evaluated:
    """Add days on the local calendar, then the rest as elapsed time (Java's ``plusDays`` and ``plus``)."""
    values, interval = int64_numbers(args[0]), int64_numbers(args[1])
    expected, whole = values.astype(np.float64) + interval, values + interval
    z = zone_named(call.zone or "UTC")
    if call.type == TIMESTAMP and z.fixed is None:
        days, rest = split_interval(interval)
        offset, away = z.offset(values), cycles_away(expected)
        whole = z.instants(values - away + offset + days, offset) + rest + away
    return build_checked(whole, has_wrapped(whole, expected), args, call.type)


declare_function(
    Function(
        "timestamp_add",
        _instant_and_interval,
        _timestamp_add,
        catalyst=("TimeAdd", "TimestampAddInterval"),
        claims=lambda _: (Claim.UP, Claim.UP),
        partial=lambda _: Partial.OUTSIDE,
        rule="timestamp_add",
        zoned=lambda _args, t: t == TIMESTAMP,
        note="days are days of the session's calendar",
    )
)


def _instant_and_months(args: tuple[Expr, ...], _mode: Mode, _zone: str | None) -> Signature | None:
    if len(args) != 2 or args[1].type != INTEGER or args[0].type not in (TIMESTAMP, TIMESTAMP_NTZ):
        return None
    return Signature(args, args[0].type)


def _timestamp_add_months(call: Call, args: list[Datum]) -> Evaluated:
    z, values = zone_named(call.zone or "UTC"), int64_numbers(args[0])
    days, clock = local_parts(z, values)
    day = add_months(days, int64_numbers(args[1]))
    expected = day * float(DAY)
    away = cycles_away(expected)
    out = z.instants((day - away // DAY) * DAY + clock, z.offset(values)) + away
    return build_checked(out, has_wrapped(out, expected), args, call.type)


declare_function(
    Function(
        "timestamp_add_months",
        _instant_and_months,
        _timestamp_add_months,
        catalyst=("TimestampAddYMInterval",),
        rule="timestamp_add_months",
        partial=lambda _: Partial.OUTSIDE,
        zoned=lambda _args, t: t == TIMESTAMP,
        note="not monotone: the day is cut, the time of day is kept; bounded by whole days",
    )
)


def _two_instants(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:
    if len(args) != 2 or not all(is_instant(a.type) for a in args):
        return None
    target = TIMESTAMP_NTZ if TIMESTAMP_NTZ in (args[0].type, args[1].type) else TIMESTAMP
    return Signature(tuple(implicit_cast(a, target, mode, zone_name) for a in args), DayTimeInterval())


def _subtract_timestamps(call: Call, args: list[Datum]) -> Evaluated:
    """Return the difference of the local times; an hour repeated in autumn counts once."""
    a, b = int64_numbers(args[0]), int64_numbers(args[1])
    z = zone_named(call.zone or "UTC")
    out = a - b + (z.offset(a) - z.offset(b))
    return build_checked(out, has_wrapped(out, a.astype(np.float64) - b), args, call.type)


declare_function(
    Function(
        "subtract_timestamps",
        _two_instants,
        _subtract_timestamps,
        catalyst=("SubtractTimestamps",),
        claims=lambda _: (Claim.UP, Claim.DOWN),
        partial=lambda _: Partial.OUTSIDE,
        zoned=lambda args, _: args[0].type == TIMESTAMP,
        local=True,
    )
)


def _shift(sign: int) -> Callable[[tuple[Expr, ...], Mode, str | None], Expr | None]:
    """Build ``date/timestamp ± interval`` (either order for +), ``date ± days``, and differences."""

    def build(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Expr | None:
        if len(args) != 2:
            return None
        a, b = args
        if sign > 0 and is_instant(b.type) and not is_instant(a.type):
            a, b = b, a
        if isinstance(a.type, DayTimeInterval) and isinstance(b.type, DayTimeInterval):
            return _interval_sum(a, b, sign)
        if a.type == b.type == YEAR_MONTH:
            return _folded(make_call("months_add" if sign > 0 else "months_subtract", a, b))
        if not is_instant(a.type):
            return None
        if isinstance(b.type, DayTimeInterval):
            if a.type == DATE and b.type == DayTimeInterval("day", "day"):
                name = "date_add" if sign > 0 else "date_sub"
                return make_call(name, a, _folded(make_call("interval_days", b)), mode=mode, zone=zone_name)
            return _with_interval(a, b, sign, mode, zone_name)
        if b.type == YEAR_MONTH:
            name = "add_months" if a.type == DATE else "timestamp_add_months"
            return make_call(name, a, _months(b, sign), mode=mode, zone=zone_name)
        if a.type == DATE and b.type in INTEGRAL:
            return make_call("date_add" if sign > 0 else "date_sub", a, b, mode=mode, zone=zone_name)
        if sign < 0 and is_instant(b.type):
            name = "subtract_dates" if a.type == b.type == DATE else "subtract_timestamps"
            return make_call(name, a, b, mode=mode, zone=zone_name)
        return None

    return build


def _months(interval: Expr, sign: int) -> Expr:
    """Return the months of an interval as an integer."""
    if isinstance(interval, Literal):
        return Literal(INTEGER, None if interval.value is None else sign * interval.value)
    months = make_call("months_of", interval)
    return months if sign > 0 else make_call("negate", months)


def _folded(expr: Expr) -> Expr:
    """Fold the expression if it is constant."""
    return constant_value(expr) or expr


def _with_interval(a: Expr, b: Expr, sign: int, mode: Mode, zone_name: str | None) -> Expr | None:
    if sign > 0:
        return make_call("timestamp_add", a, b, mode=mode, zone=zone_name)
    if isinstance(b, Literal):
        return make_call(
            "timestamp_add", a, Literal(b.type, None if b.value is None else -b.value), mode=mode, zone=zone_name
        )
    return make_call("timestamp_add", a, make_call("interval_negate", b), mode=mode, zone=zone_name)


def _interval_sum(a: Expr, b: Expr, sign: int) -> Expr | None:
    return _folded(make_call("interval_add" if sign > 0 else "interval_subtract", a, b))


def _two_intervals(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:  # noqa: ARG001
    if len(args) != 2 or not all(isinstance(a.type, DayTimeInterval) for a in args):
        return None
    joined = common_type(args[0].type, args[1].type)
    return Signature(args, joined) if joined is not None else None


def _interval_added(call: Call, args: list[Datum]) -> Evaluated:
    a, b = int64_numbers(args[0]), int64_numbers(args[1])
    with np.errstate(over="ignore"):
        out = a + b if call.function == "interval_add" else a - b
    bad = ((a ^ out) & ((b if call.function == "interval_add" else ~b) ^ out)) < 0
    return build_checked(out, bad, args, call.type)


for _name, _claim in (("interval_add", Claim.UP), ("interval_subtract", Claim.DOWN)):
    declare_function(
        Function(
            _name,
            _two_intervals,
            _interval_added,
            claims=lambda _c, claim=_claim: (Claim.UP, claim),  # type: ignore[misc]
            partial=lambda _: Partial.OUTSIDE,
        )
    )


declare_overload("add")(_shift(1))


def _by_interval(name: str) -> Callable[[tuple[Expr, ...], Mode, str | None], Expr | None]:
    """Accept an interval argument, as Catalyst passes it, in place of its months."""

    def build(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Expr | None:
        fits = len(args) == 2 and args[1].type == YEAR_MONTH
        return make_call(name, args[0], _months(args[1], 1), mode=mode, zone=zone_name) if fits else None

    return build


for _name in ("add_months", "timestamp_add_months"):
    declare_overload(_name)(_by_interval(_name))
declare_overload("subtract")(_shift(-1))


def _interval(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:  # noqa: ARG001
    return Signature(args, args[0].type) if len(args) == 1 and isinstance(args[0].type, DayTimeInterval) else None


def _negated(call: Call, args: list[Datum]) -> Evaluated:
    values = int64_numbers(args[0])
    return build_checked(-values, values == np.iinfo(np.int64).min, args, call.type)


declare_function(
    Function("interval_negate", _interval, _negated, claims=lambda _: (Claim.DOWN,), partial=lambda _: Partial.OUTSIDE)
)


@declare_overload("negate")
def _negate(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Expr | None:  # noqa: ARG001
    if len(args) != 1:
        return None
    (arg,) = args
    if (
        isinstance(arg, Literal)
        and arg.value is not None
        and (arg.type == YEAR_MONTH or isinstance(arg.type, DayTimeInterval))
    ):
        return Literal(arg.type, -arg.value)
    return make_call("interval_negate", arg) if isinstance(arg.type, DayTimeInterval) else None
