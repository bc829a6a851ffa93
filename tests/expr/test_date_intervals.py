"""A date and an interval of days are a date, however the interval comes about; with another interval they are a time."""

from __future__ import annotations

import pytest

from tamis.core import expr
from tamis.core.expr import Call, Column, make_call
from tamis.core.types import DATE, STRING, TIMESTAMP, DayTimeInterval
from tests.expr.oracle import bound, plain
from tests.pruning.piece_decisions import DAY, decided, rows
from tests.pruning.trees import SCHEMA

DAYS = [
    ("date0 + INTERVAL '2' DAY", 2),
    ("date0 - INTERVAL '2' DAY", -2),
    ("date0 + (date1 - DATE'2024-01-01')", 3),
    ("(date1 - DATE'2024-01-01') + date0", 3),
    ("date0 - (date1 - DATE'2024-01-01')", -3),
    ("date0 + (INTERVAL '1' DAY + INTERVAL '1' DAY)", 2),
    ("date0 - (INTERVAL '1' DAY - (date1 - date0))", 2),
    ("date0 + -(date1 - DATE'2024-01-01')", -3),
]
"""With the days by which 2024-01-01 moves, where ``date1`` is 2024-01-04."""
PIECE = rows(date0=[DAY], date1=[DAY + 3], interval0=[36 * 3_600_000_000])
BATCH = {f.id: PIECE.column(i) for i, f in enumerate(SCHEMA.fields)}


@pytest.mark.parametrize(("text", "days"), DAYS)
def test_days_move_a_date_to_a_date(text: str, days: int) -> None:
    tree = bound(text, "America/New_York")
    assert tree.type == DATE
    assert plain(expr.evaluate(tree, BATCH, 1).values) == [DAY + days]


def test_its_text_is_that_of_a_date() -> None:
    moved = "date0 + (date1 - DATE'2024-01-01')"
    assert expr.evaluate(bound(f"CAST({moved} AS STRING)", "UTC"), BATCH, 1).values.to_pylist() == ["2024-01-04"]
    assert decided(f"{moved} = '2024-01-04 12:00:00'", PIECE) == "all"
    assert decided(f"{moved} > DATE'2024-01-04'", PIECE) == "none"
    assert bound(f"CAST({moved} AS STRING)", "UTC").type == STRING


@pytest.mark.parametrize("text", ["date0 + INTERVAL '36' HOUR", "date0 + interval0", "date0 - (interval0 + INTERVAL '1' DAY)"])  # fmt: skip
def test_other_intervals_move_it_to_a_time(text: str) -> None:
    assert bound(text, "UTC").type == TIMESTAMP


def test_a_column_of_days_moves_a_date() -> None:
    days = Column(DayTimeInterval("day", "day"), (1,), "n")
    moved = make_call("subtract", Column(DATE, (2,), "d"), days)
    assert isinstance(moved, Call)
    assert (moved.type, moved.function) == (DATE, "date_sub")
