"""Null checks that Spark infers are left out of a scan's filter exactly where a comparison implies them; the same rows match."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from tamis.core.expr import Expr, conjuncts_of, filter_mask, parse_predicate, to_sql
from tamis.core.pruning.value_cases import is_presence_check
from tamis.core.types import DOUBLE, LONG, STRING, Field, Schema, Struct
from tamis.spark.scan.inferred_checks import without_inferred_checks

SCHEMA = Schema(
    (Field("a", LONG), Field("b", DOUBLE), Field("s", STRING), Field("t", Struct((Field("x", LONG),))))
).assign_ids(0)
IMPLYING = [
    "a = 1",
    "a <> 1",
    "NOT a = 1",
    "2 >= a",
    "a > 1",
    "a < 1",
    "a IN (1, 2)",
    "a NOT IN (1, NULL)",
    "a = NULL",
    "a IN (1, NULL)",
]
OTHERS = [
    "a IS NULL",
    "a <=> 1",
    "a IS NULL OR a = 1",
    "coalesce(a, 1) = 1",
    "a = b",
    "a + 1 = 2",
    "b = 1",
    "a = 1 OR b = 1",
]


@pytest.mark.parametrize("text", IMPLYING)
def test_a_comparison_implies_the_check(text: str) -> None:
    filtered = tuple(conjuncts_of(parse_predicate(f"{text} AND a IS NOT NULL AND b IS NOT NULL", SCHEMA)))
    assert [to_sql(c) for c in without_inferred_checks(filtered)] == [to_sql(filtered[0]), to_sql(filtered[2])]


@pytest.mark.parametrize("text", OTHERS)
def test_nothing_else_does(text: str) -> None:
    filtered = tuple(conjuncts_of(parse_predicate(f"{text} AND a IS NOT NULL", SCHEMA)))
    assert without_inferred_checks(filtered) == filtered


@pytest.mark.parametrize(
    ("text", "checks"), [("s LIKE 'a%' AND s IS NOT NULL", 1), ("t.x = 1 AND t IS NOT NULL AND t.x IS NOT NULL", 1)]
)
def test_other_columns(text: str, checks: int) -> None:
    kept = without_inferred_checks(tuple(conjuncts_of(parse_predicate(text, SCHEMA))))
    assert sum(map(is_presence_check, kept)) == checks


def test_the_same_rows_match() -> None:
    rows = list(itertools.product([None, 1, 2], [None, 1.0, 2.0]))
    columns = {1: pa.array([a for a, _ in rows], pa.int64()), 2: pa.array([b for _, b in rows], pa.float64())}

    def matching(filtered: tuple[Expr, ...]) -> list[bool]:
        return filter_mask(filtered, columns, len(rows))[0].tolist()

    for one, other in itertools.product([*IMPLYING, *OTHERS], repeat=2):
        filtered = tuple(
            conjuncts_of(parse_predicate(f"({one}) AND ({other}) AND a IS NOT NULL AND b IS NOT NULL", SCHEMA))
        )
        assert matching(without_inferred_checks(filtered)) == matching(filtered), (one, other)
