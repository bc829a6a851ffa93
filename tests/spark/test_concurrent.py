"""Two sessions read while others write: each query sees whole commits, and never fewer than the one before."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis

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
