"""Adoption of Delta and Iceberg tables, and following them, beside the libraries of these formats.

``BENCH_FILES`` (10,000 unless told) files are adopted; ten files are followed on ten times as many.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog

import tamis
from bench.report import Figure, quick, record

FILES = int(os.environ.get("BENCH_FILES") or (200 if quick() else 10_000))
FOLLOWED = 10 * FILES
CHANGED = 10
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
    told = json.dumps({**stats, "nullCount": {"k": 0, "s": 0}})
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
                "stats": told,
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
    table = catalog.create_table("n.t", ROWS.schema, location=f"file://{folder}")
    took, _ = timed(lambda: table.add_files([f.as_uri() for f in files], check_duplicate_files=False))
    return took, table


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="tamis-bench-"))
    try:
        detail: dict[str, Any] = {"files": FILES, "followed": FOLLOWED, "changed": CHANGED}
        delta_commit(folder / "delta", 0, data_files(folder / "delta", 0, FILES))
        detail["adopt_delta_s"], _ = timed(lambda: tamis.adopt(folder / "delta", folder / "t1"))
        add_s, table = iceberg_table(folder / "iceberg", data_files(folder / "iceberg", 0, FILES))
        place = table.metadata_location.removeprefix("file://")
        detail["add_files_s"] = add_s
        detail["adopt_iceberg_s"], _ = timed(lambda: tamis.adopt(place, folder / "t2"))
        source = folder / "followed"
        delta_commit(source, 0, data_files(source, 0, FOLLOWED))
        tamis.adopt(source, folder / "t3", follow=True)
        delta_commit(source, 1, data_files(source, FOLLOWED, CHANGED))
        held = tamis.open(folder / "t3")
        detail["sync_s"], done = timed(held.sync)
        assert (done.commits, done.files_added) == (1, CHANGED)
        theirs = deltalake.DeltaTable(source, version=0)
        detail["update_incremental_s"], _ = timed(theirs.update_incremental)
        detail["plan_s"], _ = timed(lambda: tamis.open(folder / "t3").scan("k = 100").explain())
        detail["plan_deltalake_s"], _ = timed(
            lambda: pa.table(deltalake.DeltaTable(source).get_add_actions(flatten=True)).filter(
                (pa.compute.field("min.k") <= 100) & (pa.compute.field("max.k") >= 100)
            )
        )
        record(
            "bridges",
            [
                Figure(f"adopt a Delta table of {FILES:,} files", detail["adopt_delta_s"], "s", 10),
                Figure(f"adopt an Iceberg table of {FILES:,} files", detail["adopt_iceberg_s"], "s", 10),
                Figure("the same files by PyIceberg's add_files", detail["add_files_s"], "s"),
                Figure(f"follow one commit of {CHANGED} files on {FOLLOWED:,}", detail["sync_s"], "s", 1),
                Figure("the same by deltalake's update_incremental", detail["update_incremental_s"], "s"),
                Figure("planning against deltalake's", detail["plan_s"] / detail["plan_deltalake_s"], "x", 0.1),
            ],
            detail,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
