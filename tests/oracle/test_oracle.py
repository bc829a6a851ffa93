"""At least a minute of the oracle in every run, until it has met every path, an hour in the long profile; and that its judges and its reducer see what is planted."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from random import Random  # noqa: TID251  # seeded
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import settings

import tamis
from tamis.world import world
from tests.conftest import IN_CI, java_problem
from tests.oracle import history as h
from tests.oracle.judges import Answer, Judge, compare
from tests.oracle.libraries import LibraryQuery, library_difference
from tests.oracle.mutants import MUTANTS, ROOT
from tests.oracle.python_answers import aggregated, ordered
from tests.oracle.query import EXACT, ORDERED, SOME, Query
from tests.oracle.reduce import _smaller_sql
from tests.oracle.switches import Trial
from tests.oracle.tables import Tables

NIGHTLY = settings.get_current_profile_name() == "nightly"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(5_000)
@pytest.mark.parametrize("scale", ["small", pytest.param("large", marks=pytest.mark.nightly)])
def test_whole_queries_are_plain_sparks(tmp_path: Path, scale: str) -> None:
    """Each reader has met filters that its scan owns and filters that Spark tests again, and tables of every source."""
    problem = java_problem()
    if problem is not None:
        (pytest.fail if IN_CI else pytest.skip)(problem)
    seed = 2411271 if settings().derandomize else world().now_micros() % 10**6
    found = tmp_path / "oracle.json"
    command = [
        sys.executable,
        "-m",
        "tests.oracle",
        "--scale",
        scale,
        "--minutes",
        "60" if NIGHTLY else "1",
        "--seed",
        str(seed),
        "--gap-minutes",  # a slow machine asks fewer queries in a minute
        "10",
        f"--json={found}",
    ]
    ran = subprocess.run(
        [*command, "--stop"] if not NIGHTLY else command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout[-8_000:] + ran.stderr[-2_000:]
    if scale == "small":
        coverage = json.loads(found.read_text())["coverage"]
        unmet = coverage["gaps"]
        assert not unmet, f"no query met: {unmet}\n{ran.stdout[-4_000:]}"


def test_errors_of_two_rows(spark: Any) -> None:
    """The error of either row may come first; one that no row raises may not."""
    spark.sql("SELECT * FROM VALUES (1, 0, array(1)), (2, 200, array()) AS t(k, n, a)").createOrReplaceTempView("two")
    table: Any = SimpleNamespace(plain=lambda step=None: "two")
    judge = Judge(cast("Any", SimpleNamespace(spark=spark)))
    query = Query("SELECT k FROM oracle_t0 WHERE 100 / n > 3 OR element_at(a, 1) = 34")
    raised = {
        error: judge.some_row_raises(error, query, [table])
        for error in ("DIVIDE_BY_ZERO", "INVALID_ARRAY_INDEX_IN_ELEMENT_AT", "CAST_OVERFLOW")
    }
    assert raised == {"DIVIDE_BY_ZERO": True, "INVALID_ARRAY_INDEX_IN_ELEMENT_AT": True, "CAST_OVERFLOW": False}


def rows(*values: object) -> Answer:
    return Answer([(v,) for v in values], ("int",))


@pytest.mark.parametrize(
    ("judge", "ours", "plain", "unlimited", "wrong"),
    [
        (EXACT, rows(1, 2), rows(2, 1), None, False),
        (EXACT, rows(1, 1), rows(1), None, True),
        (EXACT, rows(), rows(None), None, True),
        (ORDERED, rows(1, 2), rows(2, 1), None, True),
        (SOME, rows(1, 2), rows(3, 2), rows(1, 2, 3), False),
        (SOME, rows(1, 1), rows(3, 2), rows(1, 2, 3), True),
        (SOME, rows(1), rows(3, 2), rows(1, 2, 3), True),
        (EXACT, Answer(None, error="DIVIDE_BY_ZERO"), rows(1), None, True),
        (EXACT, rows(1), Answer(None, error="DIVIDE_BY_ZERO"), None, True),
        (EXACT, Answer(None, error="DIVIDE_BY_ZERO"), Answer(None, error="DIVIDE_BY_ZERO"), None, False),
        (EXACT, Answer([(1,)], ("bigint",)), rows(1), None, True),
    ],
)
def test_judges_tell_right_from_wrong(
    judge: str, ours: Answer, plain: Answer, unlimited: Answer | None, wrong: bool
) -> None:
    assert (compare(Query("SELECT 1", judge), ours, plain, unlimited) is not None) == wrong


def test_the_reducer_leaves_out_one_piece_at_a_time() -> None:
    found = _smaller_sql("SELECT a, b FROM oracle_t0 WHERE a > 1 AND b IN (2, 3) ORDER BY a LIMIT 5")
    for wanted in (
        "SELECT a FROM oracle_t0 WHERE a > 1 AND b IN (2, 3) ORDER BY a LIMIT 5",
        "SELECT a, b FROM oracle_t0 WHERE a > 1 ORDER BY a LIMIT 5",
        "SELECT a, b FROM oracle_t0 WHERE a > 1 AND b IN (3) ORDER BY a LIMIT 5",
        "SELECT a, b FROM oracle_t0 WHERE a > 1 AND b IN (2, 3) LIMIT 5",
        "SELECT a, b FROM oracle_t0 ORDER BY a LIMIT 5",
    ):
        assert wanted in found


def test_a_history_follows_from_its_seed() -> None:
    """What is printed is Python that makes the same history again."""
    first, again = (Tables(Random(7)).history() for _ in range(2))
    assert repr(first) == repr(again)
    assert all(isinstance(step, h.Step) for step in first)


def test_orders_and_aggregates_in_memory_are_sparks() -> None:
    """NaN is the greatest number, NULL counts for nothing and stands where the order says."""
    table = pa.table({"g": [1, 1, 2, 2], "x": [math.nan, 2.0, None, -0.0]})
    assert aggregated(table, ["count(*)", "count(x)", "min(x)", "max(x)"], ["g"]) == {
        (1, 2, 2, 2.0, "NaN"): 1,
        (2, 2, 1, 0.0, 0.0): 1,
    }
    assert aggregated(table.slice(0, 0), ["count(*)", "min(x)"], []) == {(0, None): 1}
    assert ordered(table, [("x", True, False)], 3) == [("NaN",), (2.0,), (0.0,)]
    assert ordered(table, [("g", False, False), ("x", True, True)], 4) == [(1, "NaN"), (1, 2.0), (2, None), (2, 0.0)]


def test_questions_without_spark_see_a_table_that_lost_rows(tmp_path: Path) -> None:
    """A delete that is done to the table alone is found."""
    trial = Trial(Random(3), tmp_path / "t")
    trial.run()
    assert not trial.found
    tamis.open(str(tmp_path / "t")).delete("k IS NOT NULL")
    trial._contents(tamis.open(str(tmp_path / "t")))
    assert "lost" in trial.found[0][1]


def test_every_mutant_still_has_its_place() -> None:
    """Source that moved on takes its mutants along."""
    lost = [f"{m.name}: {m.path}" for m in MUTANTS if (ROOT / "src" / "tamis" / m.path).read_text().count(m.old) != 1]
    assert not lost
    assert len({m.name for m in MUTANTS}) == len(MUTANTS) >= 60


@pytest.mark.parametrize(
    ("verb", "found", "problem"),
    [
        ("rows", [(1,), (2,), (2,)], None),
        ("rows", [(1,), (2,)], "lost"),
        ("rows", [(1,), (2,), (2,), (3,)], "invented"),
        ("top", [(2,), (1,), (2,)], "and not"),
        ("limit", [(2,), (2,), (1,)], None),
        ("limit", [(1,), (2,)], "2 rows and not 3"),
        ("limit", [(1,), (1,), (2,)], "invented"),
    ],
)
def test_other_answers_of_libraries_are_seen(verb: str, found: list[tuple[Any, ...]], problem: str | None) -> None:
    wanted = [(1,), (2,), (2,)]
    difference = library_difference(LibraryQuery("polars", verb, ("a",)), found, wanted, wanted)
    assert (difference is None) == (problem is None)
    assert problem is None or problem in str(difference)
