"""The demonstration's data is what its package holds: every flight, with the instant at which it should have left."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

from tamis.cli.demo_data import WEEKS, flights
from tamis.cli.demo_queries import QUERIES


def test_every_flight_has_its_instant_and_week() -> None:
    found = flights()
    assert len(found) == 336_776
    assert found["departure"].null_count == 0
    assert found["tailnum"].null_count == 2_512
    assert min(found["departure"].to_pylist()) == datetime(2013, 1, 1, 10, 15, tzinfo=UTC)  # 5:15 in New York
    weeks = Counter(found["week"].to_pylist())
    assert sorted(weeks) == list(range(WEEKS))
    assert weeks[52] < 1_000 < min(count for week, count in weeks.items() if week < 52)  # the last one is a single day


def test_the_queries_show_lists_ranges_functions_and_a_join() -> None:
    assert len(QUERIES) >= 5
    assert any(" IN (" in q.where for q in QUERIES)
    assert any("BETWEEN" in q.where for q in QUERIES)
    assert any("date_trunc" in q.where for q in QUERIES)
    assert any(q.join for q in QUERIES)
