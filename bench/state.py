"""What the log and the manifests cost: an append at any length of the log, and opening a table of 100,000 parts for a range filter.

Metadata only: manifests are synthetic (15 columns with bounds, counts and exact flags), no data files exist. Everything goes through the public functions of
``tamis.storage.commit_log`` on local disk. Appends to the tables of different lengths take turns, so that a busy moment hits them all; each opening is a process of its own.
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

import numpy as np
import pyarrow as pa

from bench.report import Figure, peak_mb, quick, record
from tamis.core.types import LONG, STRING, Field, Schema
from tamis.storage.commit_log import Head, Operation, Proposal, Snapshot, commit, create
from tamis.storage.object_store import Store, open_store
from tamis.world import new_id

COLUMNS = 15
SCHEMA = Schema(tuple(Field(f"c{i}", STRING if i % 3 == 2 else LONG, True, i) for i in range(1, COLUMNS + 1)), 0)
ROUNDS = 96
"""Appends that are timed at each length: six rollups among them."""


def manifest(parts: int, low: int) -> pa.Table:
    """Parts of 1,000 rows each; c1 rises from part to part, as in a table clustered by time, the others are mixed."""
    ids = [new_id() for _ in range(parts)]
    rng = np.random.default_rng(low)
    columns: dict[str, Any] = {
        "part_id": ids,
        "path": [f"data/{i}.parquet" for i in ids],
        "format": ["parquet"] * parts,
        "schema_id": pa.array([0] * parts, pa.int32()),
        "rows": pa.array([1_000] * parts, pa.int64()),
        "bytes": pa.array(rng.integers(50_000, 60_000, parts)),
        "checksum": pa.array(rng.integers(0, 2**32, parts)),
        "footer_checksum": pa.array(rng.integers(0, 2**32, parts)),
        "run_id": [new_id()] * parts,
        "ordered": [True] * parts,
        "blocks": pa.array([[1_000]] * parts, pa.list_(pa.int32())),
    }
    for field in SCHEMA:
        name = field.type.to_json()
        if field.id == 1:
            start = low + 1_000 * np.arange(parts)
            lo, hi = pa.array(start), pa.array(start + 999)
        elif field.type == LONG:
            lo, hi = pa.array(rng.integers(0, 1_000, parts)), pa.array(rng.integers(10**6, 10**6 + 1_000, parts))
        else:
            lo, hi = (
                pa.array([f"aa{v:04}" for v in rng.integers(0, 999, parts)]),
                pa.array([f"zz{v:04}" for v in rng.integers(0, 999, parts)]),
            )
        columns |= {
            f"{field.id}|{name}|lo": lo,
            f"{field.id}|{name}|hi": hi,
            f"{field.id}|nulls": pa.array([0] * parts, pa.int64()),
            f"{field.id}|count": pa.array([1_000] * parts, pa.int64()),
            f"{field.id}|exact": pa.array([3] * parts, pa.uint8()),
        }
    return pa.table(columns)


def grow(store: Store, snapshot: Snapshot, segments: int, parts: int) -> tuple[Snapshot, list[float]]:
    """Appends up to that many segments; the time of each append in seconds, its manifest made before."""
    seconds = []
    while snapshot.version < segments:
        add = manifest(parts, 1_000 * parts * snapshot.version)
        start = time.perf_counter()
        snapshot = commit(
            store, Proposal(Operation("append"), snapshot.version, blind_append=True, add=[add], operation_id=new_id())
        )
        seconds.append(time.perf_counter() - start)
    return snapshot, seconds


def new_table(path: Path) -> tuple[Store, Snapshot]:
    store = open_store(path)
    return store, create(store, Head("", schemas=(SCHEMA,), highest_column_id=COLUMNS), Operation("create"))


def appends(folder: Path, lengths: list[int]) -> list[dict[str, Any]]:
    """Time of an append of one small part to tables of these lengths, in turn."""
    tables = []
    for length in lengths:
        store, snapshot = new_table(folder / f"append-{length}")
        tables.append((store, grow(store, snapshot, length, 1)[0]))
    seconds: list[list[float]] = [[] for _ in lengths]
    for _ in range(ROUNDS):
        for at, (store, snapshot) in enumerate(tables):
            after, taken = grow(store, snapshot, snapshot.version + 1, 1)
            tables[at] = (store, after)
            seconds[at] += taken
    return [
        {
            "segments": length,
            "median_ms": ms(statistics.median(taken)),
            "mean_ms": ms(statistics.fmean(taken)),
            "max_ms": ms(max(taken)),
        }
        for length, taken in zip(lengths, seconds, strict=True)
    ]


def open_and_plan(folder: Path, segments: int, parts: int) -> dict[str, Any]:
    """Makes a table of that shape, then opens it and finds the parts of narrow and wide ranges of c1, each in a new process."""
    path = folder / f"open-{segments}x{parts}"
    grow(*new_table(path), segments, parts)
    row: dict[str, Any] = {"segments": segments, "parts": segments * parts}
    for name, share in (("narrow", 0.01), ("everything", 1.0)):
        runs = [
            json.loads(subprocess.check_output([sys.executable, "-m", "bench.state", "--open", str(path), str(share)]))
            for _ in range(3)
        ]
        row[name] = sorted(runs, key=lambda r: r["seconds"])[1]
    return row


def opened(path: str, share: float) -> dict[str, Any]:
    """Open, segments, their evidence, and the parts of the segments that match; without the interpreter's own start."""
    import pyarrow.compute as pc

    from tamis.storage.commit_log import load

    start = time.perf_counter()
    snapshot = load(open_store(path))
    segments = snapshot.segments
    evidence = snapshot.segment_evidence({1})
    top = pc.max(evidence["1|long|hi"]).as_py()
    low, high = int(top * (0.5 - share / 2)), int(top * (0.5 + share / 2)) + 1
    mask = ((evidence["1|long|lo"].to_numpy() <= high) & (evidence["1|long|hi"].to_numpy() >= low)).astype(np.bool_)
    parts = snapshot.parts(mask, {1})
    kept = (parts["1|long|lo"].to_numpy() <= high) & (parts["1|long|hi"].to_numpy() >= low)
    seconds = time.perf_counter() - start
    assert len(segments) == len(evidence)
    return {
        "seconds": round(seconds, 4),
        "parts_kept": int(kept.sum()),
        "rss_mb": peak_mb(),
        "bytes": snapshot.io.bytes,
        "requests": snapshot.io.requests,
    }


def ms(seconds: float) -> float:
    return round(seconds * 1e3, 3)


def main() -> None:
    if "--open" in sys.argv:
        _, path, share = sys.argv[-3:]
        print(json.dumps(opened(path, float(share))))
        return
    scale = 10 if quick() else 1
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        rows = appends(folder, [10, 1_000 // scale, 10_000 // scale])
        opens = [open_and_plan(folder, 100, 1_000 // scale), open_and_plan(folder, 10_000 // scale, 10)]
    medians = [row["median_ms"] for row in rows]
    figures = [Figure("append, slowest length over fastest (medians)", max(medians) / min(medians), "x", 1.5)]
    figures += [Figure(f"append to {row['segments']:,} segments", row["median_ms"], "ms") for row in rows]
    for row in opens:
        for name in ("narrow", "everything"):
            what = f"open and plan {row['parts']:,} parts in {row['segments']:,} segments, {name}"
            figures += [
                Figure(what, row[name]["seconds"], "s", 0.5),
                Figure(f"{what}: memory", row[name]["rss_mb"], "MB", 300),
            ]
    record("state", figures, {"append": rows, "open": opens})


if __name__ == "__main__":
    main()
