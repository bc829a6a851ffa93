"""TPC-DS: every query over Tamis tables gives the rows that it gives over the same data in plain Parquet.

``python -m tests.oracle.tpcds DATA QUERIES [NAME …]``: DATA holds a Parquet file per table (``tests.oracle.tpcds_data`` makes them),
QUERIES the queries in Spark's dialect, NAME chooses some of them. Two warehouses are judged: tables as they were appended, and
tables with indexes whose facts have lost rows. Prints each difference; the exit status is 1 where there is one.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import tamis

_LAST_LIMIT = re.compile(r"\blimit\s+\d+\s*;?\s*$", re.IGNORECASE)
_FACTS = {
    "store_sales": ("ss_sold_date_sk", "ss_item_sk"),
    "catalog_sales": ("cs_sold_date_sk", "cs_item_sk"),
    "web_sales": ("ws_sold_date_sk", "ws_item_sk"),
    "store_returns": ("sr_returned_date_sk", "sr_item_sk"),
    "inventory": ("inv_date_sk", "inv_item_sk"),
}
"""Facts: the column that they are clustered by, and the column of the index; rows of some items are deleted."""
PART_ROWS = 200_000


def main(arguments: list[str]) -> int:
    """Compares the queries; the number of differences, 1 at most."""
    data, queries, names = Path(arguments[0]), Path(arguments[1]), arguments[2:]
    files = [queries / f"{name}.sql" for name in names] or sorted(queries.glob("q*.sql"))
    spark = _session()
    differences = 0
    with tempfile.TemporaryDirectory(prefix="tamis-tpcds-") as folder:
        for changed in (False, True):
            lake, plain = _load(spark, data, Path(folder) / str(changed), changed=changed)
            for file in files:
                differences += not _same(spark, file, lake, plain, changed)
    print(f"{2 * len(files)} queries, {differences} differ")
    return int(differences > 0)


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


def _same(spark: Any, file: Path, lake: str, plain: str, changed: bool) -> bool:
    """Whether a query gives the same rows, compared as a multiset and without its last LIMIT, whose ties are anybody's choice."""
    text = _LAST_LIMIT.sub("", file.read_text().strip().rstrip(";").strip())
    tables = [row[0] for row in spark.sql(f"SHOW TABLES IN {lake}.ds").select("tableName").collect()]
    for name in tables:
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT * FROM {name}_{plain}")
    expected = _rows(spark, text)
    for name in tables:
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT * FROM {lake}.ds.{name}")
    found = _rows(spark, text)
    if found != expected:
        print(
            f"DIFFERS {file.stem} (changed: {changed}): {found.total()} rows, plain Spark {expected.total()}",
            flush=True,
        )
    else:
        print(f"same    {file.stem} (changed: {changed}): {found.total()} rows", flush=True)
    return found == expected


def _rows(spark: Any, text: str) -> Counter[Any]:
    return Counter(tuple(_value(value) for value in row) for row in spark.sql(text).collect())


def _value(value: Any) -> Any:
    """A value to compare: doubles with nine digits, since their sums follow the order of rows."""
    return f"{value:.9g}" if isinstance(value, float) else value.normalize() if isinstance(value, Decimal) else value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
