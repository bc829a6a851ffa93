"""TPC-H, all 22 queries through Spark: tamis (orders and lineitem clustered by date, indexes on keys) against Spark over Parquet files sorted alike.

The Parquet files have page indexes, as Spark's own have. A third side reads files of the same rows without them, which shows what they are worth.

``tpchgen-cli`` makes the data; ``BENCH_SCALE`` is the scale factor (1; 0.01 in a quick run), ``BENCH_QUERIES`` chooses some (numbers, commas between). All sides run in one
application and in turn, each in a session in which the tables have their plain names (a current namespace; views), and give the same rows.
"""

from __future__ import annotations

import math
import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import tamis
from bench.both_sides import keep_sorted, ratio_of, rounds_near, sums, write_plain
from bench.report import Figure, quick, record, spark_session, workplace
from bench.tpch_queries import QUERIES

SORTED = {"lineitem": "l_shipdate", "orders": "o_orderdate"}
INDEXED = {"lineitem": ("l_orderkey", "l_partkey"), "orders": ("o_orderkey", "o_custkey")}
LOADS = 8
WHOLE, EACH = 0.8, 1.05


def generated(folder: Path, scale: str) -> Path:
    """The eight tables as Parquet."""
    found = shutil.which("tpchgen-cli", path=os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]]))
    if found is None:
        sys.exit("tpchgen-cli is not installed: pip install --require-hashes -r requirements/bench.txt")
    subprocess.run([found, "parquet", "--scale-factor", scale, "--output-dir", str(folder)], check=True)
    return folder


def build(source: Path, folder: Path) -> None:
    """``lake/db/<table>``, and the same rows in the same order in ``plain/<table>`` and ``bare/<table>``; the larger ones in several loads and files."""
    for path in sorted(source.rglob("*.parquet")):
        name = path.stem
        table = keep_sorted(folder, "db", name, pq.read_table(path), SORTED.get(name), LOADS)
        for column in INDEXED.get(name, ()):
            table.create_index(f"by_{column}", [column])
        (folder / "bare" / name).mkdir(parents=True)
        for file in (folder / "plain" / name).iterdir():
            write_plain(pq.read_table(file), folder / "bare" / name / file.name, page_index=False)


def sessions(spark: Any, folder: Path) -> dict[str, Any]:
    """A session for each side, in which the tables are known by their plain names."""
    ours, theirs, bare = spark.newSession(), spark.newSession(), spark.newSession()
    tamis.attach(ours, "tpch", folder / "lake")
    ours.sql("USE tpch.db")
    for session, files in ((theirs, folder / "plain"), (bare, folder / "bare")):
        for table in files.iterdir():
            session.read.parquet(str(table)).createOrReplaceTempView(table.name)
    return {"spark": theirs, "tamis": ours, "bare": bare}


def answered(session: Any, number: int) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    return list(map(tuple, session.sql(QUERIES[number]).collect()))


def _again(session: Any, number: int, turn: int) -> None:
    del turn
    session.sql(QUERIES[number]).collect()


def same(a: list[Any], b: list[Any]) -> bool:
    """Equal rows; averages of decimals and doubles to the last digits."""
    return len(a) == len(b) and all(
        len(x) == len(y)
        and all(
            u == v or (isinstance(u, float) and math.isclose(u, v, rel_tol=1e-9)) for u, v in zip(x, y, strict=True)
        )
        for x, y in zip(a, b, strict=True)
    )


def main() -> None:
    scale = os.environ.get("BENCH_SCALE") or ("0.01" if quick() else "1")
    spark = spark_session(**{"spark.sql.shuffle.partitions": "4"})
    with workplace(f"tpch{scale}") as (folder, built):
        if not built:
            build(generated(folder / "source", scale), folder)
        sides = sessions(spark, folder)
        chosen = [int(n) for n in os.environ.get("BENCH_QUERIES", "").split(",") if n] or list(QUERIES)
        detail: dict[str, Any] = {}
        for number in chosen:
            answers = {side: answered(session, number) for side, session in sides.items()}
            for side in ("tamis", "bare"):
                if not same(answers[side], answers["spark"]):
                    raise SystemExit(f"Query {number} gives other rows in {side!r} than Spark over Parquet.")
            work = {side: partial(_again, session, number) for side, session in sides.items()}
            seconds = rounds_near(EACH, work)
            ratio = ratio_of(seconds)
            indexes = seconds["spark"]["median"] / seconds["bare"]["median"]
            detail[f"q{number}"] = {
                "ratio": round(ratio, 3),
                "page_indexes": round(indexes, 3),
                "rows": len(answers["spark"]),
                "seconds": seconds,
            }
            print(f"  q{number}: {ratio:.2f} ×, page indexes {indexes:.2f} ×", flush=True)
    each = [found["ratio"] for found in detail.values()]
    indexes_each = [found["page_indexes"] for found in detail.values()]
    figures = [
        Figure("geometric mean: tamis / Spark Parquet", statistics.geometric_mean(each), "×", WHOLE),
        Figure(
            "geometric mean: Spark Parquet with page indexes / without",
            statistics.geometric_mean(indexes_each),
            "×",
        ),
        Figure("the slowest query: tamis / Spark Parquet", max(each), "×", EACH),
        *sums(detail),
    ]
    record("tpch", figures, {"scale": float(scale), "queries": detail, "rows_equal": True})


if __name__ == "__main__":
    main()
