"""What Spark and Tamis say of a micro-batch: the rows that it read, and the parts that count towards its limit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import Lake
from tests.spark.streamed import batches_of, daily, drain, ended, now, some, where

from tamis.spark.streaming.query_filters import current_filters

Shape = Callable[[Any], Any]
Sink = Callable[[Any], Any]


@pytest.fixture
def filled(lake: Lake) -> Lake:
    """Three parts of ten rows."""
    lake.sql("CREATE TABLE lake.db.t (id BIGINT, other BIGINT) USING tamis")
    for first in (0, 10, 20):
        lake.sql(f"INSERT INTO lake.db.t SELECT /*+ COALESCE(1) */ id, id + 1000 FROM range({first}, {first + 10})")
    return lake


def progress(lake: Lake, checkpoint: Path, shape: Shape, sink: Sink) -> list[int]:
    """``numInputRows`` of each micro-batch."""
    writer = shape(lake.spark.readStream.table(f"{lake.name}.db.t")).writeStream
    query = sink(writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)).start()
    query.awaitTermination(60)
    found = query.recentProgress
    assert [p["numInputRows"] for p in found] == [sum(s["numInputRows"] for s in p["sources"]) for p in found]
    return [p["numInputRows"] for p in found]


def noop(writer: Any) -> Any:
    return writer.format("noop")


def ids(stream: Any, condition: str = "true") -> Any:
    return stream.where(condition).select("id")


def others(stream: Any, condition: str = "true") -> Any:
    return stream.where(condition).select("other")


SHAPES: dict[str, tuple[Shape, int]] = {
    "whole": (lambda s: s, 30),
    "a part": (lambda s: s.where("id >= 20"), 10),
    "two branches with the same columns": (lambda s: ids(s, "id < 10").union(ids(s, "id >= 20")), 20),
    "two branches with different columns": (lambda s: ids(s).union(others(s)), 60),
    "three sets of columns": (lambda s: ids(s).union(others(s)).union(s.selectExpr("id + other")), 90),
    "branches under filters": (lambda s: ids(s, "id < 10").union(others(s, "other >= 1010")), 30),
    "a shuffle of each branch": (lambda s: ids(s).repartition(2).union(others(s).repartition(2)), 60),
    "a join with itself": (lambda s: ids(s).join(s.selectExpr("id + 1 AS id", "other"), "id"), 60),
}


@pytest.mark.push_cases(3)
@pytest.mark.parametrize("name", SHAPES)
def test_spark_counts_the_rows_of_every_scan(filled: Lake, tmp_path: Path, name: str) -> None:
    shape, rows = SHAPES[name]
    assert progress(filled, tmp_path / "c", shape, noop) == [rows]
    assert sum(report.rows["matched"] for report in batches_of(filled)) == rows, "reports say the same"


@pytest.mark.parametrize("lazy", ["on", "off"])
def test_rows_are_counted_after_lazy_reading(filled: Lake, tmp_path: Path, lazy: str) -> None:
    """Spark gets the rows that match, or those of the parts that are kept, and tests them again."""
    filled.spark.conf.set("tamis.read.lazy", lazy)
    try:
        counted = progress(filled, tmp_path / "c", lambda s: s.where("id % 10 = 3 AND id >= 10"), noop)
    finally:
        filled.spark.conf.unset("tamis.read.lazy")
    (report,) = batches_of(filled)
    assert (counted, report.rows["matched"], report.parts["kept"]) == ([2], 2, 2)


def test_spark_counts_what_foreach_batch_reads(filled: Lake, tmp_path: Path) -> None:
    """A consumer that runs the micro-batch twice reads it twice; one that keeps it does not."""

    def twice(df: Any, epoch: int) -> None:
        assert df.count() == len(df.collect()) == 10

    def kept(df: Any, epoch: int) -> None:
        twice(df.persist(), epoch)
        df.unpersist()

    shape: Shape = lambda s: s.where("id >= 20")  # noqa: E731
    assert progress(filled, tmp_path / "a", shape, lambda w: w.foreachBatch(twice)) == [20]
    assert progress(filled, tmp_path / "b", shape, lambda w: w.foreachBatch(kept)) == [10]
    assert progress(filled, tmp_path / "c", shape, lambda w: w.foreachBatch(lambda df, epoch: None)) == [0]


AGES = "at > now() - INTERVAL 5 DAYS AND at < now()"
"""Seen at once, it has an upper bound that later parts are beyond, and a lower bound that earlier parts are."""


@pytest.mark.merge
@pytest.mark.parametrize("limit", ["maxFilesPerTrigger", "maxBytesPerTrigger"])
def test_a_limit_counts_what_the_filter_keeps(lake: Lake, tmp_path: Path, limit: str) -> None:
    """From the first micro-batch on, of the newest version and of all versions since the first."""
    table = daily(lake, 12)
    size = max(table.metadata("parts")["bytes"].to_pylist())
    asked = {limit: "2" if limit == "maxFilesPerTrigger" else str(size * 2 + size // 2)}
    for name, options in (("whole", {}), ("first", {"startingVersion": "0"})):
        assert [len(b) for b in drain(lake, tmp_path / name, where(AGES), **asked, **options)] == [4, 4, 2]
        assert [r.parts["kept"] for r in reversed(batches_of(lake)[:3])] == [2, 2, 1]
        assert ended(tmp_path / name)["version"] == 13, "over all that was skipped"


def test_filters_are_asked_for_only_where_parts_come(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark asks once more when all is read, and an idle stream again and again."""
    daily(lake, 12)
    asked: list[int] = []

    def counted(*arguments: Any) -> Any:
        asked.append(1)
        return current_filters(*arguments)

    monkeypatch.setattr("tamis.spark.streaming.stream_read.current_filters", counted)
    assert len(drain(lake, tmp_path / "a", where(AGES), maxFilesPerTrigger="2")) == len(asked) == 3
    assert drain(lake, tmp_path / "a", where(AGES), maxFilesPerTrigger="2") == []
    assert len(drain(lake, tmp_path / "b", where(AGES))) == 1
    assert len(asked) == 3


