"""Upkeep: compacting many parts of about 1 MB against Spark reading, sorting and writing the same bytes; appends meanwhile; queries before and after.

``BENCH_PARTS`` (1,000 by default) parts of about 1 MB, each one append of rows anywhere in the clustering column. Peak memory is that of a process of
its own that compacts without Spark.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tamis
from bench.report import Figure, peak_mb, quick, record, spark_session

PARTS = int(os.environ.get("BENCH_PARTS") or (20 if quick() else 1_000))
ROWS = 16_000
GOAL, APPEND_GOAL = 1.3, 1.5
SEGMENTS = 100 if quick() else 1_000
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("user", pa.int64()),
        *[(f"n{i}", pa.float64()) for i in range(5)],
        ("token", pa.string()),
        ("kind", pa.string()),
    ]
)


def rows(number: int, count: int = ROWS) -> pa.Table:
    """Rows of one moment, users anywhere; the numbers do not compress, so a part is about 1 MB."""
    dice = np.random.default_rng(number)
    columns: list[Any] = [
        pa.array(1_700_000_000_000_000 + number * 60_000_000 + np.arange(count) * 1_000, SCHEMA.field("ts").type),
        dice.integers(0, 10**9, count),
        *[dice.random(count) for _ in range(5)],
        [f"{v:016x}" for v in dice.integers(0, 2**62, count)],
        [("view", "click", "buy")[v] for v in dice.integers(0, 3, count)],
    ]
    return pa.table(columns, schema=SCHEMA)


def fill(path: Path, parts: int, count: int = ROWS, **properties: str) -> tamis.Table:
    of = tamis.create(path, SCHEMA, cluster_by=["user"], properties=properties)
    for number in range(parts):
        of.append(rows(number, count))
    return of


def plain(spark: Any, files: list[str], target: Path) -> None:
    """What a Spark user would write: the same bytes in, one sorted set of large files out."""
    df = spark.read.parquet(*files).repartitionByRange("user").sortWithinPartitions("user")
    df.write.parquet(str(target))
    shutil.rmtree(target)


def timed(run: Any) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def by_spark(folder: Path) -> dict[str, Any]:
    """Seconds of each, in turn; the first round warms up."""
    master = fill(folder / "master", PARTS)
    size = int(master.detail()["size_in_bytes"][0].as_py())
    files = [f"{master.path}/{p}" for p in master.snapshot.parts(None)["path"].to_pylist()]
    spark = spark_session()
    taken: dict[str, list[float]] = {"spark": [], "tamis": [], "local": []}
    for turn in range(3):
        for name, seconds_of in taken.items():
            copy = folder / f"{name}-{turn}"
            if name != "spark":
                shutil.copytree(master.path, copy)
            run = {
                "spark": lambda copy=copy: plain(spark, files, copy),
                "tamis": lambda copy=copy: tamis.open(copy).compact(spark=spark),
                "local": lambda copy=copy: tamis.open(copy).compact(),
            }[name]
            seconds = timed(run)
            if turn:
                seconds_of.append(seconds)
            shutil.rmtree(copy, ignore_errors=True)
    spark.stop()
    return {
        "parts": PARTS,
        "megabytes": round(size / 2**20),
        **{f"{n}_seconds": [round(s, 2) for s in t] for n, t in taken.items()},
    }


def in_a_process(folder: Path) -> dict[str, Any]:
    """Peak memory of compacting without Spark, over that of a process that only opens the table."""
    fill(folder / "memory", PARTS)
    asked = [sys.executable, "-m", "bench.tending", "--child", str(folder / "memory")]
    completed = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent)
    found: dict[str, Any] = json.loads(completed.stdout.splitlines()[-1])
    return found


def child(path: str) -> None:
    of = tamis.open(path)
    before = peak_mb()
    done = of.compact()
    print(
        json.dumps({"opened_mb": before, "peak_mb": peak_mb(), "bytes_read": done.bytes_read, "seconds": done.seconds})
    )


def appends(folder: Path) -> dict[str, Any]:
    """Seconds of an append before, and while a compaction runs in another process; how many were refused."""
    of = fill(folder / "busy", PARTS)
    alone = [timed(lambda i=i: of.append(rows(10_000 + i, 100))) for i in range(40)]
    other = subprocess.Popen(
        [sys.executable, "-m", "bench.tending", "--child", of.path],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent.parent,
    )
    busy, aborts = [], 0
    time.sleep(2)
    while other.poll() is None:
        try:
            busy.append(timed(lambda: of.append(rows(20_000 + len(busy), 100))))
        except tamis.errors.TamisError:
            aborts += 1
        time.sleep(0.05)
    other.communicate()
    kinds = of.history()["operation"].to_pylist()
    return {
        "alone_ms": round(statistics.median(alone) * 1e3, 2),
        "while_compacting_ms": round(statistics.median(busy) * 1e3, 2) if busy else None,
        "appends_meanwhile": len(busy),
        "aborts": aborts,
        "compactions": kinds.count("compact"),
    }


def queries(folder: Path) -> dict[str, Any]:
    """One user's rows, and the newest minutes, over many small segments and over what compaction made of them."""
    of = fill(folder / "small", SEGMENTS, 200)
    user = rows(SEGMENTS // 2, 200)["user"][7].as_py()
    newest = rows(SEGMENTS - 3, 1)["ts"][0].as_py()
    asked = {"one user": f"user = {user}", "the newest three segments": f"ts >= TIMESTAMP'{newest:%Y-%m-%d %H:%M:%S}'"}
    out: dict[str, Any] = {"segments": SEGMENTS}
    for state in ("before", "after"):
        for name, row_filter in asked.items():
            seconds = []
            for _ in range(3):
                scan = tamis.open(of.path).scan(row_filter)
                seconds.append(timed(scan.to_arrow))
            report = scan.report
            assert report is not None
            out[f"{name}, {state}"] = {
                "seconds": round(min(seconds), 4),
                "rows": report.rows.matched,
                "parts": report.parts.kept,
                "bytes": report.bytes.read,
                "requests": report.requests,
            }
        if state == "before":
            done = of.compact()
            of.append(rows(SEGMENTS, 200))
            out["compacted"] = {
                "parts_removed": done.parts_removed,
                "parts_added": done.parts_added,
                "seconds": round(done.seconds, 2),
            }
    return out


def main() -> None:
    if "--child" in sys.argv:
        child(sys.argv[-1])
        return
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        small, memory, busy = queries(folder), in_a_process(folder), appends(folder)
        sorting = by_spark(folder)
    ratio = min(sorting["tamis_seconds"]) / min(sorting["spark_seconds"])
    local = min(sorting["local_seconds"]) / min(sorting["spark_seconds"])
    latency = (busy["while_compacting_ms"] or busy["alone_ms"]) / busy["alone_ms"]
    figures = [
        Figure(f"compaction of {PARTS} × 1 MB parts by Spark / one Spark read-sort-write", ratio, "×", GOAL),
        Figure("the same without Spark, in one process / one Spark read-sort-write", local, "×"),
        Figure("peak memory of compacting without Spark", memory["peak_mb"], "MB", 1_024),
        Figure("appends refused while a compaction runs", busy["aborts"], "", 0),
        Figure("append while a compaction runs / append alone (median)", latency, "×", APPEND_GOAL),
        *[
            Figure(
                f"{name} over {SEGMENTS} small segments: requests {state}", small[f"{name}, {state}"]["requests"], ""
            )
            for name in ("one user", "the newest three segments")
            for state in ("before", "after")
        ],
    ]
    record("tending", figures, {"compaction": sorting, "memory": memory, "appends": busy, "queries": small})


if __name__ == "__main__":
    main()
