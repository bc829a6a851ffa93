"""Two sessions read while others write: each query sees whole commits, and never fewer than the one before."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.conftest import Lake

import tamis
from tamis.spark.jvm_bridge.adapter import Bridge, bridge_of
from tamis.spark.write import dml_by_path

pytestmark = pytest.mark.spark

BATCH = 50
COMMITS = 12


def test_two_sessions_read_while_others_write(spark: Any, tmp_path: Path) -> None:
    tamis.attach(spark, "busy", tmp_path)
    spark.sql("CREATE NAMESPACE busy.db")
    spark.sql("CREATE TABLE busy.db.t (id BIGINT, batch INT) USING tamis CLUSTER BY (id)")
    done = threading.Event()
    problems: list[str] = []

    def write() -> None:
        table = tamis.open(tmp_path / "db" / "t")
        for batch in range(COMMITS):
            ids = range(batch * BATCH, (batch + 1) * BATCH)
            table.append(pa.table({"id": list(ids), "batch": pa.array([batch] * BATCH, pa.int32())}))
        done.set()

    def read(session: Any) -> None:
        last = 0
        while True:
            finished = done.is_set()
            rows, batches, total = session.sql("SELECT count(*), count(DISTINCT batch), sum(id) FROM busy.db.t").first()
            whole = rows == batches * BATCH and (total or 0) == rows * (rows - 1) // 2
            if not whole or rows < last:
                problems.append(f"{rows} rows of {batches} batches, sum {total}, after {last}")
            last = rows
            if finished:
                break
        if last != BATCH * COMMITS:
            problems.append(f"{last} rows at the end")

    sessions = [spark, spark.newSession()]
    threads = [threading.Thread(target=read, args=(session,)) for session in sessions] + [
        threading.Thread(target=write)
    ]
    for thread in threads:
        thread.start()
    spark.sql(f"INSERT INTO busy.db.t SELECT id, {COMMITS} FROM range(0)")  # a writer without rows disturbs nobody
    for thread in threads:
        thread.join(timeout=200)
    assert not any(thread.is_alive() for thread in threads)
    assert problems == []
    assert tamis.open(tmp_path / "db" / "t").version == COMMITS


def test_the_first_merges_of_two_threads_share_one_catalog(
    lake: Lake, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each thread looks for the catalog of the tables in use before the other can register it."""
    for name in ("a", "b"):
        lake.sql(f"CREATE TABLE lake.db.{name} (k BIGINT) USING tamis")
    looked, both = Bridge.registered_catalog, threading.Barrier(2)

    def look(self: Bridge, name: str) -> Any:
        found = looked(self, name)
        if name == dml_by_path.CATALOG:
            with suppress(threading.BrokenBarrierError):  # a thread that has to wait for the other looks after it
                both.wait(timeout=1)
        return found

    def upsert(name: str) -> None:
        table = tamis.open(lake.folder / "db" / name)
        done[name] = table.upsert(session.range(5).withColumnRenamed("id", "k"), on="k").rows_inserted

    done: dict[str, int] = {}
    session = spark.newSession()  # a session keeps the catalog that it found
    java = bridge_of(spark)
    catalogs = java.cls(java.catalog_class).delegates
    before = catalogs.remove(dml_by_path.CATALOG)
    monkeypatch.setattr(Bridge, "registered_catalog", look)
    threads = [threading.Thread(target=upsert, args=(name,)) for name in ("a", "b")]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=100)
    finally:
        if before is not None:  # the catalog that sessions of other tests found
            catalogs.put(dml_by_path.CATALOG, before)
    assert done == {"a": 5, "b": 5}
