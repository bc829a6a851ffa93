"""Pieces by cases: what the few values of a column, or the days between its bounds, prove; and what they must not."""

from __future__ import annotations

import datetime as dt
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.core import expr
from tamis.core.pruning import decide, value_cases
from tamis.core.types import DATE, INTEGER, LONG, STRING, TIMESTAMP, Field, Schema
from tamis.core.types.arrow import to_arrow_schema
from tests.pruning.evidence_of import RowsEvidence

SCHEMA = Schema(
    tuple(Field(name, kind, True, number) for number, (name, kind) in enumerate({"s": STRING, "level": STRING, "n": LONG, "small": INTEGER, "d": DATE, "ts": TIMESTAMP}.items(), 1))
)  # fmt: skip
ARROW = to_arrow_schema(SCHEMA)


def piece(**columns: list[Any]) -> pa.Table:
    length = max(map(len, columns.values()))
    return pa.table({f.name: pa.array(columns.get(f.name, [None] * length), f.type) for f in ARROW}, schema=ARROW)


def decided(text: str, *pieces: pa.Table, zone: str = "UTC", values: bool = True) -> list[str]:
    evidence = RowsEvidence(SCHEMA, list(pieces), listed=values)
    found = decide(expr.conjuncts_of(expr.parse_predicate(text, SCHEMA, zone=zone)), evidence, strict=True)
    return ["none" if none else "all" if all_ else "some" for none, all_ in zip(found.none, found.all, strict=True)]


INFO, MIXED, BAD = (
    piece(level=["info", "warn"], n=[1, 9]),
    piece(level=["fatal", "info"], n=[1, 9]),
    piece(level=["fatal", "error"], n=[1, 9]),
)


@pytest.mark.parametrize(
    "text",
    ["level = 'fatal'", "upper(level) = 'FATAL'", "level LIKE '%tal'", "level IN ('fatal', 'lost')", "length(level) = 5", "CASE level WHEN 'fatal' THEN 1 ELSE 0 END = 1", "NOT (level <> 'fatal')", "reverse(level) = 'lataf'"],
)  # fmt: skip
def test_a_filter_of_few_values_is_exact(text: str) -> None:
    found = decided(text, INFO, MIXED, BAD)
    assert found[0] == "none"
    assert found[1] == "some"
    assert decided(text, INFO, values=False) != ["none"] or "LIKE" not in text


def test_all_is_proved_by_cases_too() -> None:
    assert decided("level IN ('fatal', 'error')", BAD, MIXED) == ["all", "some"]
    assert decided("length(level) >= 4", BAD, MIXED) == ["all", "all"]
    assert decided("level IN ('fatal', 'error')", piece(level=["fatal", "error", None])) == ["some"], "NULL is not true"


def test_null_is_in_every_case() -> None:
    holed = piece(level=["info", "warn", None])
    assert decided("coalesce(level, 'none') = 'none'", INFO, holed) == ["none", "some"]
    assert decided("level = 'info' OR level IS NULL", holed) == ["some"]


def test_other_conjuncts_stay() -> None:
    assert decided("level = 'fatal' AND n > 20", MIXED) == ["none"]
    assert decided("n > 5 AND level = 'fatal'", MIXED, INFO) == ["some", "none"]


def test_an_error_of_one_case_keeps_the_piece() -> None:
    texts = piece(s=["12", "x", "13"])
    assert decided("cast(s AS INT) > 99", texts, piece(s=["12", "7"])) == ["some", "none"]
    assert decided("s <> 'x' AND cast(s AS INT) > 99", texts) == ["none"], "x does not reach it"
    assert decided("cast(s AS INT) > 99 AND s <> 'x'", texts) == ["some"]


def test_a_time_of_day_alone_is_of_no_day_while_it_is_planned() -> None:
    """The query may run on another day than the one on which it is planned."""
    texts, early = piece(s=["12:30:00"]), piece(ts=[dt.datetime(1999, 1, 1, tzinfo=dt.UTC)])
    assert decided("cast(s AS TIMESTAMP) > '2020-01-01'", texts) == ["some"]
    assert decided("ts < '12:30:00'", early) == ["some"]


