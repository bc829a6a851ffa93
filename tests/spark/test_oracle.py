"""Random tables, random filters: tamis gives the rows that plain Spark gives over the same rows in Parquet, and does not read a good share of the parts.

The filters are columns of one projection over plain Parquet (nothing pushed down), which tells for every row what each of them is. Against that stand the plans at
every budget of statistics (no row in a skipped part, only such rows in a part that matches wholly), and for some of them the rows themselves, by embedded
scans and through Spark. Parts are small and narrow, one value often fills them: that is where a wrong skip shows. How many there are is the Hypothesis profile's to say.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import settings
from tests.spark.oracle_cases import Filters, comparisons, pairs, random_parts

import tamis
from tamis.engine.operations.rows.append import write
from tamis.engine.scan import Options
from tamis.storage.commit_log import Operation, Proposal, commit
from tamis.world import new_id

pytestmark = pytest.mark.spark

BUDGETS = (None, 2048, 256, 0)
"""Bytes of statistics per part; None: no limit."""
PARTS, PER_SEGMENT, LEAST_SKIPPED = 40, 5, 0.3
EXAMPLES = settings().max_examples
FILTERS = EXAMPLES if EXAMPLES < 1_000 else 3 * EXAMPLES
"""Per setting; each is a case at every budget: 1,800 in CI, 108,000 in the nightly profile, those of pairs beside them."""
READ, SPARK = max(FILTERS // 12, 4), max(FILTERS // 60, 2)
"""Of these: how many are read by embedded scans, and through Spark."""
SEED = 7 if settings().derandomize else int(np.random.SeedSequence().entropy) % 2**32
"""The same cases every time where the profile asks for that, else new ones; a failure names it."""
COLUMNS = 150
"""Filters in one projection."""
Matrix = np.ndarray[Any, np.dtype[np.bool_]]


class Loaded(NamedTuple):
    """The parts in one table, a copy at every budget, and the same rows once in plain Parquet."""

    spark: Any
    name: str
    table: tamis.Table
    plain: str
    starts: Any
    """The row at which each part begins, and the end of the last."""

    def rows(self, condition: str) -> list[int]:
        """What Spark finds in the table: every row as often as there are budgets."""
        return sorted(self.spark.sql(f"SELECT rid FROM {self.name} WHERE {condition}").toArrow()["rid"].to_pylist())

    def scan(self, condition: str, **options: Any) -> tamis.Scan:
        return self.table.scan(condition, ["rid"], options=options)

    def embedded(self, condition: str, **options: Any) -> list[int] | None:
        """The same of an embedded scan; None where it does not know a function."""
        try:
            return sorted(self.scan(condition, **options).to_arrow()["rid"].to_pylist())
        except tamis.InvalidInput as error:
            if error.code != "UNKNOWN_FUNCTION":
                raise
            return None

    def expected(self, conditions: list[str]) -> Matrix:
        """What plain Spark says of each row, a line per filter: true, or not."""
        lines = []
        for start in range(0, len(conditions), COLUMNS):
            chosen = conditions[start : start + COLUMNS]
            columns = ", ".join(f"(({c}) IS TRUE) AS c{i}" for i, c in enumerate(chosen))
            found = self.spark.sql(f"SELECT rid, {columns} FROM {self.plain}").toArrow().sort_by("rid")
            lines += [found[f"c{i}"].to_numpy(zero_copy_only=False) for i in range(len(chosen))]
        return np.array(lines, dtype=np.bool_)

    def misjudged(self, condition: str, truth: Any, **options: Any) -> tuple[str, Any]:
        """What a plan gets wrong about the filter, and the share of parts that it skips at each budget."""
        plan = self.scan(condition, **options).plan()
        hits, sizes = np.add.reduceat(truth.astype(np.int64), self.starts[:-1]), np.diff(self.starts)
        shape = (len(BUDGETS), -(-len(sizes) // PER_SEGMENT), PER_SEGMENT)
        read, whole = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
        segment, part = (plan.parts.table[name].to_numpy() for name in ("segment", "part"))
        at = (segment // shape[1], segment % shape[1], part)
        read[at], whole[at] = True, plan.parts.all_match
        read, whole = (each.reshape(len(BUDGETS), -1)[:, : len(sizes)] for each in (read, whole))
        lost, invented = ~read & (hits > 0), whole & (hits < sizes)
        wrong = [
            f"budget {budget}: {condition}: loses rows of parts {np.flatnonzero(gone).tolist()}, invents rows of {np.flatnonzero(made).tolist()}"
            for budget, gone, made in zip(BUDGETS, lost, invented, strict=True)
            if gone.any() or made.any()
        ]
        return "\n".join(wrong), 1 - read.mean(axis=1)


def loaded(path: Path, parts: list[pa.Table]) -> tamis.Table:
    """A table of these parts, in segments of ``PER_SEGMENT``, at one budget after the other."""
    table = tamis.create(path, parts[0].schema)
    for budget in BUDGETS:
        options = Options.resolve(None, None, {} if budget is None else {"tamis.stats.budget_bytes": budget})
        for start in range(0, len(parts), PER_SEGMENT):
            head, chosen = table.refresh().snapshot.head, parts[start : start + PER_SEGMENT]
            manifests = [
                m for part in chosen for m in write(table.store, head, part.combine_chunks().to_batches(), options)
            ]
            add = Proposal(
                Operation("append"),
                table_id=head.table_id,
                read_version=table.version,
                blind_append=True,
                add=manifests,
                operation_id=new_id(),
            )
            commit(table.store, add)
    return tamis.open(path, table.refresh().version)


def load(session: Any, root: Path, name: str, parts: list[pa.Table]) -> Loaded:
    pq.write_table(pa.concat_tables(parts).drop_columns("v"), root / f"{name}.parquet")
    session.read.parquet(str(root / f"{name}.parquet")).selectExpr("*", "try_parse_json(j) v").createOrReplaceTempView(
        f"plain_{name}"
    )
    starts = np.cumsum([0, *(len(part) for part in parts)])
    return Loaded(
        session, f"oracle_lake.db.{name}", loaded(root / "lake" / "db" / name, parts), f"plain_{name}", starts
    )


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


_UNWRAP = "org.apache.spark.sql.catalyst.optimizer.UnwrapCastInBinaryComparison"
"""This rule turns ``CAST(n AS TIMESTAMP) > t`` into ``n > CAST(t AS TIMESTAMP_NTZ)``, which in the gaps of a time zone is another question (Apia, 2011-12-30)."""


def interpreted(spark: Any, zone: str, ansi: bool) -> None:
    """The session's settings. Hundreds of columns, once: compiling them takes longer than running them."""
    values = {
        "session.timeZone": zone,
        "ansi.enabled": str(ansi).lower(),
        "codegen.wholeStage": "false",
        "codegen.factoryMode": "NO_CODEGEN",
    }
    for key, value in {**values, "optimizer.excludedRules": _UNWRAP}.items():
        spark.conf.set(f"spark.sql.{key}", value)


