"""The search of ``bench.lazy`` over eight files of equal rows, beside DataFusion with pushdown: on a quiet machine, and beside a busy core.

Four layouts: tables of the three formats, and a table adopted from Parquet files that Spark cut. DataFusion reads the files that Spark cut, the Parquet table's own, and files
that pyarrow cut: the first two are the same files that Tamis reads. The busy core is a process that only counts; each candidate runs with it and without it in every round.
So does a control that does not wait for Python's lock: two threads that only hash. The results say how many cores each candidate keeps busy on the quiet machine.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import tamis
from bench.lazy import FORMATS, SEARCHED, datafusion_rows, scanned, search, table_of
from bench.report import Figure, ratios, record, rounds, rows, spark_session, summary_of

FILES = 8
PEER_FILES = (
    ("adopted", "Spark's"),
    ("parquet", "the table's"),
    ("parquet", "pyarrow's"),
    ("vortex", "pyarrow's"),
    ("orc", "pyarrow's"),
)
"""Each table of ours, and whose files DataFusion reads beside it."""
GOALS = {
    "16": {"adopted": 0.6, "parquet": 0.6, "vortex": 0.7, "orc": 0.6},
    "all": {"adopted": 0.3, "parquet": 0.3, "vortex": 0.4, "orc": 0.3},
}
CONTROL, HASHED_BYTES = "two threads that hash", 100 << 20
BUSY_GOAL = 1.1
"""How much more than DataFusion a scan may lose beside a busy core."""


def main() -> None:
    data = table_of(rows(2_000_000))
    figures: list[Figure] = []
    detail: dict[str, Any] = {"rows": len(data), "columns": data.num_columns, "files": FILES}
    with tempfile.TemporaryDirectory() as home:
        tables, files = layouts(Path(home), data)
        _, text = search()
        names = list(data.column_names)
        del data
        for label, columns in (("16", [*SEARCHED, *names[4:17]]), ("all", names)):
            work: dict[str, Callable[[], Any]] = {
                name: partial(scanned, table, text, columns, "auto") for name, table in tables.items()
            }
            work |= {
                f"DataFusion, {whose} files": partial(datafusion_rows, folder, text, columns)
                for whose, folder in files.items()
            }
            taken = detail[label] = quiet_and_busy(work)
            figures += compared(label, taken)
            for name, side in taken.items():
                figures += cores_and_loss(f"SELECT {label}, {FILES} files, {name}", side)
        taken = detail["control"] = quiet_and_busy({CONTROL: hashed})
        figures += cores_and_loss(CONTROL, taken[CONTROL])
    record("lazy_files", figures, detail)


def layouts(folder: Path, data: pa.Table) -> tuple[dict[str, tamis.Table], dict[str, Path]]:
    """Our tables, and the folders of the files that DataFusion reads."""
    step = -(-len(data) // FILES)
    tables = {form: tamis.create(folder / form, data.schema, format=form) for form in FORMATS}
    plain, cut = folder / "plain", folder / "spark"
    plain.mkdir()
    for at, start in enumerate(range(0, len(data), step)):
        piece = data.slice(start, step)
        pq.write_table(piece, plain / f"{at}.parquet", compression="zstd", compression_level=1)
        for table in tables.values():
            table.append(piece)
    spark = spark_session()
    spark.read.parquet(str(plain)).repartition(FILES).write.parquet(str(cut))
    spark.stop()
    tables["adopted"] = tamis.adopt(cut, folder / "adopted")
    return tables, {"Spark's": cut, "the table's": folder / "parquet" / "data", "pyarrow's": plain}


@contextmanager
def busy_core() -> Iterator[None]:
    """A process that keeps one core busy meanwhile."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as counting:
        try:
            time.sleep(0.1)  # until it counts
            yield
        finally:
            counting.kill()


def quiet_and_busy(work: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    """Wall and CPU seconds of each candidate, without and with a busy core, in interleaved rounds, the first left out; all must find as many rows."""
    found: set[int] = set()
    taken: dict[str, dict[str, list[tuple[float, float]]]] = {name: {"quiet": [], "busy": []} for name in work}
    for turn in range(rounds() + 1):
        for name, run in work.items():
            if not turn:
                answer = run()
                found.add(answer if isinstance(answer, int) else answer["rows"])
            quiet = timed_once(run)
            with busy_core():
                busy = timed_once(run)
            if turn:
                taken[name]["quiet"].append(quiet)
                taken[name]["busy"].append(busy)
    assert len(found) == 1, f"The candidates found {sorted(found)} rows."
    return {name: {load: summary_of(times) for load, times in loads.items()} for name, loads in taken.items()}


def hashed() -> int:
    """Hash in two threads, which do not hold Python's lock meanwhile; the number of bytes of the digests."""
    data = bytes(HASHED_BYTES)
    with ThreadPoolExecutor(2) as threads:
        return sum(digest.digest_size for digest in threads.map(hashlib.sha256, [data, data]))


def timed_once(run: Callable[[], Any]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - cpu


def compared(label: str, taken: dict[str, Any]) -> list[Figure]:
    """Each table beside DataFusion; the busy core's figure is how much more of its time ours loses."""
    figures = []
    for name, whose in PEER_FILES:
        mine, peer = taken[name], taken[f"DataFusion, {whose} files"]
        title = f"SELECT {label}, {FILES} files, {name}"
        loss, peers_loss = (side["busy"]["median"] / side["quiet"]["median"] for side in (mine, peer))
        figures += [
            *ratios(
                f"{title}: seconds / DataFusion on {whose} files", mine["quiet"], peer["quiet"], GOALS[label][name]
            ),
            Figure(
                f"{title}: lost beside a busy core / lost by DataFusion on {whose} files",
                loss / peers_loss,
                "×",
                BUSY_GOAL,
            ),
        ]
    return figures


def cores_and_loss(title: str, side: dict[str, Any]) -> list[Figure]:
    """How many cores a candidate keeps busy on the quiet machine, and how much longer it takes beside the busy core."""
    quiet = side["quiet"]
    return [
        Figure(f"{title}: cores in use", quiet["cpu"] / quiet["median"], "cores"),
        Figure(f"{title}: time beside a busy core / alone", side["busy"]["median"] / quiet["median"], "×"),
    ]


if __name__ == "__main__":
    main()
