"""How much memory reading one large part takes, whatever its size: each way of reading in a process of its own.

``python -m bench.memory``: 48 columns of numbers and 12 of text, a single part of each format of about 2 GB as Arrow data (ORC: 1 GB), read as one task reads it: the first quarter of its
blocks, half of them, all of them. A task whose memory does not grow from 0.5 to 2 GB has no reason to grow to 10. Peak is the process's (``VmHWM``) less what it had when the scan began.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

import tamis
from bench.report import Figure, peak_mb, record, rows
from tamis.engine.part_reader import ReadCounters, read_part
from tamis.storage.files import PartRef

BUDGET_MB = 512
"""What a task may take beside the interpreter and its libraries: docs/how-a-row-is-read.md."""
FILTERS = {"needle": "n = 4711", "a third": "n % 3 = 0", "all": None}
WAYS = (
    ("all", "auto", 0.25),
    ("all", "auto", 0.5),
    ("all", "auto", 1.0),
    ("a third", "auto", 1.0),
    ("needle", "auto", 1.0),
    ("needle", "off", 1.0),
)
"""Filter, laziness, share of the part."""
GROWTH = 1.25
"""What four times the rows may add to the peak: the last pieces met may be the largest."""
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


def measured(path: str, label: str, lazy: str, share: str) -> None:
    """In a process of its own: reads the first blocks of the table's part as a task does, and says by how many MB the peak rose, and how many rows came."""
    plan = tamis.open(path).scan(FILTERS[label], options={"tamis.read.lazy": lazy}).plan()
    (ref,) = (r for r in plan.parts if isinstance(r, PartRef))
    part = replace(ref, window=(0, max(1, round(len(ref.blocks) * float(share)))))
    before, found = peak_mb(), 0
    for batch in read_part(part, plan.spec, ReadCounters()):
        found += len(batch)
    print(peak_mb() - before, found)


def main() -> None:
    count = rows(2_400_000)
    figures, detail = [], {}
    with tempfile.TemporaryDirectory() as home:
        for form, size in (("parquet", count), ("vortex", count), ("orc", count // 2)):
            stream = pieces(size)
            place = str(Path(home) / form)
            properties = {"tamis.write.part_bytes": str(2**40), "tamis.stats.collect": "off"}
            tamis.create(place, stream.schema, format=form, properties=properties).append(stream)
            for label, lazy, share in WAYS:
                command = [sys.executable, "-m", "bench.memory", "--measure", place, label, lazy, str(share)]
                output = subprocess.run(
                    command, capture_output=True, text=True, check=True, env=os.environ
                ).stdout.split()
                name = f"{form}, {label}, {lazy}, {size * share / 1.2e6:.2g} GB"
                detail[name] = {"mb": int(output[0]), "rows": int(output[1])}
                figures.append(Figure(f"{name}: peak of a task", float(output[0]), "MB", BUDGET_MB))
            small, large = (detail[f"{form}, all, auto, {size * share / 1.2e6:.2g} GB"]["mb"] for share in (0.25, 1.0))
            figures.append(Figure(f"{form}, all: peak, four times the rows", large / max(small, 1), "×", GROWTH))
            shutil.rmtree(place)
    record("memory", figures, {"rows": count, "tasks": detail})


if __name__ == "__main__":
    if "--measure" in sys.argv:
        measured(*sys.argv[-4:])
    else:
        main()
