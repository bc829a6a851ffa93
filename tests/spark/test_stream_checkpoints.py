"""Checkpoints that are older than the sink, or copied, and sources whose overwrites remove no row: no row is skipped in silence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from tests.spark.conftest import Lake

import tamis
from tamis.storage.object_store.checked_json import unseal_json

SINKS = ("toTable", "stream_writer", "a writer with a name")


def streamed(lake: Lake, sink: str, checkpoint: Path) -> None:
    """Bring the rows of ``src`` that are new to this checkpoint into ``dst``."""
    writer = lake.spark.readStream.table(f"{lake.name}.db.src").writeStream
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    if sink == "toTable":
        writer.toTable(f"{lake.name}.db.dst").awaitTermination()
        return
    table = tamis.open(lake.folder / "db" / "dst")
    function: Callable[[Any, int], None] = table.stream_writer(query="n" if "name" in sink else None)
    writer.foreachBatch(function).start().awaitTermination()


def recorded(lake: Lake) -> list[list[Any]]:
    """The epoch of each commit of a stream, and the time of its micro-batch."""
    log = sorted((lake.folder / "db" / "dst" / "_tamis" / "log").glob("*.json"))
    commits = [unseal_json("commit", path.read_bytes(), path.name) for path in log]
    return [commit["stream"][1:] for commit in commits if "stream" in commit]


def noted(checkpoint: Path) -> list[list[Any]]:
    """The same, as Spark has noted it in the checkpoint."""
    batches = sorted((checkpoint / "offsets").glob("[0-9]*"))
    return [[int(path.name), json.loads(path.read_text().splitlines()[1])["batchTimestampMs"]] for path in batches]


def insert(lake: Lake, first: int) -> None:
    lake.sql(f"INSERT INTO lake.db.src SELECT id FROM range({first}, {first + 10})")


def ids(lake: Lake) -> list[int]:
    return [row[0] for row in lake.rows("SELECT id FROM lake.db.dst ORDER BY id")]


@pytest.fixture
def filled(lake: Lake) -> Lake:
    """``src`` with ten rows, and an empty ``dst``."""
    for name in ("src", "dst"):
        lake.sql(f"CREATE TABLE lake.db.{name} (id BIGINT) USING tamis")
    insert(lake, 0)
    return lake


@pytest.mark.parametrize("sink", SINKS)
def test_a_checkpoint_put_back_ends_the_query(filled: Lake, tmp_path: Path, sink: str) -> None:
    """Its next micro-batch has the number of one that the table has, and more rows."""
    current, backup = tmp_path / "current", tmp_path / "backup"
    streamed(filled, sink, current)
    shutil.copytree(current, backup)
    insert(filled, 10)
    streamed(filled, sink, current)
    shutil.rmtree(current)
    shutil.copytree(backup, current)
    insert(filled, 20)
    for _ in range(2):
        with pytest.raises(StreamingQueryException, match="EPOCH_DIFFERS"):
            streamed(filled, sink, current)
    assert ids(filled) == list(range(20))


@pytest.mark.parametrize("sink", SINKS)
def test_a_copied_checkpoint_ends_the_second_query(filled: Lake, tmp_path: Path, sink: str) -> None:
    streamed(filled, sink, tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    insert(filled, 10)
    streamed(filled, sink, tmp_path / "one")
    insert(filled, 20)
    with pytest.raises(StreamingQueryException, match="EPOCH_DIFFERS"):
        streamed(filled, sink, tmp_path / "two")
    streamed(filled, sink, tmp_path / "one")
    assert ids(filled) == list(range(30))


@pytest.mark.parametrize("sink", SINKS)
def test_a_batch_that_landed_is_repeated_once_its_commit_is_lost(filled: Lake, tmp_path: Path, sink: str) -> None:
    """The same micro-batch from the same checkpoint is skipped, as after a crash between the two commits."""
    for first in (10, 20):
        streamed(filled, sink, tmp_path / "c")
        insert(filled, first)
    done = sorted((tmp_path / "c" / "commits").glob("[0-9]*"))
    done[-1].unlink()
    done[-1].with_name(f".{done[-1].name}.crc").unlink(missing_ok=True)
    streamed(filled, sink, tmp_path / "c")
    assert ids(filled) == list(range(30))
    assert recorded(filled) == noted(tmp_path / "c")
    assert len(recorded(filled)) == 3


def test_a_function_may_number_its_frames_by_itself(filled: Lake, tmp_path: Path) -> None:
    """Two frames of each micro-batch under one name; the second attempt repeats the first number, then the second."""
    table, fails = tamis.open(filled.folder / "db" / "dst"), [True, False, True, False]

    def both(df: Any, epoch: int) -> None:
        for at, where in enumerate(("id % 2 = 0", "id % 2 = 1")):
            table.refresh().stream_writer(query="n")(df.where(where), 2 * epoch + at)
        if fails.pop(0):
            raise ValueError("planned")

    def run() -> None:
        writer = filled.spark.readStream.table(f"{filled.name}.db.src").writeStream.foreachBatch(both)
        writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start().awaitTermination()

    for first in (10, 20):
        with pytest.raises(StreamingQueryException, match="planned"):
            run()
        run()
        insert(filled, first)
    assert ids(filled) == list(range(20))
    assert fails == []


@pytest.mark.parametrize("options", [{}, {"skipChangeCommits": "true"}])
@pytest.mark.parametrize("how", ["SQL", "python"])
def test_an_overwrite_of_no_row_reaches_a_stream(
    filled: Lake, tmp_path: Path, how: str, options: dict[str, str]
) -> None:
    """Its value lies within the bounds of a part that has no such row; that part stays, so that no row changes."""
    lake = filled
    got: list[int] = []
    lake.spark.range(101, 3_001, 2).coalesce(1).writeTo(f"{lake.name}.db.src").append()

    def run() -> list[int]:
        got.clear()
        writer = lake.spark.readStream.options(**options).table(f"{lake.name}.db.src").writeStream
        writer = writer.foreachBatch(lambda df, _: got.extend(row.id for row in df.collect()))
        writer = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
        writer.start().awaitTermination()
        return sorted(got)

    run()
    table = tamis.open(lake.folder / "db" / "src")
    before = set(table.metadata("parts")["part_id"].to_pylist())
    assert table.scan("id = 200").explain().parts["kept"] == 1, "statistics do not show that it has no such row"
    new = lake.spark.createDataFrame([(200,)], "id BIGINT")
    if how == "SQL":
        new.createOrReplaceTempView("new")
        lake.sql("INSERT INTO lake.db.src REPLACE WHERE id = 200 SELECT * FROM new")
    else:
        table.overwrite(new, "id = 200")
    assert run() == [200]
    assert before < set(table.refresh().metadata("parts")["part_id"].to_pylist())
    assert lake.rows("SELECT count(*), count_if(id = 200) FROM lake.db.src") == [(1_461, 1)]


@pytest.mark.parametrize("how", ["SQL", "path", "name", "python"])
def test_an_overwrite_of_an_empty_table_reaches_a_stream(filled: Lake, tmp_path: Path, how: str) -> None:
    lake = filled
    lake.sql("CREATE TABLE lake.db.fresh (id BIGINT)")
    table, new = tamis.open(lake.folder / "db" / "fresh"), lake.spark.range(3)
    if how == "SQL":
        lake.sql("INSERT OVERWRITE lake.db.fresh SELECT * FROM range(3)")
    elif how == "name":
        new.write.format("tamis").mode("overwrite").saveAsTable(f"{lake.name}.db.fresh")
    elif how == "path":
        new.write.format("tamis").mode("overwrite").save(str(lake.folder / "db" / "fresh"))
    else:
        table.overwrite(new)
    got: list[int] = []
    stream = lake.spark.readStream.options(skipChangeCommits="true", startingVersion="0")
    writer = stream.table(f"{lake.name}.db.fresh").writeStream
    writer = writer.foreachBatch(lambda df, _: got.extend(row.id for row in df.collect()))
    writer = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    writer.start().awaitTermination()
    assert sorted(got) == [0, 1, 2]


def test_the_executors_rewrite_only_parts_that_lose_rows(filled: Lake) -> None:
    lake, table = filled, tamis.open(filled.folder / "db" / "src")
    for first in range(100, 108):
        lake.spark.range(first, first + 8_000, 8).coalesce(1).writeTo(f"{lake.name}.db.src").append()
    before = set(table.refresh().metadata("parts")["part_id"].to_pylist())
    done = table.overwrite(
        lake.spark.createDataFrame([(1_002,)], "id BIGINT"), "id IN (1002, 2003)", allow_outside=False
    )
    assert (done.rows_deleted, done.rows_inserted, done.parts_rewritten, done.parts_read) == (2, 1, 2, 8)
    assert len(before - set(table.refresh().metadata("parts")["part_id"].to_pylist())) == 2
    found = table.scan("id >= 100").to_arrow()["id"].to_pylist()
    assert sorted(found) == [n for n in range(100, 8_100) if n != 2_003]
