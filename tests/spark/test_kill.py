"""A whole Spark application killed while it writes: in a task, before its commit, right after it. Nothing half-written is seen, and the next one goes on.

In the last, every task fails once after it has written parts, and is run again: its first files are orphans, its rows are there once.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tamis

SCRIPT = """
import os, signal, sys
from pyspark import TaskContext
from pyspark.sql import SparkSession
import tamis
from tamis.storage.object_store import Store

path, moment = sys.argv[1:]
group = os.getpgid(0)

def die_in_a_task(batches):
    for number, batch in enumerate(batches):
        yield batch
        if moment == "task" and number == 3:
            os.killpg(group, signal.SIGKILL)
    if moment == "after" and TaskContext.get().attemptNumber() == 0:
        raise RuntimeError("the machine went away")

plain = Store._run

def run(self, action, name, call, *, create=False):
    commit = action == "write" and "_tamis/log/" in name
    if commit and moment == "before":
        os.killpg(group, signal.SIGKILL)
    result = plain(self, action, name, call, create=create)
    if commit and moment == "after":
        os.killpg(group, signal.SIGKILL)
    return result

spark = (
    SparkSession.builder.master("local[2,3]").config("spark.ui.enabled", "false").config("spark.driver.memory", "1g")
    .config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.execution.arrow.maxRecordsPerBatch", "5000").getOrCreate()
)
tamis.attach(spark, "lake", path)
frame = spark.range(100_000, 200_000, 1, 2).mapInArrow(die_in_a_task, "id bigint")
Store._run = run
frame.writeTo("lake.db.t").append()
print("outlived")
"""
OLD, NEW = list(range(1_000)), list(range(100_000, 200_000))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("moment", "rows"),
    [
        pytest.param("task", OLD, marks=pytest.mark.merge),
        pytest.param("before", OLD, marks=pytest.mark.merge),
        ("after", OLD + NEW),
    ],
)
def test_a_killed_application_leaves_the_rows_of_before_or_after(moment: str, rows: list[int], tmp_path: Path) -> None:
    import pyarrow as pa

    table = tamis.create(tmp_path / "db" / "t", properties={"tamis.write.part_bytes": "64KB"})
    table.append(pa.table({"id": pa.array(OLD, pa.int64())}))
    written = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), moment],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        start_new_session=True,
    )
    assert written.returncode == -signal.SIGKILL, written.stderr[-4000:]
    opened = tamis.open(tmp_path / "db" / "t")
    assert sorted(opened.scan().to_arrow()["id"].to_pylist()) == rows
    files = len(list((tmp_path / "db" / "t" / "data").iterdir()))
    live = len(opened.metadata("parts"))
    assert files >= live
    if moment != "task":
        assert files > live > 2 * (moment == "after")  # parts of no commit, which vacuum removes
    opened.append(pa.table({"id": pa.array([7], pa.int64())}))
    assert opened.scan("id = 7").count() == 1 + (7 in rows)