def test_a_limit_counts_at_the_instant_of_the_micro_batch(lake: Lake, tmp_path: Path) -> None:
    """What is written while a query runs is below ``now()`` in the next micro-batch, and was not in the one before."""
    table = daily(lake, 2)
    kept: list[int] = []

    def take(df: Any, epoch: int) -> None:
        kept.append(len(df.collect()) // 2)
        if epoch == 0:
            for i in range(6):
                table.append(some(100 + 2 * i, now()))

    stream = lake.spark.readStream.option("maxFilesPerTrigger", 2).table(f"{lake.name}.db.t")
    writer = stream.where("at < current_timestamp()").select("id").writeStream.foreachBatch(take)
    query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(processingTime="0 seconds").start()
    try:
        for _ in range(2):
            query.processAllAvailable()
    finally:
        query.stop()
    assert kept == [2, 2, 2, 2], "each micro-batch has two parts: those that came since count"


def test_a_limit_counts_under_a_new_filter_after_a_restart(lake: Lake, tmp_path: Path) -> None:
    """The checkpoint has no filter: what counts is decided by the query that runs."""
    table = daily(lake, 2)
    assert drain(lake, tmp_path / "c", where("id < 0"), maxFilesPerTrigger="2") == [[]]
    for i in range(6):
        table.append(some(100 + 2 * i, now() - timedelta(days=i)))
    found = drain(lake, tmp_path / "c", where("at < now() - INTERVAL 60 HOURS"), maxFilesPerTrigger="2")
    assert found == [[106, 107, 108, 109], [110, 111]]


def test_a_stream_read_under_two_filters_counts_what_either_keeps(lake: Lake, tmp_path: Path) -> None:
    daily(lake, 8)
    shape: Shape = lambda s: ids(s, "id < 4").union(ids(s, "id >= 2 AND id < 8"))  # noqa: E731
    assert drain(lake, tmp_path / "c", shape, maxFilesPerTrigger="2") == [[0, 1, 2, 2, 3, 3], [4, 5, 6, 7]]


def test_a_filter_above_a_watermark_does_not_limit(lake: Lake, tmp_path: Path) -> None:
    """All parts are read, so all count."""
    daily(lake, 4)
    shape: Shape = lambda s: s.withWatermark("at", "1 hour").where("at < now() - INTERVAL 1 DAY").select("id")  # noqa: E731
    found = drain(lake, tmp_path / "c", shape, maxFilesPerTrigger="2")
    assert found[:2] == [[0, 1, 2, 3], [4, 5]]
    assert [r.parts["total"] for r in reversed(batches_of(lake))][:2] == [2, 2]


def test_a_query_that_reads_nothing_moves_on(lake: Lake, tmp_path: Path) -> None:
    """Spark leaves the relation out of the plan."""
    daily(lake, 6)
    assert drain(lake, tmp_path / "c", where("1 = 0"), maxFilesPerTrigger="1") == [[]]
    assert ended(tmp_path / "c")["version"] == 7
