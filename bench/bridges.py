"""Adoption of Delta and Iceberg tables, following them, queries over them, and exports, beside the libraries of these formats.

``BENCH_FILES`` (10,000 by default) files are adopted; ten files are followed on ten times as many. Queries are of unsorted
ids, so no engine skips a file by bounds; exports are of tables of metadata alone.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog

import tamis
from bench.bridges_needle import ENGINES
from bench.planning import ours as parts_alone
from bench.report import Figure, quick, record, rounds

FILES = int(os.environ.get("BENCH_FILES") or (200 if quick() else 10_000))
FOLLOWED = 10 * FILES
CHANGED = 10
NEEDLE_FILES, NEEDLE_ROWS = (8, 2_000) if quick() else (40, 50_000)
EXPORTED = 2_000 if quick() else 100_000
ASKED_FOR = {100: "no file can match", 10: "every file may match"}
LINKS = 30_000
"""Names of one file on a file system."""
ROWS = pa.table({"k": pa.array(range(20), pa.int64()), "s": [f"text {n}" for n in range(20)]})


def data_files(folder: Path, first: int, count: int) -> list[Path]:
    """Write ``count`` files, each a name of one of a few."""
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for n in range(first, first + count):
        path = folder / f"part-{n:07}.parquet"
        if (n - first) % LINKS == 0:
            pq.write_table(ROWS, path)
            original = path
        else:
            path.hardlink_to(original)
        found.append(path)
    return found


def delta_commit(folder: Path, version: int, files: list[Path]) -> None:
    """Write a commit that adds the files, with statistics as Delta has them."""
    stats = {"numRecords": 20, "minValues": {"k": 0, "s": "text 0"}, "maxValues": {"k": 19, "s": "text 9"}}
    stats_json = json.dumps({**stats, "nullCount": {"k": 0, "s": 0}})
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in (("k", "long"), ("s", "string"))]
    metadata = {
        "id": "5f4f9f0e-5a5e-4d6a-9d1b-0f3f1c9d2b11",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
    }
    actions: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": metadata},
    ]
    adds = [
        {
            "add": {
                "path": file.name,
                "partitionValues": {},
                "size": file.stat().st_size,
                "modificationTime": 1,
                "dataChange": True,
                "stats": stats_json,
            }
        }
        for file in files
    ]
    log = folder / "_delta_log"
    log.mkdir(exist_ok=True)
    lines = (json.dumps(a) + "\n" for a in [*(actions if version == 0 else []), *adds])
    (log / f"{version:020}.json").write_text("".join(lines))


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def iceberg_table(folder: Path, files: list[Path]) -> tuple[float, Any]:
    """Add the files to a table by PyIceberg; return how long it took, and the table."""
    catalog = SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", ROWS.schema, location=files[0].parent.as_uri())
    took, _ = timed(lambda: table.add_files([f.as_uri() for f in files], check_duplicate_files=False))
    return took, table


def needle_source(folder: Path) -> None:
    """A Delta table of unsorted ids, adopted twice, once with an index; the same files in an Iceberg table."""
    random = np.random.default_rng(1)
    ids = random.permutation(NEEDLE_FILES * NEEDLE_ROWS)
    source = folder / "source"
    for n in range(NEEDLE_FILES):
        mine = ids[n * NEEDLE_ROWS : (n + 1) * NEEDLE_ROWS]
        texts = [f'{{"user": {i}, "noise": "{random.bytes(60).hex()}"}}' for i in mine]
        deltalake.write_deltalake(source, pa.table({"id": mine, "body": texts}), mode="append")
    tamis.adopt(source, folder / "tamis")
    indexed = tamis.adopt(source, folder / "tamis_index")
    assert isinstance(indexed, tamis.Table)
    indexed.create_index("by_id", ["id"])
    catalog = SqlCatalog("bench", uri=f"sqlite:///{folder}/needle.db", warehouse=f"file://{folder}/w")
    catalog.create_namespace("n")
    files = sorted(source.glob("*.parquet"))
    table = catalog.create_table("n.needle", pq.read_schema(files[0]), location=source.as_uri())
    table.add_files([f.as_uri() for f in files], check_duplicate_files=False)
    (folder / "metadata_location").write_text(table.metadata_location)


def needles(folder: Path) -> tuple[list[Figure], dict[str, Any]]:
    """A needle query by each engine in turn, each time in a process of its own."""
    needle_source(folder)
    found: dict[str, list[dict[str, Any]]] = {engine: [] for engine in ENGINES}
    for turn in range(rounds()):
        for engine in ENGINES:
            command = [sys.executable, "-m", "bench.bridges_needle", engine, str(folder), str(1000 + turn)]
            # an engine may abort when its process ends, once it has answered
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.stdout, done.stderr
            found[engine].append(json.loads(done.stdout.splitlines()[-1]))
            assert found[engine][-1]["rows"] == 1, engine
    taken = {
        engine: {what: statistics.median(run[what] for run in runs) for what in ("seconds", "bytes")}
        for engine, runs in found.items()
    }
    figures = []
    for engine in ("tamis", "tamis_index"):
        goal = 1.0 if engine == "tamis" else 0.1
        name = "needle query" + (" with an index" if engine == "tamis_index" else "")
        for peer in ENGINES[2:]:
            for what in ("bytes", "seconds"):
                ratio = taken[engine][what] / taken[peer][what]
                figures.append(Figure(f"{name}, {what} against {peer}", ratio, "x", goal))
    return figures, {"needle": {"files": NEEDLE_FILES, "rows": NEEDLE_FILES * NEEDLE_ROWS, "runs": found}}


def exports(folder: Path) -> tuple[list[Figure], dict[str, Any]]:
    """Exports of a table of many parts as a whole, and after one append."""
    place = parts_alone(folder, EXPORTED, 100)
    table, figures = tamis.open(place), []
    row = pa.table([pa.nulls(1, f.type) for f in table.schema], schema=pa.schema(list(table.schema)))
    seconds: dict[str, list[float]] = {}
    for kind in ("delta", "iceberg"):
        whole, _ = timed(lambda kind=kind: table.export(kind))
        seconds[f"{kind} whole"] = [whole]
        seconds[f"{kind} append"] = []
    for _ in range(rounds() + 1):
        table.append(row)
        for kind in ("delta", "iceberg"):
            seconds[f"{kind} append"].append(timed(lambda kind=kind: table.export(kind))[0])
    for kind in ("delta", "iceberg"):
        figures.append(Figure(f"export {EXPORTED:,} parts to {kind}", seconds[f"{kind} whole"][0], "s", 30))
        median = statistics.median(seconds[f"{kind} append"])
        figures.append(Figure(f"export one append on {EXPORTED:,} parts to {kind}", median, "s", 0.5))
    return figures, {"exports": seconds}


def adoptions(folder: Path) -> tuple[list[Figure], dict[str, Any]]:
    """Adoption of a Delta and of an Iceberg table beside PyIceberg's ``add_files``, in turn."""
    files = data_files(folder / "delta", 0, FILES)
    delta_commit(folder / "delta", 0, files)
    own = data_files(folder / "iceberg", 0, FILES)
    seconds: dict[str, list[float]] = {"delta": [], "iceberg": [], "add_files": []}
    for turn in range(rounds()):
        there = folder / f"catalog-{turn}"
        there.mkdir()
        took, table = iceberg_table(there, own)
        place = table.metadata_location.removeprefix("file://")
        seconds["add_files"].append(took)
        seconds["delta"].append(timed(lambda turn=turn: tamis.adopt(folder / "delta", folder / f"d{turn}"))[0])
        seconds["iceberg"].append(timed(lambda turn=turn, place=place: tamis.adopt(place, folder / f"i{turn}"))[0])
    median = {name: statistics.median(taken) for name, taken in seconds.items()}
    return [
        Figure(f"adopt a Delta table of {FILES:,} files", median["delta"], "s", 10),
        Figure(f"adopt an Iceberg table of {FILES:,} files", median["iceberg"], "s", 10),
        Figure("the same files by PyIceberg's add_files", median["add_files"], "s"),
    ], {"adopt": seconds}


