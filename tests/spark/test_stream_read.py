"""A table as a stream's source: everything once, at the pace asked for, over restarts and upkeep; fenced when the schema moves on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis


def drain(lake: Any, checkpoint: Path, **options: Any) -> list[list[int]]:
    """Runs the stream until nothing is left: the ids of each micro-batch."""
    batches: list[list[int]] = []

    def take(df: Any, epoch: int) -> None:
        batches.append(sorted(row["id"] for row in df.collect()))

    reader = lake.spark.readStream
    for key, value in options.items():
        reader = reader.option(key, value)
    stream = reader.table(f"{lake.name}.db.t").where("id >= 0").select("id")
    query = (
        stream.writeStream.foreachBatch(take)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [batch for batch in batches if batch]


def test_a_table_is_read_as_it_grows(lake: Any, tmp_path: Path) -> None:
    lake.sql("CREATE TABLE lake.db.t (id LONG, body VARIANT, at TIMESTAMP) USING tamis CLUSTER BY (id)")
    table = tamis.open(lake.folder / "db" / "t")

    def insert(start: int) -> None:
        lake.sql(
            f"INSERT INTO lake.db.t SELECT id, parse_json('{{\"a\": 1}}'), current_timestamp() FROM range({start}, {start + 5}, 1, 1)"
        )

    for i in range(4):
        insert(i * 5)
    first = drain(lake, tmp_path / "a", maxFilesPerTrigger=1)
    assert first == [list(range(i * 5, i * 5 + 5)) for i in range(4)], "one part a batch, in order"
    assert drain(lake, tmp_path / "a") == [], "a restart goes on where the checkpoint says"
    table.compact()
    insert(20)
    assert drain(lake, tmp_path / "a") == [list(range(20, 25))], "upkeep tells nothing, new rows come once"
    assert drain(lake, tmp_path / "b", maxFilesPerTrigger=2**63 - 1) == [list(range(25))], "the newest version whole"
    assert drain(lake, tmp_path / "c", startingVersion="4") == [list(range(15, 25))]
    when = table.history(1)["timestamp"][0].as_py().isoformat()
    assert drain(lake, tmp_path / "d", startingTimestamp=when) == [list(range(20, 25))]
    assert drain(lake, tmp_path / "e", startingVersion="latest") == []

    lake.sql("INSERT OVERWRITE lake.db.t SELECT id, NULL, NULL FROM range(100, 103, 1, 1)")
    with pytest.raises(Exception, match="CHANGED_SOURCE"):
        drain(lake, tmp_path / "a")
    insert(200)
    assert drain(lake, tmp_path / "a", skipChangeCommits="true") == [list(range(200, 205))]
    with pytest.raises(Exception, match="BAD_OPTION"):
        drain(lake, tmp_path / "f", maxFilesPerTrigger="many")


Change = Callable[[tamis.Table], Any]


def drop_column(table: tamis.Table) -> None:
    table.alter().drop_column("gone").commit()
    table.append(pa.table({"id": [7]}))


def drop_not_null(table: tamis.Table) -> None:
    table.alter().drop_not_null("gone").commit()
    table.append(pa.table({"id": [7], "gone": pa.array([None], pa.int64())}))


def follow(
    lake: Any, checkpoint: Path, shape: Callable[[Any], Any], mode: str = "append", change: Change = drop_column
) -> list[tuple[Any, ...]]:
    """The rows of a query that runs while a column changes and rows come: those of every micro-batch, in order.

    Raises what ends the query.
    """
    lake.sql("CREATE TABLE lake.db.t (id LONG, gone LONG NOT NULL) USING tamis")
    lake.sql("INSERT INTO lake.db.t SELECT id, id FROM range(5)")
    seen: list[tuple[Any, ...]] = []

    def take(df: Any, epoch: int) -> None:
        seen.extend(sorted(tuple(row) for row in df.collect()))
        if epoch == 0:
            change(tamis.open(lake.folder / "db" / "t"))

    stream = shape(lake.spark.readStream.table(f"{lake.name}.db.t")).writeStream.outputMode(mode).foreachBatch(take)
    query = stream.option("checkpointLocation", str(checkpoint)).trigger(processingTime="0 seconds").start()
    try:
        for _ in range(2):  # what comes during the first call is waited for by the second
            query.processAllAvailable()
    finally:
        query.stop()
    return seen


READERS: list[Callable[[Any], Any]] = [
    lambda stream: stream,
    lambda stream: stream.where("gone >= 0").select("id"),
    lambda stream: stream.select("id").union(stream.select("gone")),
    lambda stream: stream.selectExpr("id + gone AS id"),
]


@pytest.mark.push_cases(2)
@pytest.mark.parametrize("shape", READERS, ids=["all", "filter", "branch", "expression"])
def test_a_dropped_column_fences_the_queries_that_read_it(
    lake: Any, tmp_path: Path, shape: Callable[[Any], Any]
) -> None:
    with pytest.raises(Exception, match="FENCED"):
        follow(lake, tmp_path / "c", shape)
    if shape is READERS[0]:
        assert drain(lake, tmp_path / "c") == [[7]], "under the new schema it goes on"


OTHERS: list[tuple[Callable[[Any], Any], str, list[tuple[Any, ...]]]] = [
    (lambda stream: stream.select("id"), "append", [(0,), (1,), (2,), (3,), (4,), (7,)]),
    (lambda stream: stream.where("id >= 4 OR id < 0").select("id"), "append", [(4,), (7,)]),
    (lambda stream: stream.groupBy().count(), "complete", [(5,), (6,)]),
]


@pytest.mark.push_cases(1)
@pytest.mark.parametrize(("shape", "mode", "rows"), OTHERS, ids=["select", "filter", "state"])
def test_a_dropped_column_does_not_fence_other_queries(
    lake: Any, tmp_path: Path, shape: Callable[[Any], Any], mode: str, rows: list[tuple[Any, ...]]
) -> None:
    assert follow(lake, tmp_path / "c", shape, mode) == rows


def test_a_column_that_may_be_null_now_fences_the_queries_that_read_it(lake: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="FENCED_TIGHTEN"):
        follow(lake, tmp_path / "c", lambda stream: stream, change=drop_not_null)
    assert drain(lake, tmp_path / "c") == [[7]], "under the new schema it goes on"


def test_a_column_that_may_be_null_now_does_not_fence_other_queries(lake: Any, tmp_path: Path) -> None:
    seen = follow(lake, tmp_path / "c", lambda stream: stream.select("id"), change=drop_not_null)
    assert seen == [(0,), (1,), (2,), (3,), (4,), (7,)]
