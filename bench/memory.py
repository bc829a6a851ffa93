"""How much memory reading one large part takes, whatever its size: each way of reading in a process of its own.

``python -m bench.memory``: 48 columns of numbers and 12 of text, 2,000,000 rows (about 1.2 GB as Arrow data) in a single part of each format, read as one task reads it. Peak is the
process's (``VmHWM``) less what it had when the scan began.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import tamis
from bench.report import Figure, peak_mb, record, rows
from tamis.files import PartRef
from tamis.read import ReadCounters, read_part

BUDGET_MB = 512
"""What a task may take beside the interpreter and its libraries: docs/how-a-row-is-read.md."""
FILTERS = {"needle": "n = 4711", "a third": "n % 3 = 0", "all": None}
_STEP = 100_000


def pieces(count: int) -> pa.RecordBatchReader:
    random = np.random.default_rng(5)
    words = np.array([f"some words of a text, number {i}" for i in range(5_000)])

    def batch(start: int) -> pa.RecordBatch:
        size = min(_STEP, count - start)
        columns = {"n": pa.array(np.arange(start, start + size))}
        columns |= {f"x{i}": pa.array(random.random(size)) for i in range(47)}
        columns |= {f"t{i}": pa.array(words[random.integers(0, len(words), size)]) for i in range(12)}
        return pa.record_batch(columns)

    first = batch(0)
    return pa.RecordBatchReader.from_batches(first.schema, (batch(at) for at in range(0, count, _STEP)))


def measured(path: str, label: str, lazy: str) -> None:
    """In a process of its own: reads the table's part as a task does, and says by how many MB the peak rose, and how many rows came."""
    plan = tamis.open(path).scan(FILTERS[label], options={"tamis.read.lazy": lazy}).plan()
    (ref,) = (r for r in plan.parts if isinstance(r, PartRef))
    before, found = peak_mb(), 0
    for batch in read_part(ref, plan.spec, ReadCounters()):
        found += len(batch)
    print(peak_mb() - before, found)


def main() -> None:
    count = rows(2_000_000)
    figures, detail = [], {}
    with tempfile.TemporaryDirectory() as home:
        for form in ("parquet", "vortex", "orc"):
            stream = pieces(count)
            place = str(Path(home) / form)
            tamis.create(place, stream.schema, format=form, properties={"tamis.write.part_bytes": str(2**40)}).append(stream)
            for label in FILTERS:
                for lazy in ("auto", "off") if label == "needle" else ("auto",):
                    command = [sys.executable, "-m", "bench.memory", "--measure", place, label, lazy]
                    told = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ).stdout.split()
                    detail[f"{form}, {label}, {lazy}"] = {"mb": int(told[0]), "rows": int(told[1])}
                    figures.append(Figure(f"{form}, {label}, {lazy}: peak of a task", float(told[0]), "MB", BUDGET_MB))
    record("memory", figures, {"rows": count, "tasks": detail})


if __name__ == "__main__":
    if "--measure" in sys.argv:
        measured(*sys.argv[-3:])
    else:
        main()
