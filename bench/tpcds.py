"""TPC-DS, all queries through Spark: tamis against Spark over Parquet files of the same rows in the same order.

Both sides have the large facts sorted by their date, in eight loads or files. ``BENCH_TPCDS`` is a folder with a Parquet file per table and
``BENCH_TPCDS_QUERIES`` one with the queries in Spark's dialect (``make bench-tpcds`` makes both); ``BENCH_QUERIES`` chooses some (q96,q59).
Both sides run in one application and in turn, each in a session in which the tables have their plain names, and give the same rows.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from tests.oracle.tpcds import LAST_LIMIT, RENAMED, query_rows

import tamis
from bench.both_sides import keep_sorted, ratio_of, rounds_near, sums
from bench.report import Figure, quick, record, spark_session, workplace

SORTED = {
    "store_sales": "ss_sold_date_sk",
    "catalog_sales": "cs_sold_date_sk",
    "web_sales": "ws_sold_date_sk",
    "store_returns": "sr_returned_date_sk",
    "catalog_returns": "cr_returned_date_sk",
    "web_returns": "wr_returned_date_sk",
    "inventory": "inv_date_sk",
}
LOADS = 8
WHOLE, EACH = 0.75, 1.1


def build(source: Path, folder: Path) -> None:
    """``lake/ds/<table>``, and the same rows in the same order in ``plain/<table>``."""
    for path in sorted(source.glob("*.parquet")):
        keep_sorted(folder, "ds", path.stem, pq.read_table(path), SORTED.get(path.stem), LOADS)


def sessions(spark: Any, folder: Path) -> dict[str, Any]:
    """A session for each side, in which the tables are known by their plain names."""
    ours, theirs = spark.newSession(), spark.newSession()
    tamis.attach(ours, "tpcds", folder / "lake")
    ours.sql("USE tpcds.ds")
    for name in (p.name for p in (folder / "plain").iterdir()):
        theirs.read.parquet(str(folder / "plain" / name)).createOrReplaceTempView(name)
    return {"spark": theirs, "tamis": ours}


def read_query(file: Path) -> str:
    """The text of a query, with the generator's names of columns."""
    text = file.read_text().strip().rstrip(";").strip()
    for old, new in RENAMED.items():
        text = re.sub(rf"\b{old}\b", new, text)
    return text


def check(sides: dict[str, Any], name: str, text: str) -> int:
    """The number of rows without the last LIMIT, whose ties are anybody's choice; ends the run where they differ."""
    whole = LAST_LIMIT.sub("", text)
    answers = {side: query_rows(session, whole) for side, session in sides.items()}
    if isinstance(answers["spark"], Exception) or answers["tamis"] != answers["spark"]:
        raise SystemExit(f"Query {name} gives other rows than Spark over Parquet, or fails: {str(answers)[:500]}")
    return answers["spark"].total()


def main() -> None:
    source, queries = (Path(os.environ.get(name, "")) for name in ("BENCH_TPCDS", "BENCH_TPCDS_QUERIES"))
    if not (queries / "q1.sql").exists():
        sys.exit("Run it by: make bench-tpcds")
    chosen = [n for n in os.environ.get("BENCH_QUERIES", "").split(",") if n]
    files = [queries / f"{n}.sql" for n in chosen] or sorted(queries.glob("q*.sql"))
    # With 4 GiB, q35a found too little memory for a broadcast after 38 other queries.
    spark = spark_session(**{"spark.sql.shuffle.partitions": "4", "spark.driver.memory": "8g"})
    detail: dict[str, Any] = {}
    with workplace(f"tpcds-{source.name}") as (folder, built):
        if not built:
            build(source, folder)
        sides = sessions(spark, folder)
        for file in files[:3] if quick() else files:
            text = read_query(file)
            found = check(sides, file.stem, text)
            work = {side: (lambda _, s=s, text=text: s.sql(text).collect()) for side, s in sides.items()}
            seconds = rounds_near(EACH, work)
            ratio = ratio_of(seconds)
            detail[file.stem] = {"ratio": round(ratio, 3), "rows": found, "seconds": seconds}
            print(f"  {file.stem}: {ratio:.2f} ×  ({seconds['tamis']['median']:.2f} s)", flush=True)
    ratios = [one["ratio"] for one in detail.values()]
    figures = [
        Figure("geometric mean: tamis / Spark Parquet", statistics.geometric_mean(ratios), "×", WHOLE),
        Figure("the slowest query: tamis / Spark Parquet", max(ratios), "×", EACH),
        *sums(detail),
    ]
    scale = source.name.rpartition("-")[2]
    name = "tpcds" if scale == "1" else f"tpcds_{scale}"
    record(name, figures, {"data": source.name, "queries": detail, "rows_equal": True})


if __name__ == "__main__":
    main()
