"""Conjuncts that change places change cost, never rows or errors; and what is guessed of a filter is only a guess."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.expr import Expr, conjuncts_of, filter_mask, leg_costs, parse_predicate, short_circuit, to_sql
from tamis.core.expr.evaluate import evaluate_any
from tamis.core.expr.short_circuit import Legs
from tamis.core.pruning.selectivity import expected_share
from tamis.core.stats import TableEvidence
from tamis.core.stats.statistics_columns import bound_name, count_name
from tamis.core.types import LONG, STRING, TIMESTAMP, Field, Schema
from tamis.cost_model import COSTS
from tamis.engine.part_reader.filter_order import ordered_conjunction

SCHEMA = Schema(
    (Field("a", LONG, id=1), Field("b", LONG, id=2), Field("s", STRING, id=3), Field("at", TIMESTAMP, id=4))
)
SAFE = [
    "a > 1",
    "b < 3",
    "s LIKE 'x%'",
    "a IN (1, 2, 3)",
    "b IS NOT NULL",
    "a = b OR s = 'xy'",
    "NOT (b = 2)",
    "a <=> b",
]
BOLD = ["10 / a >= 1", "CAST(s AS INT) > 0", "b / (a - 1) IS NOT NULL"]


def tree(texts: list[str]) -> tuple[Expr, ...]:
    return tuple(parse_predicate(text, SCHEMA) for text in texts)


small = st.lists(st.none() | st.integers(0, 4), min_size=30, max_size=30)
words = st.lists(st.sampled_from([None, "1", "x", "xy", "7"]), min_size=30, max_size=30)
FREE = replace(COSTS, gather_nanos=0, gather_number_nanos=0.0, gather_byte_nanos=0.0)
"""Prices under which rows are gathered wherever one is decided."""
DEAR = replace(COSTS, gather_nanos=10**12)

legs = st.recursive(
    st.sampled_from(SAFE + BOLD + ["NULL", "true", "a > 1 OR NULL", "false"]),
    lambda inner: (
        st.tuples(st.sampled_from([" OR ", " AND "]), st.lists(inner, min_size=2, max_size=3)).map(
            lambda made: f"({made[0].join(made[1])})"
        )
        | inner.map(lambda text: f"NOT ({text})")
        | inner.map(lambda text: f"coalesce({text}, b = 1)")
    ),
    max_leaves=7,
)


def with_dictionary(values: list[Any]) -> pa.DictionaryArray:
    """Texts whose dictionary also has values, a NULL and one twice, that no row has."""
    words = ["unused", "1", None, "x", "xy", "7", "x"]
    indices = pa.array([None if v is None else words.index(v) for v in values], pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array(words))


def in_some_order(legs_: Legs, dice: Any) -> None:
    for cost in legs_.costs:
        cost.rows, cost.seconds = 1.0, dice.random()


@given(
    st.lists(legs, min_size=1, max_size=4),
    small,
    small,
    words,
    st.sampled_from([FREE, DEAR, COSTS]),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_legs_that_see_undecided_rows_alone_give_the_rows_of_the_written_filter(
    texts: list[str], a: list[Any], b: list[Any], s: list[Any], costs: Any, encoded: bool, dice: Any
) -> None:
    """``filter_mask`` evaluates every leg on every row in the written order, over texts without a dictionary."""
    batch = {1: pa.array(a, pa.int64()), 2: pa.array(b, pa.int64()), 3: pa.array(s, pa.string())}
    wanted = tree(texts)
    keep, failed, error = filter_mask(wanted, batch, len(a))
    if encoded:
        batch[3] = with_dictionary(s)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(short_circuit, "COSTS", costs)
        patch.setattr(leg_costs, "COSTS", costs)
        run = ordered_conjunction(wanted, None)
        for _ in range(2):
            found = run.mask(batch, len(a))
            assert found[0].tolist() == keep.tolist()
            assert found[1].tolist() == failed.tolist()
            assert (found[2] is None) == (error is None)
            for one in (run.legs, *(inner for _, inner in run._inner.values())):
                in_some_order(one, dice)


@pytest.mark.parametrize("text", ["a > 1 OR b / (a - 1) > 0", "b / (a - 1) > 0 OR a > 1", "a = 1 OR 10 / (a - 1) > 3"])
@pytest.mark.parametrize("costs", [FREE, DEAR], ids=["gathered", "on all rows"])
def test_an_error_counts_where_spark_reaches_it(text: str, costs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ``a`` = 1, the division fails; where the leg before it is true, Spark never divides."""
    monkeypatch.setattr(short_circuit, "COSTS", costs)
    batch = {1: pa.array([0, 1, 2, None], pa.int64()), 2: pa.array([1, 1, 1, 1], pa.int64())}
    keep, failed, _ = ordered_conjunction(tree([text]), None).mask(batch, 4)
    assert failed.tolist() == [False, not text.startswith("a = 1"), False, False]
    assert (
        keep.tolist()
        == {
            "a > 1 OR b / (a - 1) > 0": [False, False, True, False],
            "b / (a - 1) > 0 OR a > 1": [False, False, True, False],
            "a = 1 OR 10 / (a - 1) > 3": [False, True, True, False],
        }[text]
    )


