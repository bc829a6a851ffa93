"""Counts and GROUP BY without Spark: ``scan.count()``, DuckDB and Polars over a table, against both over the table's own Parquet files.

Rounds are interleaved; wall and CPU seconds stand side by side. The peers read the files of a table that was only appended to: there they are all of its rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tamis
from bench.report import Figure, ratios, record, rounds, rows, summary_of, workplace

LOADS = 10
WORDS = np.array(["red", "green", "blue", "black", "white"])
GOAL = 1.1


def load(number: int, count: int) -> pa.Table:
    """Few groups as texts and numbers, many groups, measures, times; nothing but ``at`` is in order."""
    random = np.random.default_rng(number)
    return pa.table(
        {
            "at": np.arange(number * count, (number + 1) * count),
            "colour": pa.array(WORDS[random.integers(0, 5, count)]),
            "kind": random.integers(0, 20, count).astype("i4"),
            "user": random.integers(0, 100_000, count),
            "price": np.round(random.random(count) * 1000, 2),
            "score": random.random(count),
            "quantity": random.integers(0, 500, count),
            "path": pa.array(np.char.add("/path/", random.integers(0, 50_000, count).astype(str))),
        }
    )


QUERIES = {
    "few groups": "SELECT colour, count(*), sum(price), avg(score) FROM {t} GROUP BY colour",
    "many groups": "SELECT user, count(*), sum(quantity) FROM {t} GROUP BY user",
    "filtered": "SELECT kind, count(*), max(score) FROM {t} WHERE price < 400 GROUP BY kind",
    "no groups": "SELECT sum(quantity), min(price), max(score) FROM {t}",
}

COLUMNS = {
    "few groups": ["colour", "price", "score"],
    "many groups": ["user", "quantity"],
    "filtered": ["kind", "price", "score"],
    "no groups": ["quantity", "price", "score"],
}
"""What each query reads."""


def main() -> None:
    count = rows(10_000_000)
    with workplace("aggregates") as (folder, built):
        if not built:
            table = tamis.create(folder / "t")
            for number in range(LOADS):
                table.append(load(number, count // LOADS))
        table = tamis.open(folder / "t")
        figures: list[Figure] = []
        detail: dict[str, Any] = {"rows": count, "columns": 8}
        counts(table, folder, figures, detail)
        grouped(table, folder, figures, detail)
        floors(table, folder, figures, detail)
    record("aggregates", figures, detail)


def both_clocks(**work: Callable[[], Any]) -> dict[str, dict[str, Any]]:
    """Wall and CPU seconds of each, in interleaved rounds, the first left out; all must give the same result."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    results: dict[str, Any] = {}
    for turn in range(rounds() + 2):
        for name, run in work.items():
            wall, cpu = time.perf_counter(), time.process_time()
            results[name] = run()
            if turn:
                taken[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    found = {str(digest(result)) for result in results.values()}  # in Python, so not within the clocks
    assert len(found) == 1, found
    return {name: summary_of(times) for name, times in taken.items()}


def counts(table: Any, folder: Path, figures: list[Figure], detail: dict[str, Any]) -> None:
    import duckdb
    import polars as pl

    duck, files = duckdb.connect(config={"threads": 2}), f"{folder}/t/data/*.parquet"
    for name, where, condition in (("count", None, None), ("count, filtered", "price < 400", pl.col("price") < 400)):
        text = f"SELECT count(*) FROM '{files}'" + (f" WHERE {where}" if where else "")

        def polars(condition: Any = condition) -> int:
            frame = pl.scan_parquet(files)
            return int((frame if condition is None else frame.filter(condition)).select(pl.len()).collect().item())

        taken = both_clocks(
            tamis=lambda where=where: table.scan(where).count(),
            duckdb=lambda text=text: duck.sql(text).fetchall()[0][0],
            polars=polars,
        )
        detail[name] = taken
        for peer in ("duckdb", "polars"):
            figures += ratios(f"{name}: tamis / {peer}", taken["tamis"], taken[peer], GOAL)


def grouped(table: Any, folder: Path, figures: list[Figure], detail: dict[str, Any]) -> None:
    import duckdb
    import polars as pl

    duck, files = duckdb.connect(config={"threads": 2}), f"{folder}/t/data/*.parquet"

    def through_duckdb(text: str) -> Any:
        held = table.to_duckdb(duck)  # noqa: F841  # DuckDB finds it by its name
        return duck.sql(text.format(t="held")).to_arrow_table()

    def by_polars(frame: Any, name: str) -> Any:
        return polars_query(frame, name).collect()

    for name, text in QUERIES.items():
        taken = both_clocks(
            to_duckdb=lambda text=text: through_duckdb(text),
            duckdb=lambda text=text: duck.sql(text.format(t=f"'{files}'")).to_arrow_table(),
            scan_polars=lambda name=name: by_polars(tamis.scan_polars(folder / "t"), name),
            polars=lambda name=name: by_polars(pl.scan_parquet(files), name),
        )
        detail[name] = taken
        for mine, peer in (("to_duckdb", "duckdb"), ("scan_polars", "polars")):
            figures += ratios(f"{name}: {mine} / {peer}", taken[mine], taken[peer], GOAL)


def floors(table: Any, folder: Path, figures: list[Figure], detail: dict[str, Any]) -> None:
    """What the columns of a query cost to decode: by a scan, by pyarrow alone with and without checksums, and as the whole query of DuckDB."""
    import duckdb

    duck = duckdb.connect(config={"threads": 2})
    files = sorted((folder / "t" / "data").glob("*.parquet"))
    for name, columns in COLUMNS.items():
        text = QUERIES[name].format(t=f"'{folder}/t/data/*.parquet'")

        def drained(columns: list[str] = columns) -> None:
            for _ in table.scan(None, columns).to_batches():
                pass

        taken = both_clocks(
            scan=drained,
            pyarrow=lambda columns=columns: decoded(files, columns, checked=False),
            checked=lambda columns=columns: decoded(files, columns, checked=True),
            duckdb=lambda text=text: duck.sql(text).fetchall() and None,
        )
        detail[f"floor, {name}"] = taken
        for one, other, title in (
            ("scan", "checked", "scan / pyarrow with checksums"),
            ("checked", "pyarrow", "pyarrow with checksums / without"),
            ("pyarrow", "duckdb", "pyarrow / duckdb"),
        ):
            figures += ratios(f"{name}: {title}", taken[one], taken[other])


def decoded(files: list[Path], columns: list[str], *, checked: bool) -> None:
    """Decode these columns by pyarrow alone; ``checked``: with the checksums of pages, as a scan does."""
    import pyarrow.parquet as pq

    for file in files:
        pq.ParquetFile(file, page_checksum_verification=checked).read(columns)


def polars_query(frame: Any, name: str) -> Any:
    import polars as pl

    match name:
        case "few groups":
            return frame.group_by("colour").agg(pl.len(), pl.col("price").sum(), pl.col("score").mean())
        case "many groups":
            return frame.group_by("user").agg(pl.len(), pl.col("quantity").sum())
        case "filtered":
            return frame.filter(pl.col("price") < 400).group_by("kind").agg(pl.len(), pl.col("score").max())
    return frame.select(pl.col("quantity").sum(), pl.col("price").min(), pl.col("score").max())


def digest(found: Any) -> Any:
    """Rows in one order, fractions without the digits that the order of addition decides; other results as they are."""
    if isinstance(found, pa.Table):
        rows = list(zip(*(column.to_pylist() for column in found.columns), strict=True))
    elif hasattr(found, "rows"):
        rows = found.rows()
    else:
        return found
    return sorted(tuple(f"{v:.6g}" if isinstance(v, float) else str(v) for v in row) for row in rows)


if __name__ == "__main__":
    main()
