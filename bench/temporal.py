"""A temporal filter (the last 30 days) on an append-only table as it grows to 1,000 loads: time and bytes must not grow with it. And what a guard costs: nothing.

A load is a day of events; from the 30th load on the window is full, and the same number of rows is in it. Each query opens the table, plans and reads; the sizes are queried
in turn, so that a busy moment hits them all. The smallest table, of one load, shows what is there without a window to read.
"""

from __future__ import annotations

import datetime as dt
import shutil
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tamis
from bench.report import Figure, in_turn, quick, record, rounds, rows

DAYS = 30
DAY = 86_400_000_000
START = dt.datetime(1950, 1, 1, tzinfo=dt.UTC)
FILTER = f"ts > current_timestamp() - INTERVAL {DAYS} DAYS AND amount > 0.01"


def main() -> None:
    count = rows(20_000)
    sizes = (1, DAYS, 100) if quick() else (1, DAYS, 100, 300, 1_000)
    with tempfile.TemporaryDirectory() as home:
        paths = grown(Path(home), sizes, count)
        reports: dict[int, Any] = {}

        def query(size: int, turn: int) -> None:  # noqa: ARG001  # every turn is the same
            reports[size] = queried(paths[size], START + dt.timedelta(days=size))

        work = {str(size): partial(query, size) for size in sizes}
        taken = in_turn(3 * rounds(), **work)
        guard = guarded(paths[sizes[-1]], START + dt.timedelta(days=sizes[-1]))
    first, last = DAYS, sizes[-1]
    growth = f"{last:,} loads / {first}"
    figures = [
        Figure(f"last {DAYS} days: seconds, {growth}", taken[f"{last}"]["min"] / taken[f"{first}"]["min"], "×", 1.5),
        Figure(f"last {DAYS} days: bytes, {growth}", reports[last].bytes.read / reports[first].bytes.read, "×", 1.5),
        Figure(f"bytes of the table, {growth}", reports[last].bytes.table / reports[first].bytes.table, "×"),
        Figure(f"a guard's share of the query, {last:,} loads", 100 * guard / taken[f"{last}"]["min"], "%", 1),
    ]
    detail = {
        str(size): {
            "bytes": dict(reports[size].bytes),
            "parts": dict(reports[size].parts),
            "requests": reports[size].requests,
        }
        for size in sizes
    }
    record("temporal", figures, {"rows_per_load": count, "seconds": taken, "loads": detail})


def grown(home: Path, sizes: tuple[int, ...], count: int) -> dict[int, str]:
    """A table that grows, and copies of it as it was at each size."""
    table = tamis.create(home / "events", cluster_by=["ts"])
    paths = {}
    for load in range(sizes[-1]):
        table.append(events(load, count))
        if load + 1 in sizes:
            paths[load + 1] = str(shutil.copytree(home / "events", home / f"events-{load + 1}"))
    return paths


def events(load: int, count: int) -> pa.Table:
    """The rows of one load."""
    rng = np.random.default_rng(load)
    ts = int(START.timestamp()) * 1_000_000 + load * DAY + np.sort(rng.integers(0, DAY, count))
    return pa.table(
        {
            "ts": pa.array(ts, pa.int64()).cast(pa.timestamp("us", "UTC")),
            "user": pa.array(rng.integers(0, 100_000, count), pa.int64()),
            "kind": pa.array(np.array(["view", "click", "buy"])[rng.integers(0, 3, count)]),
            "amount": pa.array(rng.random(count)),
        }
    )


def queried(path: str, now: dt.datetime) -> Any:
    """The report of the query at the end of the last load."""
    scan = tamis.open(path).scan(FILTER, now=now)
    found = scan.to_arrow().num_rows
    assert scan.report is not None
    assert found == scan.report.rows.matched > 0
    return scan.report


def guarded(path: str, now: dt.datetime) -> float:
    """Seconds that asking ``tamis.scan.max_bytes`` takes: the least of many."""
    plan = tamis.open(path).scan(FILTER, now=now, options={"tamis.scan.max_bytes": "1t"}).plan()
    taken = []
    for _ in range(1_000):
        start = time.perf_counter()
        plan.guard()
        taken.append(time.perf_counter() - start)
    return min(taken)


if __name__ == "__main__":
    main()