@pytest.mark.parametrize(
    ("text", "keep", "failed"),
    [
        ("s LIKE 'x%'", [True, False, False, True], [False] * 4),
        ("s IS NULL", [False, True, False, False], [False] * 4),
        ("coalesce(s, 'x') = 'x'", [True, True, False, False], [False] * 4),
        ("CAST(s AS INT) > 1", [False, False, True, False], [True, False, False, True]),
        ("a > 1 AND CAST(s AS INT) > 1", [False, False, True, False], [False] * 4),
        ("s = 'xy' OR a = 1", [False, True, False, True], [False] * 4),
    ],
)
def test_a_filter_of_texts_runs_once_per_distinct_value(
    text: str, keep: list[bool], failed: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def counted(expr: Expr, batch: Any, **options: Any) -> Any:
        asked.extend(len(batch[3]) for _ in range(3 in batch and not pa.types.is_dictionary(batch[3].type)))
        return evaluate_any(expr, batch, **options)

    monkeypatch.setattr(short_circuit, "evaluate_any", counted)
    words = pa.array([text for text in ["x", None, "7", "xy"] for _ in range(100)])
    numbers = pa.array([a for a in [0, 1, 2, 0] for _ in range(100)], pa.int64())
    batch = {1: numbers, 3: words.dictionary_encode()}
    found = ordered_conjunction(conjuncts_of(parse_predicate(text, SCHEMA)), None).mask(batch, 400)
    assert (found[0].tolist(), found[1].tolist()) == (
        [b for b in keep for _ in range(100)],
        [b for b in failed for _ in range(100)],
    )
    assert set(asked) <= {3, 4}, "a value each, and NULL"
    assert asked


def test_a_value_that_no_row_has_cannot_fail() -> None:
    """Its row was deleted, or belongs to another block."""
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 4, pa.int32()), pa.array(["1", "2", "bad"]))
    keep, failed, error = ordered_conjunction(tree(["CAST(s AS INT) > 1"]), None).mask({3: words}, 8)
    assert (keep.tolist(), failed.tolist(), error) == ([False, True] * 4, [False] * 8, None)


def test_the_error_is_that_of_the_first_row() -> None:
    filters = tree(["10 / CAST(s AS INT) > 1"])
    wanted = filter_mask(filters, {3: pa.array(["z", "0"] * 10)}, 20)
    swapped = pa.DictionaryArray.from_arrays(pa.array([1, 0] * 10, pa.int32()), pa.array(["0", "z"]))
    found = ordered_conjunction(filters, None).mask({3: swapped}, 20)
    assert (found[1].tolist(), found[2]) == ([True] * 20, wanted[2])
    assert str(found[2]).startswith("[CAST_INVALID_INPUT]")


