"""A query that ends in the middle of a micro-batch goes on from its checkpoint: no row is lost, none comes twice, and the micro-batch is planned as it was."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import Lake
from tests.spark.streamed import SCHEMA, batches_of, now, some, where

import tamis

pytestmark = pytest.mark.spark
ASKED = {"startingVersion": "0", "maxFilesPerTrigger": "1"}
WANTED = "at > current_timestamp() - INTERVAL 5 DAYS"

SCRIPT = """
import json, os, pathlib, signal, sys
from pyspark.sql import SparkSession
import tamis
from tamis.storage.object_store import Store

path, checkpoint, out, sink = sys.argv[1:]
group = os.getpgid(0)
die = lambda: os.killpg(group, signal.SIGKILL)

def take(df, epoch):
    rows = sorted(row["id"] for row in df.collect())
    if epoch == 1 and sink == "each, before":
        die()
    (pathlib.Path(out) / f"{epoch}.json").write_text(json.dumps(rows))
    if epoch == 1 and sink == "each, after":
        die()

def in_a_task(batches):
    for batch in batches:
        if 4 in batch.column("id").to_pylist() and sink in ("files", "table, in a task"):
            die()
        yield batch

plain = Store._run

def run(self, action, name, call, *, create=False):
    commit = action == "write" and "_tamis/log/" in name and self.url.rstrip("/").endswith("copy")
    second = commit and name.rstrip(".json").endswith("2")
    if second and sink == "table, before":
        die()
    result = plain(self, action, name, call, create=create)
    if second and sink == "table, after":
        die()
    return result

Store._run = run
spark = (
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.driver.memory", "1g")
    .config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "1").getOrCreate()
)
tamis.attach(spark, "lake", path)
stream = spark.readStream.option("startingVersion", "0").option("maxFilesPerTrigger", "1").table("lake.db.t")
rows = stream.where("at > current_timestamp() - INTERVAL 5 DAYS").select("id").mapInArrow(in_a_task, "id bigint")
writer = rows.writeStream.option("checkpointLocation", checkpoint).trigger(availableNow=True)
if sink.startswith("each"):
    writer.foreachBatch(take).start().awaitTermination()
elif sink == "files":
    writer.format("parquet").start(out).awaitTermination()
else:
    writer.toTable("lake.db.copy").awaitTermination()
print("outlived")
"""


def filled(lake: Lake) -> tamis.Table:
    """Three parts of four wanted rows each, and an old one before each of them."""
    table = tamis.create(lake.folder / "db" / "t", SCHEMA)
    for first in (0, 4, 8):
        table.append(some(100 + first, now() - timedelta(days=40)))
        table.append(some(first, now() - timedelta(days=1), 4))
    return table


def restarted(lake: Lake, checkpoint: Path, out: Path, sink: str) -> None:
    def take(df: Any, epoch: int) -> None:
        (out / f"{epoch}.json").write_text(json.dumps(sorted(row["id"] for row in df.collect())))

    stream = lake.spark.readStream.options(**ASKED).table(f"{lake.name}.db.t").where(WANTED).select("id")
    writer = stream.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    if sink.startswith("each"):
        running = writer.foreachBatch(take).start()
    elif sink == "files":
        running = writer.format("parquet").start(str(out))
    else:
        running = writer.toTable(f"{lake.name}.db.copy")
    running.awaitTermination(120)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sink",
    [
        "each, before",
        pytest.param("each, after", marks=pytest.mark.merge),
        pytest.param("files", marks=pytest.mark.merge),
        pytest.param("table, in a task", marks=pytest.mark.merge),
        pytest.param("table, before", marks=pytest.mark.merge),
        pytest.param("table, after", marks=pytest.mark.merge),
    ],
)
def test_a_killed_query_goes_on(lake: Lake, tmp_path: Path, sink: str) -> None:
    table, checkpoint, out = filled(lake), tmp_path / "checkpoint", tmp_path / "out"
    out.mkdir()
    killed = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(lake.folder), str(checkpoint), str(out), sink],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        start_new_session=True,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stdout[-2_000:] + killed.stderr[-4_000:]
    assert sorted(p.name for p in (checkpoint / "commits").iterdir() if p.name.isdigit()) == ["0"]
    table.append(some(12, now(), 4))
    restarted(lake, checkpoint, out, sink)
    if sink.startswith("each"):
        batches = {p.stem: json.loads(p.read_text()) for p in out.glob("*.json")}
        assert batches == {str(i): list(range(4 * i, 4 * i + 4)) for i in range(4)}
    elif sink == "files":
        assert sorted(row["id"] for row in lake.spark.read.parquet(str(out)).collect()) == list(range(16))
    else:
        assert sorted(lake.rows("SELECT id FROM lake.db.copy")) == [(i,) for i in range(16)]
    found = list(reversed(batches_of(lake)))
    assert [r.stream["batch"] for r in found if r.stream is not None] == [1, 2, 3]
    assert (found[0].parts["total"], found[0].parts["kept"]) == (2, 1), "planned again, and pruned"


def test_a_repeated_micro_batch_has_the_instant_of_the_log(lake: Lake, tmp_path: Path) -> None:
    """Not that of the restart: other rows would match. The log is changed, so that the two are far apart."""
    table = tamis.create(lake.folder / "db" / "t", SCHEMA)
    for days in (1, 8, 11, 40):
        table.append(some(days * 10, now() - timedelta(days=days)))
    seen: list[list[int]] = []

    def take(df: Any, epoch: int) -> None:
        seen.append(sorted(row["id"] for row in df.collect()))
        if len(seen) == 1:
            raise ValueError("the consumer fails")

    for attempt in range(2):
        stream = where(WANTED)(lake.spark.readStream.table(f"{lake.name}.db.t")).writeStream.foreachBatch(take)
        running = stream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
        if attempt:
            running.awaitTermination(60)
            continue
        with pytest.raises(Exception, match="the consumer fails"):
            running.awaitTermination(60)
        instant = set_back(tmp_path / "c" / "offsets" / "0", timedelta(days=7))
    assert seen == [[10, 11], [10, 11, 80, 81, 110, 111]]
    first, again = reversed(batches_of(lake))
    assert (first.parts["kept"], again.parts["kept"]) == (1, 3)
    bound = instant - timedelta(days=5)
    assert f"{bound:%Y-%m-%d %H:%M:%S}" in (again.filter or ""), again.filter
    assert first.stream is not None
    assert again.stream is not None
    assert [first.stream[k] for k in ("batch", "start", "end")] == [again.stream[k] for k in ("batch", "start", "end")]


def set_back(log: Path, by: timedelta) -> datetime:
    """Changes the instant of a micro-batch in the log; returns the new one."""
    lines = log.read_text().splitlines()
    kept = json.loads(lines[1])
    kept["batchTimestampMs"] -= int(by.total_seconds() * 1000)
    lines[1] = json.dumps(kept)
    log.write_text("\n".join(lines))
    (log.parent / f".{log.name}.crc").unlink(missing_ok=True)
    return datetime.fromtimestamp(kept["batchTimestampMs"] / 1000, UTC)
