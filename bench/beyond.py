"""Beyond the filter: ORDER BY … LIMIT, LIMIT, COUNT, MIN and MAX through Spark, against Spark's own Parquet scan over the same rows in as many files.

Two tables: events, 1,000 small loads in time order; and measurements, 15 columns in 20 parts, ordered by none of them. Both sides take turns within a round; a figure is the
median of the rounds' ratios. Parts read come from the reports.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.report import Figure, quick, record, rows, spark_session

LOADS = 60 if quick() else 1_000
WIDE_PARTS = 20
ROUNDS = 2 if quick() else 5


def events(load: int, count: int) -> pa.Table:
    """Rows of one load: time rises, everything else is anywhere."""
    rng = np.random.default_rng(load)
    ts = pa.array(load * 60_000_000 + np.sort(rng.integers(0, 60_000_000, count)), pa.timestamp("us", "UTC"))
    return pa.table(
        {
            "ts": ts,
            "user": rng.integers(0, 10**6, count),
            "amount": rng.random(count),
            "kind": pa.array([f"kind-{k}" for k in rng.integers(0, 9, count)]),
        }
    )


def measurements(part: int, count: int) -> pa.Table:
    """15 columns: a part number, a double to order by, others to carry."""
    rng = np.random.default_rng(10_000 + part)
    columns: dict[str, Any] = {"part": np.full(count, part), "x": rng.random(count)}
    columns |= {f"n{i}": rng.integers(0, 10**9, count) for i in range(6)}
    columns |= {f"d{i}": rng.random(count) for i in range(4)}
    texts = np.array([f"text {i:06} of some length" for i in range(5_000)])
    columns |= {f"s{i}": pa.array(texts[rng.integers(0, 5_000, count)]) for i in range(3)}
    return pa.table(columns)


def load(lake: Path, plain: Path, name: str, parts: Any) -> None:
    """The same rows as a Tamis table and as Parquet files."""
    import tamis

    table = None
    (plain / name).mkdir(parents=True)
    for number, rows_ in enumerate(parts):
        if table is None:
            table = tamis.create(lake / "b" / name, rows_.schema)
        table.append(rows_)
        pq.write_table(rows_, plain / name / f"{number:05}.parquet", compression="zstd")


def parts_read(spark: Any, text: str) -> dict[str, int]:
    """Parts by what became of them, of one execution."""
    import tamis

    spark.sql(text).collect()
    return {name: count for name, count in tamis.reports()[0].parts.items() if count}


def timed(spark: Any, ours: str, plain: str) -> dict[str, Any]:
    """Both in turn, after one round that is not counted; rows must be the same in number and in the first column's values."""
    seconds: dict[str, list[float]] = {"tamis": [], "parquet": []}
    for turn in range(ROUNDS + 1):
        found = {}
        for side, text in (("tamis", ours), ("parquet", plain)):
            start = time.perf_counter()
            found[side] = [row[0] for row in spark.sql(text).collect()]
            if turn:
                seconds[side].append(time.perf_counter() - start)
        if found["tamis"] != found["parquet"]:
            raise AssertionError(f"{ours} gives other rows than {plain}")
    ratio = statistics.median(p / t for t, p in zip(seconds["tamis"], seconds["parquet"], strict=True))
    return {
        "faster": round(ratio, 2),
        **{f"{side}_s": round(statistics.median(taken), 4) for side, taken in seconds.items()},
    }


def main() -> None:
    import tamis

    with tempfile.TemporaryDirectory() as home:
        lake, plain = Path(home) / "lake", Path(home) / "plain"
        per_load, wide = rows(2_000_000) // 1_000, rows(2_000_000) // WIDE_PARTS
        load(lake, plain, "events", (events(n, per_load) for n in range(LOADS)))
        load(lake, plain, "measurements", (measurements(n, wide) for n in range(WIDE_PARTS)))
        spark = spark_session()
        tamis.attach(spark, "lake", str(lake))
        for name in ("events", "measurements"):
            spark.read.parquet(str(plain / name)).createOrReplaceTempView(name)
        half, edges = (
            WIDE_PARTS // 2,
            f"ts BETWEEN timestamp_seconds({LOADS * 6 + 30}) AND timestamp_seconds({LOADS * 54 + 30})",
        )
        queries = {
            "last": "SELECT ts, user, amount FROM {e} ORDER BY ts DESC LIMIT 100",
            "best": "SELECT x, * FROM {m} ORDER BY x DESC LIMIT 10",
            "edges": f"SELECT count(*), min(ts), max(ts) FROM {{e}} WHERE {edges}",
        }
        ours, theirs = {"e": "lake.b.events", "m": "lake.b.measurements"}, {"e": "events", "m": "measurements"}
        times = {name: timed(spark, text.format(**ours), text.format(**theirs)) for name, text in queries.items()}
        limited = f"SELECT * FROM {{m}} WHERE part >= {half} LIMIT 10".format(**ours)
        parts = {name: parts_read(spark, text.format(**ours)) for name, text in {**queries, "limit": limited}.items()}
        spark.stop()
    print(f"  {times}\n  {parts}", flush=True)
    figures = [
        Figure(f"ORDER BY ts DESC LIMIT 100 over {LOADS:,} segments: parts read", parts["last"]["kept"], "parts", 3),
        Figure("… seconds / Spark Parquet's", 1 / times["last"]["faster"], "×", 0.1),
        Figure(
            "ORDER BY an unclustered double LIMIT 10, SELECT * of 15 columns: seconds / Spark Parquet's",
            1 / times["best"]["faster"],
            "×",
            0.34,
        ),
        Figure(
            "LIMIT 10 with a filter that half the parts satisfy wholly: parts read", parts["limit"]["kept"], "parts", 1
        ),
        Figure(
            "COUNT, MIN, MAX with a filter on the clustering column: parts read",
            parts["edges"].get("kept", 0),
            "parts",
            2,
        ),
        Figure("… seconds / Spark Parquet's", 1 / times["edges"]["faster"], "×"),
    ]
    record(
        "beyond",
        figures,
        {"times": times, "parts": parts, "loads": LOADS, "rows_per_load": per_load, "rows_per_wide_part": wide},
    )


if __name__ == "__main__":
    main()
