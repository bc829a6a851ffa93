"""Wide tables: appending 100 rows of 100, 1,000 and 5,000 columns with statistics against without, and planning a filter on one of them.

Beside them: the same rows appended by Spark to Parquet, and by deltalake. Columns are texts, doubles, structs of two fields, and JSON documents.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
from pyspark.sql import SparkSession

import tamis
from bench.report import Figure, in_turn, quick, record, rounds

ROWS, GOAL = 100, 2.0
WIDTHS = (100, 1_000) if quick() else (100, 1_000, 5_000)
KINDS: dict[str, Callable[[int], pa.Array]] = {
    "text": lambda i: pa.array([f"value {i} of row {row}" for row in range(ROWS)]),
    "double": lambda i: pa.array([i + row / 2 for row in range(ROWS)]),
    "struct": lambda i: pa.array([{"a": i + row, "b": f"x{row}"} for row in range(ROWS)]),
    "JSON": lambda i: pa.array([f'{{"a": {i + row}, "b": "x{row}"}}' for row in range(ROWS)]),
}


def main() -> None:
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    figures, detail = [], {}
    with tempfile.TemporaryDirectory() as home:
        for kind, column in KINDS.items():
            for width in WIDTHS:
                data = pa.table({f"c{i}": column(i) for i in range(width)})
                frame = session.createDataFrame(data)
                places = Path(home) / f"{kind}-{width}"
                seconds = in_turn(
                    max(2, rounds() - 1),
                    off=lambda turn, p=places, d=data: _append(p / f"off-{turn}", d, "off"),
                    on=lambda turn, p=places, d=data: _append(p / f"on-{turn}", d, "on"),
                    plan_one=lambda turn, p=places: tamis.open(p / f"on-{turn}").scan("c0 IS NULL").plan(),
                    spark=lambda turn, p=places, f=frame: f.write.parquet(str(p / f"spark-{turn}")),
                    delta=lambda turn, p=places, d=data: deltalake.write_deltalake(str(p / f"delta-{turn}"), d),
                )
                detail[f"{kind} {width}"] = seconds
                name = f"100 rows of {width} {kind} columns"
                figures += [
                    Figure(f"{name}: append with statistics against without", _ratio(seconds, "on", "off"), "x", GOAL),
                    Figure(f"{name}: append against Spark Parquet", _ratio(seconds, "on", "spark"), "x"),
                    Figure(f"{name}: append against deltalake", _ratio(seconds, "on", "delta"), "x"),
                    Figure(f"{name}: open and plan against append", _ratio(seconds, "plan_one", "on"), "x"),
                ]
    record("wide", figures, {"cases": detail})


def _append(place: Path, data: pa.Table, collect: str) -> None:
    tamis.create(place, data.schema, properties={"tamis.stats.collect": collect}).append(data)


def _ratio(seconds: dict[str, dict[str, Any]], one: str, other: str) -> float:
    return float(seconds[one]["min"] / seconds[other]["min"])


if __name__ == "__main__":
    main()
