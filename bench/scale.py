"""Planning at scale: tables of 1, 10 and 100 million parts, a filter of one hour of one column. And 1,000 small collections in one table against one alone.

Metadata only: manifests are synthetic, no data file exists, and everything else is the real code: commits with the unions of their parts, rollups, opening, the funnel. A segment has
10,000 parts of three columns with bounds; time rises from part to part. Each opening is a process of its own, so that its memory is its own.
The manifests of segments that lie far from the hour are not written: all of them name one file, of the first segment, which would answer wrongly if it were read. So a table of 100 million
parts takes little disk. ``BENCH_PARTS`` (millions, commas between) chooses other sizes.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.report import Figure, peak_mb, quick, record
from tamis.core.types import LONG, STRING, TIMESTAMP, Field, Schema
from tamis.storage.commit_log import Head, Operation, Proposal, Snapshot, commit, create, manifests
from tamis.storage.object_store import Store, open_store
from tamis.world import new_id

SCHEMA = Schema(
    (Field("ts", TIMESTAMP, True, 1), Field("user", LONG, True, 2), Field("collection", STRING, True, 3)), 0
)
PER_SEGMENT = 1_000 if quick() else 10_000
SECOND = 1_000_000
ROUNDS = 3
COLLECTIONS = 1_000


def manifest(segment: int, parts: int, collections: Any = None) -> pa.Table:
    """Parts of 1,000 rows: a second of time each, users anywhere; ``collections``: of which collection each part is."""
    number = pa.array(np.arange(parts))
    ids = pc.binary_join_element_wise(f"{segment:08}", pc.cast(number, pa.string()), "-")
    start = (segment * parts + np.arange(parts)) * SECOND
    name = pc.binary_join_element_wise(
        "c", pc.utf8_lpad(pc.cast(pa.array(number if collections is None else collections), pa.string()), 8, "0"), ""
    )
    same = {key: pa.array([value] * parts, kind) for key, value, kind in [("format", "parquet", pa.string()), ("schema_id", 0, pa.int32()), ("rows", 1_000, pa.int64()), ("bytes", 50_000, pa.int64()), ("checksum", 1, pa.int64()), ("footer_checksum", 1, pa.int64()), ("run_id", f"{segment}", pa.string()), ("ordered", True, pa.bool_()), ("blocks", [1_000], pa.list_(pa.int32()))]}  # fmt: skip
    columns: dict[str, Any] = {"part_id": ids, "path": pc.binary_join_element_wise("data", ids, "/"), **same}
    rng = np.random.default_rng(segment)
    bounds = {1: (pa.array(start), pa.array(start + SECOND - 1)), 2: (pa.array(rng.integers(0, 99, parts)), pa.array(rng.integers(10**6, 2 * 10**6, parts))), 3: (name, name)}  # fmt: skip
    for field in SCHEMA:
        for kind, values in zip(("lo", "hi"), bounds[field.id], strict=True):
            columns[f"{field.id}|{field.type.to_json()}|{kind}"] = (
                values.cast(pa.timestamp("us", "UTC")) if field.id == 1 else values
            )
        columns |= {
            f"{field.id}|nulls": pa.array([0] * parts, pa.int64()),
            f"{field.id}|exact": pa.array([3] * parts, pa.uint8()),
        }
    return pa.table(columns)


def new_table(path: Path) -> tuple[Store, Snapshot]:
    store = open_store(str(path))
    return store, create(store, Head(new_id(), schemas=(SCHEMA,), highest_column_id=3), Operation("create"))


def append(store: Store, snapshot: Snapshot, add: pa.Table) -> tuple[Snapshot, float]:
    """One commit, and its seconds."""
    start = time.perf_counter()
    made = commit(
        store, Proposal(Operation("append"), snapshot.version, blind_append=True, add=[add], operation_id=new_id())
    )
    return made, time.perf_counter() - start


def grown(path: Path, segments: int, each: int) -> tuple[Store, Snapshot]:
    """A table of so many segments. Those near the middle have manifests of their own, all others name the file of the first."""
    store, snapshot = new_table(path)
    near = range(segments // 2 - 2, segments // 2 + 3)
    first: list[Any] = []

    def kept(*manifest: Any) -> Any:
        return write(*manifest) if segment in near or not first else first[0]

    write = manifests.store_rows
    with mock.patch.object(manifests, "store_rows", kept):
        for segment in range(segments):
            snapshot, _ = append(store, snapshot, manifest(segment, each))
            if not first:
                first.append(snapshot.commit.segment.tables["parts"])
    return store, snapshot


def opened(path: str, condition: str) -> dict[str, Any]:
    """Opens the table and plans the filter, in a process of its own; imports are not counted, memory is the whole process's."""
    import tamis
    from tamis import table  # noqa: F401  # loaded before the clock starts, as are the parser and the functions
    from tamis.core.expr import parse_predicate

    parse_predicate("ts >= timestamp_seconds(1) AND collection = 'c'", SCHEMA)
    before, start = peak_mb(), time.perf_counter()
    held = tamis.open(path)
    opening = time.perf_counter() - start
    report = held.scan(condition).plan().report
    seconds = time.perf_counter() - start
    return {
        "seconds": round(seconds, 4),
        "open_seconds": round(opening, 4),
        "rss_mb": peak_mb(),
        "rss_before_mb": before,
        "kept": report.parts["kept"],
        "total": report.parts["total"],
        "skipped_by_segment": report.parts["skipped_segment"],
        "metadata_bytes": report.bytes["metadata"],
        "requests": report.requests,
    }


