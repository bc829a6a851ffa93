"""Conversion of user-supplied instants (``now=``, ``timestamp=``) to microseconds since the epoch."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from tamis.core.expr.time_zones import zone_named
from tamis.errors import InvalidInput

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def instant_micros(value: Any, zone: str = "UTC", *, name: str = "timestamp") -> int:
    """Convert a ``datetime``, a ``date`` (midnight) or ISO text to microseconds.

    A value without an offset is in ``zone``, by the rules of Java. Raises ``InvalidInput`` (``BAD_TIMESTAMP``,
    ``UNKNOWN_TIME_ZONE``).
    """
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
        elif isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)  # noqa: DTZ001  # the zone is applied below
    except (ValueError, OverflowError):
        pass
    if not isinstance(value, datetime) or value != value:  # noqa: PLR0124  # pandas' NaT is a datetime
        raise InvalidInput(
            f"{value!r} is not an instant.",
            code="BAD_TIMESTAMP",
            name=name,
            remedy="Give a datetime, or text such as 2026-01-31T12:00:00+00:00.",
        )
    if value.tzinfo:
        return (value - _EPOCH) // _MICROSECOND
    local = (value.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
    return int(zone_named(zone).instants(np.array(local)))


def instant_range(value: Any, zone: str) -> tuple[int, int]:
    """Return ``now=`` as an inclusive range, from one instant or a (lo, hi) pair."""
    if not isinstance(value, tuple | list):
        return (at := instant_micros(value, zone, name="now"), at)
    if len(value) == 2:
        lo, hi = instant_micros(value[0], zone, name="now"), instant_micros(value[1], zone, name="now")
        if lo <= hi:
            return lo, hi
    raise InvalidInput(
        "now is one instant, or an inclusive (lo, hi) pair.",
        code="BAD_TIMESTAMP",
        name="now",
        remedy="Put the earlier instant first.",
    )
