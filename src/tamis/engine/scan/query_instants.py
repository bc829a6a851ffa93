"""Conversion of user-supplied instants (``now=``, ``timestamp=``) to microseconds since the epoch."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

from tamis.errors import InvalidInput

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant_micros(value: Any, zone: str = "UTC", *, name: str = "timestamp") -> int:
    """Convert a ``datetime``, a ``date`` (midnight) or ISO text to microseconds.

    A value without an offset is in ``zone``. Raises ``InvalidInput`` (``BAD_TIMESTAMP``).
    """
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
        elif isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)  # noqa: DTZ001  # the zone is applied below
        if isinstance(value, datetime):
            known = value if value.tzinfo else value.replace(tzinfo=_zone(zone))
            return (known - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        pass
    raise InvalidInput(
        f"{value!r} is not an instant.",
        code="BAD_TIMESTAMP",
        name=name,
        remedy="Give a datetime, or text such as 2026-01-31T12:00:00+00:00.",
    )


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


def _zone(name: str) -> Any:
    sign = {"+": 1, "-": -1}
    offset = name.removeprefix("UTC").removeprefix("GMT")
    if offset[:1] in sign:
        hours, _, minutes = offset[1:].partition(":")
        return timezone(sign[offset[0]] * timedelta(hours=int(hours), minutes=int(minutes or 0)))
    return UTC if name in {"Z", "UTC"} else ZoneInfo(name)
