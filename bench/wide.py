"""Wide tables: appending 100 rows of 100, 1,000 and 5,000 columns with statistics against without, and planning a filter on one of them.

Beside them: the same rows appended by deltalake, and by Spark to Parquet up to 1,000 columns (more take Spark minutes a file). Columns are texts, doubles, structs of
two fields, and JSON documents. Results are kept after each case.
"""

from __future__ import annotations

import importlib
import importlib.util
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import tamis
from bench.report import Figure, in_turn, quick, record, rounds

ROWS, GOAL, SPARK_WIDTH = 100, 2.0, 1_000
TEN = " OR ".join(f"c{i} IS NULL" for i in range(10))
WIDTHS = (100, 1_000) if quick() else (100, 1_000, 5_000)
DELTA = importlib.import_module("deltalake").write_deltalake if importlib.util.find_spec("deltalake") else None
"""The figures against deltalake are left out where it is not installed."""
KINDS: dict[str, Callable[[int], pa.Array]] = {
    "text": lambda i: pa.array([f"value {i} of row {row}" for row in range(ROWS)]),
    "double": lambda i: pa.array([i + row / 2 for row in range(ROWS)]),
    "struct": lambda i: pa.array([{"a": i + row, "b": f"x{row}"} for row in range(ROWS)]),
    "JSON": lambda i: pa.array([f'{{"a": {i + row}, "b": "x{row}"}}' for row in range(ROWS)]),
}


def main() -> None:
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    figures: list[Figure] = []
    detail: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as home:
        for kind, column in KINDS.items():
            for width in WIDTHS:
                data = pa.table({f"c{i}": column(i) for i in range(width)})
                places = Path(home) / f"{kind}-{width}"
                seconds = in_turn(
                    max(2, rounds() - 1),
                    off=lambda turn, p=places, d=data: _append(p / f"off-{turn}", d, "off"),
                    on=lambda turn, p=places, d=data: _append(p / f"on-{turn}", d, "on"),
                    plan_one=lambda turn, p=places: tamis.open(p / f"on-{turn}").scan("c0 IS NULL").plan(),
                    plan_ten=lambda turn, p=places: tamis.open(p / f"on-{turn}").scan(TEN).plan(),
                    **(
                        {}
                        if DELTA is None
                        else {"delta": lambda turn, p=places, d=data: DELTA(str(p / f"delta-{turn}"), d)}
                    ),
                )
                if width <= SPARK_WIDTH:
                    frame = session.createDataFrame(data)
                    seconds |= in_turn(
                        2, spark=lambda turn, p=places, f=frame: f.write.parquet(str(p / f"spark-{turn}"))
                    )
                    figures.append(
                        Figure(
                            f"100 rows of {width} {kind} columns: append against Spark Parquet",
                            _ratio(seconds, "on", "spark"),
                            "x",
                        )
                    )
                if DELTA is not None:
                    figures.append(
                        Figure(
                            f"100 rows of {width} {kind} columns: append against deltalake",
                            _ratio(seconds, "on", "delta"),
                            "x",
                        )
                    )
                detail[f"{kind} {width}"] = seconds
                name = f"100 rows of {width} {kind} columns"
                figures += [
                    Figure(f"{name}: append with statistics against without", _ratio(seconds, "on", "off"), "x", GOAL),
                    Figure(f"{name}: open and plan against append", _ratio(seconds, "plan_one", "on"), "x"),
                    Figure(
                        f"{name}: plan of a filter on ten columns against one",
                        _ratio(seconds, "plan_ten", "plan_one"),
                        "x",
                    ),
                ]
                record("wide", figures, {"cases": detail})


def _append(place: Path, data: pa.Table, collect: str) -> None:
    tamis.create(place, data.schema, properties={"tamis.stats.collect": collect}).append(data)


def _ratio(seconds: dict[str, dict[str, Any]], one: str, other: str) -> float:
    return float(seconds[one]["min"] / seconds[other]["min"])


if __name__ == "__main__":
    main()