def test_what_can_fail_keeps_its_place() -> None:
    run = ordered_conjunction(tree(["a > 1", "b < 3", "10 / a >= 1", "s LIKE 'x%'", "b IS NOT NULL"]), None)
    for cost, seconds in zip(run.legs.costs, (5.0, 4.0, 1.0, 3.0, 2.0), strict=True):
        cost.rows, cost.seconds = 1.0, seconds
    assert run.order() == [1, 0, 2, 4, 3]


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The legs that were evaluated, as text, and their rows; with a clock that makes all rows cost the same."""
    now = [0.0]
    seen: list[tuple[str, int]] = []

    def timed(leg: Expr, batch: Any, **more: Any) -> Any:
        length = len(next(iter(batch.values())))
        seen.append((to_sql(leg), length))
        now[0] += length / 1e6
        return evaluate_any(leg, batch, **more)

    monkeypatch.setattr(short_circuit, "evaluate_any", timed)
    clock = type("Clock", (), {"monotonic": staticmethod(lambda: now[0])})
    monkeypatch.setattr(short_circuit, "world", lambda: clock)
    monkeypatch.setattr(short_circuit, "COSTS", FREE)
    return seen


def test_the_selective_one_comes_first_and_the_others_see_what_it_left(sizes: list[tuple[str, int]]) -> None:
    run = ordered_conjunction(tree(["a >= 0", "b = 7"]), None)
    a, b = pa.array(np.arange(1000)), pa.array(np.arange(1000) % 100)
    for _ in range(2):
        keep, failed, error = run.mask({1: a, 2: b}, 1000)
        assert np.flatnonzero(keep).tolist() == list(range(7, 1000, 100))
        assert not failed.any()
        assert error is None
    assert sizes == [("(a >= 0L)", 1000), ("(b = 7L)", 1000), ("(b = 7L)", 1000), ("(a >= 0L)", 10)]
    assert run.order() == [1, 0]


def test_a_costly_leg_of_an_or_sees_what_a_cheap_one_leaves(sizes: list[tuple[str, int]]) -> None:
    """The comparison of numbers comes first by what is guessed of both."""
    run = ordered_conjunction(tree(["s LIKE '%7%' OR a < 990"]), None)
    a = np.arange(1000)
    keep, _, _ = run.mask({1: pa.array(a), 3: pa.array(a.astype(str))}, 1000)
    assert keep.tolist() == [n < 990 or "7" in str(n) for n in range(1000)]
    assert [size for _, size in sizes] == [1000, 1000, 10]
    assert "LIKE" in sizes[2][0]


def test_a_leg_is_not_gathered_for_where_that_costs_more_than_evaluating_it() -> None:
    run = ordered_conjunction(tree(["a >= 10", "b = 7"]), None)
    a = pa.array(np.arange(1000))
    assert not run.legs._gathering_pays([1], {1: a, 2: a}, 10, 1000)
    run.legs.costs[1].add(1000, 0.001, 10, 1)  # a millisecond
    assert run.legs._gathering_pays([1], {1: a, 2: a}, 10, 1000)
    assert not run.legs._gathering_pays([1], {1: a, 2: a}, 990, 1000)


def evidence(lo: list[Any], hi: list[Any], column: str = "a") -> TableEvidence:
    f = next(f for f in SCHEMA if f.name == column)
    kind = pa.timestamp("us", tz="UTC") if column == "at" else pa.int64()
    table = {
        "rows": pa.array([10] * len(lo), pa.int64()),
        "schema_id": pa.array([0] * len(lo), pa.int32()),
        count_name(f.id, "nulls"): pa.array([0] * len(lo), pa.int64()),
        bound_name(f.id, f.type, "lo"): pa.array(lo, kind),
        bound_name(f.id, f.type, "hi"): pa.array(hi, kind),
    }
    return TableEvidence(pa.table(table), {0: SCHEMA})


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        ("a < 25L", [0.25, 0.0]),
        ("25L > a", [0.25, 0.0]),
        ("a >= 150L", [0.0, 0.5]),
        ("a > 50L AND a < 150L", [0.5, 0.5]),
        ("a >= 40L AND a < 50L", [0.1, 0.0]),
        ("a > 10L AND a > 60L AND a < 80L AND a < 90L", [0.2, 0.0]),
        ("a > 80L AND a < 20L", [0.0, 0.0]),
        ("a BETWEEN 40L AND 50L AND a IS NOT NULL", [0.1, 0.0]),
        ("a IS NULL OR a < 25L", [0.25, 0.0]),
        ("a < b", None),
        ("a < 50L OR a >= 150L", [0.5, 0.5]),
        ("NOT (a < 25L)", [0.75, 1.0]),
        ("a < 25L AND b = 3", None),
        ("a IN (1, 2)", None),
        ("s < 'x'", None),
        ("s NOT LIKE '%x%y%'", [0.9, 0.9]),
        ("s <> 'x' AND a < 25L", [0.225, 0.0]),
        ("a NOT IN (1, 2)", [0.9, 0.9]),
    ],
)
def test_what_bounds_let_expect(text: str, shares: list[float] | None) -> None:
    found = expected_share(conjuncts_of(parse_predicate(text, SCHEMA)), evidence([0, 100], [100, 200]))
    assert (None if found is None else found.round(6).tolist()) == shares


def test_two_columns_side_by_side() -> None:
    """Evenly between their bounds: [0, 100] against the same, against what lies above, against the upper half, against a single value."""
    a, b = evidence([0] * 4, [100] * 4), evidence([0, 200, 50, 30], [100, 300, 100, 30], "b")
    both = TableEvidence(
        pa.table(
            {
                **dict(zip(a._table.column_names, a._table.columns, strict=True)),
                **{n: b._table[n] for n in b._table.column_names},
            }
        ),
        {0: SCHEMA},
    )
    found, turned = expected_share(tree(["a < b"]), both), expected_share(tree(["a >= b"]), both)
    assert found is not None
    assert turned is not None
    assert found.round(2).tolist() == [0.5, 1.0, 0.75, 0.31]
    assert (found + turned).tolist() == pytest.approx([1.0] * 4, abs=0.05)


def test_what_is_not_known_is_not_expected() -> None:
    assert expected_share(tree(["a < 25L"]), evidence([0, None], [100, 200])) is None
    wanted = tree(["at < timestamp'1970-01-01 00:00:01'"])
    found = expected_share(wanted, evidence([0], [4_000_000], "at"))
    assert found is not None
    assert found.tolist() == [0.25]
