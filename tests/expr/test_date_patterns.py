"""Text to times by a pattern: what Java's parser reads, and which patterns sort."""

from __future__ import annotations

from typing import Any

import pytest

from tamis.core import expr
from tests.expr.oracle import bound, plain
from tests.pruning.piece_decisions import decided, rows
from tests.pruning.trees import SCHEMA

NEW_YEAR = 1_704_067_200_000_000


def read(texts: list[str], pattern: str) -> list[Any]:
    piece = rows(string0=texts)
    tree = bound(f'try_to_timestamp(string0, "{pattern}")', "UTC")
    return plain(expr.evaluate(tree, {f.id: piece.column(i) for i, f in enumerate(SCHEMA.fields)}, len(texts)).values)


@pytest.mark.parametrize(
    "pattern",
    ["yyyyMMddHHmmssSSS", "yyyySS", "MM-yyyyddSSS", "yyyy-MM-dd HH:mm:.SSSss"],
)
def test_a_fraction_that_meets_other_digits_is_left_to_spark(pattern: str) -> None:
    """Java takes ``20240101000000123`` for a year of seven digits, which it then refuses."""
    assert not expr.is_supported(bound(f"try_to_timestamp(string0, '{pattern}')", "UTC"))
    assert decided(f"try_to_timestamp(string0, '{pattern}') IS NOT NULL", rows(string0=["x"])) == "some"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyyMMddHHmmss", "20240101000000"),
        ("yyyyMMddHHmmssS", "202401010000000"),
        ("yyyyMMddHHmmss.SSS", "20240101000000.0"),
        ("yyyy-MM-dd HHmmssSSS", "2024-01-01 000000000"),
        ("yyyy-MM-dd HH:mm:ss.SSSSSS", "2024-01-01 00:00:00.00"),
        ("yyyy-MM-dd'T'HH:mm:ss", "2024-01-01t00:00:00"),
    ],
)
def test_other_fractions_are_read(pattern: str, text: str) -> None:
    assert read([text], pattern) == [NEW_YEAR]


@pytest.mark.parametrize("sign", ["-0000", "-00000", "-000000"])
def test_there_is_no_year_of_minus_zero(sign: str) -> None:
    assert read([f"{sign}-01-01"], "yyyy-MM-dd") == [None]
    nothing, year_zero, before = read(["+0000-01-01", "0000-01-01", "-0001-01-01"], "yyyy-MM-dd")
    assert nothing is None
    assert year_zero - before == 365 * 86_400_000_000


@pytest.mark.parametrize(
    ("pattern", "texts", "time"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss", ["2024-01-01T23:00:00", "2024-01-01t01:00:00"], "2024-01-01 01:00:00"),
        ("'Y'yyyy", ["Y+12345", "Y2024"], "2024-01-01 00:00:00"),
    ],
)
def test_letters_before_a_field_do_not_sort(pattern: str, texts: list[str], time: str) -> None:
    """Java reads letters in either case, and a year with a sign behind them."""
    found = f'try_to_timestamp(string0, "{pattern}")'
    assert decided(f"{found} = TIMESTAMP'{time}'", rows(string0=texts)) == "some"
    assert decided(f"{found} > TIMESTAMP'{time}'", rows(string0=texts)) == "some"


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("yyyyMMddHHmmss", ["20240101230000", "20240102010000"]),
        ("yyyy-MM-dd HH:mm:ss", ["2024-01-01 23:00:00", "2024-01-02 01:00:00"]),
        ("yyyy/MM/dd HH:mm:ss.SSS", ["2024/01/01 23:00:00.5", "2024/01/02 01:00:00.25"]),
        ("yyyy-MM-dd'Z'", ["2024-01-01Z", "2024-01-02z"]),
    ],
)
def test_other_patterns_still_sort(pattern: str, texts: list[str]) -> None:
    found = f'try_to_timestamp(string0, "{pattern}")'
    assert decided(f"{found} > TIMESTAMP'2024-01-03 00:00:00'", rows(string0=texts)) == "none"
    assert decided(f"{found} = TIMESTAMP'2024-01-02 01:00:00'", rows(string0=texts)) != "all"
    assert decided(f"{found} >= TIMESTAMP'2024-01-02 00:00:00'", rows(string0=texts)) == "some"


LETTERED = "yyyy-MM-dd'T'HH:mm:ss"


@pytest.mark.parametrize(
    ("pattern", "texts", "before", "after"),
    [
        (LETTERED, ["2024-01-01t23:00:00", "2024-01-02T01:00:00"], "2023-12-31 23:59:59", "2024-01-03 00:00:00"),
        (
            LETTERED + "'Z'",
            ["2024-01-01T00:00:00Z", "2024-01-01t00:00:00z"],
            "2023-12-31 23:59:59",
            "2024-01-02 00:00:00",
        ),
        ("yyyy-MM'M'dd", ["2024-01M31", "2024-02M01"], "2023-12-31 23:59:59", "2024-03-03 00:00:00"),
        ("yyyy-MM-dd HH'h'mm", ["2024-01-01 07h59", "2024-01-01 08H00"], "2024-01-01 06:59:59", "2024-01-01 09:00:00"),
    ],
)
def test_letters_between_fields_leave_the_fields_before(
    pattern: str, texts: list[str], before: str, after: str
) -> None:
    found = f'try_to_timestamp(string0, "{pattern}")'
    for text, outcome in (
        (f"{found} >= TIMESTAMP'{after}'", "none"),
        (f"{found} <= TIMESTAMP'{before}'", "none"),
        (f"{found} < TIMESTAMP'{after}'", "some"),
        (f"{found} IS NULL", "some"),
    ):
        assert decided(text, rows(string0=texts)) == outcome, text


@pytest.mark.parametrize(
    "zone", ["UTC", "+09:00", "Europe/Berlin", "America/Sao_Paulo", "Pacific/Apia", "Africa/Monrovia"]
)
@pytest.mark.parametrize("day", ["2018-11-04", "2011-12-30", "2024-10-27", "1972-01-07", "2024-03-31"])
def test_bounds_by_the_day_hold_its_times(zone: str, day: str) -> None:
    """Days without midnight, days that are skipped, and days of 25 hours."""
    texts = [f"{day}{letter}{hour:02}:30:00" for letter in "Tt" for hour in range(24)]
    found = f'try_to_timestamp(string0, "{LETTERED}")'
    for text in texts:
        asked = f"{found} = to_timestamp('{text[:10]} {text[11:]}')"
        assert decided(asked, rows(string0=[texts[0], text, texts[-1]]), zone) == "some", text
    for text in ("2011-01-01 00:00:00", "2030-01-01 00:00:00"):
        assert decided(f"{found} = TIMESTAMP'{text}'", rows(string0=texts), zone) == "none"


@pytest.mark.parametrize(
    ("texts", "below"),
    [
        (["2024-01-01T01:00:00", "unknown"], "none"),  # what sorts after a time is none of before
        (["", "2024-01-01T01:00:00"], "some"),
        (["-2024-01-01T01:00:00", "2024"], "some"),
    ],
)
def test_texts_that_are_no_times_leave_no_bound(texts: list[str], below: str) -> None:
    found = f'try_to_timestamp(string0, "{LETTERED}")'
    assert decided(f"{found} > TIMESTAMP'2030-01-01 00:00:00'", rows(string0=texts)) == "some"
    assert decided(f"{found} < TIMESTAMP'2000-01-01 00:00:00'", rows(string0=texts)) == below
