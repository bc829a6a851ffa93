"""Calendar fields: YEAR, MONTH, HOUR …

A field rises with the date within a year, month, week or day, and has a fixed range beyond.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal as PyDecimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import (
    Datum,
    Evaluated,
    Mask,
    build_array,
    full_length,
    mask_union,
    null_mask,
    null_where,
)
from tamis.core.expr.calls import make_call
from tamis.core.expr.coerce import implicit_cast, is_instant, is_text
from tamis.core.expr.far_times import near_local
from tamis.core.expr.functions.datetime.clock_columns import HOUR, MINUTE, field_of_days, field_of_time, trunc_days
from tamis.core.expr.functions.datetime.time_units import build_typed, int64_numbers
from tamis.core.expr.registry import Bounds, Claim, Function, Signature, declare_function, declare_sugar
from tamis.core.expr.time_zones import DAY, zone_named
from tamis.core.expr.tree import Call, Expr, Literal, Mode
from tamis.core.types import BYTE, DATE, INTEGER, TIMESTAMP, TIMESTAMP_NTZ, DataType, DayTimeInterval, Decimal
from tamis.core.types.arrow import to_arrow_type

SECONDS = Decimal(8, 6)
"""The type of seconds with a fraction."""

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
    return Signature((implicit_cast(args[0], DATE, mode, zone_name),), INTEGER)


def _date_field(call: Call, args: list[Datum]) -> Evaluated:
    return Evaluated(build_typed(field_of_days(int64_numbers(args[0]), call.function), args, INTEGER))


def _within(call: Call, bounds: Bounds) -> Mask:
    """Return where both bounds lie in one year (month, week), within which the field rises."""
    unit = _WITHIN[call.function]
    (lo, hi) = bounds[0]
    if unit is None:
        return np.ones((), bool)
    a, b = int64_numbers(lo), int64_numbers(hi)
    same = (a - 3) // 7 == (b - 3) // 7 if unit == "sunday" else trunc_days(a, unit) == trunc_days(b, unit)
    null = mask_union(null_mask(lo), null_mask(hi))
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
    declare_function(
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
    arg = args[0] if args[0].type == TIMESTAMP_NTZ else implicit_cast(args[0], TIMESTAMP, mode, zone_name)
    return Signature((arg,), INTEGER)


def _time_field(call: Call, args: list[Datum]) -> Evaluated:
    local, _ = near_local(zone_named(call.zone or "UTC"), int64_numbers(args[0]))
    return Evaluated(build_typed(field_of_time(local, call.function), args, INTEGER))


def _within_time(call: Call, bounds: Bounds) -> Mask:
    lo, hi = bounds[0]
    size = {"hour": DAY, "minute": HOUR, "second": MINUTE, "second_with_fraction": MINUTE}[call.function]
    null = mask_union(null_mask(lo), null_mask(hi))
    same = int64_numbers(lo) // size == int64_numbers(hi) // size
    return np.asarray(same if null is None else same & ~null)


for _name, _catalyst in (("hour", ("Hour",)), ("minute", ("Minute",)), ("second", ("Second",))):
    declare_function(
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


def _seconds(call: Call, args: list[Datum]) -> Evaluated:
    """Return seconds with their fraction; for an interval, with its sign."""
    x = full_length(args[0], 1)
    values = int64_numbers(x)
    if isinstance(call.args[0].type, DayTimeInterval):
        micros = np.fmod(values, MINUTE)
    else:
        micros = near_local(zone_named(call.zone or "UTC"), values)[0] % MINUTE
    unscaled = pa.array(micros).cast(pa.decimal128(19, 0))
    exact = pc.multiply(unscaled, pa.scalar(PyDecimal("0.000001"), pa.decimal128(6, 6))).cast(to_arrow_type(call.type))
    return Evaluated(null_where(exact, null_mask(x)))


declare_function(
    Function(
        "second_with_fraction",
        lambda args, mode, zone_name: (found := _of_time(args, mode, zone_name)) and Signature(found.args, SECONDS),
        _seconds,
        catalyst=("SecondWithFraction",),
        claims=lambda _: (Claim.UP,),
        guard=_within_time,
        limits=lambda _: (PyDecimal(0), PyDecimal("59.999999")),
        zoned=lambda args, _: args[0].type == TIMESTAMP,
        local=True,
    )
)
_PARTS = {"interval_days": (DAY, None), "interval_hours": (HOUR, 24), "interval_minutes": (MINUTE, 60)}


def _interval_part(call: Call, args: list[Datum]) -> Evaluated:
    """Return a field of a day-time interval, with the interval's sign."""
    x = full_length(args[0], 1)
    unit, among = _PARTS[call.function]
    values = int64_numbers(x)
    out = np.sign(values) * (np.abs(values) // unit)
    out = np.where(values == np.iinfo(np.int64).min, -(2**63 // unit), out)
    return Evaluated(
        build_array(
            (out if among is None else np.fmod(out, among)).astype(to_arrow_type(call.type).to_pandas_dtype()),
            null_mask(x),
            to_arrow_type(call.type),
        )
    )


def _within_part(call: Call, bounds: Bounds) -> Mask:
    """Return where both bounds lie in the same day (hour, minute), counted from zero in either direction.

    Within it the hours (minutes, seconds) rise, including their sign.
    """
    lo, hi = (int64_numbers(bound) for bound in bounds[0])
    if call.function == "interval_days":
        return np.ones((), bool)
    size = {"interval_hours": DAY, "interval_minutes": HOUR, "interval_seconds": MINUTE}[call.function]
    null = mask_union(*(null_mask(bound) for bound in bounds[0]))
    same = lo - np.fmod(lo, size) == hi - np.fmod(hi, size)
    return np.asarray(same if null is None else same & ~null)


def _of_interval(result: DataType) -> Callable[[tuple[Expr, ...], Mode, str | None], Signature | None]:
    def resolve(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:  # noqa: ARG001
        return Signature(args, result) if len(args) == 1 and isinstance(args[0].type, DayTimeInterval) else None

    return resolve


_bounds: tuple[object, object] | None
for _name, _catalyst, _type, _bounds in (
    ("interval_days", ("ExtractANSIIntervalDays",), INTEGER, None),
    ("interval_hours", ("ExtractANSIIntervalHours",), BYTE, (-23, 23)),
    ("interval_minutes", ("ExtractANSIIntervalMinutes",), BYTE, (-59, 59)),
    ("interval_seconds", ("ExtractANSIIntervalSeconds",), SECONDS, (PyDecimal("-59.999999"), PyDecimal("59.999999"))),
):
    declare_function(
        Function(
            _name,
            _of_interval(_type),
            _seconds if _name == "interval_seconds" else _interval_part,
            catalyst=_catalyst,
            claims=lambda _: (Claim.UP,),
            guard=_within_part,
            limits=lambda _c, bounds=_bounds: bounds,  # type: ignore[misc]
        )
    )

_ALIASES = {
    "y": "year", "years": "year", "yr": "year", "yrs": "year", "yearofweek": "yearofweek", "qtr": "quarter",
    "mon": "month", "mons": "month", "months": "month", "w": "weekofyear", "week": "weekofyear", "weeks": "weekofyear",
    "d": "day", "days": "day", "dow": "dayofweek", "dow_iso": "dayofweek_iso", "doy": "dayofyear", "h": "hour",
    "hours": "hour", "hr": "hour", "hrs": "hour", "m": "minute", "min": "minute", "mins": "minute",
    "minutes": "minute", "s": "second", "sec": "second", "secs": "second", "seconds": "second",
}  # fmt: skip
_OF_INTERVALS = {
    "day": "interval_days",
    "hour": "interval_hours",
    "minute": "interval_minutes",
    "second": "interval_seconds",
}


def _extract(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Expr | None:
    if len(args) != 2 or not isinstance(args[0], Literal) or not isinstance(args[0].value, str):
        return None
    field = args[0].value.lower()
    field = _ALIASES.get(field, field)
    if isinstance(args[1].type, DayTimeInterval):
        return make_call(_OF_INTERVALS[field], args[1]) if field in _OF_INTERVALS else None
    if not (is_instant(args[1].type) or is_text(args[1].type)):
        return None
    if field == "dayofweek_iso":
        return make_call(
            "add", make_call("weekday", args[1], mode=mode, zone=zone_name), Literal(INTEGER, 1), mode=mode
        )
    if field == "second":
        return make_call("second_with_fraction", args[1], mode=mode, zone=zone_name)
    if field not in {*_WITHIN, "hour", "minute"} or field == "weekday":
        return None
    return make_call(field, args[1], mode=mode, zone=zone_name)


declare_sugar("extract", "date_part", "datepart")(_extract)
