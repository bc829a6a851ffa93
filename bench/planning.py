"""Planning: what it adds to a Spark query over 1,000 parts, and opening plus planning a range filter over 100,000 parts, with peers beside it.

Tables are metadata alone (manifests of 15 columns with bounds): planning reads nothing else. Each opening is a process of its own, so that its
memory is its own; a peer gets a time limit and is reported as far as it gets.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import peers
from bench.report import Figure, peak_mb, quick, record, spark_session

LIMIT, SLOW = 60, 10
"""Seconds that one opening may take, and from which on it is run once, not three times."""


def ours(folder: Path, parts: int, segments: int) -> Path:
    """A Tamis table of that shape."""
    from bench.state import COLUMNS, SCHEMA, grow
    from tamis.storage.commit_log import Head, Operation, create
    from tamis.storage.object_store import open_store
    from tamis.world import new_id

    store = open_store(str(folder))
    snapshot = create(store, Head(new_id(), schemas=(SCHEMA,), highest_column_id=COLUMNS), Operation("create"))
    grow(store, snapshot, segments, parts // segments)
    return folder


def opened(engine: str, path: str, low: int, high: int) -> dict[str, Any]:
    """Opens the table and finds the files of c1 in [low, high]; imports are not counted, memory is the whole process's."""
    run = {"tamis": _tamis, "deltalake": _deltalake, "pyiceberg": _pyiceberg}[engine](path, low, high)
    start = time.perf_counter()
    kept = run()
    seconds = time.perf_counter() - start
    return {"seconds": round(seconds, 4), "kept": kept, "rss_mb": peak_mb()}


def _tamis(path: str, low: int, high: int) -> Any:
    import tamis
    from tamis import table  # noqa: F401  # loaded before the clock starts, as the peers are

    return lambda: len(tamis.open(path).scan(f"c1 BETWEEN {low} AND {high}").plan().parts)


def _deltalake(path: str, low: int, high: int) -> Any:
    import pyarrow.compute as pc
    from deltalake import DeltaTable

    keep = (pc.field("c1") >= low) & (pc.field("c1") <= high)
    return lambda: len(list(DeltaTable(path).to_pyarrow_dataset().get_fragments(filter=keep)))


def _pyiceberg(path: str, low: int, high: int) -> Any:
    from pyiceberg.table import StaticTable

    return lambda: len(list(StaticTable.from_metadata(path).scan(f"c1 >= {low} and c1 <= {high}").plan_files()))


def compare(folder: Path, parts: int) -> dict[str, Any]:
    """Each engine on a table of that many files, up to three times; the best run, or why there is none."""
    low, high = 1_000 * (parts // 2), 1_000 * (parts // 2 + parts // 100) - 1
    made = {
        "tamis": lambda: ours(folder / f"tamis-{parts}", parts, 100),
        "deltalake": lambda: peers.delta(folder / f"delta-{parts}", parts),
        "pyiceberg": lambda: peers.iceberg(folder / f"iceberg-{parts}", parts),
    }
    out: dict[str, Any] = {}
    for engine, make in made.items():
        try:
            path = make()
            command = [sys.executable, "-m", "bench.planning", "--open", engine, str(path), str(low), str(high)]
            runs = [json.loads(subprocess.check_output(command, timeout=LIMIT))]
            while len(runs) < 3 and runs[0]["seconds"] < SLOW:
                runs.append(json.loads(subprocess.check_output(command, timeout=LIMIT)))
            out[engine] = {
                **min(runs, key=lambda r: r["seconds"]),
                "median": statistics.median(r["seconds"] for r in runs),
            }
        except (ImportError, subprocess.SubprocessError) as error:
            out[engine] = {"failed": str(error).splitlines()[0]}
        print(f"  {parts:,} files, {engine}: {out[engine]}", flush=True)
    return out


def added(folder: Path) -> dict[str, float]:
    """Milliseconds from SQL text to partitions: over 1,000 parts and over one, by Tamis; over one file, by Spark itself."""
    import tamis

    lake = folder / "lake"
    ours(lake / "b" / "many", 1_000, 10)
    ours(lake / "b" / "one", 1, 1)
    spark = spark_session(**{"tamis.read.lazy": "on"})  # there are no files whose footers could be read
    tamis.attach(spark, "lake", lake)
    columns = [f"CAST(id AS {'STRING' if i % 3 == 2 else 'BIGINT'}) c{i}" for i in range(1, 16)]
    spark.range(1_000).selectExpr(*columns).coalesce(1).write.parquet(str(folder / "plain"))
    spark.read.parquet(str(folder / "plain")).createOrReplaceTempView("plain")
    names = {"tamis, 1,000 parts": "lake.b.many", "tamis, 1 part": "lake.b.one", "parquet, 1 file": "plain"}
    taken: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(4 if quick() else 25):
        for name, table in names.items():
            start = time.perf_counter()
            df = spark.sql(f"SELECT c2, c3 FROM {table} WHERE c1 BETWEEN 200000 AND {300000 + turn} AND c4 IS NOT NULL")
            df._jdf.queryExecution().toRdd().getNumPartitions()
            taken[name].append((time.perf_counter() - start) * 1000)
    spark.stop()
    return {name: round(statistics.median(times[len(times) // 3 :]), 2) for name, times in taken.items()}


def main() -> None:
    if "--open" in sys.argv:
        engine, path, low, high = sys.argv[sys.argv.index("--open") + 1 :][:4]
        print(json.dumps(opened(engine, path, int(low), int(high))))
        return
    parts = 2_000 if quick() else 100_000
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        query = added(folder)
        print(f"  {query}", flush=True)
        sizes = {str(n): compare(folder, n) for n in dict.fromkeys((1_000, parts))}
    largest = sizes[str(parts)]
    figures = [
        Figure(
            "planning added to a Spark query, 1,000 parts",
            query["tamis, 1,000 parts"] - query["parquet, 1 file"],
            "ms",
            60,
        )
    ]
    if "seconds" in largest["tamis"]:
        figures.append(Figure(f"open + plan a range, {parts:,} parts", largest["tamis"]["seconds"], "s", 0.5))
        figures.append(Figure(f"memory of it, {parts:,} parts", largest["tamis"]["rss_mb"], "MB", 300))
        for peer in ("deltalake", "pyiceberg"):
            if "seconds" in largest[peer]:
                figures.append(
                    Figure(
                        f"tamis / {peer}, {parts:,} files", largest["tamis"]["seconds"] / largest[peer]["seconds"], "×"
                    )
                )
    record("planning", figures, {"spark_query_ms": query, "open_and_plan": sizes})


if __name__ == "__main__":
    main()
