"""Times near the ends of 64 bits, as programs write them for "never": what is decided of a part with one holds for all its rows."""

from __future__ import annotations

import pytest

from tests.pruning.piece_decisions import DAY, decided, rows

FIRST, LAST = -(2**63), 2**63 - 1
HOUR = 3_600_000_000
JUNE = (DAY + 152) * 24 * HOUR
"""2024-06-01 in UTC."""
FIXED = ["+09:00", "GMT+1", "Etc/GMT-9", "-05:00", "+05:30"]
NAMED = ["UTC", "Asia/Tokyo", "Europe/Berlin", "America/New_York"]


@pytest.mark.parametrize("zone", [*FIXED, *NAMED])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CAST(timestamp0 AS DATE) >= DATE'2024-01-01'", "all"),
        ("year(timestamp0) >= 2024", "all"),
        ("timestamp0::date BETWEEN DATE'2024-01-01' AND DATE'2024-12-31'", "some"),
        ("year(timestamp0) < 2025", "some"),
        ("year(timestamp0) < 2024", "none"),
        ("CAST(timestamp0 AS DATE) < DATE'2024-05-01'", "none"),
    ],
)
def test_the_last_time_hides_no_other(text: str, expected: str, zone: str) -> None:
    assert decided(text, rows(timestamp0=[JUNE, LAST]), zone) == expected


@pytest.mark.parametrize("zone", [*FIXED, *NAMED])
@pytest.mark.parametrize(
    ("text", "expected"),
    [("year(timestamp0) <= 2024", "all"), ("year(timestamp0) = 2024", "some"), ("year(timestamp0) > 2024", "none")],
)
def test_nor_does_the_first(text: str, expected: str, zone: str) -> None:
    assert decided(text, rows(timestamp0=[FIRST, JUNE]), zone) == expected


@pytest.mark.parametrize("zone", FIXED)
def test_usual_times_in_zones_of_one_offset_still_prune(zone: str) -> None:
    usual = rows(timestamp0=[JUNE, JUNE + 48 * HOUR], timestamp_ntz0=[JUNE, JUNE + 48 * HOUR])
    assert decided("CAST(timestamp0 AS DATE) > DATE'2024-06-04'", usual, zone) == "none"
    assert decided("CAST(timestamp0 AS DATE) >= DATE'2024-05-31'", usual, zone) == "all"
    assert decided("timestamp_ntz0 > TIMESTAMP'2024-06-05 00:00:00'", usual, zone) == "none"
    assert decided("date_trunc('day', timestamp0) > TIMESTAMP'2024-06-04 00:00:00'", usual, zone) == "none"
    assert decided("timestamp0 + INTERVAL '1' DAY < TIMESTAMP'2024-06-01 00:00:00'", usual, zone) == "none"
    assert decided("months_between(timestamp0, TIMESTAMP'2024-01-01 00:00:00') > 7", usual, zone) == "none"


@pytest.mark.parametrize(
    ("zone", "text", "column", "time"),
    [
        ("-05:00", "timestamp_ntz0 > TIMESTAMP'2024-01-01 00:00:00'", "timestamp_ntz0", LAST),
        ("America/New_York", "timestamp_ntz0 < TIMESTAMP'2024-01-01 00:00:00'", "timestamp_ntz0", LAST),
        ("+09:00", "CAST(timestamp0 AS TIMESTAMP_NTZ) < TIMESTAMP_NTZ'2024-01-01 00:00:00'", "timestamp0", LAST),
        ("Asia/Tokyo", "timestamp0 + INTERVAL '1' MONTH < TIMESTAMP'2024-01-01 00:00:00'", "timestamp0", LAST),
        ("UTC", "months_between(timestamp0, TIMESTAMP'2024-01-15 00:00:00') > 0", "timestamp0", FIRST),
        ("Europe/Berlin", "timestamp0 + interval0 < TIMESTAMP'2024-01-01 00:00:00'", "timestamp0", LAST - HOUR),
    ],
)
def test_a_time_that_overflows_is_not_skipped(zone: str, text: str, column: str, time: int) -> None:
    between = sorted([JUNE, time, time - 1 if time == LAST else time + 1])
    piece = rows(**{column: between, "interval0": [HOUR, 2 * HOUR, 2 * HOUR]})
    assert decided(text, piece, zone) == "some"


@pytest.mark.parametrize(("zone", "shift"), [("+05:30", -330), ("+09:00", -540), ("-05:00", 300), ("UTC", 0)])
def test_fields_of_one_offset_fall_back_at_its_own_midnight(zone: str, shift: int) -> None:
    midnight = JUNE + shift * 60_000_000
    night, day = ([midnight + hour * HOUR for hour in hours] for hours in ([-2, -1, 2], [8, 9, 10]))
    assert decided("hour(timestamp0) = 23", rows(timestamp0=night), zone) == "some"
    assert decided("hour(timestamp0) = 23", rows(timestamp0=day), zone) == "none"
    assert decided("hour(timestamp0) BETWEEN 8 AND 10", rows(timestamp0=day), zone) == "all"


def test_minutes_fall_back_at_the_zones_own_hour() -> None:
    half = JUNE + 30 * 60_000_000
    late = [half - 120_000_000, half - 60_000_000, half + 120_000_000]
    assert decided("minute(timestamp0) = 59", rows(timestamp0=late), "+05:30") == "some"


def test_a_truncated_time_in_a_gap_is_no_overflow() -> None:
    after = 736 * 24 * HOUR + 44 * 60_000_000 + 40_000_000  # Monrovia, 1972-01-07
    piece = rows(timestamp0=[after, after + HOUR])
    assert (
        decided("date_trunc('minute', timestamp0) > TIMESTAMP'1972-01-07 02:29:00'", piece, "Africa/Monrovia") == "none"
    )
    assert (
        decided("date_trunc('minute', timestamp0) = TIMESTAMP'1972-01-07 01:28:30'", piece, "Africa/Monrovia") == "some"
    )