def following(folder: Path) -> tuple[list[Figure], dict[str, Any]]:
    """One commit after the other taken by a table that follows many files, and planning over it."""
    source, first = folder / "followed", FOLLOWED
    delta_commit(source, 0, data_files(source, 0, FOLLOWED))
    tamis.adopt(source, folder / "t3", follow=True)
    seconds: dict[str, list[float]] = {"sync": [], "update_incremental": []}
    for n in ASKED_FOR:
        seconds |= {f"plan k = {n}": [], f"plan_deltalake k = {n}": []}
    held, theirs = tamis.open(folder / "t3"), deltalake.DeltaTable(source)
    k = pa.compute.field
    for turn in range(1, rounds() + 1):
        delta_commit(source, turn, data_files(source, first, CHANGED))
        first += CHANGED
        took, done = timed(held.sync)
        assert (done.commits, done.files_added) == (1, CHANGED)
        seconds["sync"].append(took)
        seconds["update_incremental"].append(timed(theirs.update_incremental)[0])
        for n in ASKED_FOR:
            ours = timed(lambda n=n: tamis.open(folder / "t3").scan(f"k = {n}").explain())[0]
            seconds[f"plan k = {n}"].append(ours)
            peer = timed(
                lambda n=n: pa.table(deltalake.DeltaTable(source).get_add_actions(flatten=True)).filter(
                    (k("min.k") <= n) & (k("max.k") >= n)
                )
            )[0]
            seconds[f"plan_deltalake k = {n}"].append(peer)
    median = {name: statistics.median(taken) for name, taken in seconds.items()}
    return [
        Figure(f"follow one commit of {CHANGED} files on {FOLLOWED:,}", median["sync"], "s", 1),
        Figure("the same by deltalake's update_incremental", median["update_incremental"], "s"),
        *[
            Figure(
                f"planning against deltalake's, {what}",
                median[f"plan k = {n}"] / median[f"plan_deltalake k = {n}"],
                "x",
                0.1,
            )
            for n, what in ASKED_FOR.items()
        ],
    ], {"follow": seconds}


def main() -> None:
    figures: list[Figure] = []
    detail: dict[str, Any] = {"files": FILES, "followed": FOLLOWED, "changed": CHANGED}
    for measure in (adoptions, following, needles, exports):
        folder = Path(tempfile.mkdtemp(prefix="tamis-bench-"))
        try:
            more, more_detail = measure(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        figures += more
        detail |= more_detail
    record("bridges", figures, detail)


if __name__ == "__main__":
    main()