def asked(path: Path, condition: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.scale", "--open", str(path), condition]
    runs = [json.loads(subprocess.check_output(command)) for _ in range(ROUNDS)]
    return {**min(runs, key=lambda r: r["seconds"]), "median_seconds": statistics.median(r["seconds"] for r in runs)}


def an_hour(parts: int) -> str:
    """The filter of one hour in the middle of the table."""
    at = parts // 2
    return f"ts >= timestamp_seconds({at}) AND ts < timestamp_seconds({at + (60 if quick() else 3_600)})"


def sizes(folder: Path, shapes: dict[str, tuple[int, int]]) -> dict[str, Any]:
    """Each shape (segments, parts of each): opening and planning, and the commit of one small load."""
    out: dict[str, Any] = {}
    for name, (segments, each) in shapes.items():
        start = time.perf_counter()
        store, snapshot = grown(folder / f"t{segments}x{each}", segments, each)
        made = time.perf_counter() - start
        row = asked(folder / f"t{segments}x{each}", an_hour(segments * each))
        commits = []
        for extra in range(5):
            snapshot, seconds = append(store, snapshot, manifest(segments + extra, 10))
            commits.append(seconds)
        out[name] = {
            **row,
            "segments": segments,
            "commit_ms": round(1_000 * statistics.median(commits), 1),
            "made_seconds": round(made, 1),
        }
        print(f"  {name} parts: {out[name]}", flush=True)
    return out


def shapes(millions: list[float]) -> dict[str, tuple[int, int]]:
    """The sizes asked for, in segments of ``PER_SEGMENT``."""
    found = {int(size * 1_000_000) // PER_SEGMENT or 1 for size in millions}
    return {f"{n * PER_SEGMENT:,}": (n, PER_SEGMENT) for n in sorted(found)}


def collections(folder: Path) -> dict[str, Any]:
    """1,000 collections, each of 10 parts in every one of 10 loads, in one table clustered by collection; and one collection in a table of its own."""
    many, one = new_table(folder / "many"), new_table(folder / "one")
    for load in range(10):
        many = many[0], append(*many, manifest(load, 10 * COLLECTIONS, np.repeat(np.arange(COLLECTIONS), 10)))[0]
        one = one[0], append(*one, manifest(load, 10, np.repeat(7, 10)))[0]
    condition = "collection = 'c00000007'"
    found = {"many": asked(folder / "many", condition), "one": asked(folder / "one", condition)}
    print(f"  {found}", flush=True)
    return found


def main() -> None:
    if "--open" in sys.argv:
        path, condition = sys.argv[sys.argv.index("--open") + 1 :][:2]
        print(json.dumps(opened(path, condition)))
        return
    millions = [float(m) for m in os.environ.get("BENCH_PARTS", "0.01,0.1" if quick() else "1,10,100").split(",")]
    with tempfile.TemporaryDirectory() as home:
        found = sizes(Path(home), shapes(millions))
        sharded = collections(Path(home))
    figures = []
    for name, row in found.items():
        goal = name == "10,000,000"
        figures.append(Figure(f"open + plan an hour, {name} parts", row["seconds"], "s", 1.0 if goal else None))
        figures.append(Figure(f"memory of it, {name} parts", row["rss_mb"], "MB", 1_000 if goal else None))
        figures.append(Figure(f"commit of a small load, {name} parts", row["commit_ms"], "ms"))
    ratio = sharded["many"]["seconds"] / sharded["one"]["seconds"]
    figures.append(Figure("one of 1,000 collections / a table of its own, open + plan", ratio, "×"))
    figures.append(
        Figure("parts kept of it / those of its own table", sharded["many"]["kept"] / sharded["one"]["kept"], "×", 1.0)
    )
    record("scale", figures, {"sizes": found, "collections": sharded})


if __name__ == "__main__":
    main()
