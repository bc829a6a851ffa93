"""Times near the ends of 64 bits, whose local time may lie beyond: values as Java has them, and an error where the result does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tamis.core import expr
from tamis.core.expr.time_zones import zone_named
from tests.expr.oracle import bound, plain
from tests.pruning.piece_decisions import rows
from tests.pruning.trees import SCHEMA

FIRST, LAST = -(2**63), 2**63 - 1
"""-290308-12-21 19:59:05.224192 and 294247-01-10 04:00:54.775807 in UTC."""
HOUR, DAY = 3_600_000_000, 86_400_000_000
NEW_YEAR = 1_704_067_200_000_000
"""2024-01-01 in UTC."""
FAILS = "fails"


def values(text: str, zone: str, **columns: list[Any]) -> list[Any]:
    """What the expression gives for each row."""
    piece = rows(**columns)
    out = expr.evaluate(bound(text, zone), {f.id: piece.column(i) for i, f in enumerate(SCHEMA.fields)}, piece.num_rows)
    failed = [False] * piece.num_rows if out.failed is None else out.failed.tolist()
    return [FAILS if bad else value for value, bad in zip(plain(out.values), failed, strict=True)]


LOCAL = {
    ("Asia/Tokyo", LAST): ("+294247-01-10", "13:00:54.775807"),
    ("+09:00", LAST): ("+294247-01-10", "13:00:54.775807"),
    ("Europe/Berlin", LAST): ("+294247-01-10", "05:00:54.775807"),
    ("-05:00", LAST): ("+294247-01-09", "23:00:54.775807"),
    ("UTC", FIRST): ("-290308-12-21", "19:59:05.224192"),
    ("America/New_York", FIRST): ("-290308-12-21", "15:03:03.224192"),
    ("-05:00", FIRST): ("-290308-12-21", "14:59:05.224192"),
    ("Asia/Tokyo", FIRST): ("-290308-12-22", "05:18:04.224192"),
    ("+09:00", NEW_YEAR): ("2024-01-01", "09:00:00"),
}
"""The date and the time by zone and instant; Tokyo and New York had local mean time at first."""


@pytest.mark.parametrize(("zone", "instant"), LOCAL)
def test_dates_fields_and_texts_do_not_wrap(zone: str, instant: int) -> None:
    date, clock = LOCAL[zone, instant]
    hour, minute, second = clock.split(":")
    wanted = {
        "CAST(CAST(timestamp0 AS DATE) AS STRING)": date,
        "CAST(timestamp0 AS STRING)": f"{date} {clock}",
        "date_format(timestamp0, 'yyyy-MM-dd HH:mm')": f"{date} {hour}:{minute}",
        "year(timestamp0)": int(date[: date.index("-", 1)]),
        "day(timestamp0)": int(date[-2:]),
        "hour(timestamp0)": int(hour),
        "minute(timestamp0)": int(minute),
        "second(timestamp0)": int(second[:2]),
    }
    assert {text: values(text, zone, timestamp0=[instant])[0] for text in wanted} == wanted


EDGES = [FIRST, FIRST + DAY, NEW_YEAR, LAST - DAY, LAST]
ZONES = ["UTC", "+09:00", "-05:00", "Asia/Tokyo", "America/New_York", "Europe/Berlin"]


def within(value: int) -> int | str:
    return value if FIRST <= value <= LAST else FAILS


@pytest.mark.parametrize("zone", ZONES)
def test_a_result_that_does_not_fit_fails(zone: str) -> None:
    """By whole numbers of any size; no zone shifts within a day of the edges."""
    offsets = [int(v) for v in np.broadcast_to(zone_named(zone).offset(np.array(EDGES)), len(EDGES))]
    to_local = [within(at + offset) for at, offset in zip(EDGES, offsets, strict=True)]
    to_instant = [within(at - offset) for at, offset in zip(EDGES, offsets, strict=True)]
    assert values("CAST(timestamp0 AS TIMESTAMP_NTZ)", zone, timestamp0=EDGES) == to_local
    assert values("CAST(timestamp_ntz0 AS TIMESTAMP)", zone, timestamp_ntz0=EDGES) == to_instant
    for move in (-DAY, -HOUR, 0, HOUR, DAY):
        found = values("timestamp0 + interval0", zone, timestamp0=EDGES, interval0=[move] * len(EDGES))
        assert found == [within(at + move) for at in EDGES]
    found = values("timestamp0 - timestamp1", zone, timestamp0=EDGES, timestamp1=[NEW_YEAR] * len(EDGES))
    assert found == [within(at + offset - offsets[2] - NEW_YEAR) for at, offset in zip(EDGES, offsets, strict=True)]


@pytest.mark.parametrize("zone", ZONES)
def test_months_are_added_up_to_the_last_time(zone: str) -> None:
    assert values("timestamp0 + INTERVAL '1' MONTH", zone, timestamp0=[LAST, LAST - 62 * DAY]) == [
        FAILS,
        LAST - 32 * DAY,
    ]
    assert values("timestamp0 - INTERVAL '1' MONTH", zone, timestamp0=[LAST]) == [LAST - 31 * DAY]
    assert values("timestamp0 + INTERVAL '0' MONTH", zone, timestamp0=[FIRST, LAST]) == [FIRST, LAST]


def test_whole_units_between_the_first_and_the_last_time() -> None:
    for unit, size in {"WEEK": 7 * DAY, "DAY": DAY, "HOUR": HOUR, "MILLISECOND": 1_000}.items():
        for a, b in [(FIRST, LAST), (LAST, FIRST), (NEW_YEAR + HOUR, NEW_YEAR), (NEW_YEAR, NEW_YEAR + DAY - 1)]:
            found = values(f"timestampdiff({unit}, timestamp0, timestamp1)", "UTC", timestamp0=[a], timestamp1=[b])
            assert found == [(abs(b - a) // size) * (1 if b > a else -1)]
    between = "timestampdiff(MICROSECOND, timestamp0, timestamp1)"
    assert values(between, "+09:00", timestamp0=[FIRST, -1, NEW_YEAR], timestamp1=[LAST, LAST, LAST]) == [
        FAILS,
        FAILS,
        LAST - NEW_YEAR,
    ]


def test_months_between_need_a_midnight() -> None:
    """Spark counts seconds from midnight, unless the days of the month are equal."""
    months = "months_between(timestamp0, TIMESTAMP'2024-01-21 00:00:00')"
    assert values(months, "UTC", timestamp0=[FIRST, FIRST + DAY])[0] == (2024 + 290308) * -12 + 11
    other = "months_between(timestamp0, TIMESTAMP'2024-01-15 00:00:00')"
    assert values(other, "UTC", timestamp0=[FIRST])[0] == FAILS
    assert values(other, "UTC", timestamp0=[FIRST + DAY])[0] != FAILS


@pytest.mark.parametrize("zone", ZONES)
def test_truncation_keeps_to_the_calendar(zone: str) -> None:
    for unit in ("HOUR", "DAY", "WEEK", "MONTH", "YEAR"):
        assert values(f"date_trunc('{unit}', timestamp0)", zone, timestamp0=[FIRST]) == [FAILS], unit
        (last,) = values(f"date_trunc('{unit}', timestamp0)", zone, timestamp0=[LAST])
        assert values(f"date_trunc('{unit}', timestamp0)", zone, timestamp0=[last]) == [last]
        assert LAST - 366 * DAY < last <= LAST


def test_a_truncated_time_in_a_gap_moves_forward() -> None:
    """Monrovia went from 00:00 to 00:44:30; Java finds 00:44 behind the gap, later than the time itself."""
    after = 736 * DAY  # 1972-01-07
    moment = after + 44 * 60_000_000 + 40_000_000
    found = values("date_trunc('minute', timestamp0)", "Africa/Monrovia", timestamp0=[moment, moment + HOUR])
    assert found == [after + HOUR + 28 * 60_000_000 + 30_000_000, moment + HOUR - 40_000_000]
