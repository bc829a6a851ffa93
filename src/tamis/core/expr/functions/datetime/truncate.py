"""DATE_TRUNC and TRUNC."""

from __future__ import annotations

from tamis.core.expr.arrow_values import Datum, Evaluated
from tamis.core.expr.coerce import implicit_cast, is_instant, is_text
from tamis.core.expr.far_times import cycles_away, has_wrapped
from tamis.core.expr.functions.cast.cast_kernels import day_start
from tamis.core.expr.functions.datetime.clock_columns import HOUR, MILLI, MINUTE, trunc_days
from tamis.core.expr.functions.datetime.time_units import (
    build_checked,
    build_typed,
    far_from_the_edge,
    int64_numbers,
    named_unit,
)
from tamis.core.expr.registry import Claim, Function, Partial, Signature, declare_function, declare_overload
from tamis.core.expr.time_zones import DAY, SECOND, zone_named
from tamis.core.expr.tree import Call, Column, Expr, Literal, Mode
from tamis.core.types import DATE, TIMESTAMP

_UNITS = {
    "microsecond": 1,
    "millisecond": MILLI,
    "second": SECOND,
    "minute": MINUTE,
    "hour": HOUR,
    "day": DAY,
}
_DATE_UNITS = {
    "week": "week",
    "mon": "month",
    "month": "month",
    "mm": "month",
    "quarter": "quarter",
    "year": "year",
    "yyyy": "year",
    "yy": "year",
}
_NO_UNITS = {u: u for u in ("q", "y", "m", "d", "day", "dd", "hour", "minute", "second")}
"""Words mistaken for units of TRUNC."""
_TIME_UNITS = {**{u: u for u in _UNITS}, "dd": "day", **_DATE_UNITS}


def _truncated(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:
    if (
        len(args) != 2
        or named_unit(args[0], _TIME_UNITS) is None
        or not (is_instant(args[1].type) or is_text(args[1].type))
    ):
        return None
    return Signature((args[0], implicit_cast(args[1], TIMESTAMP, mode, zone_name)), TIMESTAMP)


def _date_trunc(call: Call, args: list[Datum]) -> Evaluated:
    """Truncate on the local calendar. The result is later than the time if it falls into a gap, as in Java."""
    unit = named_unit(call.args[0], _TIME_UNITS)
    assert unit is not None
    z, values = zone_named(call.zone or "UTC"), int64_numbers(args[1])
    if unit in {"microsecond", "millisecond", "second"} or (
        unit in _UNITS and z.fixed is not None and z.fixed % _UNITS[unit] == 0
    ):
        out = values - values % _UNITS[unit]
    else:
        away = cycles_away(values)
        offset = z.offset(values)
        local = values - away + offset
        if unit in _UNITS:
            out = z.instants(local - local % _UNITS[unit], offset) + away
        else:
            out = day_start(z, trunc_days(local // DAY, unit) * DAY) + away
    return build_checked(out, has_wrapped(out, values), [args[1]], TIMESTAMP)


declare_function(
    Function(
        "date_trunc",
        _truncated,
        _date_trunc,
        sql=("date_trunc",),
        catalyst=("TruncTimestamp",),
        claims=lambda _: (Claim.FIXED, Claim.UP),
        partial=lambda _: Partial.OUTSIDE,
        zoned=lambda args, _: named_unit(args[0], _TIME_UNITS) not in {"microsecond", "millisecond", "second"},
        local=True,
    )
)


def _trunc_resolve(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Signature | None:
    if (
        len(args) != 2
        or named_unit(args[1], _DATE_UNITS) is None
        or not (is_instant(args[0].type) or is_text(args[0].type))
    ):
        return None
    return Signature((implicit_cast(args[0], DATE, mode, zone_name), args[1]), DATE)


@declare_overload("trunc")
def _no_unit(args: tuple[Expr, ...], mode: Mode, zone_name: str | None) -> Expr | None:  # noqa: ARG001
    """Rewrite TRUNC by an invalid unit (``'Q'``) to NULL, only for a column, whose value does not matter."""
    fits = len(args) == 2 and isinstance(args[0], Column) and is_instant(args[0].type)
    return Literal(DATE, None) if fits and named_unit(args[1], _NO_UNITS) is not None else None


def _trunc(call: Call, args: list[Datum]) -> Evaluated:
    unit = named_unit(call.args[1], _DATE_UNITS)
    assert unit is not None
    return Evaluated(build_typed(trunc_days(int64_numbers(args[0]), unit), args[:1], DATE))


declare_function(
    Function(
        "trunc",
        _trunc_resolve,
        _trunc,
        sql=("trunc",),
        catalyst=("TruncDate",),
        claims=lambda _: (Claim.UP, Claim.FIXED),
        guard=far_from_the_edge,
    )
)
