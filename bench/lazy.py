"""The lazy reader on the seed's own shape: 120 columns, three of them searched for 1,000 values each, joined by OR, about one row in 45,000 out.

``python -m bench.lazy [grid | bytes | spark]``: the embedded search with its peers (default), the grid of selectivity × columns, the bytes of every format and mode over that grid, or the
same search through Spark. ``bench.lazy_files`` has the search over eight files.
CPU seconds are those of this process, so that other work on the machine counts little; bytes are the report's. Through Spark, the peers' schemas are known before the
clock runs, and planning (the text with its 3,000 literals is parsed, analysed and planned, nothing read) is timed by itself, too.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tamis
from bench.report import Figure, in_turn, record, rounds, rows, spark_session

SEARCHED, WIDE = ("c0", "c1", "c2"), 120
DOMAIN = 135_000_000
"""Distinct values of a searched column: 3 × 1,000 of them let one row in 45,000 through."""
FORMATS = ("parquet", "vortex", "orc")
SELECTIVITIES = (0.01, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
WIDTHS = (2, 4, 8, 16, WIDE)
PEER_VIEWS = {"Spark Parquet": "as_parquet", "Spark ORC": "as_orc", "Spark ORC, lazy filter": "as_orc_lazy"}


def table_of(count: int, seed: int = 3) -> pa.Table:
    """Searched columns, whole numbers large and small, fractions, texts."""
    random = np.random.default_rng(seed)
    words = np.array([f"{word}-{i}" for word in ("alpha", "beta", "gamma", "delta") for i in range(500)])
    columns: dict[str, Any] = {name: random.integers(0, DOMAIN, count) for name in SEARCHED}
    columns |= {"pick": random.random(count)}
    columns |= {f"i{n}": random.integers(0, 10**9, count) for n in range(50)}
    columns |= {f"s{n}": random.integers(0, 1000, count).astype("i4") for n in range(26)}
    columns |= {f"d{n}": random.random(count) for n in range(25)}
    columns |= {f"t{n}": pa.array(words[random.integers(0, len(words), count)]) for n in range(15)}
    return pa.table(columns)


def search() -> tuple[dict[str, list[int]], str]:
    random = np.random.default_rng(11)
    values = {name: sorted({int(v) for v in random.integers(0, DOMAIN, 1000)}) for name in SEARCHED}
    return values, " OR ".join(f"{name} IN ({', '.join(map(str, found))})" for name, found in values.items())


def cpu_in_turn(rounds_: int, **work: Callable[[], Any]) -> dict[str, dict[str, float]]:
    """Seconds and CPU seconds, the least of some rounds, the first left out."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    for turn in range(rounds_ + 1):
        for name, run in work.items():
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            if turn:
                taken[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    return {
        name: {"seconds": min(w for w, _ in found), "cpu": min(c for _, c in found)} for name, found in taken.items()
    }


def main() -> None:
    chosen = {a for a in sys.argv[1:] if not a.startswith("-")} or {"search"}
    count = rows(2_000_000)
    data = table_of(count)
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        for name, run in {
            "search": embedded,
            "grid": grid,
            "bytes": bytes_read,
            "spark": through_spark,
        }.items():
            if name in chosen:
                figures, detail = run(folder, data)
                record(
                    "lazy" if name == "search" else f"lazy_{name}",
                    figures,
                    {"rows": count, "columns": data.num_columns, **detail},
                )


def embedded(folder: Path, data: pa.Table) -> tuple[list[Figure], dict[str, Any]]:
    values, text = search()
    tables = {form: tamis.create(folder / form, data.schema, format=form) for form in FORMATS}
    for table in tables.values():
        table.append(data)
    plain = folder / "plain.parquet"
    pq.write_table(data, plain, compression="zstd", compression_level=1)
    names = list(data.column_names)
    selections = {"16": [*SEARCHED, *names[4:17]], "all": names}
    detail: dict[str, Any] = {
        "size": {form: sum(f.stat().st_size for f in (folder / form / "data").iterdir()) for form in FORMATS}
    }
    figures: list[Figure] = []
    for label, columns in selections.items():
        work: dict[str, Callable[[], Any]] = {}
        counted: dict[str, Any] = {}
        for form, table in tables.items():
            for lazy in ("auto", "off"):
                name = f"{form} {lazy}"
                work[name] = lambda name=name, table=table, lazy=lazy, columns=columns, counted=counted: (
                    counted.__setitem__(name, scanned(table, text, columns, lazy))
                )
        work |= {
            name: lambda peer=peer, columns=columns: peer(plain, values, text, columns) for name, peer in PEERS.items()
        }
        taken = cpu_in_turn(rounds(), **work)
        for name, found in counted.items():
            taken[name] |= found
        detail[label] = taken
        figures += compared(label, taken)
    return figures, detail


def scanned(table: Any, text: str, columns: list[str], lazy: str) -> dict[str, Any]:
    scan = table.scan(text, columns, options={"tamis.read.lazy": lazy})
    found = scan.to_arrow()
    report = scan.report
    read = report.bytes["leader"] + report.bytes["follower"]
    return {"rows": len(found), "bytes": read, "follower": report.bytes["follower"], "reader": report.reader}


def compared(label: str, taken: dict[str, Any]) -> list[Figure]:
    goals = {"16": (0.55, 0.5), "all": (0.30, 0.13)}[label]
    figures = []
    for form in FORMATS:
        lazy, eager = taken[f"{form} auto"], taken[f"{form} off"]
        bound = goals if form == "parquet" else (None, None)
        figures.append(
            Figure(f"SELECT {label}, {form}: bytes, lazy / eager", lazy["bytes"] / eager["bytes"], "×", bound[0])
        )
        figures.append(Figure(f"SELECT {label}, {form}: CPU, lazy / eager", lazy["cpu"] / eager["cpu"], "×", bound[1]))
    if label == "all":
        figures.append(
            Figure(
                "SELECT all: CPU, Vortex lazy / Parquet eager",
                taken["vortex auto"]["cpu"] / taken["parquet off"]["cpu"],
                "×",
                0.08,
            )
        )
    for form, goal in (("parquet", 1.2), ("vortex", 0.5), ("orc", None)):
        ratio = taken[f"{form} auto"]["seconds"] / taken["DataFusion"]["seconds"]
        figures.append(Figure(f"SELECT {label}, {form}: seconds / DataFusion with pushdown", ratio, "×", goal))
    return figures


def _polars(path: Path, values: dict[str, list[int]], _: str, columns: list[str]) -> int:
    import polars as pl

    wanted = pl.any_horizontal(*(pl.col(name).is_in(found) for name, found in values.items()))
    return int(pl.scan_parquet(path).filter(wanted).select(columns).collect().height)


def _duckdb(path: Path, _: dict[str, list[int]], text: str, columns: list[str]) -> int:
    import duckdb

    with duckdb.connect(config={"threads": 2}) as connection:
        return len(connection.execute(f"SELECT {', '.join(columns)} FROM '{path}' WHERE {text}").to_arrow_table())


def _datafusion(path: Path, _: dict[str, list[int]], text: str, columns: list[str]) -> int:
    return datafusion_rows(path, text, columns)


def datafusion_rows(path: Path, text: str, columns: list[str]) -> int:
    """The rows that DataFusion finds in Parquet files, its filter pushed down."""
    from datafusion import SessionConfig, SessionContext

    config = SessionConfig(
        {"datafusion.execution.parquet.pushdown_filters": "true", "datafusion.execution.target_partitions": "2"}
    )
    context = SessionContext(config)
    context.register_parquet("t", str(path))
    return int(context.sql(f"SELECT {', '.join(columns)} FROM t WHERE {text}").to_arrow_table().num_rows)


PEERS = {"Polars": _polars, "DuckDB": _duckdb, "DataFusion": _datafusion}


def grid(folder: Path, data: pa.Table) -> tuple[list[Figure], dict[str, Any]]:
    """Whether laziness, decided by itself, ever loses to reading eagerly: selectivity × columns, medians of paired runs."""
    table = tamis.create(folder / "grid", data.schema)
    table.append(data)
    cells: dict[str, Any] = {}
    for share in SELECTIVITIES:
        for width in WIDTHS:
            columns = ["pick", *[n for n in data.column_names if n != "pick"][: width - 1]]
            paired: list[tuple[float, int, int]] = []
            for turn in range(rounds() + 1):
                cost = {
                    lazy: timed(table, f"pick < {share}D", columns, lazy)
                    for lazy in (("auto", "off") if turn % 2 else ("off", "auto"))
                }
                if turn:
                    paired.append((cost["auto"][0] / cost["off"][0], cost["auto"][1], cost["off"][1]))
            cells[f"{share} × {width}"] = {
                "time": statistics.median(p[0] for p in paired),
                "bytes": paired[-1][1] / paired[-1][2],
            }
    times = [cell["time"] for cell in cells.values()]
    return [
        Figure(
            "grid: CPU, geometric mean, auto / eager", math.exp(statistics.fmean(math.log(t) for t in times)), "×", 1.05
        ),
        Figure("grid: CPU, worst cell, auto / eager", max(times), "×", 1.15),
        Figure("grid: bytes, worst cell, auto / eager", max(cell["bytes"] for cell in cells.values()), "×", 1.02),
    ], {"cells": cells}


def bytes_read(folder: Path, data: pa.Table) -> tuple[list[Figure], dict[str, Any]]:
    """Bytes of lazy modes / bytes of eager reading: formats × selectivity × columns, and the search. What is remembered of footers is warm in all of them."""
    _, text = search()
    names = list(data.column_names)
    cases = {"search × 16": (text, [*SEARCHED, *names[4:17]]), "search × all": (text, names)}
    for share in (0.0001, *SELECTIVITIES):
        for width in WIDTHS:
            columns = ["pick", *[n for n in names if n != "pick"][: width - 1]]
            cases[f"{share} × {width}"] = (f"pick < {share}D", columns)
    cells: dict[str, Any] = {}
    figures: list[Figure] = []
    for form in FORMATS:
        table = tamis.create(folder / f"bytes-{form}", data.schema, format=form)
        table.append(data)
        for label, (asked, columns) in cases.items():
            scanned(table, asked, columns, "off")
            cost = {lazy: scanned(table, asked, columns, lazy)["bytes"] for lazy in ("off", "on", "auto")}
            cells[f"{form}: {label}"] = {
                "eager": cost["off"],
                "on": cost["on"] / cost["off"],
                "auto": cost["auto"] / cost["off"],
            }
        mine = [cell for name, cell in cells.items() if name.startswith(f"{form}:")]
        worst = max(max(cell["on"], cell["auto"]) for cell in mine)
        figures.append(Figure(f"{form}: bytes, worst cell, lazy / eager", worst, "×", 1.0))
        goal = 0.1 if form == "orc" else None
        found = cells[f"{form}: search × all"]["auto"]
        figures.append(Figure(f"{form}: bytes, SELECT all of the seed's shape, auto / eager", found, "×", goal))
    return figures, {"cells": cells}


def timed(table: Any, text: str, columns: list[str], lazy: str) -> tuple[float, int]:
    scan = table.scan(text, columns, options={"tamis.read.lazy": lazy})
    start = time.process_time()
    for _ in scan.to_batches():
        pass
    return time.process_time() - start, scan.report.bytes["leader"] + scan.report.bytes["follower"]


def through_spark(folder: Path, data: pa.Table) -> tuple[list[Figure], dict[str, Any]]:
    _, text = search()
    folder = Path(os.environ.get("BENCH_HOME", folder))
    spark = spark_session(**{"spark.sql.orc.filterPushdown": "true"})
    spark.conf.set("spark.sql.orc.impl", "native")
    tamis.attach(spark, "lake", folder / "lake")
    formats = made(spark, folder, data)
    detail: dict[str, Any] = {}
    figures: list[Figure] = []
    names = list(data.column_names)
    for label, columns, goals in (("16", [*SEARCHED, *names[4:17]], (0.5, 1 / 1.5)), ("all", names, (1 / 8, 1 / 2.5))):
        chosen = ", ".join(columns)
        tables = PEER_VIEWS | {form: f"lake.bench.{form}" for form in formats}
        texts = {name: f"SELECT {chosen} FROM {table} WHERE {text}" for name, table in tables.items()}
        work: dict[str, Callable[[int], Any]] = {name: partial(run, spark, t) for name, t in texts.items()}
        work |= {f"plan {name}": partial(planned, spark, texts[name]) for name in ("Spark Parquet", "parquet")}
        taken = in_turn(rounds(), **work)
        detail[label] = taken
        for form in formats:
            mine = taken[form]["min"]
            bound = goals if form == "parquet" else (None, None)
            figures.append(
                Figure(
                    f"Spark, SELECT {label}, {form} / Spark Parquet",
                    mine / taken["Spark Parquet"]["min"],
                    "×",
                    bound[0],
                )
            )
            figures.append(
                Figure(
                    f"Spark, SELECT {label}, {form} / Spark ORC, lazy",
                    mine / taken["Spark ORC, lazy filter"]["min"],
                    "×",
                    bound[1],
                )
            )
        figures += without_planning(label, {name: found["min"] for name, found in taken.items()})
    figures.append(full_scan(spark, detail))
    spark.stop()
    return figures, detail


def made(spark: Any, folder: Path, data: pa.Table) -> list[str]:
    """Writes what is not there yet; the formats that there are. ``BENCH_HOME`` names a folder that stays, for another run with as many rows."""
    if not (folder / "as-orc" / "_SUCCESS").exists():
        pq.write_table(data, folder / "spark-source.parquet")
        plain = spark.read.parquet(str(folder / "spark-source.parquet"))
        plain.repartition(4).write.parquet(str(folder / "as-parquet"))
        plain.repartition(4).write.orc(str(folder / "as-orc"))
        spark.sql("CREATE NAMESPACE lake.bench")
        for form in FORMATS:
            tamis.create(folder / "lake" / "bench" / form, data.schema, format=form).append(data)
    for name, view in PEER_VIEWS.items():
        form = "orc" if "ORC" in name else "parquet"
        reader = spark.read.option("orc.sarg.to.filter", str(name.endswith("lazy filter")).lower())
        reader.format(form).load(f"{folder}/as-{form}").createOrReplaceTempView(view)
    return [form for form in FORMATS if (folder / "lake" / "bench" / form).exists()]


def without_planning(label: str, seconds: dict[str, float]) -> list[Figure]:
    """What planning alone takes, and what the queries take beside it: the literals cost all engines the same."""
    mine, other = (seconds[name] - seconds[f"plan {name}"] for name in ("parquet", "Spark Parquet"))
    return [
        Figure(
            f"Spark, SELECT {label}, planning alone: parquet / Spark Parquet",
            seconds["plan parquet"] / seconds["plan Spark Parquet"],
            "×",
        ),
        Figure(
            f"Spark, SELECT {label}, planning alone / the whole, parquet",
            seconds["plan parquet"] / seconds["parquet"],
            "×",
        ),
        Figure(f"Spark, SELECT {label}, without planning: parquet / Spark Parquet", mine / max(other, 1e-9), "×"),
    ]


def full_scan(spark: Any, detail: dict[str, Any]) -> Figure:
    """An aggregate over all rows of three columns, the reader chosen by itself."""
    work = {
        name: lambda _, table=table: run(spark, f"SELECT s0, sum(i0), max(d0), count(*) FROM {table} GROUP BY s0")
        for name, table in (("Spark Parquet", PEER_VIEWS["Spark Parquet"]), ("parquet", "lake.bench.parquet"))
    }
    detail["aggregate"] = taken = in_turn(rounds(), **work)
    detail["aggregate"]["reader"] = tamis.reports()[0].reader
    return Figure(
        "Spark, aggregate of all rows / Spark Parquet",
        taken["parquet"]["min"] / taken["Spark Parquet"]["min"],
        "×",
        1.2,
    )


def run(spark: Any, text: str, _: int = 0) -> None:
    spark.sql(text).write.format("noop").mode("overwrite").save()


def planned(spark: Any, text: str, _: int = 0) -> None:
    spark.sql(text)._jdf.queryExecution().executedPlan()


if __name__ == "__main__":
    main()
