"""Column arithmetic on instants, days and calendar fields: integers of microseconds and days.

Except for the query's instant, no zone is looked up here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.expr.arrow_values import Numbers
from tamis.core.expr.time_zones import DAY, SECOND, zone_named
from tamis.core.expr.tree import Moving
from tamis.core.types import DATE
from tamis.core.types.arrow import to_arrow_type

MINUTE, HOUR, MILLI = 60 * SECOND, 3600 * SECOND, 1_000


def now_as(expr: Moving, micros: int) -> Any:
    """Return the instant ``micros`` in the form of ``expr``.

    That is a timestamp, or the date or local time in its zone.
    """
    if expr.name == "current_timestamp":
        return pa.scalar(micros, to_arrow_type(expr.type))
    local = int(zone_named(expr.zone or "UTC").local(np.array(micros, np.int64)))
    if expr.type == DATE:
        return pa.scalar(local // DAY, to_arrow_type(expr.type))
    return pa.scalar(local, to_arrow_type(expr.type))


def month_start(days: Numbers) -> tuple[Numbers, Numbers]:
    """Return (months since 1970-01, zero-based day of the month) of days since the epoch."""
    months = days.astype("M8[D]").astype("M8[M]")
    return months.astype(np.int64), days.astype(np.int64) - months.astype("M8[D]").astype(np.int64)


def month_days(months: Numbers) -> Numbers:
    """Return the days since the epoch of the first of a month."""
    return np.asarray(months.astype("M8[M]").astype("M8[D]").astype(np.int64))


def add_months(days: Numbers, count: Numbers) -> Numbers:
    """Return the same day of a later month, or that month's last day if it is shorter."""
    months, day = month_start(days)
    target = months + count
    first = month_days(target)
    return np.asarray(first + np.minimum(day, month_days(target + 1) - first - 1))


def trunc_days(days: Numbers, unit: str) -> Numbers:
    """Return the first day of the week (Monday), month, quarter, year, decade, century or millennium."""
    if unit == "week":
        return np.asarray(days - (days + 3) % 7)
    months, _ = month_start(days)
    if unit == "month":
        return month_days(months)
    if unit == "quarter":
        return month_days(months - months % 3)
    year = months // 12 + 1970
    size = {"year": 1, "decade": 10, "century": 100, "millennium": 1000}[unit]
    origin = 1 if unit in {"century", "millennium"} else 0
    return month_days(((year - origin) // size * size + origin - 1970) * 12)


def field_of_days(days: Numbers, field: str) -> Numbers:
    """Return a calendar field of days since the epoch, numbered as in Spark."""
    if field == "dayofweek":
        return (days.astype(np.int64) + 4) % 7 + 1
    if field == "weekday":
        return (days.astype(np.int64) + 3) % 7
    if field in {"weekofyear", "yearofweek"}:
        thursday = days.astype(np.int64) - (days.astype(np.int64) + 3) % 7 + 3
        months, _ = month_start(thursday)
        first = month_days(months - months % 12)
        return (thursday - first) // 7 + 1 if field == "weekofyear" else months // 12 + 1970
    months, day = month_start(days)
    if field == "dayofyear":
        return days.astype(np.int64) - month_days(months - months % 12) + 1
    return {
        "year": lambda: months // 12 + 1970,
        "quarter": lambda: months % 12 // 3 + 1,
        "month": lambda: months % 12 + 1,
        "day": lambda: day + 1,
    }[field]()


def field_of_time(local: Numbers, field: str) -> Numbers:
    """Return the hour, minute or second of local microseconds."""
    return {"hour": local // HOUR % 24, "minute": local // MINUTE % 60, "second": local // SECOND % 60}[field]


def now_range(expr: Moving, first: int, last: int) -> tuple[Any, Any]:
    """Return the least and greatest value of ``expr`` between two instants.

    Local times may go back in between.
    """
    z, bounds = zone_named(expr.zone or "UTC"), (np.array(first, np.int64), np.array(last, np.int64))
    lo, hi = int(z.local_low(bounds[0])), int(z.local_high(bounds[1]))
    if first == last:
        lo = hi = int(z.local(bounds[0]))
    arrow = to_arrow_type(expr.type)
    return (
        (pa.scalar(lo // DAY, arrow), pa.scalar(hi // DAY, arrow))
        if expr.type == DATE
        else (pa.scalar(lo, arrow), pa.scalar(hi, arrow))
    )
