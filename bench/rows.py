"""The 15 columns that writing and scanning are measured with: keys, numbers, texts, times; some NULLs, few and many distinct values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

COLUMNS = """
    id AS id,
    timestamp_micros(1700000000000000 + id * 250000) AS ts,
    CAST(hash(id, 1) % 100000 AS INT) AS user,
    CAST(abs(hash(id, 2)) % 20 AS INT) AS kind,
    CASE WHEN id % 17 = 0 THEN NULL ELSE CAST(hash(id, 3) AS BIGINT) * 31 END AS ref,
    (hash(id, 4) % 1000000) / 100.0D AS price,
    CAST(hash(id, 5) % 10000 AS DOUBLE) / 7 AS score,
    CAST(abs(hash(id, 6)) % 500 AS SMALLINT) AS quantity,
    concat('user-', CAST(abs(hash(id, 7)) % 50000 AS STRING)) AS name,
    element_at(array('red', 'green', 'blue', 'black', 'white'), CAST(abs(hash(id, 8)) % 5 + 1 AS INT)) AS colour,
    sha2(CAST(id AS STRING), 224) AS token,
    CAST((hash(id, 9) % 100000) / 100.0 AS DECIMAL(12, 2)) AS amount,
    date_add(DATE'2020-01-01', CAST(abs(hash(id, 10)) % 1500 AS INT)) AS day,
    hash(id, 11) % 2 = 0 AS flag,
    CASE WHEN id % 5 = 0 THEN NULL ELSE concat('/path/', CAST(id % 1000 AS STRING), '/', CAST(abs(hash(id, 12)) % 100 AS STRING)) END AS path
"""


def source(spark: Any, folder: Path, rows: int, files: int = 20) -> str:
    """The rows as Parquet files that every candidate reads; where they are."""
    path = str(folder / "source")
    spark.range(0, rows, 1, files).selectExpr(*_columns()).write.parquet(path)
    return path


def _columns() -> list[str]:
    """The expressions, cut at the line ends that close one."""
    return [line.strip().rstrip(",") for line in COLUMNS.strip().splitlines()]
