"""A stream into a table: every row once, over repeats, restarts and lost answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

import tamis
from tamis.errors import InvalidInput


def run(spark: Any, source: Path, checkpoint: Path, writer: Any) -> Any:
    query = (
        spark.readStream.schema("id LONG")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(source))
        .writeStream.foreachBatch(writer)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query


def test_exactly_once(lake: Any, tmp_path: Path) -> None:
    spark, source, checkpoint = lake.spark, tmp_path / "source", tmp_path / "checkpoint"
    lake.sql("CREATE TABLE lake.db.t (id LONG) USING tamis CLUSTER BY (id)")
    for i in range(3):
        spark.range(i * 10, i * 10 + 10).coalesce(1).write.mode("append").parquet(str(source))
    table = tamis.open(lake.folder / "db" / "t")
    writer = table.stream_writer()
    calls = 0

    def dying(df: Any, epoch: int) -> None:
        """The answer of epoch 1 is lost after its commit."""
        nonlocal calls
        writer(df, epoch)
        calls += 1
        if epoch == 1:
            raise RuntimeError("planned")

    with pytest.raises(Exception, match="planned"):
        run(spark, source, checkpoint, dying)
    assert calls == 2
    query = run(spark, source, checkpoint, table.stream_writer())
    assert sorted(r[0] for r in lake.rows("SELECT id FROM lake.db.t")) == list(range(30))
    log = [row for row in table.history().to_pylist() if row["operation"] == "append"]
    assert [(row["stream_query"], row["stream_epoch"]) for row in log] == [(str(query.id), e) for e in (2, 1, 0)]

    other = run(spark, source, tmp_path / "other", table.stream_writer())
    assert other.id != query.id
    assert table.scan().count() == 60, "another query is another stream"
    with pytest.raises(StreamingQueryException, match="EPOCH_DIFFERS"):
        run(spark, source, tmp_path / "third", table.stream_writer(query=str(query.id)))
    assert table.scan().count() == 60, "a query by that name has these epochs already, and they may be other rows"


def test_a_plain_frame_has_no_query(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t (id LONG) USING tamis")
    table = tamis.open(lake.folder / "db" / "t")
    with pytest.raises(InvalidInput) as caught:
        table.stream_writer()(lake.spark.range(3), 0)
    assert caught.value.code == "NO_QUERY"
    for _ in range(2):
        table.stream_writer(query="mine")(lake.spark.range(3), 0)
    assert table.scan().count() == 3