@pytest.mark.parametrize(
    ("zone", "ansi"), [("America/New_York", True), ("Pacific/Apia", False), ("America/Sao_Paulo", True)]
)
def test_rows_are_plain_sparks(tables: Loaded, zone: str, ansi: bool) -> None:
    interpreted(tables.spark, zone, ansi)
    filters = Filters(np.random.default_rng([SEED, *zone.encode()]))
    conditions = [filters.predicate() for _ in range(FILTERS)]
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
        if number < SPARK and (found := tables.rows(condition)) != rows:
            wrong.append(f"Spark: {condition}: lost {set(rows) - set(found)}, invented {set(found) - set(rows)}")
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

    real, no = logic_rules.compared, np.zeros((), bool)
    interpreted(tables.spark, "UTC", True)
    (true,) = tables.expected(["i <= 5"])
    assert tables.misjudged("i <= 5", true)[0] == ""
    monkeypatch.setattr(logic_rules, "compared", lambda *args: replace(real(*args), true=no))
    assert "loses" in tables.misjudged("i <= 5", true)[0]
    monkeypatch.setattr(logic_rules, "compared", lambda *args: replace(real(*args), false=no, null=no))
    assert "invents" in tables.misjudged("i <= 5", true)[0]


FAILING = ["1 / (i - 5) > 0", "i <> 5 AND 1 / (i - 5) > 0", "1 / (i - 5) > 0 AND i <> 5", "CAST(s AS DATE) > DATE'2024-01-01'", "i = 99 OR 1 / (i - 5) > 0", "d IN ('a')", "d IS NULL AND d IN ('a')", "rid < 0 AND CAST('a' AS INT) = 1", "false AND CAST('a' AS INT) = i", "false AND CAST('a' AS INT) = 1", "coalesce(i, CAST('a' AS INT)) > 1", "CASE WHEN rid < 0 THEN CAST('a' AS INT) ELSE 1 END = 2"]  # fmt: skip


@pytest.mark.parametrize("condition", FAILING)
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
