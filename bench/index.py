"""A secondary index on an unsorted key: look-ups, bytes, size, build, one segment of a hundred missing; with and without it, peers beside it.

Embedded: no Spark (``index_spark``), and planning over many segments is ``index_planning``. DataFusion and DuckDB read the same rows as Parquet files; Lance, where it
is installed, has them with its own scalar index.
"""

from __future__ import annotations

import importlib
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tamis
from bench.report import Figure, in_turn, ratios, record, rounds, rows

LOADS = 10
WITHOUT = {"tamis.index.use": "off"}
GOALS = {("point", "datafusion"): 0.1, ("in 1,000", "without"): 0.4, ("keeps 60 %", "duckdb"): 1.2}
"""By query and peer. Beside the engines of other queries: 1."""


def load(number: int, count: int, key: Any) -> pa.Table:
    """15 columns; ``key`` is unique and shuffled."""
    random = np.random.default_rng(number)
    columns: dict[str, Any] = {"key": key, "group": key % 20, "at": np.arange(number * count, (number + 1) * count)}
    columns |= {f"i{at}": random.integers(0, 10**9, count) for at in range(4)} | {
        f"d{at}": random.random(count) for at in range(4)
    }
    columns |= {
        f"t{at}": pa.array(np.char.add("text-", random.integers(0, 50_000, count).astype(str))) for at in range(4)
    }
    return pa.table(columns)


def keys_of(count: int) -> Any:
    return np.random.default_rng(1).permutation(count)


