"""What it costs to check parts before Spark's own reader opens them, against a full scan of one column by that reader.

Wide parts (41 columns) of 131,072 rows. The query reads one column of all parts, as cheap a query as there is; the check reads the end of
each file. Seconds are the least of some rounds. ``first``: no file was looked at before; ``again``: all were.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

import tamis
from bench.report import Figure, record, rounds, rows
from tamis.engine.scan import PartRefs
from tamis.spark.scan import file_checks
from tamis.storage.commit_log import load
from tamis.storage.object_store import open_store

PART_ROWS, COLUMNS, PARTS = 131_072, 41, 24


def least(run: Callable[[], Any], prepare: Callable[[], Any] = lambda: None) -> float:
    taken = []
    for _ in range(rounds() + 1):
        prepare()
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return min(taken)


def forget() -> None:
    file_checks._checked = file_checks.Recent(file_checks._MOST)


def main() -> None:
    count, noise = rows(PART_ROWS), np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as home:
        spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
        tamis.attach(spark, "lake", home)
        spark.sql("CREATE NAMESPACE lake.db")
        data = pa.table({f"c{i}": noise.integers(0, 10**6, count) for i in range(COLUMNS)})
        table = tamis.create(Path(home) / "db" / "t", data.schema)
        for _ in range(PARTS):
            table.append(data)
        store = open_store(Path(home) / "db" / "t")
        listed = load(store).parts()
        parts = PartRefs(listed, np.zeros(len(listed), dtype=bool))
        first = least(lambda: file_checks.check_files(parts, store), forget)
        again = least(lambda: file_checks.check_files(parts, store))
        query = least(lambda: spark.sql("SELECT sum(c7) FROM lake.db.t WITH ('tamis.read.lazy' = 'native')").collect())
        spark.stop()
    figures = [
        Figure("checking parts the first time / SELECT sum of one column of 41", first / query, "×", 0.05),
        Figure("checking parts again / the same", again / query, "×", 0.01),
        Figure("checking a part of 41 columns the first time", first / len(listed) * 1e6, "µs"),
        Figure("checking a part again", again / len(listed) * 1e6, "µs"),
    ]
    record("trust", figures, {"parts": len(listed), "first": first, "again": again, "query": query})


if __name__ == "__main__":
    main()
