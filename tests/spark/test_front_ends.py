"""Two front ends, one language: the same filter, as SQL text and as Catalyst's tree, gives the same decision, for every function of the registry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.spark.front_end_cases import CASES, DDL, PARTS, SCHEMA, evidence
from tests.spark.translated import translated

from tamis.core import expr
from tamis.core.expr import Call, Expr, registry
from tamis.core.pruning import Decision, decide

pytestmark = pytest.mark.spark


def functions(conjuncts: tuple[Expr, ...]) -> set[str]:
    return {node.function for conjunct in conjuncts for node in conjunct.walk() if isinstance(node, Call)}


def from_text(condition: str) -> tuple[Expr, ...]:
    return tuple(expr.conjuncts_of(expr.parse_predicate(condition, SCHEMA)))


def decided(conjuncts: tuple[Expr, ...]) -> tuple[list[bool], list[bool]]:
    found: Decision = decide(conjuncts, evidence(), strict=True)
    return found.none.tolist(), found.all.tolist()


@pytest.fixture(scope="module")
def frame(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A table that holds nothing, so that only its filters are looked at."""
    settings = {"spark.sql.variant.pushVariantIntoScan": "false", "spark.sql.session.timeZone": "UTC"}
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield spark.read.schema(DDL).parquet(str(tmp_path_factory.mktemp("front_ends")))
    for key in settings:
        spark.conf.unset(key)


@pytest.fixture(scope="module")
def from_catalyst(frame: Any) -> dict[str, tuple[Expr, ...]]:
    """Each condition as Spark's optimiser leaves it."""
    return {condition: translated(frame, condition, SCHEMA).conjuncts for _, condition in CASES}


def test_every_function_has_a_case_that_is_read_and_skips() -> None:
    """The list is complete by construction: an entry without a case fails."""
    assert {entry.name for entry in registry.all_entries()} == {name for name, _ in CASES}
    for name, condition in CASES:
        conjuncts = from_text(condition)
        assert name in functions(conjuncts), condition
        assert 0 < sum(decided(conjuncts)[0]) < PARTS, condition


def test_both_front_ends_decide_alike(from_catalyst: dict[str, tuple[Expr, ...]]) -> None:
    different = []
    for _, condition in CASES:
        ours, theirs = decided(from_text(condition)), decided(from_catalyst[condition])
        if ours != theirs:
            different.append(
                f"{condition}: text {ours}, Catalyst {theirs} of {[expr.to_sql(c) for c in from_catalyst[condition]]}"
            )
    assert not different, "\n".join(different)


def test_catalyst_is_read_as_the_same_functions(from_catalyst: dict[str, tuple[Expr, ...]]) -> None:
    """Were it read as other ones, or not at all, the decisions would say little."""
    lost = {name for name, condition in CASES if name not in functions(from_catalyst[condition])}
    assert lost == REWRITTEN


REWRITTEN = {"ne", "like"}
"""What Spark's optimiser has put into other words before filters are pushed: NOT =, and a beginning with an end."""
