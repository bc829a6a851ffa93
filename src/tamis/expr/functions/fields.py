"""Calendar fields: YEAR, MONTH, HOUR … They rise with the date within a year, month, week or day, and have fixed ranges beyond."""

from __future__ import annotations

import numpy as np

from tamis.expr.catalogue import Bounds, Claim, Function, Signature, call, declare, sugar
from tamis.expr.coerce import brought, is_instant, is_text
from tamis.expr.functions.clock import HOUR, MINUTE, field_of_days, field_of_time, trunc_days
from tamis.expr.functions.temporal import made, numbers
from tamis.expr.tree import Call, Expr, Literal, Mode
from tamis.expr.values import Datum, Evaluated, Mask, either, nulls
from tamis.expr.zones import DAY, zone
from tamis.types import DATE, INTEGER, TIMESTAMP, TIMESTAMP_NTZ

_WITHIN: dict[str, str | None] = {
    "year": None,
    "yearofweek": None,
    "quarter": "year",
    "month": "year",
    "day": "month",
    "dayofyear": "year",
    "weekofyear": "week",
    "dayofweek": "sunday",
    "weekday": "week",
}
_RANGES = {
    "quarter": (1, 4),
    "month": (1, 12),
    "day": (1, 31),
    "dayofyear": (1, 366),
    "weekofyear": (1, 53),
    "dayofweek": (1, 7),
    "weekday": (0, 6),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}


def _of_date(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:
    if len(args) != 1 or not (is_instant(args[0].type) or is_text(args[0].type)):
        return None
    return Signature((brought(args[0], DATE, mode, zone_name),), INTEGER)


def _date_field(call: Call, args: list[Datum]) -> Evaluated:
    return Evaluated(made(field_of_days(numbers(args[0]), call.function), args, INTEGER))


def _within(call: Call, bounds: Bounds) -> Mask:
    """Where both bounds lie in one year (month, week): there the field rises with the date."""
    unit = _WITHIN[call.function]
    (lo, hi) = bounds[0]
    if unit is None:
        return np.ones((), bool)
    a, b = numbers(lo), numbers(hi)
    same = (a - 3) // 7 == (b - 3) // 7 if unit == "sunday" else trunc_days(a, unit) == trunc_days(b, unit)
    null = either(nulls(lo), nulls(hi))
    return np.asarray(same if null is None else same & ~null)


for _name, _names, _catalyst in (
    ("year", ("year",), ("Year",)),
    ("yearofweek", (), ("YearOfWeek",)),
    ("quarter", ("quarter",), ("Quarter",)),
    ("month", ("month",), ("Month",)),
    ("day", ("day", "dayofmonth"), ("DayOfMonth",)),
    ("dayofyear", ("dayofyear",), ("DayOfYear",)),
    ("weekofyear", ("weekofyear",), ("WeekOfYear",)),
    ("dayofweek", ("dayofweek",), ("DayOfWeek",)),
    ("weekday", ("weekday",), ("WeekDay",)),
):
    declare(
        Function(
            _name,
            _of_date,
            _date_field,
            sql=_names,
            catalyst=_catalyst,
            claims=lambda _: (Claim.UP,),
            guard=_within if _WITHIN[_name] else None,
            limits=lambda c: _RANGES.get(c.function),
            note=f"monotone within one {_WITHIN[_name]}" if _WITHIN[_name] else "",
        )
    )


def _of_time(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:
    if len(args) != 1 or not (is_instant(args[0].type) or is_text(args[0].type)):
        return None
    arg = args[0] if args[0].type == TIMESTAMP_NTZ else brought(args[0], TIMESTAMP, mode, zone_name)
    return Signature((arg,), INTEGER)


def _time_field(call: Call, args: list[Datum]) -> Evaluated:
    values = numbers(args[0])
    local = zone(call.zone or "UTC").local(values) if call.args[0].type == TIMESTAMP else values
    return Evaluated(made(field_of_time(local, call.function), args, INTEGER))


def _within_time(call: Call, bounds: Bounds) -> Mask:
    lo, hi = bounds[0]
    size = {"hour": DAY, "minute": HOUR, "second": MINUTE}[call.function]
    null = either(nulls(lo), nulls(hi))
    same = numbers(lo) // size == numbers(hi) // size
    return np.asarray(same if null is None else same & ~null)


for _name, _catalyst in (("hour", ("Hour",)), ("minute", ("Minute",)), ("second", ("Second",))):
    declare(
        Function(
            _name,
            _of_time,
            _time_field,
            sql=(_name,),
            catalyst=_catalyst,
            claims=lambda _: (Claim.UP,),
            guard=_within_time,
            limits=lambda c: _RANGES[c.function],
            zoned=lambda args, _: args[0].type == TIMESTAMP,
            local=True,
        )
    )


def _extract(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Expr | None:
    if len(args) != 2 or not isinstance(args[0], Literal) or not isinstance(args[0].value, str):
        return None
    aliases = {
        "y": "year", "years": "year", "yr": "year", "yrs": "year", "yearofweek": "yearofweek", "qtr": "quarter", "mon": "month", "mons": "month",
        "months": "month", "w": "weekofyear", "week": "weekofyear", "weeks": "weekofyear", "d": "day", "days": "day", "dow": "dayofweek",
        "dow_iso": "weekday_iso", "doy": "dayofyear", "h": "hour", "hours": "hour", "m": "minute", "min": "minute", "mins": "minute", "minutes": "minute",
    }  # fmt: skip
    field = args[0].value.lower()
    field = aliases.get(field, field)
    if field not in {*_WITHIN, "hour", "minute"} or field == "weekday":
        return None
    return call(field, args[1], mode=mode, zone=zone_name)


sugar("extract", "date_part", "datepart")(_extract)
