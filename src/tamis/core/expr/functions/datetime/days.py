"""Calendar arithmetic on whole days and months."""

from __future__ import annotations

from collections.abc import Callable

from tamis.core.expr.arrow_values import Datum, Evaluated
from tamis.core.expr.coerce import implicit_cast, is_instant, is_text
from tamis.core.expr.functions.cast.cast_kernels import LIMITS
from tamis.core.expr.functions.datetime.clock_columns import add_months, month_days, month_start
from tamis.core.expr.functions.datetime.time_units import (
    build_checked,
    build_typed,
    far_from_the_edge,
    int64_numbers,
    named_unit,
)
from tamis.core.expr.registry import Claim, Function, Partial, Signature, declare_function
from tamis.core.expr.time_zones import DAY
from tamis.core.expr.tree import Call, Expr, Mode
from tamis.core.types import DATE, INTEGER, INTEGRAL, LONG, DataType, DayTimeInterval


def _days_and_count(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:
    if (
        len(args) != 2
        or not (is_instant(args[0].type) or is_text(args[0].type))
        or args[1].type not in INTEGRAL
        or args[1].type == LONG
    ):
        return None
    return Signature(
        (implicit_cast(args[0], DATE, mode, zone_name), implicit_cast(args[1], INTEGER, mode, zone_name)), DATE
    )


def _date_add(call: Call, args: list[Datum]) -> Evaluated:
    sign = 1 if call.function == "date_add" else -1
    return Evaluated(build_typed(int64_numbers(args[0]) + sign * int64_numbers(args[1]), args, DATE))


def _add_months(call: Call, args: list[Datum]) -> Evaluated:
    out = add_months(int64_numbers(args[0]), int64_numbers(args[1]))
    return build_checked(out, (out < LIMITS[INTEGER][0]) | (out > LIMITS[INTEGER][1]), args, call.type)


_names: tuple[str, ...]
_catalyst: tuple[str, ...]
for _name, _names, _catalyst, _claim in (
    ("date_add", ("date_add",), ("DateAdd",), Claim.UP),
    ("date_sub", ("date_sub",), ("DateSub",), Claim.DOWN),
):
    declare_function(
        Function(
            _name,
            _days_and_count,
            _date_add,
            sql=_names,
            catalyst=_catalyst,
            claims=lambda _c, claim=_claim: (Claim.UP, claim),  # type: ignore[misc]
            guard=far_from_the_edge,
        )
    )
declare_function(
    Function(
        "add_months",
        _days_and_count,
        _add_months,
        sql=("add_months",),
        catalyst=("AddMonths", "DateAddYMInterval"),
        claims=lambda _: (Claim.UP, Claim.UP),
        partial=lambda _: Partial.OUTSIDE,
        note="of dates: the day is cut to the month's last, which keeps the order; a time of day would not",
    )
)


def _last_day(call: Call, args: list[Datum]) -> Evaluated:
    months, _ = month_start(int64_numbers(args[0]))
    return Evaluated(build_typed(month_days(months + 1) - 1, args, call.type))


def _date_only(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:
    if len(args) != 1 or not (is_instant(args[0].type) or is_text(args[0].type)):
        return None
    return Signature((implicit_cast(args[0], DATE, mode, zone_name),), DATE)


declare_function(
    Function(
        "last_day",
        _date_only,
        _last_day,
        sql=("last_day",),
        catalyst=("LastDay",),
        claims=lambda _: (Claim.UP,),
        guard=far_from_the_edge,
    )
)


_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY = {name[:n]: name for name in _WEEKDAYS for n in (2, 3, len(name))}


def _date_and_weekday(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:
    if (
        len(args) != 2
        or named_unit(args[1], _WEEKDAY) is None
        or not (is_instant(args[0].type) or is_text(args[0].type))
    ):
        return None
    return Signature((implicit_cast(args[0], DATE, mode, zone_name), args[1]), DATE)


def _next_day(call: Call, args: list[Datum]) -> Evaluated:
    """Return the first such weekday after the date: 1 to 7 days later."""
    wanted, days = _WEEKDAYS.index(str(named_unit(call.args[1], _WEEKDAY))), int64_numbers(args[0])
    return Evaluated(build_typed(days + 1 + (wanted - (days + 4)) % 7, args[:1], DATE))


declare_function(
    Function(
        "next_day",
        _date_and_weekday,
        _next_day,
        sql=("next_day",),
        catalyst=("NextDay",),
        claims=lambda _: (Claim.UP, Claim.FIXED),
        guard=far_from_the_edge,
    )
)


def _two_dates(result: DataType) -> Callable[[tuple[Expr, ...], Mode, str | None], Signature | None]:
    def resolve(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:
        if len(args) != 2 or not all(is_instant(a.type) or is_text(a.type) for a in args):
            return None
        return Signature(tuple(implicit_cast(a, DATE, mode, zone_name) for a in args), result)

    return resolve


def _date_diff(call: Call, args: list[Datum]) -> Evaluated:
    days = int64_numbers(args[0]) - int64_numbers(args[1])
    if call.type == INTEGER:
        return Evaluated(build_typed(days, args, call.type))
    return build_checked(days * DAY, abs(days) > LIMITS[LONG][1] // DAY, args, call.type)


for _name, _names, _catalyst, _type in (
    ("datediff", ("datediff", "date_diff"), ("DateDiff",), INTEGER),
    ("subtract_dates", (), ("SubtractDates",), DayTimeInterval("day", "day")),
):
    declare_function(
        Function(
            _name,
            _two_dates(_type),
            _date_diff,
            sql=_names,
            catalyst=_catalyst,
            claims=lambda _: (Claim.UP, Claim.DOWN),
            partial=lambda call: Partial.NEVER if call.type == INTEGER else Partial.OUTSIDE,
            raises=lambda _: True,
            guard=far_from_the_edge,
        )
    )