def main() -> None:
    each = rows(10_000_000) // LOADS
    keys = keys_of(each * LOADS)
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        (folder / "plain").mkdir()
        plain, indexed = tamis.create(folder / "bare"), tamis.create(folder / "indexed")
        seconds = {"without": 0.0, "with": 0.0}
        for number in range(LOADS):
            data = load(number, each, keys[number * each : (number + 1) * each])
            pq.write_table(data, folder / "plain" / f"{number}.parquet", compression="zstd")
            for name, table in (("without", plain), ("with", indexed)):
                start = time.process_time()
                table.append(data)
                seconds[name] += time.process_time() - start
            if number == 0:
                indexed.create_index("by_key", "key")
        afterwards = [built_afterwards(plain) for _ in range(rounds())]
        detail: dict[str, Any] = {
            "rows": each * LOADS,
            "columns": 15,
            "loads": LOADS,
            "cpu_seconds_write": seconds,
            "cpu_seconds_afterwards": afterwards,
        }
        base = int(indexed.detail()["size_in_bytes"][0].as_py())
        figures = [
            Figure("build with the write: with / without, CPU", seconds["with"] / seconds["without"], "×", 1.35),
            Figure("build afterwards / the write, CPU", statistics.median(afterwards) / seconds["without"], "×", 0.35),
            Figure("size of the index / the table", 100 * plain.indexes()[0].bytes / base, "%", 25),
        ]
        figures += looked_up(plain, folder, keys, detail)
        figures += cold(folder / "bare", keys, detail)
    with tempfile.TemporaryDirectory() as home:
        figures += in_vortex(Path(home), rows(10_000_000) // 20, detail)
    with tempfile.TemporaryDirectory() as home:
        figures += one_missing(Path(home), rows(10_000_000) // 500, detail)
    record("index", figures, detail)


def built_afterwards(table: Any) -> float:
    """CPU seconds of building the index anew; it is there afterwards."""
    if table.indexes():
        table.drop_index("afterwards")
    start = time.process_time()
    table.create_index("afterwards", "key")
    return time.process_time() - start


def lance_of(folder: Path) -> Any:
    """The same rows as a Lance dataset with a B-tree on the key; None where Lance is not installed."""
    try:
        lance = importlib.import_module("lance")
    except ImportError:
        return None
    files = sorted((folder / "plain").glob("*.parquet"))
    dataset = None
    for at, file in enumerate(files):
        dataset = lance.write_dataset(pq.read_table(file), str(folder / "lance"), mode="append" if at else "create")
    dataset.create_scalar_index("key", "BTREE")
    return lance.dataset(str(folder / "lance"))


def looked_up(table: Any, folder: Path, keys: Any, detail: dict[str, Any]) -> list[Figure]:
    """Look-ups over one index segment; the same query by peers."""
    import datafusion
    import duckdb

    context = datafusion.SessionContext(
        datafusion.SessionConfig({"datafusion.execution.parquet.pushdown_filters": "true"})
    )
    context.register_parquet("t", str(folder / "plain"))
    duck = duckdb.connect()
    dataset = lance_of(folder)
    each = len(keys) // LOADS
    some = {
        "in 1,000": keys[:: max(len(keys) // 1_000, 1)][:1_000],
        "in 1,000 near each other": keys[each : each + 1_000],
    }
    # a key of its own for each turn: nobody answers from a cache of results
    points = [int(k) for k in keys[each + 7 :: max(each // 31, 1)]]
    queries: dict[str, tuple[Any, str]] = {"point": (lambda turn: f"key = {points[turn % len(points)]}", "*")}
    for name, chosen in some.items():
        text = f"key IN ({', '.join(str(int(k)) for k in chosen)})"
        queries[name] = (lambda _, text=text: text, "*")
    queries["in 1,000, key alone"] = (queries["in 1,000"][0], "key")
    queries["keeps 60 %"] = (lambda _: f"key > {len(keys) * 4 // 10}", "key, i0")
    figures = []
    for name, (where, columns) in queries.items():
        fields = [c.strip() for c in columns.split(",")]
        work: dict[str, Any] = {
            "index": lambda turn, w=where, f=fields: table.scan(w(turn), f).to_arrow(),
            "without": lambda turn, w=where, f=fields: table.scan(w(turn), f, options=WITHOUT).to_arrow(),
            "datafusion": lambda turn, w=where, c=columns: context.sql(
                f"SELECT {c} FROM t WHERE {w(turn)}"
            ).to_arrow_table(),
            "duckdb": lambda turn, w=where, c=columns: duck.sql(
                f"SELECT {c} FROM '{folder}/plain/*.parquet' WHERE {w(turn)}"
            ).to_arrow_table(),
        }
        if dataset is not None:
            chosen = None if columns == "*" else fields
            work["lance"] = lambda turn, w=where, c=chosen: dataset.to_table(columns=c, filter=w(turn))
        taken = in_turn(3 * rounds() if name == "point" else rounds(), **work)
        reports = []
        for options in ({}, WITHOUT):
            scan = table.scan(where(1), fields, options=options)
            scan.to_arrow()
            reports.append(scan.report.as_dict())
        read = [sum(r["bytes"][level] for level in ("index", "leader", "follower")) for r in reports]
        detail[name] = {
            "seconds": taken,
            "bytes": read,
            "reason": reports[0]["index_reason"],
            "blocks": reports[0]["blocks"],
        }
        figures += judged(name, taken, read)
    return figures


def judged(name: str, taken: Any, read: list[int]) -> list[Figure]:
    """The figures of one query, peers for comparison."""
    figures: list[Figure] = []
    if name == "point":
        figures.append(Figure("point, warm", 1000 * taken["index"]["median"], "ms", 15))
        figures.append(Figure("point: bytes, index / without", 100 * read[0] / read[1], "%", 5))
    if name == "keeps 60 %":
        figures.append(Figure("keeps 60 %: bytes, index / without", read[0] / read[1], "×", 1.05))
    figures += ratios(f"{name}: index / without", taken["index"], taken["without"], GOALS.get((name, "without")))
    for peer in ("datafusion", "duckdb", "lance"):
        if peer in taken:
            goal = GOALS.get((name, peer), None if name == "point" or peer == "lance" else 1.0)
            figures += ratios(f"{name}: index / {peer}", taken["index"], taken[peer], goal)
    return figures


def cold(path: Path, keys: Any, detail: dict[str, Any]) -> list[Figure]:
    """A look-up right after opening a table that this process has not seen: the same objects at other places."""
    seconds, cpu = [], []
    for turn in range(1 + rounds()):
        place = path.with_name(f"copy{turn}")
        shutil.copytree(path, place, copy_function=lambda a, b: Path(b).hardlink_to(a))
        start, used = time.perf_counter(), time.process_time()
        assert tamis.open(place).scan(f"key = {int(keys[turn + 5])}").to_arrow().num_rows == 1
        seconds.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
        shutil.rmtree(place)
    detail["cold"] = {"seconds": seconds[1:], "cpu_seconds": cpu[1:]}
    return [Figure("point, cold metadata", 1000 * statistics.median(seconds[1:]), "ms", 80)]


def in_vortex(folder: Path, count: int, detail: dict[str, Any]) -> list[Figure]:
    """Bytes of a point where the table's parts are Vortex files, all rows in one load."""
    table, keys = tamis.create(folder / "vortex", format="vortex"), keys_of(count)
    table.append(load(0, count, keys))
    table.create_index("by_key", "key")
    read = {}
    for name, options in (("index", {}), ("without", WITHOUT)):
        for at in (5, 6):  # the second one finds footers read
            scan = table.scan(f"key = {int(keys[at])}", options=options)
            assert scan.to_arrow().num_rows == 1
            report = scan.report.as_dict()
            read[name] = sum(report["bytes"][level] for level in ("index", "leader", "follower"))
    detail["vortex"] = {"rows": count, "bytes": read}
    return [Figure("point in Vortex: bytes, index / without", 100 * read["index"] / read["without"], "%", 1)]


def one_missing(folder: Path, each: int, detail: dict[str, Any]) -> list[Figure]:
    """A hundred loads of ``each`` rows, of which the index lacks one."""
    keys = keys_of(100 * each)
    whole = tamis.create(folder / "whole")
    for number in range(100):
        whole.append(load(number, each, keys[number * each : (number + 1) * each]))
    whole.create_index("by_key", "key")
    shutil.copytree(folder / "whole", folder / "lacking")
    lacking = tamis.open(folder / "lacking")
    lacking.drop_index_segments("by_key", [lacking.metadata("segments")["segment_id"][57].as_py()])
    where = [f"key = {int(k)}" for k in keys[3 :: each * 7]]
    taken = in_turn(
        3 * rounds(),
        whole=lambda turn: whole.scan(where[turn % len(where)]).to_arrow(),
        lacking=lambda turn: lacking.scan(where[turn % len(where)]).to_arrow(),
        without=lambda turn: whole.scan(where[turn % len(where)], options=WITHOUT).to_arrow(),
    )
    median = {name: t["median"] for name, t in taken.items()}
    detail["one of 100 missing"] = {"seconds": taken, "rows": 100 * each}
    share = median["whole"] + median["without"] / 100
    return [Figure("1 of 100 segments missing: time / (indexed time + its share)", median["lacking"] / share, "×", 1.0)]


if __name__ == "__main__":
    main()
