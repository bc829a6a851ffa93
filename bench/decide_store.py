"""The filter of ``bench.decide`` over as many parts whose statistics lie in the store: opened and planned, each time in a new process. Only the columns that it names are read.

Metadata only: manifests of 15 columns, of which the filter names three, in 100 loads; times lie anywhere, so that no load is skipped as a whole.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.decide import HOUR, START, TEN
from bench.report import Figure, peak_mb, quick, record
from tamis.core.types import INTEGER, LONG, STRING, TIMESTAMP, Field, Schema
from tamis.core.types.arrow import to_arrow_type
from tamis.storage.commit_log import Head, Operation, Proposal, commit, create
from tamis.storage.object_store import open_store
from tamis.world import new_id

LOADS, ROUNDS, OTHERS = 100, 3, 11
SCHEMA = Schema(
    (
        Field("ts", TIMESTAMP, True, 1),
        Field("code", INTEGER, True, 2),
        Field("user", LONG, True, 3),
        Field("name", STRING, True, 4),
        *(Field(f"other{i}", LONG, True, 5 + i) for i in range(OTHERS)),
    ),
    0,
)
EVERY = " AND ".join([TEN, "name >= 'a'", *(f"other{i} >= 0" for i in range(OTHERS))])


def manifest(load: int, parts: int) -> pa.Table:
    """Parts of 1,000 rows, as ``bench.decide.parts`` has them, but in no order of time."""
    rng = np.random.default_rng(load)
    ids = pc.binary_join_element_wise(f"{load:08}", pc.cast(pa.array(np.arange(parts)), pa.string()), "-")
    same = {key: pa.array([value] * parts, kind) for key, value, kind in [("format", "parquet", pa.string()), ("schema_id", 0, pa.int32()), ("rows", 1_000, pa.int64()), ("bytes", 50_000, pa.int64()), ("checksum", 1, pa.int64()), ("footer_checksum", 1, pa.int64()), ("run_id", f"{load}", pa.string()), ("ordered", False, pa.bool_()), ("blocks", [1_000], pa.list_(pa.int32()))]}  # fmt: skip
    columns: dict[str, Any] = {"part_id": ids, "path": pc.binary_join_element_wise("data", ids, "/"), **same}
    for field in SCHEMA:
        if field.type == STRING:
            low, high = pa.array(["aa"] * parts), pa.array(["zz"] * parts)
        else:
            first, wide = {
                1: (START + rng.integers(0, 10_000, parts) * HOUR, HOUR),
                2: (rng.integers(0, 1_000, parts), 9),
            }.get(field.id, (rng.integers(0, 10**6, parts), 500))
            low, high = (
                pa.array(values).cast(pa.int32() if field.id == 2 else pa.int64()).view(to_arrow_type(field.type))
                for values in (first, first + wide)
            )
        columns |= {f"{field.id}|{field.type.to_json()}|lo": low, f"{field.id}|{field.type.to_json()}|hi": high}
        columns |= {
            f"{field.id}|nulls": pa.array([0] * parts, pa.int64()),
            f"{field.id}|exact": pa.array([3] * parts, pa.uint8()),
        }
    return pa.table(columns)


def made(path: Path, count: int) -> None:
    store = open_store(str(path))
    snapshot = create(store, Head(new_id(), schemas=(SCHEMA,), highest_column_id=len(SCHEMA)), Operation("create"))
    for load in range(LOADS):
        add = manifest(load, count // LOADS)
        snapshot = commit(
            store, Proposal(Operation("append"), snapshot.version, blind_append=True, add=[add], operation_id=new_id())
        )


def opened(path: str, condition: str) -> dict[str, Any]:
    """Opens the table and plans the filter; imports are not counted, memory is the whole process's."""
    import tamis
    from tamis import table  # noqa: F401  # loaded before the clock starts, as are the parser and the functions
    from tamis.core.expr import parse_predicate

    parse_predicate(TEN, SCHEMA)
    start = time.perf_counter()
    report = tamis.open(path).scan(condition).plan().report
    seconds = time.perf_counter() - start
    return {
        "seconds": round(seconds, 4),
        "rss_mb": peak_mb(),
        "parts": report.parts,
        "metadata_bytes": report.bytes["metadata"],
        "requests": report.requests,
    }


def asked(path: Path, condition: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.decide_store", "--open", str(path), condition]
    return min((json.loads(subprocess.check_output(command)) for _ in range(ROUNDS)), key=lambda run: run["seconds"])


def main() -> None:
    if "--open" in sys.argv:
        print(json.dumps(opened(*sys.argv[sys.argv.index("--open") + 1 :][:2])))
        return
    count = 20_000 if quick() else 1_000_000
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "t"
        made(path, count)
        named, every = asked(path, TEN), asked(path, EVERY)
    figures = [
        Figure(f"ten nodes over {count:,} parts from the store, open + plan", named["seconds"], "s", 2.0),
        Figure(
            "statistics read, three columns of fifteen / all", named["metadata_bytes"] / every["metadata_bytes"], "×"
        ),
        Figure("memory of it", named["rss_mb"], "MB"),
    ]
    record("decide_store", figures, {"named": named, "every": every})


if __name__ == "__main__":
    main()
