"""Random filters over all combinations of small values: a scan gives the rows that Spark gives."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings

import tamis
from tamis import TamisError

pytestmark = pytest.mark.spark

COUNT = settings().max_examples
SEED = 11 if settings().derandomize else int(np.random.SeedSequence().generate_state(1)[0])
NAMES = ("p", "q", "set", "current_date")
OPERATORS = ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "!<", "!>", "<=>", "AND", "OR")


class Filters:
    """Filters over boolean columns, two of which have names that are words of SQL, and a text; few parentheses, so that precedence shows."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def filter(self, depth: int = 3) -> str:
        left = self.test(depth)
        for _ in range(int(self.random.integers(0, 2))):
            left += f" {self._one(('AND', 'OR'))} {self.test(depth)}"
        return left

    def test(self, depth: int) -> str:
        value = self.value(depth)
        match int(self.random.integers(0, 9)):
            case 0:
                return f"{value} {self._one(('', 'NOT '))}IN ({self.value(0)}, {self.value(1)})"
            case 1:
                return f"{value} {self._one(('', 'NOT '))}BETWEEN {self.value(1)} AND {self.value(1)}"
            case 2:
                return f"{value} IS {self._one(('', 'NOT '))}{self._one(('NULL', 'TRUE', 'FALSE', 'UNKNOWN'))}"
            case 3:
                return f"{value} IS {self._one(('', 'NOT '))}DISTINCT FROM {self.value(1)}"
            case 4:
                return f"NOT {self.test(depth - 1)}"
            case 5:
                return f"s {self._one(('', 'NOT '))}{self._one(('LIKE', 'ILIKE'))} {self._one(('ANY', 'ALL', 'SOME'))} ('t%', '%E')"
            case 6:
                return f"s {self._one(('', 'NOT '))}{self._one(('LIKE', 'ILIKE', 'RLIKE'))} 'tr%'"
        return value

    def value(self, depth: int) -> str:
        if depth <= 0:
            return self._one((*NAMES, "true", "NULL", *NAMES))
        match int(self.random.integers(0, 7)):
            case 0:
                return f"({self.filter(depth - 1)})"
            case 1:
                return f"CASE WHEN {self._one(NAMES)} {self._one(OPERATORS)} {self.value(depth - 1)} THEN {self.value(depth - 1)} ELSE {self._one(NAMES)} END"
            case 2:
                return f"{self.value(depth - 1)} = s"
        return f" {self._one(OPERATORS[:-2])} ".join(
            self.value(depth - 2) for _ in range(int(self.random.integers(2, 4)))
        )

    def _one(self, options: tuple[str, ...]) -> str:
        return options[int(self.random.integers(0, len(options)))]


@pytest.fixture(scope="module")
def tables(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, tamis.Table]]:
    """All combinations of true, false and NULL, with texts that are booleans, in Spark and here."""
    rows = list(itertools.product((True, False, None), repeat=len(NAMES)))
    schema = pa.schema([("n", pa.int64()), *((name, pa.bool_()) for name in NAMES), ("s", pa.string())])
    columns = [
        list(range(len(rows))),
        *([row[i] for row in rows] for i in range(len(NAMES))),
        [("true", "false", None)[i % 3] for i in range(len(rows))],
    ]
    data = pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    table = tamis.create(tmp_path_factory.mktemp("grammar") / "t", schema)
    table.append(data)
    spark.createDataFrame(data).createOrReplaceTempView("grammar_rows")
    yield spark, table
    spark.catalog.dropTempView("grammar_rows")


def by_spark(spark: Any, condition: str) -> list[int] | str:
    from pyspark.errors import PySparkException

    try:
        found: list[int] = spark.sql(f"SELECT n FROM grammar_rows WHERE {condition}").toArrow()["n"].to_pylist()
    except PySparkException:
        return "refused"
    return sorted(found)


def here(table: tamis.Table, condition: str) -> list[int] | str:
    try:
        return sorted(table.scan(condition, ["n"]).to_arrow()["n"].to_pylist())
    except TamisError:
        return "refused"


def test_random_filters_find_the_rows_that_spark_finds(tables: tuple[Any, tamis.Table]) -> None:
    spark, table = tables
    source = Filters(SEED)
    filters = [source.filter() for _ in range(COUNT)]
    different = [(f, mine, other) for f in filters if (mine := here(table, f)) != (other := by_spark(spark, f))]
    assert not different, f"seed {SEED}: {len(different)} of {COUNT}\n" + "\n".join(
        f"{f}\n  {a}\n  {b}" for f, a, b in different[:10]
    )
    assert sum(isinstance(here(table, f), list) for f in filters) > COUNT / 2
