"""Filters as people type them, one a line in ``<table>.sql``: how many parts it skips at least, then the filter.

The number is a floor: it may only grow. ``python -m bench.corpus --floors`` raises the floors to what is skipped now. ``-- zone:`` sets the session time zone of
the lines below it; other comments are headings.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tamis
from tests.corpus.tables import ROWS, TABLES

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Filter:
    table: str
    line: int
    floor: int
    text: str
    zone: str
    heading: str

    def __str__(self) -> str:
        return f"{self.table}: {self.text}" + ("" if self.zone == "UTC" else f" [{self.zone}]")


@cache
def filters(table: str) -> tuple[Filter, ...]:
    """The filters of one table, in the order of its file."""
    found, zone, heading = [], "UTC", ""
    for number, line in enumerate((HERE / f"{table}.sql").read_text().splitlines()):
        if line.startswith("-- zone:"):
            zone = line.removeprefix("-- zone:").strip()
        elif line.startswith("--"):
            heading = line.removeprefix("--").strip()
        elif line.strip():
            floor, _, text = line.partition("|")
            found.append(Filter(table, number, int(floor), text.strip(), zone, heading))
    return tuple(found)


def rows(table: str, each: int = ROWS) -> list[pa.Table]:
    """The parts of the table, of ``each`` rows."""
    make, count, _, _ = TABLES[table]
    return [make(i, each) for i in range(count)]


def made(table: str, folder: Path, each: int = ROWS) -> tamis.Table:
    """The table on disk, a load for each part."""
    _, _, cluster_by, _ = TABLES[table]
    parts = rows(table, each)
    held = tamis.create(folder / table, parts[0].schema, cluster_by=cluster_by)
    for part in parts:
        held.append(part)
    return held


def plan(held: tamis.Table, f: Filter) -> Any:
    """What a query with this filter would read."""
    return held.scan(f.text, now=TABLES[f.table][3], options={"timezone": f.zone}).plan()


def kept(held: tamis.Table, f: Filter) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which parts would be read, in the order of loading."""
    found = plan(held, f).parts.table
    mask = np.zeros(TABLES[f.table][1], dtype=np.bool_)
    mask[found["segment"].to_numpy()] = True
    return mask


def matching(spark: Any, table: str, each: int = ROWS) -> list[np.ndarray[Any, np.dtype[np.bool_]]]:
    """For each filter, in which parts plain Spark finds a row: the filters of one time zone are columns of one projection."""
    parts = rows(table, each)
    whole = pa.concat_tables(
        part.append_column("_part", pa.array([i] * len(part), pa.int32())) for i, part in enumerate(parts)
    )
    out: dict[int, np.ndarray[Any, np.dtype[np.bool_]]] = {}
    instant = TABLES[table][3].astimezone(dt.UTC)
    for zone in dict.fromkeys(f.zone for f in filters(table)):
        chosen = [f for f in filters(table) if f.zone == zone]
        spark.conf.set("spark.sql.session.timeZone", zone)
        try:
            spark.createDataFrame(whole).createOrReplaceTempView("corpus_plain")
            columns = ", ".join(f"max(({pinned(f.text, instant)}) IS TRUE) AS f{f.line}" for f in chosen)
            answer = spark.sql(f"SELECT _part, {columns} FROM corpus_plain GROUP BY _part ORDER BY _part").toArrow()
        finally:
            spark.conf.set("spark.sql.session.timeZone", "UTC")
        out |= {f.line: answer[f"f{f.line}"].to_numpy(zero_copy_only=False).astype(np.bool_) for f in chosen}
    return [out[f.line] for f in filters(table)]


def pinned(text: str, instant: dt.datetime) -> str:
    """The filter with the instant of the query written out: Spark cannot be told what time it is."""
    at = f"TIMESTAMP '{instant:%Y-%m-%d %H:%M:%S}+00:00'"
    for name in ("current_timestamp()", "now()"):
        text = text.replace(name, at)
    return text.replace("current_date()", f"to_date({at})").replace("unix_timestamp()", f"unix_timestamp({at})")
