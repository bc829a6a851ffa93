"""Random tables, random filters: tamis gives the rows that plain Spark gives over the same rows in Parquet, and does not read a good share of the parts.

The filters are columns of one projection over plain Parquet (nothing pushed down), which tells for every row what each of them is. Against that stand the plans at
every budget of statistics (no row in a skipped part, only such rows in a part that matches wholly), and for some of them the rows themselves, by embedded
scans and through Spark. Parts are small and narrow, one value often fills them: that is where a wrong skip shows. How many there are is the Hypothesis profile's to say.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from tests.spark.capabilities import knows_syntax
from tests.spark.loaded_tables import (
    BUDGETS,
    PARTS,
    Loaded,
    interpreted,
    load,
)
from tests.spark.oracle_cases import Filters, comparisons, pairs, random_parts

import tamis
from tamis.core.pruning.bound_comparison import compare_bounds

pytestmark = pytest.mark.spark

LEAST_SKIPPED = 0.3
EXAMPLES = settings().max_examples
FILTERS = EXAMPLES if EXAMPLES < 1_000 else 3 * EXAMPLES
"""Per setting; each is a case at every budget: 600 at a push, 1,800 at a merge, 108,000 in the nightly profile, those of pairs beside them."""
READ, SPARK = max(FILTERS // 12, 4), max(FILTERS // 60, 2)
"""Of these: how many are read by embedded scans, and through Spark."""
SEED = 7 if settings().derandomize else int(np.random.SeedSequence().generate_state(1)[0])
"""The same cases every time where the profile asks for that, else new ones; a failure names it."""


@pytest.fixture(scope="module")
def session(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    root: Path = tmp_path_factory.mktemp("oracle")
    made = spark.newSession()
    made.conf.set("spark.sql.parquet.filterPushdown", "false")
    tamis.attach(made, "oracle_lake", str(root / "lake"))
    return made, root


@pytest.fixture(scope="module")
def tables(session: tuple[Any, Path]) -> Loaded:
    return load(*session, "random", random_parts(np.random.default_rng(SEED), PARTS))


@pytest.mark.parametrize(
    ("zone", "ansi"), [("America/New_York", True), ("Pacific/Apia", False), ("America/Sao_Paulo", True)]
)
@pytest.mark.push_cases(1)
def test_rows_are_plain_sparks(tables: Loaded, zone: str, ansi: bool) -> None:
    interpreted(tables.spark, zone, ansi)
    filters = Filters(np.random.default_rng([SEED, *zone.encode()]))
    conditions = [filters.predicate() for _ in range(FILTERS)]
    if not knows_syntax(tables.spark, "SELECT v:a"):
        conditions = [condition for condition in conditions if "v:a" not in condition]
    truth = tables.expected(conditions)
    wrong, shares = [], []
    for condition, true in zip(conditions, truth, strict=True):
        problem, share = tables.misjudged(condition, true, timezone=zone, ansi=ansi)
        wrong += [problem] if problem else []
        shares.append(share)
    for number, condition in enumerate(conditions[:READ]):
        rows = sorted(np.flatnonzero(truth[number]).tolist() * len(BUDGETS))
        found = tables.embedded(condition, timezone=zone, ansi=ansi)
        if found is not None and (
            found != rows or tables.scan(condition, timezone=zone, ansi=ansi).count() != len(rows)
        ):
            wrong.append(
                f"embedded: {condition}: lost {set(rows) - set(found)}, invented {set(found) - set(rows)}, or counted otherwise"
            )
        if number < SPARK and (seen := tables.rows(condition)) != rows:
            wrong.append(f"Spark: {condition}: lost {set(rows) - set(seen)}, invented {set(seen) - set(rows)}")
    assert "\n".join(wrong) == "", f"seed {SEED}"
    whole, *trimmed = np.mean(shares, axis=0).tolist()
    assert whole > LEAST_SKIPPED
    assert all(share <= whole for share in trimmed), "trimming loses knowledge, it never gains any"


def test_every_value_beside_every_other(session: tuple[Any, Path]) -> None:
    """Every type alone and in pairs of its awkward values, at every budget of statistics."""
    interpreted(session[0], "UTC", True)
    tables = load(*session, "pairs", pairs(100 if EXAMPLES >= 1_000 else 9))
    every = list(comparisons())
    chosen = (
        every
        if EXAMPLES >= 1_000
        else [every[i] for i in np.random.default_rng(SEED).choice(len(every), EXAMPLES, replace=False)]
    )
    wrong = []
    for condition, true in zip(chosen, tables.expected(chosen), strict=True):
        problem, _ = tables.misjudged(condition, true)
        wrong += [problem] if problem else []
    assert "\n".join(wrong) == "", f"seed {SEED}"


def test_a_wrong_rule_is_seen(tables: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what is said of ``<=`` is that it is never true, then that it is always."""
    from tamis.core.pruning import logic_rules

    real, no = compare_bounds, np.zeros((), bool)
    interpreted(tables.spark, "UTC", True)
    (true,) = tables.expected(["i <= 5"])
    assert tables.misjudged("i <= 5", true)[0] == ""
    monkeypatch.setattr(logic_rules, "compare_bounds", lambda *args: replace(real(*args), true=no))
    assert "loses" in tables.misjudged("i <= 5", true)[0]
    monkeypatch.setattr(logic_rules, "compare_bounds", lambda *args: replace(real(*args), false=no, null=no))
    assert "invents" in tables.misjudged("i <= 5", true)[0]


FAILING = ["1 / (i - 5) > 0", "i <> 5 AND 1 / (i - 5) > 0", "1 / (i - 5) > 0 AND i <> 5", "CAST(s AS DATE) > DATE'2024-01-01'", "i = 99 OR 1 / (i - 5) > 0", "d IN ('a')", "d IS NULL AND d IN ('a')", "rid < 0 AND CAST('a' AS INT) = 1", "false AND CAST('a' AS INT) = i", "false AND CAST('a' AS INT) = 1", "coalesce(i, CAST('a' AS INT)) > 1", "CASE WHEN rid < 0 THEN CAST('a' AS INT) ELSE 1 END = 2"]  # fmt: skip


@pytest.mark.parametrize("condition", FAILING)
@pytest.mark.push_cases(4)
def test_errors_are_part_of_the_answer(tables: Loaded, condition: str) -> None:
    """A filter fails on tamis if and only if it fails over a source that skips nothing."""
    from pyspark.errors import PySparkException

    tables.spark.conf.set("spark.sql.session.timeZone", "UTC")
    tables.spark.conf.set("spark.sql.ansi.enabled", "true")

    def outcome(read: Any) -> Any:
        try:
            return read()
        except (PySparkException, tamis.InvalidInput):
            return "fails"

    query = f"SELECT rid FROM {tables.plain} WHERE {condition}"
    expected = outcome(lambda: sorted([r.rid for r in tables.spark.sql(query).collect()] * len(BUDGETS)))
    assert outcome(lambda: tables.rows(condition)) == expected
    assert outcome(lambda: sorted(tables.scan(condition).to_arrow()["rid"].to_pylist())) == expected
