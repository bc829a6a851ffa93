"""One needle query by one engine in a process of its own, for ``bench.bridges``: seconds, bytes that it read, rows.

Bytes are what the process read by system calls (of Spark: its JVM). Imports, and Spark's start, are not counted.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ENGINES = ("tamis", "tamis_index", "deltalake", "deltalake_dataset", "pyiceberg", "spark")
Query = Callable[[], int]


def read_bytes(pid: int | str = "self") -> int:
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("rchar")))


def prepared(engine: str, folder: Path, needle: int) -> tuple[Query, int | str]:
    """The query, ready to run, and the process that reads."""
    if engine.startswith("tamis"):
        return _tamis(folder / engine, needle), "self"
    if engine == "spark":
        return _spark(folder / "source", needle)
    return {"deltalake": _deltalake, "deltalake_dataset": _dataset, "pyiceberg": _pyiceberg}[engine](
        folder, needle
    ), "self"


def _tamis(place: Path, needle: int) -> Query:
    import tamis
    from tamis import table  # noqa: F401  # loaded before the clock starts

    return lambda: len(tamis.open(place).scan(f"id = {needle}").to_arrow())


def _deltalake(folder: Path, needle: int) -> Query:
    import pyarrow as pa
    from deltalake import DeltaTable, QueryBuilder

    text = f"SELECT * FROM t WHERE id = {needle}"
    return lambda: len(pa.table(QueryBuilder().register("t", DeltaTable(folder / "source")).execute(text)))


def _dataset(folder: Path, needle: int) -> Query:
    import pyarrow.compute as pc
    from deltalake import DeltaTable

    keep = pc.field("id") == needle
    return lambda: len(DeltaTable(folder / "source").to_pyarrow_dataset().to_table(filter=keep))


def _pyiceberg(folder: Path, needle: int) -> Query:
    from pyiceberg.expressions import EqualTo
    from pyiceberg.table import StaticTable

    place = (folder / "metadata_location").read_text()
    return lambda: len(StaticTable.from_metadata(place).scan(row_filter=EqualTo("id", needle)).to_arrow())


def _spark(source: Path, needle: int) -> tuple[Query, Any]:
    from bench.report import spark_session

    spark = spark_session()
    spark.range(10).count()
    process = int(spark._jvm.java.lang.ProcessHandle.current().pid())
    return lambda: len(spark.read.parquet(f"{source}/*.parquet").where(f"id = {needle}").collect()), process


def main() -> None:
    engine, folder, needle = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    query, process = prepared(engine, folder, needle)
    before, start = read_bytes(process), time.perf_counter()
    found = query()
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": round(seconds, 4), "bytes": read_bytes(process) - before, "rows": found}))


if __name__ == "__main__":
    main()
