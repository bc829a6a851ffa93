"""Writing without Spark: append 10 M × 15 rows in loads of a million, against pyarrow with row groups of a million and the same codec."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import tamis
from bench.index import LOADS, keys_of, load
from bench.report import Figure, record, rounds, rows


def append_all(target: Path, loads: list[pa.Table], properties: dict[str, str]) -> None:
    table = tamis.create(target, properties=properties)
    for data in loads:
        table.append(data)


def write_all(target: Path, loads: list[pa.Table]) -> None:
    target.mkdir()
    for number, data in enumerate(loads):
        pq.write_table(data, target / f"{number}.parquet", row_group_size=len(data), compression="zstd")


def main() -> None:
    each = rows(10_000_000) // LOADS
    keys = keys_of(each * LOADS)
    loads = [load(number, each, keys[number * each : (number + 1) * each]) for number in range(LOADS)]
    ways: dict[str, Callable[[Path], None]] = {
        "pyarrow": lambda target: write_all(target, loads),
        "tamis": lambda target: append_all(target, loads, {}),
        "tamis without statistics": lambda target: append_all(target, loads, {"tamis.stats.collect": "off"}),
    }
    seconds: dict[str, dict[str, list[float]]] = {name: {"cpu": [], "wall": []} for name in ways}
    sizes = {}
    with tempfile.TemporaryDirectory() as home:
        for turn in range(max(rounds(), 5)):
            for name, write in ways.items():
                target = Path(home) / f"{name}-{turn}"
                cpu, wall = time.process_time(), time.perf_counter()
                write(target)
                seconds[name]["cpu"].append(time.process_time() - cpu)
                seconds[name]["wall"].append(time.perf_counter() - wall)
                sizes[name] = sum(at.stat().st_size for at in target.rglob("*") if at.is_file())
                shutil.rmtree(target)
    figures = []
    for measure, goal in (("wall", 1.2), ("cpu", None)):
        middle = {name: statistics.median(taken[measure]) for name, taken in seconds.items()}
        figures += [
            Figure(f"write embedded, {measure}: tamis / pyarrow", middle["tamis"] / middle["pyarrow"], "×", goal),
            Figure(
                f"write embedded, {measure}: with / without statistics",
                middle["tamis"] / middle["tamis without statistics"],
                "×",
            ),
        ]
    figures.append(Figure("bytes: tamis / pyarrow", sizes["tamis"] / sizes["pyarrow"], "×"))
    record("write_embedded", figures, {"rows": each * LOADS, "columns": 15, "loads": LOADS, "seconds": seconds})


if __name__ == "__main__":
    main()
