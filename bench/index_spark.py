"""A secondary index through Spark: a look-up beside lazy reading and Spark's own Parquet scans, with and without bloom filters; and a large look-up left to the tasks."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import tamis
from bench.both_sides import write_plain
from bench.index import LOADS, keys_of, load
from bench.report import Figure, in_turn, ratios, record, rounds, rows, spark_session


def main() -> None:
    count = rows(10_000_000)
    each, keys = count // LOADS, keys_of(count // LOADS * LOADS)
    spark = spark_session()
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        (folder / "plain").mkdir()
        table = tamis.create(folder / "lake" / "db" / "t")
        for number in range(LOADS):
            data = load(number, each, keys[number * each : (number + 1) * each])
            write_plain(data, folder / "plain" / f"{number}.parquet")
            table.append(data)
        table.create_index("by_key", "key")
        tamis.attach(spark, "lake", folder / "lake")
        spark.read.parquet(str(folder / "plain")).createOrReplaceTempView("plain")
        spark.table("plain").coalesce(LOADS).write.option("parquet.bloom.filter.enabled#key", "true").option(
            "parquet.bloom.filter.expected.ndv#key", str(each)
        ).parquet(str(folder / "bloom"))
        spark.read.parquet(str(folder / "bloom")).createOrReplaceTempView("bloom")
        (folder / "one").mkdir()
        write_plain(load(0, 1, keys[:1]), folder / "one" / "0.parquet")
        spark.read.parquet(str(folder / "one")).createOrReplaceTempView("one")
        sources = {
            name: f"lake.db.t WITH ('tamis.index.use' = '{use}')" for name, use in (("index", "auto"), ("lazy", "off"))
        }
        sources |= {"parquet": "plain", "bloom": "bloom", "one row": "one"}
        work: dict[str, Any] = {
            name: lambda turn, source=source: spark.sql(
                f"SELECT * FROM {source} WHERE key = {int(keys[7 + turn])}"
            ).collect()
            for name, source in sources.items()
        }
        taken = in_turn(2 * rounds(), **work)
        peers = {
            "lazy without": ("lazy", 1 / 1.5),
            "Spark Parquet": ("parquet", 0.06),
            "Spark Parquet with bloom filters": ("bloom", None),
            "Spark over a file of one row": ("one row", None),
        }
        figures = [
            figure
            for label, (peer, goal) in peers.items()
            for figure in ratios(f"point through Spark: index / {label}", taken["index"], taken[peer], goal)
        ]
        figures += ratios("a file of one row / Spark Parquet", taken["one row"], taken["parquet"])
        detail: dict[str, Any] = {"rows": len(keys), "columns": 15, "loads": LOADS, "point": taken}
        figures += large(spark, len(keys), detail)
    spark.stop()
    record("index_spark", figures, detail)


def large(spark: Any, count: int, detail: dict[str, Any]) -> list[Figure]:
    """A look-up that finds half of the rows: what the driver's memory grows by, and the time."""
    grown, seconds = {}, {}
    for use in ("plan", "lookup", "off"):
        text = f"SELECT count(i0), max(d0) FROM lake.db.t WITH ('tamis.index.use' = '{use}') WHERE key < {count // 2}"
        before = reset_peak()
        found = spark.sql(text).collect()
        grown[use] = (peak() - before) / 2**20
        seconds[use] = in_turn(max(rounds() // 2, 1), it=lambda _, text=text: spark.sql(text).collect())["it"]
        assert found[0][0] == count // 2
    detail["large"] = {"rows_found": count // 2, "driver_mib": grown, "seconds": seconds}
    return [
        Figure(f"look-up of {count // 2:,} rows by the tasks: the driver grows by", grown["plan"], "MiB", 32),
        Figure(f"look-up of {count // 2:,} rows while planning: the driver grows by", grown["lookup"], "MiB"),
        Figure("look-up by the tasks / without index, time", seconds["plan"]["median"] / seconds["off"]["median"], "×"),
    ]


def reset_peak() -> int:
    """Forgets this process's peak memory; its memory now, in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> int:
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))) * 1024


if __name__ == "__main__":
    main()
