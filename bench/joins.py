"""A star join: 100 keys that a WHERE on the dimension leaves, against many facts; key unsorted with an index, clustered without one, neither. Spark over Parquet beside each.

Through Spark on both sides, in one session and in turn; the facts lie in Parquet files in the same order as in the table that they stand against. A key has four facts on
average, so that 100 keys find about 400 rows; all 15 columns of them are wanted. The same query over a single fact says what no reader of facts can save: the dimension is read, its rows
are broadcast, and Spark plans and starts its jobs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tamis
from bench.both_sides import write_plain
from bench.report import Figure, in_turn, ratios, record, rounds, rows, spark_session, workplace

LOADS, PER_KEY, WANTED = 8, 4, 100
QUERY = "SELECT d.name, f.* FROM {facts} f JOIN dim d ON f.k = d.k WHERE d.chosen = 1"
GOALS = {"with index": 0.15, "clustered": 0.15, "neither": 1 / 1.5}
NO_KEYS = "bench.db.{} WITH ('tamis.scan.join_keys' = 'off')"


def facts(count: int) -> pa.Table:
    """15 columns, ``k`` unsorted."""
    random = np.random.default_rng(8)
    columns: dict[str, Any] = {"k": random.integers(0, count // PER_KEY, count), "id": np.arange(count)}
    columns |= {f"i{at}": random.integers(0, 10**9, count) for at in range(4)} | {
        f"d{at}": random.random(count) for at in range(5)
    }
    columns |= {
        f"t{at}": pa.array(np.char.add("text-", random.integers(0, 50_000, count).astype(str))) for at in range(4)
    }
    return pa.table(columns)


def dimension(keys: int) -> pa.Table:
    chosen = np.zeros(keys, np.int32)
    chosen[np.random.default_rng(9).choice(keys, WANTED, replace=False)] = 1
    return pa.table(
        {"k": np.arange(keys), "name": np.char.add("name-", (np.arange(keys) % 1_000).astype(str)), "chosen": chosen}
    )


def build(folder: Path, data: pa.Table) -> None:
    """The tables ``db.{indexed, clustered, neither, single}``, and the folders ``unsorted``, ``sorted`` and ``one`` of Parquet files."""
    ordered = data.sort_by("k")
    each = len(data) // LOADS
    for name, source, cluster in (("indexed", data, ()), ("clustered", ordered, ("k",)), ("neither", data, ())):
        table = tamis.create(folder / "lake" / "db" / name, data.schema, cluster_by=cluster)
        for at in range(LOADS):
            table.append(source.slice(at * each, each))
        if name == "indexed":
            table.create_index("by_key", ["k"])
    tamis.create(folder / "lake" / "db" / "single", data.schema).append(data.slice(0, 1))
    (folder / "one").mkdir()
    write_plain(data.slice(0, 1), folder / "one" / "0.parquet")
    for name, source in (("unsorted", data), ("sorted", ordered)):
        (folder / name).mkdir()
        for at in range(LOADS):
            write_plain(source.slice(at * each, each), folder / name / f"{at}.parquet")
    (folder / "dim").mkdir()
    write_plain(dimension(len(data) // PER_KEY), folder / "dim" / "0.parquet")


def views(spark: Any, folder: Path) -> None:
    """The tables as ``bench.db.…``, the folders of Parquet files under their names."""
    tamis.attach(spark, "bench", folder / "lake")
    for name in ("unsorted", "sorted", "one", "dim"):
        spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)


def main() -> None:
    count = rows(10_000_000)
    spark = spark_session()
    with workplace(f"joins{count}") as (folder, built):
        if not built:
            build(folder, facts(count))
        views(spark, folder)
        sides = {
            "with index": ("bench.db.indexed", "unsorted"),
            "clustered": ("bench.db.clustered", "sorted"),
            "neither": ("bench.db.neither", "unsorted"),
        }
        figures, detail = [], {}
        for name, (ours, plain) in sides.items():
            asked = {"tamis": ours, "spark": plain, "tamis_without_keys": NO_KEYS.format(ours.rpartition(".")[2])}
            answers = {
                side: list(map(tuple, spark.sql(QUERY.format(facts=table)).collect())) for side, table in asked.items()
            }
            report = tamis.reports(2)[1]  # the latest is of the scan without keys
            check(answers)
            work = {
                side: (lambda _, table=table: spark.sql(QUERY.format(facts=table)).collect())
                for side, table in asked.items()
            }
            seconds = in_turn(rounds(), **work)
            detail[name] = {"seconds": seconds, "rows_equal": True, "report": report.as_dict()}
            figures += ratios(f"{name}: tamis / Spark Parquet", seconds["tamis"], seconds["spark"], GOALS[name])
            figures += ratios(f"{name}: with keys / without", seconds["tamis"], seconds["tamis_without_keys"])
        asked = {"tamis": "bench.db.single", "spark": "one"}
        work = {
            side: (lambda _, table=table: spark.sql(QUERY.format(facts=table)).collect())
            for side, table in asked.items()
        }
        seconds = in_turn(rounds(), **work)
        detail["a single fact"] = {"seconds": seconds}
        for name, (_, plain) in sides.items():
            least = seconds["tamis"]["median"] / detail[name]["seconds"]["spark"]["median"]
            figures.append(Figure(f"a single fact in tamis / {name} ({plain} facts) in Spark Parquet", least, "×"))
    record("joins", figures, {"rows": count, "columns": 15, "keys": WANTED, "facts_per_key": PER_KEY, **detail})


def check(answers: dict[str, list[Any]]) -> None:
    """Every side gives the same rows."""
    wrong = [side for side, found in answers.items() if sorted(found) != sorted(answers["spark"])]
    if wrong:
        raise SystemExit(f"{wrong} give other rows than Spark over Parquet.")


if __name__ == "__main__":
    main()
