"""MERGE from a source that gives other rows each time it is computed. Which rows were taken is not known, but each key is merged once or not at all."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from random import Random  # noqa: TID251  # seeded by the caller
from typing import Any

from pyspark.sql.functions import udf
from pyspark.sql.types import BooleanType

from tests.oracle.lab import Built, Lab

Values = dict[Any, Counter[Any]]
FEATURE = "merge of a differing source"
KEYS, MERGES = (1, 2, 3), 3
"""Keys of rows that are there, and of new ones: so few that a merge prunes by those that it has seen."""


def fits(built: Built) -> bool:
    return built.columns.get("a") == "int" and "k" in built.columns


def wrong_merge(lab: Lab, built: Built, rng: Random) -> str | None:
    """Merges into the table, which is of no use for other questions then; returns what is wrong."""
    lab.spark.udf.register("oracle_flip", udf(_flip, BooleanType()))
    before = _values(lab.spark, built.plain())
    for first in range(1000, 1000 * (MERGES + 1), 1000):
        after, problem = _merged(lab.spark, built, rng, before, first)
        if problem is not None:
            return problem
        before = after
    return None


def _merged(spark: Any, built: Built, rng: Random, before: Values, first: int) -> tuple[Values, str | None]:
    """What the table holds after a merge that gives each key a number from ``first`` on, and what is wrong."""
    known = sorted(key for key in before if key is not None)
    keys = sorted(
        {*rng.sample(known, min(len(known), rng.choice(KEYS))), *(10**6 + i for i in range(rng.choice(KEYS)))}
    )
    given = {key: first + i for i, key in enumerate(keys)}
    spark.createDataFrame(list(given.items()), "k bigint, a int").createOrReplaceTempView("oracle_given")
    source = "(SELECT k, a FROM oracle_given WHERE oracle_flip(a)) AS source"  # not of k: Spark infers filters of keys for the target
    spark.sql(
        f"MERGE INTO {built.ours()} AS target USING {source} ON target.k = source.k "
        "WHEN MATCHED THEN UPDATE SET a = source.a WHEN NOT MATCHED THEN INSERT (k, a) VALUES (source.k, source.a)"
    ).collect()
    after = _values(spark, built.ours())
    for key in {*before, *after}:
        old, new = before.get(key, Counter()), after.get(key, Counter())
        merged = Counter({given[key]: max(old.total(), 1)}) if key in given else old
        if new not in (old, merged):
            return after, f"{FEATURE}: k = {key} had {dict(old)}, has {dict(new)}, and was given a = {given.get(key)}"
    return after, None


def _values(spark: Any, table: str) -> Values:
    """How often each value of ``a`` comes with each key."""
    found: Values = defaultdict(Counter)
    for key, value in spark.sql(f"SELECT k, a FROM {table}").collect():
        found[key][value] += 1
    return dict(found)


def _flip(_: int) -> bool:
    """Another answer each time, though Catalyst takes it for deterministic."""
    return os.urandom(1)[0] % 2 == 0  # noqa: TID251  # the difference between two runs is the point
