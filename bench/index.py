"""A secondary index on an unsorted key: point look-up, IN of 1,000 values, a filter that keeps most, bytes, size, build; with and without it, peers beside it.

Embedded: no Spark. DataFusion and DuckDB read the same rows as Parquet files.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tamis
from bench.report import Figure, in_turn, record, rounds, rows

LOADS = 10
WITHOUT = {"tamis.index.use": "off"}


def load(number: int, count: int, key: Any) -> pa.Table:
    """15 columns; ``key`` is unique and shuffled."""
    random = np.random.default_rng(number)
    columns: dict[str, Any] = {"key": key, "group": key % 20, "at": np.arange(number * count, (number + 1) * count)}
    columns |= {f"i{at}": random.integers(0, 10**9, count) for at in range(4)} | {f"d{at}": random.random(count) for at in range(4)}
    columns |= {f"t{at}": pa.array(np.char.add("text-", random.integers(0, 50_000, count).astype(str))) for at in range(4)}
    return pa.table(columns)


def main() -> None:
    count = rows(10_000_000)
    each = count // LOADS
    keys = np.random.default_rng(1).permutation(each * LOADS)
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        (folder / "plain").mkdir()
        plain, indexed = tamis.create(folder / "bare"), tamis.create(folder / "indexed")
        seconds = {"without": 0.0, "with": 0.0}
        for number in range(LOADS):
            data = load(number, each, keys[number * each : (number + 1) * each])
            pq.write_table(data, folder / "plain" / f"{number}.parquet", compression="zstd")
            for name, table in (("without", plain), ("with", indexed)):
                start = time.perf_counter()
                table.append(data)
                seconds[name] += time.perf_counter() - start
            if number == 0:
                indexed.create_index("by_key", "key")
        start = time.perf_counter()
        plain.create_index("afterwards", "key")
        afterwards = time.perf_counter() - start
        detail: dict[str, Any] = {
            "rows": each * LOADS,
            "columns": 15,
            "loads": LOADS,
            "seconds_write": seconds,
            "seconds_afterwards": afterwards,
        }
        base = int(indexed.detail()["size_in_bytes"][0].as_py())
        size = plain.indexes()[0].bytes
        figures = [
            Figure("build with the write: with / without", seconds["with"] / seconds["without"], "×", 1.35),
            Figure("build afterwards / the write", afterwards / seconds["without"], "×", 0.5),
            Figure("size of the index / the table", 100 * size / base, "%", 25),
        ]
        figures += looked_up(plain, folder, [int(k) for k in keys[[5, each + 7, -3]]], keys, detail)
    record("index", figures, detail)


def looked_up(table: Any, folder: Path, points: list[int], keys: Any, detail: dict[str, Any]) -> list[Figure]:
    """Look-ups over one merged index segment; the same query by peers."""
    import datafusion
    import duckdb

    context = datafusion.SessionContext(datafusion.SessionConfig({"datafusion.execution.parquet.pushdown_filters": "true"}))
    context.register_parquet("t", str(folder / "plain"))
    duck = duckdb.connect()
    many = ", ".join(str(int(k)) for k in keys[:: max(len(keys) // 1_000, 1)][:1_000])
    queries = {"point": f"key = {points[1]}", "in 1,000": f"key IN ({many})", "keeps 60 %": f"key > {len(keys) * 4 // 10}"}
    figures = []
    for name, where in queries.items():
        chosen = ["*"] if name != "keeps 60 %" else ["key", "i0"]
        columns = ", ".join(chosen)
        work = {
            "index": lambda _, where=where, chosen=chosen: table.scan(where, chosen).to_arrow(),
            "without": lambda _, where=where, chosen=chosen: table.scan(where, chosen, options=WITHOUT).to_arrow(),
            "datafusion": lambda _, where=where, columns=columns: context.sql(f"SELECT {columns} FROM t WHERE {where}").to_arrow_table(),
            "duckdb": lambda _, where=where, columns=columns: duck.sql(
                f"SELECT {columns} FROM '{folder}/plain/*.parquet' WHERE {where}"
            ).arrow(),
        }
        taken = in_turn(rounds(), **work)
        reports = []
        for options in ({}, WITHOUT):
            scan = table.scan(where, chosen, options=options)
            scan.to_arrow()
            reports.append(scan.report.as_dict())
        read = [sum(r["bytes"][level] for level in ("index", "leader", "follower")) for r in reports]
        detail[name] = {"seconds": taken, "bytes": read, "reason": reports[0]["index_reason"], "blocks": reports[0]["blocks"]}
        if name == "point":
            figures.append(Figure("point, warm", 1000 * taken["index"]["min"], "ms", 15))
            figures.append(Figure("point: index / DataFusion", taken["index"]["min"] / taken["datafusion"]["min"], "×", 0.1))
            figures.append(Figure("point: bytes, index / without", 100 * read[0] / read[1], "%", 5))
        elif name == "in 1,000":
            figures.append(Figure("IN of 1,000: index / without", taken["index"]["min"] / taken["without"]["min"], "×", 0.2))
        else:
            figures.append(Figure("keeps 60 %: bytes, index / without", read[0] / read[1], "×", 1.05))
        figures.append(Figure(f"{name}: index / without", taken["index"]["min"] / taken["without"]["min"], "×"))
    return figures


if __name__ == "__main__":
    main()