def test_combinations_stay_few(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = piece(level=[f"l{i}" for i in range(8)], s=[f"s{i}" for i in range(8)], n=list(range(8)))
    assert decided("concat(level, s, n) = 'l9s9n9'", wide) == ["none"]
    monkeypatch.setattr(value_cases, "MOST", 16)
    assert decided("level LIKE '%9' OR s LIKE '%9'", wide) == ["some"], "64 combinations are not looked at"
    assert decided("level LIKE '%9'", wide) == ["none"]
    monkeypatch.setattr(value_cases, "_BUDGET", 4)
    assert decided("level LIKE '%9'", wide) == ["some"]


@pytest.mark.parametrize("at_once", [1, 3, 2**17])
def test_pieces_are_judged_in_groups(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(value_cases, "_AT_ONCE", at_once)
    pieces = [INFO, MIXED, BAD] * 5
    assert decided("level LIKE '%tal'", *pieces) == ["none", "some", "some"] * 5


def test_numbers_and_days_between_near_bounds() -> None:
    assert decided("small % 10 = 3", piece(small=[14, 22]), piece(small=[14, 23]), values=False) == ["none", "some"]
    week = piece(d=[dt.date(2024, 3, 4), dt.date(2024, 3, 7)])  # Monday to Thursday
    assert decided("dayofweek(d) = 1", week, values=False) == ["none"]
    assert decided("dayofweek(d) = 3", week, values=False) == ["some"]
    assert decided("small % 10 = 3", piece(small=[0, 1_000_000]), values=False) == ["some"]
    assert decided("small % 10 = 3", piece(small=[-(2**31), 2**31 - 1]), values=False) == ["some"]


def test_dates_made_of_near_numbers_do_not_fail() -> None:
    months = piece(small=[10, 11])
    assert decided("make_date(2024, small, 1) < '2024-01-01'", months, values=False) == ["none"]
    assert decided("make_date(2024, small, 31) < '2024-01-01'", months, values=False) == ["some"], (
        "in November it fails"
    )


@pytest.mark.push_cases(2)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Apia", "America/St_Johns", "Asia/Kathmandu"])
def test_instants_day_by_day(zone: str) -> None:
    """Against rows: nothing is skipped that a row needs, around each shift of the zone."""
    rng = np.random.default_rng(3)
    begins = [dt.datetime(2011, 12, 28), dt.datetime(2024, 3, 8), dt.datetime(2024, 11, 1), dt.datetime(1987, 10, 23)]
    skipped = 0
    for number in range(24):
        first = begins[number % 4].replace(tzinfo=dt.UTC) + dt.timedelta(minutes=int(rng.integers(0, 4_000)))
        rows = piece(ts=[first + dt.timedelta(minutes=int(m)) for m in rng.integers(0, 6_000, 4)])
        for text in (
            "day(ts) = 30",
            "dayofweek(ts) = 1",
            "weekofyear(ts) = 10",
            "day(ts) IN (9, 10)",
            "month(ts) = 12 AND day(ts) = 31",
        ):
            tree = expr.conjuncts_of(expr.parse_predicate(text, SCHEMA, zone=zone))
            keep, _, _ = expr.filter_mask(
                tree, {f.id: rows.column(i) for i, f in enumerate(SCHEMA.fields)}, rows.num_rows
            )
            found = decided(text, rows, zone=zone, values=False)
            assert found != ["none"] or not keep.any()
            assert found != ["all"] or keep.all()
            skipped += found == ["none"]
    assert skipped > 24


def test_cases_are_for_what_bounds_do_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is divided where it would be work for nothing."""
    monkeypatch.setattr(value_cases, "_by_range", lambda *_: pytest.fail("divided"))
    assert decided(
        "d >= '2024-03-05' AND ts < '2024-01-01'",
        piece(
            d=[dt.date(2024, 3, 4), dt.date(2024, 3, 7)],
            ts=[dt.datetime(2023, 12, 31, tzinfo=dt.UTC), dt.datetime(2024, 1, 2, tzinfo=dt.UTC)],
        ),
        values=False,
    ) == ["some"]


def test_a_set_that_holds_the_constant_is_not_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases would prove nothing: the filter is true in one of them, and false in another."""
    divided: list[int] = []
    real = value_cases._expanded

    def noted(*args: Any) -> Any:
        divided.append(len(args[2]))
        return real(*args)

    monkeypatch.setattr(value_cases, "_expanded", noted)
    assert decided("level = 'fatal'", MIXED, BAD) == ["some", "some"]
    assert decided("level IS NOT NULL AND 'fatal' = level AND d IS NULL", MIXED, BAD) == ["some", "some"]
    assert not divided
    assert decided("level = 'fatal'", MIXED, piece(level=["a", "z"]), BAD) == ["some", "none", "some"]
    assert divided == [1], "only the piece whose set lacks it, though its bounds hold it"


def test_what_else_a_filter_says_of_the_column_divides_it() -> None:
    some = piece(small=[3, 4], level=["a", "b"])
    assert decided("small % 2 = 0 AND small = 3", some) == ["none"]
    assert decided("small = 4 AND level = 'b' AND small % 2 = 0", some) == ["some"]
    assert decided("small = 3 AND small = 4", some) == ["none"]
    assert decided("level = 'a' AND concat(level, small) = 'a5'", some) == ["none"]
    assert decided("level = 'a' OR small > 3", some) == ["some"]


def test_leaving_cases_out_changes_no_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(11)
    words, compared = ["a", "b", "c", "d"], 0
    clauses = [
        "level = 'b'",
        "level IS NOT NULL",
        "small = 3",
        "small % 3 = 1",
        "length(level) = 1",
        "n > 4",
        "s = 'c'",
    ]
    for _ in range(150):
        pieces = [
            piece(
                level=[None if rng.random() < 0.1 else words[i] for i in rng.integers(0, 4, 3)],
                s=[words[i] for i in rng.integers(0, 4, 3)],
                small=rng.integers(0, 6, 3).tolist(),
                n=rng.integers(0, 9, 3).tolist(),
            )
            for _ in range(6)
        ]
        text = " AND ".join(rng.choice(clauses, int(rng.integers(1, 5)), replace=False))
        found = decided(text, *pieces)
        with monkeypatch.context() as whole:
            whole.setattr(value_cases, "_wanted", lambda *_: None)
            assert found == decided(text, *pieces), text
        compared += found.count("none")
    assert compared > 100


def test_planted_one_case_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a piece counts as none where any of its cases is; a value is missing from the set."""
    assert decided("level LIKE '%tal'", MIXED) == ["some"]

    class Planted:
        def __getattr__(self, name: str) -> Any:
            return getattr(np, name)

        class logical_and:
            reduceat = staticmethod(np.logical_or.reduceat)

    module = sys.modules["tamis.core.pruning.decide"]

    monkeypatch.setattr(module, "np", Planted())
    assert decided("level LIKE '%tal'", MIXED) == ["none"]
    monkeypatch.undo()
    whole = value_cases._by_values
    monkeypatch.setattr(
        value_cases,
        "_by_values",
        lambda listed, _: whole(pa.array([[v for v in one if v != "fatal"] for one in listed.to_pylist()]), None),
    )
    assert decided("level LIKE '%tal'", piece(level=["fatal", "info", "warn"])) == ["none"]
