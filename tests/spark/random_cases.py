"""Random tables and filters against plain Spark for as long as is wished: ``python -m tests.spark.random_cases MINUTES SEED``.

The cases are those of ``test_oracle``, in rounds of a new table each, so that it can be stopped at any time: every round says how many there were and what
was found. Exit code 1 where anything was. A case is a filter over a table at one budget of statistics, or its rows read, embedded or through Spark.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession
from tests.spark.loaded_tables import BUDGETS, PARTS, Loaded, interpreted, load
from tests.spark.oracle_cases import Filters, random_parts

import tamis
from tamis.world import world

ZONES = ("UTC", "America/New_York", "Pacific/Apia", "America/Sao_Paulo", "Europe/Berlin", "Australia/Lord_Howe")
FILTERS, READ, SPARK = 600, 20, 4
LARGER = 10
"""Parts of so many rows that the documents in them are read by templates."""


def judged(tables: Loaded, zone: str, ansi: bool, seed: list[int]) -> tuple[int, list[str]]:
    """How many cases, and what is wrong."""
    interpreted(tables.spark, zone, ansi)
    filters, cases, wrong = Filters(np.random.default_rng(seed)), 0, list[str]()
    conditions = [filters.predicate() for _ in range(FILTERS)]
    for number, (condition, true) in enumerate(zip(conditions, tables.expected(conditions), strict=True)):
        problem, _ = tables.misjudged(condition, true, timezone=zone, ansi=ansi)
        wrong += [problem] if problem else []
        cases += len(BUDGETS)
        rows = sorted(np.flatnonzero(true).tolist() * len(BUDGETS))
        if number < READ and (read := tables.embedded(condition, timezone=zone, ansi=ansi)) is not None:
            cases += 1
            wrong += (
                []
                if read == rows
                else [f"embedded: {condition}: lost {set(rows) - set(read)}, invented {set(read) - set(rows)}"]
            )
        if number < SPARK:
            found, cases = tables.rows(condition), cases + 1
            wrong += (
                []
                if found == rows
                else [f"Spark: {condition}: lost {set(rows) - set(found)}, invented {set(found) - set(rows)}"]
            )
    return cases, wrong


def main(minutes: float, seed: int) -> int:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.conf.set("spark.sql.parquet.filterPushdown", "false")
    end, cases, found, number = world().monotonic() + 60 * minutes, 0, 0, 0
    with tempfile.TemporaryDirectory() as home:
        tamis.attach(spark, "oracle_lake", str(Path(home) / "lake"))
        while world().monotonic() < end:
            tables = load(
                spark, Path(home), f"round{number}", random_parts(np.random.default_rng([seed, number]), PARTS, LARGER)
            )
            for zone, ansi in ((ZONES[number % len(ZONES)], True), (ZONES[(number + 1) % len(ZONES)], False)):
                count, wrong = judged(tables, zone, ansi, [seed, number, int(ansi)])
                cases, found = cases + count, found + len(wrong)
                print(
                    f"seed {seed} round {number} {zone} ansi={ansi}: {cases:,} cases, {found} wrong",
                    *wrong,
                    sep="\n  ",
                    flush=True,
                )
            number += 1
    spark.stop()
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2])))
