"""Instants that people give."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from tamis.engine.scan.query_instants import instant_micros, instant_range
from tamis.errors import InvalidInput

NOON = 1_767_268_800_000_000  # 2026-01-01T12:00:00Z


@pytest.mark.parametrize(
    ("value", "zone", "expected"),
    [
        (datetime(2026, 1, 1, 12, tzinfo=UTC), "UTC", NOON),
        (datetime(2026, 1, 1, 14, tzinfo=timezone(timedelta(hours=2))), "UTC", NOON),
        (datetime(2026, 1, 1, 12), "UTC", NOON),
        (datetime(2026, 1, 1, 13), "Europe/Paris", NOON),
        ("2026-01-01 12:00:00", "UTC", NOON),
        ("2026-01-01T14:00:00", "+02:00", NOON),
        ("2026-01-01T12:00:00.000001Z", "UTC", NOON + 1),
        (date(2026, 1, 1), "UTC", NOON - 12 * 3_600_000_000),
        (datetime(1969, 12, 31, 23, 59, 59, 999999), "UTC", -1),
        # names and offsets of Java, which Python's zoneinfo does not have
        (datetime(2026, 1, 1, 4), "PST", NOON),
        (datetime(2026, 1, 1, 17, 30), "IST", NOON),
        (datetime(2026, 1, 1, 21), "JST", NOON),
        (datetime(2026, 1, 1, 13), "UT+1", NOON),
        (datetime(2026, 1, 1, 17, 30), "UTC+0530", NOON),
        # a time in a gap moves forward, of two instants it is the earlier one
        (datetime(2026, 3, 29, 2, 30), "Europe/Paris", 1_774_747_800_000_000),
        (datetime(2026, 10, 25, 2, 30), "Europe/Paris", 1_792_888_200_000_000),
    ],
)
def test_micros(value: datetime | date | str, zone: str, expected: int) -> None:
    assert instant_micros(value, zone) == expected


@pytest.mark.parametrize("value", ["yesterday", 3, None, 3.5, "", (1, 2, 3)])
def test_what_is_no_instant_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        instant_range(value, "UTC")
    assert caught.value.code == "BAD_TIMESTAMP"


def test_an_unknown_zone_is_named() -> None:
    with pytest.raises(InvalidInput) as caught:
        instant_micros("2026-01-01 12:00:00", "Mars/Base")
    assert (caught.value.code, caught.value.name) == ("UNKNOWN_TIME_ZONE", "Mars/Base")


def test_a_pair_is_a_range_in_order() -> None:
    assert instant_range(("2026-01-01T12:00:00", "2026-01-01T12:00:01"), "UTC") == (NOON, NOON + 1_000_000)
    assert instant_range("2026-01-01T12:00:00", "UTC") == (NOON, NOON)
    with pytest.raises(InvalidInput):
        instant_range(("2026-01-02", "2026-01-01"), "UTC")
