"""Planning through Spark: what Tamis adds to a query of 1, 5 and 10 scans of 10 parts, and to one in which two joins hand over keys.

Spark over Parquet files of the same rows runs in turn with it. Beside the milliseconds that a query takes longer, which other work on the machine disturbs, stand
the calls from Java to Python and their CPU milliseconds, which it hardly does. Scans are planned, not run; the joins are run.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tamis
from bench.both_sides import keep_pieces
from bench.report import Figure, quick, record, spark_session, workplace

TABLES, PARTS, ROWS = 10, 10, 2_000
KEYS = 2_127
ADDED = 25


def build(folder: Path) -> None:
    """``lake/db/t0`` to ``t9`` of ten parts, ``small`` and ``other`` with keys, and the same in ``plain``."""
    random = np.random.default_rng(1)
    for at in range(TABLES):
        loads = []
        for part in range(PARTS):
            columns: dict[str, Any] = {
                "k": np.arange(part * ROWS, (part + 1) * ROWS),
                "g": random.integers(0, 20, ROWS),
            }
            columns |= {f"c{i}": random.integers(0, 10**6, ROWS) for i in range(12)}
            loads.append(pa.table(columns | {"s": random.integers(0, 50, ROWS).astype(str)}))
        keep_pieces(folder, "db", f"t{at}", loads[0].schema, loads, ("k",))
    keys = pa.table({"k": np.arange(KEYS) + ROWS, "chosen": np.arange(KEYS) % 2})
    keep_pieces(folder, "db", "small", keys.schema, [keys], ("k",))
    keep_pieces(folder, "db", "other", keys.schema, [keys], ("k",))


def scans(prefix: str, count: int, turn: int) -> str:
    """A query over that many tables. Its filter differs from turn to turn: nothing kept for one filter helps."""
    each = "SELECT sum(c1) s, count(*) n, max(g) m FROM {}t{} WHERE k BETWEEN {} AND 15000 AND g = 3"
    return " UNION ALL ".join(each.format(prefix, at, 100 + turn) for at in range(count))


def joins(prefix: str, turn: int) -> str:
    """A query in which each of two facts gets the keys of a small side, of which half are chosen."""
    each = "SELECT sum(c1) s FROM {0}t{1} t JOIN {0}{2} d ON t.k = d.k WHERE d.chosen >= 0 AND t.c2 >= {3}"
    return " UNION ALL ".join(each.format(prefix, at, side, turn) for at, side in enumerate(("small", "other")))


class Calls:
    """Counts calls from Java to Python, and their CPU seconds."""

    def __init__(self) -> None:
        self.number, self.cpu = 0, 0.0

    @contextmanager
    def counted(self) -> Iterator[None]:
        from tamis.spark.jvm_bridge.java_callback import Callback

        real = Callback.apply

        def apply(callback: Callback, call: str, argument: Any) -> Any:
            start = time.thread_time()
            try:
                return real(callback, call, argument)
            finally:
                self.number += 1
                self.cpu += time.thread_time() - start

        Callback.apply = apply  # type: ignore[method-assign]
        try:
            yield
        finally:
            Callback.apply = real  # type: ignore[method-assign]


def measured(query: Callable[[str, int], str], run: Callable[[str], Any], turns: int) -> dict[str, Any]:
    """Milliseconds of both sides in turn, medians of the later two thirds, and the calls of one query."""
    taken: dict[str, list[float]] = {"spark": [], "tamis": []}
    calls = Calls()
    with calls.counted():
        for turn in range(turns):
            for side, prefix in (("spark", ""), ("tamis", "lake.db.")):
                start = time.perf_counter()
                run(query(prefix, turn))
                taken[side].append((time.perf_counter() - start) * 1000)
    found = {side: statistics.median(times[turns // 3 :]) for side, times in taken.items()}
    return {
        "added_ms": round(found["tamis"] - found["spark"], 1),
        "ms": {side: round(value, 1) for side, value in found.items()},
        "calls": round(calls.number / turns, 1),
        "calls_cpu_ms": round(calls.cpu * 1000 / turns, 1),
    }


def main() -> None:
    turns = 6 if quick() else 24
    spark = spark_session(**{"spark.sql.shuffle.partitions": "4"})
    with workplace("planning_spark") as (folder, built):
        if not built:
            build(folder)
        tamis.attach(spark, "lake", folder / "lake")
        for name in (p.name for p in (folder / "plain").iterdir()):
            spark.read.parquet(str(folder / "plain" / name)).createOrReplaceTempView(name)
        detail = {
            f"{count} scans": measured(
                lambda prefix, turn, count=count: scans(prefix, count, turn),
                lambda text: spark.sql(text)._jdf.queryExecution().toRdd().getNumPartitions(),
                turns,
            )
            for count in (1, 5, 10)
        }
        detail["keys of two joins"] = measured(joins, lambda text: spark.sql(text).collect(), turns)
    figures = [
        Figure(f"planning added to a query, {name}", one["added_ms"], "ms", ADDED) for name, one in detail.items()
    ]
    figures += [Figure(f"CPU of calls to Python, {name}", one["calls_cpu_ms"], "ms") for name, one in detail.items()]
    record("planning_spark", figures, {"parts": PARTS, "keys": KEYS, "queries": detail})


if __name__ == "__main__":
    main()
