"""Interval literals that Spark refuses are refused by name, and those in range are read."""

import pytest

from tamis.core.expr import check_supported, parse_predicate
from tamis.core.expr.tree import Literal
from tamis.core.types import DATE, DayTimeInterval, Field, Schema
from tamis.errors import InvalidInput

SCHEMA = Schema((Field("span", DayTimeInterval("day", "second"), id=1), Field("d", DATE, id=2)))
DAY = 86_400 * 10**6


@pytest.mark.parametrize(
    "text",
    [
        "'106751992' DAY",
        "106751992 DAYS",
        "'-106751992' DAY",
        "'9999999999' HOUR",
        "'999999999 00:00:00' DAY TO SECOND",
        "'infinity' DAY",
        "'nan' DAY",
        "'1e3' DAY",
        "'1_000' DAY",
        "'\u0661' DAY",
        "'\u0661 0:0:0' DAY TO SECOND",
        "'1e1' SECOND",
        "'1 25:00:00' DAY TO SECOND",
        "'1 23:60:00' DAY TO SECOND",
        "'59:60' MINUTE TO SECOND",
        "'1.5' DAY",
        "'1.0' DAY",
        "'1 2.5' DAY TO HOUR",
        "'1:2:3' DAY TO MINUTE",
        "'1:2' DAY TO HOUR",
        "'1 2' HOUR TO MINUTE",
        "'1 2:3' HOUR TO SECOND",
        "'1' DAY TO DAY",
        "'1 2' HOUR TO DAY",
        f"'{'9' * 5_000}' DAY",
        f"'{'9' * 5_000} 0:0:0' DAY TO SECOND",
    ],
)
def test_refused_spans(text: str) -> None:
    with pytest.raises(InvalidInput, match="PARSE_ERROR"):
        parse_predicate(f"span > INTERVAL {text}", SCHEMA)


@pytest.mark.parametrize(
    "text", ["3000000000 MONTHS", "'2147483648' YEAR", "'1-12' YEAR TO MONTH", "'178956971-0' YEAR TO MONTH"]
)
def test_refused_months(text: str) -> None:
    with pytest.raises(InvalidInput, match="PARSE_ERROR"):
        parse_predicate(f"d + INTERVAL {text} > d", SCHEMA)


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("'106751991' DAY", 106_751_991 * DAY),
        ("' -1 ' DAY", -DAY),
        ("'+1' DAY", DAY),
        ("'25' HOUR", 25 * 3_600 * 10**6),
        ("'1 23:59:59.5' DAY TO SECOND", 2 * DAY - 500_000),
        ("'100:00:01' HOUR TO SECOND", 360_001 * 10**6),
        ("'-1.5' SECOND", -1_500_000),
        ("'1 2' DAY TO HOUR", DAY + 7_200 * 10**6),
        ("'1 2:3' DAY TO MINUTE", DAY + 7_380 * 10**6),
        ("'-1:2' HOUR TO MINUTE", -3_720 * 10**6),
        ("'1:2.25' MINUTE TO SECOND", 62_250_000),
        ("1 DAY 2 HOURS", DAY + 7_200 * 10**6),
        ("'1 day 2 hours'", DAY + 7_200 * 10**6),
    ],
)
def test_spans_in_range(text: str, micros: int) -> None:
    found = [
        node.value for node in parse_predicate(f"span > INTERVAL {text}", SCHEMA).walk() if isinstance(node, Literal)
    ]
    assert found == [micros]


@pytest.mark.parametrize("text", ["round() = 1", "bround() = 1", "array_position() = 1"])
def test_functions_without_their_arguments(text: str) -> None:
    with pytest.raises(InvalidInput, match="BAD_ARGUMENTS"):
        check_supported(parse_predicate(text, SCHEMA))
