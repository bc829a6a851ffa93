"""TPC-DS: every query over Tamis tables gives the rows that it gives over the same data in plain Parquet.

``python -m tests.oracle.tpcds DATA QUERIES [NAME …]``: DATA holds a Parquet file per table (``tests.oracle.tpcds_data`` makes them),
QUERIES the queries in Spark's dialect, NAME chooses some of them. Two warehouses are judged: tables as they were appended, and
tables with indexes whose facts have lost rows. Prints each difference; the exit status is 1 where there is one. Each answer goes
to ``bench/results/tpcds_rows.json`` with the commit that gave it; a run of some queries replaces only theirs.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import tamis

LAST_LIMIT = re.compile(r"\blimit\s+\d+\s*;?\s*$", re.IGNORECASE)
_FACTS = {
    "store_sales": ("ss_sold_date_sk", "ss_item_sk"),
    "catalog_sales": ("cs_sold_date_sk", "cs_item_sk"),
    "web_sales": ("ws_sold_date_sk", "ws_item_sk"),
    "store_returns": ("sr_returned_date_sk", "sr_item_sk"),
    "inventory": ("inv_date_sk", "inv_item_sk"),
}
"""Facts: the column that they are clustered by, and the column of the index; rows of some items are deleted."""
PART_ROWS = 200_000
RENAMED = {"c_last_review_date": "c_last_review_date_sk"}
"""Columns that the queries call otherwise than DuckDB's generator does."""
RESULTS = Path(__file__).parents[2] / "bench" / "results" / "tpcds_rows.json"


def main(arguments: list[str]) -> int:
    """Compares the queries; the number of differences, 1 at most."""
    data, queries, names = Path(arguments[0]), Path(arguments[1]), arguments[2:]
    files = [queries / f"{name}.sql" for name in names] or sorted(queries.glob("q*.sql"))
    spark = _session()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=RESULTS.parent, capture_output=True, text=True, check=True
    ).stdout.strip()
    differences = 0
    with tempfile.TemporaryDirectory(prefix="tamis-tpcds-") as folder:
        for changed in (False, True):
            lake, plain = _load(spark, data, Path(folder) / str(changed), changed=changed)
            for file in files:
                answer = _answer(spark, file, lake, plain)
                differences += not answer["same"]
                name = f"{file.stem} {'deleted and indexed' if changed else 'appended'}"
                print(f"{'same   ' if answer['same'] else 'DIFFERS'} {name}: {answer}", flush=True)
                _record(name, answer | {"commit": commit})
    print(f"{2 * len(files)} queries, {differences} differ")
    return int(differences > 0)


def _record(name: str, answer: dict[str, Any]) -> None:
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps(dict(sorted((found | {name: answer}).items())), indent=1) + "\n")


def _session() -> Any:
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.memory", "6g")
    )
    spark = (
        builder.config("spark.sql.shuffle.partitions", "4")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def _load(spark: Any, data: Path, folder: Path, *, changed: bool) -> tuple[str, str]:
    """The catalog of the Tamis tables, and the ending of the plain views with the same rows."""
    lake = f"lake{int(changed)}"
    tamis.attach(spark, lake, folder / "lake")
    spark.sql(f"CREATE NAMESPACE {lake}.ds")
    for file in sorted(data.glob("*.parquet")):
        name = file.stem
        cluster, indexed = _FACTS.get(name, (None, None))
        schema = pq.read_schema(file)
        table = tamis.create(folder / "lake" / "ds" / name, schema, cluster_by=[cluster] if cluster else ())
        for batch in pq.ParquetFile(file).iter_batches(PART_ROWS):
            table.append(batch)
        if changed and indexed:
            table.create_index("by_item", [indexed])
            spark.sql(f"CALL {lake}.system.repair_index(table => 'ds.{name}')").collect()
            table.refresh().delete(f"{indexed} % 50 = 7")
        kept = f"WHERE NOT coalesce({indexed} % 50 = 7, false)" if changed and indexed else ""
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name}_{int(changed)} AS SELECT * FROM parquet.`{file}` {kept}")
    return lake, str(int(changed))


def _answer(spark: Any, file: Path, lake: str, plain: str) -> dict[str, Any]:
    """Whether a query gives the same rows, compared as a multiset and without its last LIMIT, whose ties are anybody's choice."""
    text = LAST_LIMIT.sub("", file.read_text().strip().rstrip(";").strip())
    for old, new in RENAMED.items():
        text = re.sub(rf"\b{old}\b", new, text)
    tables = [row[0] for row in spark.sql(f"SHOW TABLES IN {lake}.ds").select("tableName").collect()]
    for name in tables:
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT * FROM {name}_{plain}")
    expected = query_rows(spark, text)
    for name in tables:
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT * FROM {lake}.ds.{name}")
    found = query_rows(spark, text)
    if isinstance(expected, Counter) and isinstance(found, Counter):
        return {"same": found == expected, "rows": found.total(), "rows_of_plain_spark": expected.total()}
    # A query that plain Spark refuses shows nothing, so it counts as a difference even if Tamis refuses it too.
    return {
        "same": False,
        **{
            f"error_{who}": str(one)[:300]
            for who, one in (("", found), ("of_plain_spark", expected))
            if isinstance(one, Exception)
        },
    }


def query_rows(spark: Any, text: str) -> Counter[Any] | Exception:
    """The rows of a query, or the error with which it ended."""
    try:
        return Counter(tuple(_value(value) for value in row) for row in spark.sql(text).collect())
    except Exception as error:  # any error of Spark: the other queries are compared all the same
        return error


def _value(value: Any) -> Any:
    """A value to compare: doubles with nine digits, since their sums follow the order of rows."""
    return f"{value:.9g}" if isinstance(value, float) else value.normalize() if isinstance(value, Decimal) else value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
