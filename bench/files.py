"""One core, no Spark: writing parts (with and without statistics) and reading them, against pyarrow's own writer and reader; what the block size costs and buys."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.report import Figure, record, rounds, rows
from tamis.core.expr import conjuncts_of, parse_predicate
from tamis.core.types import Schema
from tamis.core.types.arrow import from_arrow_schema, to_arrow_schema
from tamis.engine.part_reader import ReadCounters, ReadSpec, read_part
from tamis.engine.part_writer import WriteSpec, sorted_batches, write_parts
from tamis.storage.files import PartRef

BATCH = 10_000
"""Rows of a batch as Spark hands them over."""
NEEDLE = "uid IN (17, 4711, 123456)"


def in_turn(rounds_: int, **work: Callable[[int], Any]) -> dict[str, dict[str, Any]]:
    """As ``bench.report.in_turn``, in seconds of this process's CPU: everything here runs on one core, and other work on the machine does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for turn in range(rounds_ + 1):
        for name, run in work.items():
            start = time.process_time()
            run(turn)
            seconds[name] += [time.process_time() - start] if turn else []
    return {name: {"min": min(taken), "all": [round(t, 4) for t in taken]} for name, taken in seconds.items()}


def batches(count: int) -> Iterator[pa.RecordBatch]:
    """Fifteen columns: keys, times, numbers, texts; few and many distinct values."""
    random = np.random.default_rng(7)
    tokens = np.char.mod("%016x", random.integers(0, 2**62, 200_000))
    words = np.array(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"])
    for start in range(0, count, 20 * BATCH):
        n = min(20 * BATCH, count - start)
        columns = {
            "id": pa.array(np.arange(start, start + n)),
            "uid": pa.array(random.integers(0, 10_000_000, n)),
            "ts": pa.array(1_600_000_000_000_000 + (start + np.arange(n)) * 250_000).cast(pa.timestamp("us", tz="UTC")),
            "day": pa.array((18_000 + (start + np.arange(n)) // 50_000).astype("i4")).cast(pa.date32()),
            "kind": pa.array(random.integers(0, 20, n).astype("i4")),
            "code": pa.array(random.integers(0, 5_000, n).astype("i4"), mask=random.random(n) < 0.1),
            "flag": pa.array(random.random(n) > 0.3),
            "x": pa.array(random.random(n)),
            "y": pa.array(np.round(random.normal(100, 25, n), 2)),
            "z": pa.array(random.random(n).astype("f4")),
            "amount": pa.array(random.integers(0, 10**8, n)).cast(pa.decimal128(19, 0)).cast(pa.decimal128(14, 2)),
            "name": pa.array(words[random.integers(0, 8, n)]),
            "token": pa.array(tokens[random.integers(0, len(tokens), n)]),
            "url": pa.array(np.char.add("https://example.org/", tokens[random.integers(0, 5_000, n)])),
            "note": pa.array(
                np.char.add(
                    np.char.add(words[random.integers(0, 8, n)], " "), tokens[random.integers(0, len(tokens), n)]
                )
            ),
        }
        yield from _cut(pa.record_batch(columns))


def _cut(batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    return [batch.slice(i, BATCH) for i in range(0, len(batch), BATCH)]


def written(folder: Path, data: list[pa.RecordBatch], schema: Schema, **settings: Any) -> list[PartRef]:
    spec = replace(WriteSpec(str(folder), schema), **settings)
    names = ("part_id", "path", "format", "schema_id", "rows", "bytes", "checksum", "footer_checksum")
    found = [row for table in write_parts(data, spec) for row in table.to_pylist()]
    return [PartRef(**{n: row[n] for n in names}, blocks=tuple(row["blocks"])) for row in found]


def plain(path: Path, data: list[pa.RecordBatch], group: int) -> None:
    """pyarrow's own writer with its defaults and zstd; it is handed whole row groups, as ours is handed small batches."""
    table = pa.Table.from_batches(data)
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        writer.write_table(table, row_group_size=group)


def scan(
    folder: Path,
    refs: list[PartRef],
    schema: Schema,
    text: str | None = None,
    lazy: str = "auto",
    columns: tuple[str, ...] | None = None,
) -> ReadCounters:
    counters = ReadCounters()
    spec = ReadSpec(
        str(folder),
        schema if columns is None else schema.select(columns),
        {0: schema},
        conjuncts=() if text is None else conjuncts_of(parse_predicate(text, schema)),
        lazy=lazy,
    )
    for ref in refs:
        for _ in read_part(ref, spec, counters):
            pass
    return counters


def read_plain(path: Path, columns: list[str] | None = None) -> None:
    for _ in pq.ParquetFile(path).iter_batches(65_536, columns=columns, use_threads=False):
        pass


def main() -> None:
    count = rows(2_000_000)
    pa.set_cpu_count(1)
    data = list(batches(count))
    schema = from_arrow_schema(data[0].schema).assign_ids(0)
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        figures: list[Figure] = []
        detail: dict[str, Any] = {"rows": count, "columns": 15}
        writing(folder, data, schema, figures, detail)
        reading(folder, data, schema, figures, detail)
        blocks(folder, data, schema, detail)
        sorting(data, schema, detail)
    print(json.dumps(detail["blocks"], indent=1))
    record("files", figures, detail)


def writing(
    folder: Path, data: list[pa.RecordBatch], schema: Schema, figures: list[Figure], detail: dict[str, Any]
) -> None:
    work: dict[str, Callable[[int], Any]] = {
        "statistics": lambda turn: written(folder / f"w{turn}", data, schema),
        "none": lambda turn: written(folder / f"n{turn}", data, schema, collect=False),
        "pyarrow_same_groups": lambda _: plain(folder / "same.parquet", data, 16_384),
        "pyarrow_large_groups": lambda _: plain(folder / "large.parquet", data, 1 << 20),
    }
    taken = in_turn(rounds(), **work)
    detail["write"] = taken
    detail["write_bytes"] = {
        "tamis": sum(f.stat().st_size for f in (folder / "w1" / "data").iterdir()),
        "pyarrow_same_groups": (folder / "same.parquet").stat().st_size,
        "pyarrow_large_groups": (folder / "large.parquet").stat().st_size,
    }
    figures += [
        Figure("write: with statistics / without", taken["statistics"]["min"] / taken["none"]["min"], "×", 1.15),
        Figure(
            "write: tamis / pyarrow, same row groups",
            taken["statistics"]["min"] / taken["pyarrow_same_groups"]["min"],
            "×",
            1.1,
        ),
        Figure(
            "write: tamis / pyarrow, row groups of a million",
            taken["statistics"]["min"] / taken["pyarrow_large_groups"]["min"],
            "×",
        ),
    ]


def reading(
    folder: Path, data: list[pa.RecordBatch], schema: Schema, figures: list[Figure], detail: dict[str, Any]
) -> None:
    refs = written(folder / "r", data, schema, part_bytes=2**40)
    file = folder / "r" / refs[0].path
    three = ("kind", "x", "name")
    work: dict[str, Callable[[int], Any]] = {
        "all": lambda _: scan(folder / "r", refs, schema),
        "all_pyarrow": lambda _: read_plain(file),
        "three": lambda _: scan(folder / "r", refs, schema, columns=three),
        "three_pyarrow": lambda _: read_plain(file, list(three)),
        "needle_lazy": lambda _: scan(folder / "r", refs, schema, NEEDLE, "on"),
        "needle_eager": lambda _: scan(folder / "r", refs, schema, NEEDLE, "off"),
        "most_auto": lambda _: scan(folder / "r", refs, schema, "kind < 18"),
        "most_eager": lambda _: scan(folder / "r", refs, schema, "kind < 18", "off"),
    }
    taken = in_turn(rounds(), **work)
    detail["read"] = taken
    detail["needle"] = {mode: scan(folder / "r", refs, schema, NEEDLE, mode).as_dict() for mode in ("on", "off")}
    figures += [
        Figure(
            "read all columns: tamis / pyarrow, same file", taken["all"]["min"] / taken["all_pyarrow"]["min"], "×", 1.15
        ),
        Figure(
            "read three columns: tamis / pyarrow, same file",
            taken["three"]["min"] / taken["three_pyarrow"]["min"],
            "×",
            1.5,
        ),
        Figure(
            "needle, all columns: lazy / eager", taken["needle_lazy"]["min"] / taken["needle_eager"]["min"], "×", 0.5
        ),
        Figure(
            "a filter that most rows pass: auto / eager",
            taken["most_auto"]["min"] / taken["most_eager"]["min"],
            "×",
            1.15,
        ),
    ]


def blocks(folder: Path, data: list[pa.RecordBatch], schema: Schema, detail: dict[str, Any]) -> None:
    """What the block size costs when writing, and buys when few rows are wanted."""
    found: dict[str, Any] = {}
    for size in (4_096, 8_192, 16_384, 32_768, 65_536, 131_072):
        place = folder / f"b{size}"
        work: dict[str, Callable[[int], Any]] = {
            "write": lambda turn, place=place, size=size: written(place / str(turn), data, schema, block_rows=size)
        }  # type: ignore[misc]
        taken = in_turn(1, **work)
        refs = written(place / "one", data, schema, block_rows=size, part_bytes=2**40)
        reads = in_turn(
            2,
            all=lambda _, place=place, refs=refs: scan(place / "one", refs, schema),
            needle=lambda _, place=place, refs=refs: scan(place / "one", refs, schema, NEEDLE, "on"),
        )
        cost = scan(place / "one", refs, schema, NEEDLE, "on")
        found[str(size)] = {
            "write_s": round(taken["write"]["min"], 3),
            "bytes": refs[0].bytes,
            "read_all_s": round(reads["all"]["min"], 3),
            "needle_s": round(reads["needle"]["min"], 3),
            "needle_follower_bytes": cost.bytes_follower,
            "footer_bytes": pq.read_metadata(place / "one" / refs[0].path).serialized_size,
        }
    detail["blocks"] = found


def sorting(data: list[pa.RecordBatch], schema: Schema, detail: dict[str, Any]) -> None:
    arrow, key = to_arrow_schema(schema), (schema.find("uid")[0].id,)
    some = [b.cast(arrow) for b in data[: len(data) // 2]]
    size = sum(b.nbytes for b in some)

    def drain(memory: int) -> None:
        for _ in sorted_batches(some, schema, (key,), memory):
            pass

    detail["sort"] = {
        "bytes": size,
        **in_turn(1, in_memory=lambda _: drain(2**40), spilled_to_8_runs=lambda _: drain(size // 4)),
    }


if __name__ == "__main__":
    main()
