"""Writing through Spark, statistics on, against Spark's own Parquet writer: the same rows, codec and order on both sides.

Once without any order, once sorted by a key that the source is not sorted by (both sides range-partition and sort). Each also to a
table of wide rows, for which Spark's limit on the bytes of an Arrow batch stays, which Spark tests after every row.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import tamis
from bench.report import Figure, in_turn, ratios, record, rounds, rows, spark_session
from bench.rows import source

GOAL = 1.0


def plain(spark: Any, path: str, folder: Path, turn: int, key: str | None) -> None:
    df = spark.read.parquet(path)
    if key:
        df = df.repartitionByRange(key).sortWithinPartitions(key)
    target = folder / f"plain-{turn}"
    df.write.parquet(str(target))
    shutil.rmtree(target)


def ours(spark: Any, path: str, folder: Path, turn: int, key: str | None, properties: str = "") -> None:
    name = f"lake.bench.t{turn}"
    cluster = f"CLUSTER BY ({key})" if key else ""
    spark.read.parquet(path).limit(0).createOrReplaceTempView("empty")
    columns = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in spark.table("empty").schema)
    spark.sql(f"CREATE TABLE {name} ({columns}) USING tamis {cluster} {properties}")
    spark.read.parquet(path).writeTo(name).append()
    spark.sql(f"DROP TABLE {name}")
    shutil.rmtree(folder / "lake" / "bench" / f"t{turn}", ignore_errors=True)


def wide(spark: Any, path: str, folder: Path, turn: int, key: str | None) -> None:
    ours(spark, path, folder, turn, key, "TBLPROPERTIES ('tamis.write.wide_rows' = 'true')")


def main() -> None:
    count = rows(10_000_000)
    spark = spark_session()
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        path = source(spark, folder, count)
        tamis.attach(spark, "lake", folder / "lake")
        spark.sql("CREATE NAMESPACE lake.bench")
        detail: dict[str, Any] = {"rows": count, "columns": 15}
        figures: list[Figure] = []
        for name, key in (("unsorted", None), ("sorted", "user")):
            taken = in_turn(
                rounds(),
                plain=lambda turn, key=key: plain(spark, path, folder, turn, key),
                tamis=lambda turn, key=key: ours(spark, path, folder, turn, key),
                wide=lambda turn, key=key: wide(spark, path, folder, turn, key),
            )
            detail[name] = taken
            figures += ratios(
                f"write {count:,} × 15, {name}: tamis / Spark Parquet", taken["tamis"], taken["plain"], GOAL
            )
            figures += ratios(
                f"write {count:,} × 15, {name}, wide rows: tamis / Spark Parquet",
                taken["wide"],
                taken["plain"],
            )
        spark.stop()
    record("write", figures, detail)


if __name__ == "__main__":
    main()
