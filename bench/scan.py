"""A full-table aggregate, a needle and a narrow range through Spark, by our reader and by Spark's own under our scan, against ``spark.read.parquet``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import tamis
from bench.report import Figure, in_turn, ratios, record, rounds, rows, spark_session
from bench.rows import source

QUERIES = {
    "aggregate": "SELECT colour, count(*), sum(price), avg(score), max(ts) FROM {table} GROUP BY colour",
    "needle": "SELECT * FROM {table} WHERE user IN (4711, -815, 99)",
    "range": "SELECT kind, sum(amount) FROM {table} WHERE ts >= timestamp_micros({lo}) AND ts < timestamp_micros({hi}) GROUP BY kind",
}
GOALS = {("aggregate", "lazy"): 1.6, ("aggregate", "native"): 1.2, ("needle", "lazy"): 0.2}
READERS = {"lazy": "auto", "native": "native"}


def main() -> None:
    count = rows(10_000_000)
    spark = spark_session()
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        path = source(spark, folder, count)
        tamis.attach(spark, "lake", folder / "lake")
        spark.sql("CREATE NAMESPACE lake.bench")
        spark.read.parquet(path).createOrReplaceTempView("plain")
        spark.sql("CREATE TABLE lake.bench.t USING tamis AS SELECT * FROM plain")
        middle = 1_700_000_000_000_000 + count // 2 * 250_000
        times = {"lo": middle, "hi": middle + count // 100 * 250_000}
        detail: dict[str, Any] = {"rows": count, "columns": 15}
        figures: list[Figure] = []
        for name, text in QUERIES.items():
            work = {"plain": lambda _, text=text: run(spark, text.format(table="plain", **times))}
            for reader, setting in READERS.items():
                table = f"lake.bench.t WITH ('tamis.read.lazy' = '{setting}')"
                work[reader] = lambda _, text=text, table=table: run(spark, text.format(table=table, **times))
            taken = in_turn(rounds(), **work)
            detail[name] = taken
            for reader in READERS:
                label = f"{name}, {reader}: tamis / Spark Parquet"
                figures += ratios(label, taken[reader], taken["plain"], GOALS.get((name, reader)))
        spark.stop()
    record("scan", figures, detail)


def run(spark: Any, text: str) -> None:
    """Runs a query to its last row without bringing the rows to Python."""
    spark.sql(text).write.format("noop").mode("overwrite").save()


if __name__ == "__main__":
    main()
