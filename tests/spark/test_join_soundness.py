"""Random tables, random joins: the rows that plain Spark gives over the same rows in Parquet, and a good share of parts skipped by keys.

Facts have NULL keys, duplicates, deleted rows, parts in and out of order, and an index that misses half of the segments; dimensions have NULLs, duplicates and keys that
nothing has. Joins are of every type, broadcast from either side or shuffled, with and without a WHERE on each side. Several stand in one query, told apart by a number: what a
join gives is compared by its count and a sum of hashes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import settings
from tests.new_reports import all_reports, reports_since

import tamis

pytestmark = pytest.mark.spark

EXAMPLES = settings().max_examples
ROUNDS = max(EXAMPLES // 75, 1)
"""Tables: 1 at a push, 2 at a merge, 40 in the nightly profile."""
JOINS = 7
SEED = 11 if settings().derandomize else int(np.random.SeedSequence().generate_state(1)[0])
TYPES = ("JOIN", "JOIN", "LEFT SEMI JOIN", "LEFT JOIN", "RIGHT JOIN", "LEFT ANTI JOIN", "FULL JOIN")
KEYS = ("a", "b", "s", "d", "v", "f")
SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("a", pa.int32()),
        ("b", pa.int64()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("v", pa.decimal128(9, 2)),
        ("f", pa.float64()),
    ]
)


def _rows(random: np.random.Generator, first: int, lo: int, hi: int, count: int) -> pa.Table:
    """Rows whose keys lie between ``lo`` and ``hi``, a tenth of each column NULL."""

    def column(of: Any) -> pa.Array:
        values = random.integers(lo, hi, count)
        return pa.array(of(values), mask=random.random(count) < 0.1)

    return pa.table(
        [
            pa.array(np.arange(first, first + count)),
            column(lambda v: v.astype(np.int32)),
            column(lambda v: v),
            column(lambda v: np.char.add("s", v.astype(str))).cast(pa.string()),
            column(lambda v: v.astype(np.int32)).cast(pa.date32()),
            column(lambda v: v).cast(pa.decimal128(21, 2)).cast(pa.decimal128(9, 2)),
            column(lambda v: np.where(v % 5 == 0, np.nan, np.where(v % 5 == 1, -0.0, v))),
        ],
        schema=SCHEMA,
    )


def _facts(random: np.random.Generator, folder: Path) -> tamis.Table:
    """A table of ten parts: some narrow, some as wide as all; an index deferred for the later half; some rows deleted."""
    table = tamis.create(folder, SCHEMA)
    for part in range(10):
        if part == 5:
            table.create_index("by_b", ["b"])
            table.create_index("by_s", ["s"], build="deferred")
        lo, hi = (0, 200) if random.random() < 0.2 else (part * 20, part * 20 + 25)
        table.append(_rows(random, part * 40, lo, hi, 40))
    table.delete(f"n % {random.integers(5, 30)} = 0")
    return table


def _dimension(random: np.random.Generator) -> pa.Table:
    lo = int(random.integers(0, 220))
    return _rows(random, 0, lo, lo + int(random.integers(1, 60)), int(random.integers(1, 12)))


def _join(random: np.random.Generator, number: int) -> str:
    """A join of ``{facts}`` and ``dim``, as a row of its number, its count and a sum of hashes."""
    kind = str(random.choice(TYPES))
    keys = random.choice(KEYS, 2 if random.random() < 0.2 else 1, replace=False)
    on = " AND ".join(f"f.{key} = d.{key}" for key in keys)
    hint = random.choice(
        ["", "", "/*+ BROADCAST(d) */", "/*+ BROADCAST(f) */", "/*+ MERGE(d) */", "/*+ SHUFFLE_HASH(d) */"]
    )
    dim = random.choice(
        ["(SELECT * FROM dim WHERE n > 1)", "dim", "(SELECT * FROM dim WHERE s LIKE '%1%' OR a IS NULL)"]
    )
    facts = random.choice(
        ["{facts}", "(SELECT * FROM {facts} WHERE a > 30)", "(SELECT * FROM {facts} WHERE s IS NOT NULL AND b % 3 < 2)"]
    )
    given = "f.n, f.b, f.f" if "SEMI" in kind or "ANTI" in kind else "f.n, f.b, f.f, d.n, d.a"
    swapped = random.random() < 0.3 and "SEMI" not in kind and "ANTI" not in kind
    sides = f"{dim} d {kind} {facts} f" if swapped else f"{facts} f {kind} {dim} d"
    return f"SELECT {number} AS q, count(*) AS n, sum(CAST(h AS DECIMAL(20))) AS h FROM (SELECT {hint} xxhash64({given}) AS h FROM {sides} ON {on})"


@pytest.mark.parametrize("number", range(ROUNDS))
def test_joins_give_the_same_rows(spark: Any, tmp_path: Path, number: int) -> None:
    random = np.random.default_rng([SEED, number])
    name = f"joined{number}"
    tamis.attach(spark, name, tmp_path / "lake")
    spark.sql(f"CREATE NAMESPACE {name}.db")
    table = _facts(random, tmp_path / "lake" / "db" / "facts")
    pq.write_table(table.scan().to_arrow(), tmp_path / "facts.parquet")
    pq.write_table(_dimension(random), tmp_path / "dim.parquet")
    spark.read.parquet(str(tmp_path / "facts.parquet")).createOrReplaceTempView(f"{name}_facts")
    spark.read.parquet(str(tmp_path / "dim.parquet")).createOrReplaceTempView("dim")
    queries = [_join(random, at) for at in range(JOINS)]
    queries.append("SELECT 99, count(*), NULL FROM {facts} f JOIN dim d ON f.b = d.b WHERE d.n >= 0")
    text = " UNION ALL ".join(queries)
    before = all_reports()
    found = {row[0]: tuple(row) for row in spark.sql(text.format(facts=f"{name}.db.facts")).collect()}
    expected = {row[0]: tuple(row) for row in spark.sql(text.format(facts=f"{name}_facts")).collect()}
    wrong = [query for at, query in enumerate(queries[:JOINS]) if found[at] != expected[at]]
    assert not wrong, f"seed {SEED}, round {number}: other rows than plain Spark's for {wrong}"
    assert found == expected
    reports = [r for r in reports_since(before) if r.table == f"{name}.db.facts"]
    assert sum(r.parts["skipped_join"] for r in reports) > 0
