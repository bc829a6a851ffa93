"""Where a stream starts is decided once, and a table that was replaced since is refused: no row is lost in silence."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from tests.spark.conftest import Lake

import tamis

pytestmark = pytest.mark.spark


class Stopped(Exception):
    """Raised by a consumer."""


def batches(lake: Lake, checkpoint: Path, **options: str) -> list[list[Any]]:
    """The rows of each micro-batch until nothing is left."""
    return _batches(lake, checkpoint, options, fails=False)


def fail_at_first(lake: Lake, checkpoint: Path, **options: str) -> None:
    """Leave the first micro-batch planned and not committed."""
    _batches(lake, checkpoint, options, fails=True)


def _batches(lake: Lake, checkpoint: Path, options: dict[str, str], *, fails: bool) -> list[list[Any]]:
    found: list[list[Any]] = []

    def take(df: Any, _: int) -> None:
        found.append(sorted(tuple(row) for row in df.collect()))
        if fails:
            raise Stopped

    frame = lake.spark.readStream.options(**options).table(f"{lake.name}.db.t")
    writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    if fails:
        with pytest.raises(StreamingQueryException, match="Stopped"):
            query.awaitTermination()
    else:
        query.awaitTermination()
    return found


def rows(found: list[list[Any]]) -> list[Any]:
    return sorted(row for batch in found for row in batch)


@pytest.fixture
def three(lake: Lake) -> Lake:
    """A table of three rows, each in a part."""
    lake.sql("CREATE TABLE lake.db.t (id INT, v INT) USING tamis")
    for i in range(3):
        lake.sql(f"INSERT INTO lake.db.t VALUES ({i}, {i * 10})")
    return lake


@pytest.mark.parametrize("options", [{}, {"maxFilesPerTrigger": "1"}, {"startingVersion": "0"}])
@pytest.mark.parametrize("change", ["INSERT INTO lake.db.t VALUES (3, 30)", "ALTER TABLE lake.db.t SET TBLPROPERTIES ('x' = 'y')"])  # fmt: skip
@pytest.mark.push_cases(3)
def test_a_first_batch_that_is_repeated_after_a_commit(
    three: Lake, tmp_path: Path, options: dict[str, str], change: str
) -> None:
    fail_at_first(three, tmp_path / "c", **options)
    three.sql(change)
    wanted = three.spark.sql(f"SELECT * FROM {three.name}.db.t").collect()
    assert rows(batches(three, tmp_path / "c", **options)) == sorted(tuple(row) for row in wanted)


def test_the_start_is_that_of_the_first_attempt(three: Lake, tmp_path: Path) -> None:
    fail_at_first(three, tmp_path / "c", startingVersion="latest")
    three.sql("INSERT INTO lake.db.t VALUES (3, 30)")
    assert rows(batches(three, tmp_path / "c", startingVersion="latest")) == [(3, 30)]


def test_a_start_in_the_future_is_refused(three: Lake, tmp_path: Path) -> None:
    with pytest.raises(StreamingQueryException, match="BAD_TIMESTAMP"):
        batches(three, tmp_path / "c", startingTimestamp="2199-01-01")


def test_a_checkpoint_without_a_start_is_refused(three: Lake, tmp_path: Path) -> None:
    """Earlier releases kept none. Spark has planned the first micro-batch, but from where is not known."""
    fail_at_first(three, tmp_path / "c")
    (tmp_path / "c" / "sources" / "0" / "tamis_start.json").unlink()
    three.sql("INSERT INTO lake.db.t VALUES (3, 30)")
    with pytest.raises(StreamingQueryException, match="BAD_OFFSET"):
        batches(three, tmp_path / "c")


@pytest.mark.parametrize("columns", ["id INT, v INT", "x STRING"])
def test_rows_of_a_replaced_table_are_refused(three: Lake, tmp_path: Path, columns: str) -> None:
    batches(three, tmp_path / "c")
    three.sql("INSERT INTO lake.db.t VALUES (3, 30)")
    three.sql(f"CREATE OR REPLACE TABLE lake.db.t ({columns}) USING tamis")
    three.sql(f"INSERT INTO lake.db.t SELECT {', '.join(['7'] * (columns.count(',') + 1))}")
    several: list[dict[str, str]] = [{}, {"maxFilesPerTrigger": "1"}]
    for options in several:
        with pytest.raises(StreamingQueryException, match="TABLE_REPLACED"):
            batches(three, tmp_path / "c", skipChangeCommits="true", **options)
    with pytest.raises(StreamingQueryException, match="TABLE_REPLACED"):
        batches(three, tmp_path / "d", startingVersion="0", skipChangeCommits="true")
    assert len(rows(batches(three, tmp_path / "e"))) == 1, "from its newest version, it can be read"


def test_a_table_that_was_made_anew_is_refused(three: Lake, tmp_path: Path) -> None:
    """Also while it has fewer versions than the stream has read of the other one."""
    batches(three, tmp_path / "c")
    three.sql("DROP TABLE lake.db.t")
    three.sql("CREATE TABLE lake.db.t (id INT, v INT) USING tamis")
    three.sql("INSERT INTO lake.db.t VALUES (9, 90)")
    with pytest.raises(StreamingQueryException, match="TABLE_REPLACED"):
        batches(three, tmp_path / "c")


def test_no_setting_of_spark_leaves_out_damaged_parts(lake: Lake) -> None:
    lake.sql("CREATE TABLE lake.db.t (id BIGINT, v STRING) USING tamis")
    for i in range(2):
        lake.sql(f"INSERT INTO lake.db.t SELECT id, repeat(id, 20) FROM range({i * 1000}, {i * 1000 + 1000}, 1, 1)")
    file = min((lake.folder / "db" / "t" / "data").glob("*.parquet"))
    body = bytearray(file.read_bytes())
    body[60:120] = bytes(255 - b for b in body[60:120])
    file.write_bytes(body)
    lake.spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    lake.spark.conf.set("tamis.read.lazy", "native")
    try:
        with pytest.raises(Exception, match="FAILED_READ_FILE"):
            lake.spark.sql(f"SELECT count(v), sum(id) FROM {lake.name}.db.t").collect()
    finally:
        lake.spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
        lake.spark.conf.unset("tamis.read.lazy")


def test_no_setting_of_spark_leaves_out_missing_parts(lake: Lake) -> None:
    lake.sql("CREATE TABLE lake.db.t (id BIGINT, v STRING) USING tamis")
    for i in range(2):
        lake.sql(f"INSERT INTO lake.db.t SELECT id, repeat(id, 20) FROM range({i * 1000}, {i * 1000 + 1000}, 1, 1)")
    lake.spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    lake.spark.conf.set("tamis.read.lazy", "native")
    try:
        planned = lake.spark.sql(f"SELECT id, v FROM {lake.name}.db.t").rdd
        assert planned.getNumPartitions() == 2
        min((lake.folder / "db" / "t" / "data").glob("*.parquet")).unlink()  # planning would have found it missing
        with pytest.raises(Exception, match="FAILED_READ_FILE"):
            planned.count()
    finally:
        lake.spark.conf.unset("spark.sql.files.ignoreMissingFiles")
        lake.spark.conf.unset("tamis.read.lazy")


def written(lake: Lake, take: Any, checkpoint: Path) -> None:
    writer = lake.spark.readStream.table(f"{lake.name}.db.t").writeStream.foreachBatch(take)
    writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()


def test_a_writer_means_the_columns_of_its_table(three: Lake, tmp_path: Path) -> None:
    held = tamis.create(tmp_path / "copy", pa.schema([("id", pa.int32()), ("v", pa.int32())]))
    other = tamis.open(tmp_path / "copy")
    for name, to in (("id", "spare"), ("v", "id"), ("spare", "v")):
        other.alter().rename_column(name, to).commit()
    written(three, held.stream_writer(), tmp_path / "c")
    found = tamis.open(tmp_path / "copy").scan().to_arrow()
    assert sorted(zip(found["v"].to_pylist(), found["id"].to_pylist(), strict=True)) == [(0, 0), (1, 10), (2, 20)]


@pytest.mark.parametrize("group", [False, True], ids=["", "job group"])
@pytest.mark.parametrize("writers", ["one", "one for each frame", "one by a link"])
def test_a_second_frame_of_one_batch_is_refused(three: Lake, tmp_path: Path, writers: str, group: bool) -> None:
    """Also when the query is started again, with the first frame in the table: the second would be lost for good."""
    copy = tamis.create(tmp_path / "copy", pa.schema([("id", pa.int32()), ("v", pa.int32())]))
    write = copy.stream_writer()
    (tmp_path / "link").symlink_to(tmp_path / "copy")
    opened = iter(("copy", "link") * 3)

    def both(df: Any, epoch: int) -> None:
        if group:
            three.spark.sparkContext.setJobGroup("load", "of every micro-batch")
        for where in ("id = 0", "id > 0"):
            path = next(opened) if writers == "one by a link" else "copy"
            writer = write if writers == "one" else tamis.open(tmp_path / path).stream_writer()
            writer(df.where(where), epoch)

    for _ in range(3):
        with pytest.raises(StreamingQueryException, match="EPOCH_TWICE"):
            written(three, both, tmp_path / "c")
    written(three, write, tmp_path / "d")
    found = tamis.open(tmp_path / "copy").scan().to_arrow()["id"].to_pylist()
    assert sorted(found) == [0, 0, 1, 2], "another query writes each batch once"


def test_a_function_with_a_job_group_of_its_own_may_fail_and_go_on(three: Lake, tmp_path: Path) -> None:
    """A restart in the same driver is none of a second frame."""
    copy = tamis.create(tmp_path / "copy", pa.schema([("id", pa.int32()), ("v", pa.int32())]))
    fails = [True, True, False]

    def load(df: Any, epoch: int) -> None:
        three.spark.sparkContext.setJobGroup("load", "of every micro-batch")
        copy.refresh().stream_writer()(df, epoch)
        if fails.pop(0):
            raise ValueError("a later step")

    for _ in range(2):
        with pytest.raises(StreamingQueryException, match="a later step"):
            written(three, load, tmp_path / "c")
    written(three, load, tmp_path / "c")
    assert sorted(tamis.open(tmp_path / "copy").scan().to_arrow()["id"].to_pylist()) == [0, 1, 2]


def test_a_stream_of_a_table_that_was_made_anew_is_refused(three: Lake, tmp_path: Path) -> None:
    """The new table gives its columns the same ids, in another order."""
    frame = three.spark.readStream.table(f"{three.name}.db.t").where("id < 20").select("id")
    three.sql("DROP TABLE lake.db.t")
    three.sql("CREATE TABLE lake.db.t (v INT, id INT) USING tamis")
    three.sql("INSERT INTO lake.db.t VALUES (7, 5)")
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c"))
    with pytest.raises(StreamingQueryException, match="TABLE_REPLACED"):
        writer.trigger(availableNow=True).start().awaitTermination()


def test_a_source_that_is_put_back_from_a_backup_ends_a_stream(three: Lake, tmp_path: Path) -> None:
    """Versions that the stream read are gone, and later those of their numbers are others."""
    source, backup = three.folder / "db" / "t", tmp_path / "backup"
    shutil.copytree(source, backup)
    for i in (3, 4):
        three.sql(f"INSERT INTO lake.db.t VALUES ({i}, {i * 10})")
    assert len(rows(batches(three, tmp_path / "c"))) == 5
    shutil.rmtree(source)
    shutil.copytree(backup, source)
    for i in (13, 14, 15):
        with pytest.raises(StreamingQueryException, match="TABLE_REPLACED"):
            batches(three, tmp_path / "c")
        three.sql(f"INSERT INTO lake.db.t VALUES ({i}, 0)")


@pytest.mark.parametrize("option", ["ignoreDeletes", "skipChangeCommits"])
def test_rows_that_a_source_restored_are_not_delivered_again(lake: Lake, tmp_path: Path, option: str) -> None:
    source = tmp_path / "source"
    for number in (1, 2):
        rows_of = pa.table({"id": pa.array([number], pa.int32()), "v": pa.array([number * 10], pa.int32())})
        deltalake.write_deltalake(source, rows_of, mode="append")
    table = tamis.adopt(source, lake.folder / "db" / "t", follow=True)
    assert isinstance(table, tamis.Table)
    assert rows(batches(lake, tmp_path / "c", **{option: "true"})) == [(1, 10), (2, 20)]
    deltalake.DeltaTable(source).delete("id = 2")
    deltalake.DeltaTable(source).restore(1)
    table.sync()
    if option == "ignoreDeletes":
        with pytest.raises(StreamingQueryException, match="CHANGED_SOURCE"):
            batches(lake, tmp_path / "c", ignoreDeletes="true")
    else:
        assert rows(batches(lake, tmp_path / "c", skipChangeCommits="true")) == []
