"""``TamisDataSource`` as Spark calls it, without a JVM: what changes between planning, writing and committing is noticed."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.cloudpickle import dumps, loads
from pyspark.sql.types import LongType, StringType, StructField, StructType
from tests.scan.planted_proofs import Production, planted, skip_all

import tamis
from tamis.engine.scan import funnel
from tamis.errors import Conflict, CorruptData, InvalidInput, SchemaFenced, StoreUnavailable
from tamis.spark.connect import TamisDataSource
from tamis.storage.object_store import Store
from tamis.world import use

STRUCT = StructType([StructField("id", LongType()), StructField("s", StringType())])
ROWS = pa.record_batch([pa.array([10, 11]), pa.array(["n", "m"])], ["id", "s"])


@pytest.fixture
def source(tmp_path: Path) -> TamisDataSource:
    """A table of one row, and a checkpoint."""
    tamis.create(tmp_path / "t", "id BIGINT, s STRING").append(pa.table({"id": [1], "s": ["a"]}))
    (tmp_path / "metadata").write_text('{"id": "q"}')
    return TamisDataSource({"path": str(tmp_path / "t"), "checkpointLocation": str(tmp_path), "queryName": "q"})


def replaced(tmp_path: Path, columns: str) -> tamis.Table:
    shutil.rmtree(tmp_path / "t")
    return tamis.create(tmp_path / "t", columns)


def sent(message: Any) -> Any:
    """The message as the committing process gets it."""
    return loads(dumps(message))


def rows_read(source: TamisDataSource) -> list[dict[str, Any]]:
    """The rows as executors read them, to which Spark sends the reader before it asks for partitions."""
    reader = sent(source.reader(source.schema()))
    planned = source.reader(source.schema()).partitions()
    return [row for partition in planned for batch in reader.read(partition) for row in batch.to_pylist()]


def test_an_epoch_is_committed_once_by_a_writer_made_anew(source: TamisDataSource, tmp_path: Path) -> None:
    message = sent(source.streamWriter(STRUCT, False).write(iter([ROWS])))
    for _ in range(2):
        source.streamWriter(STRUCT, False).commit([message, None], 0)
    assert tamis.open(tmp_path / "t").scan().to_arrow()["id"].to_pylist() == [1, 10, 11]
    source.streamWriter(STRUCT, False).commit([None], 1)
    assert tamis.open(tmp_path / "t").version == 3, "an epoch without rows is a commit, too"


def test_an_epoch_of_a_checkpoint_put_back_is_refused(source: TamisDataSource, tmp_path: Path) -> None:
    """As Spark writes ``offsets``: the version, what it knows of the micro-batch, and the position in each source."""

    def commit(made: int, epoch: int) -> None:
        (tmp_path / "offsets" / str(epoch)).write_text(f'v1\n{{"batchWatermarkMs":0,"batchTimestampMs":{made}}}\n0')
        writer = source.streamWriter(STRUCT, False)
        writer.commit([sent(writer.write(iter([ROWS])))], epoch)

    (tmp_path / "offsets").mkdir()
    for made, epoch in ((100, 0), (200, 1), (200, 1)):
        commit(made, epoch)
    assert tamis.open(tmp_path / "t").version == 3
    for made, epoch in ((300, 1), (100, 0)):
        with pytest.raises(InvalidInput) as caught:
            commit(made, epoch)
        assert caught.value.code == "EPOCH_DIFFERS"
    assert tamis.open(tmp_path / "t").version == 3


def test_an_epoch_is_not_skipped_unchecked(
    source: TamisDataSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the checkpoint's store gives no answer, Spark has to repeat the micro-batch."""
    writer = source.streamWriter(STRUCT, False)
    message, real = sent(writer.write(iter([ROWS]))), Store.get

    def failing(store: Store, path: str, *more: Any, **named: Any) -> Any:
        if path.startswith("offsets/"):
            raise StoreUnavailable("No answer.", code="STORE_UNAVAILABLE", name=path, remedy="Repeat.")
        return real(store, path, *more, **named)

    monkeypatch.setattr(Store, "get", failing)
    with pytest.raises(StoreUnavailable):
        writer.commit([message], 0)
    assert tamis.open(tmp_path / "t").version == 1


@pytest.mark.parametrize("kind", ["stream", "batch"])
@pytest.mark.parametrize("columns", ["other BIGINT, s2 STRING", "s STRING, id BIGINT", "id BIGINT, s STRING"])
def test_no_rows_go_into_another_table(source: TamisDataSource, tmp_path: Path, kind: str, columns: str) -> None:
    def writer() -> Any:
        return source.streamWriter(STRUCT, False) if kind == "stream" else source.writer(STRUCT, False)

    first = writer()
    message = sent(first.write(iter([ROWS])))
    other = replaced(tmp_path, columns)
    fits = {"id", "s"} == set(other.schema.names)
    second = writer() if kind == "stream" and fits else sent(first)  # Spark makes a stream's writer anew
    with pytest.raises(SchemaFenced) as caught:
        second.commit([message], *([0] if kind == "stream" else []))
    assert caught.value.code == "TABLE_REPLACED"
    assert tamis.open(tmp_path / "t").scan().count() == 0


@pytest.mark.parametrize("kind", ["stream", "batch"])
def test_files_that_vacuum_removed_are_not_committed(source: TamisDataSource, tmp_path: Path, kind: str) -> None:
    stream = kind == "stream"
    writer = source.streamWriter(STRUCT, False) if stream else source.writer(STRUCT, False)
    message = sent(writer.write(iter([ROWS])))
    table = tamis.open(tmp_path / "t")
    table.append(pa.table({"id": [2], "s": ["b"]}))
    assert len(table.vacuum("0s", dry_run=False, below_retention=True).objects)
    second = source.streamWriter(STRUCT, False) if stream else sent(writer)
    with pytest.raises(Conflict) as caught:
        second.commit([message], *([0] if stream else []))
    assert caught.value.code == "CONFLICT_VACUUMED"
    assert tamis.open(tmp_path / "t").scan().to_arrow()["id"].to_pylist() == [1, 2]


@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("version", ["1", " 1 ", None])
def test_rows_computed_from_an_older_version_are_refused(
    source: TamisDataSource, tmp_path: Path, overwrite: bool, version: str | None
) -> None:
    """The option says what a DataFrame has read: Spark does not. Without it, the newest version is replaced."""
    other = TamisDataSource({"path": str(tmp_path / "t"), **({"readVersion": version} if version else {})})
    tamis.open(tmp_path / "t").append(pa.table({"id": [2], "s": ["b"]}))
    writer = other.writer(STRUCT, overwrite)
    message = sent(writer.write(iter([ROWS])))
    if version is None:
        sent(writer).commit([message])
        assert tamis.open(tmp_path / "t").scan().count() == (2 if overwrite else 4)
        return
    with pytest.raises(Conflict) as caught:
        sent(writer).commit([message])
    assert caught.value.code == "CONFLICT_READ"
    assert tamis.open(tmp_path / "t").scan().to_arrow()["id"].to_pylist() == [1, 2]


def test_rows_computed_from_the_newest_version_are_written(source: TamisDataSource, tmp_path: Path) -> None:
    other = TamisDataSource({"path": str(tmp_path / "t"), "readVersion": "1"})
    writer = other.writer(STRUCT, True)
    writer.commit([sent(writer.write(iter([ROWS])))])
    assert tamis.open(tmp_path / "t").scan().to_arrow()["id"].to_pylist() == [10, 11]
    for call in (other.schema, lambda: other.reader(STRUCT), lambda: other.streamWriter(STRUCT, False)):
        with pytest.raises(InvalidInput, match="does not take the option readVersion"):
            call()
    with pytest.raises(tamis.NotFound):
        TamisDataSource({"path": str(tmp_path / "none"), "readVersion": "1"}).writer(STRUCT, True)


def test_a_read_notices_another_table(source: TamisDataSource, tmp_path: Path) -> None:
    schema = source.schema()
    replaced(tmp_path, "id BIGINT, s STRING").append(pa.table({"id": [7], "s": ["x"]}))
    with pytest.raises((SchemaFenced, tamis.NotFound)):
        source.reader(schema)


def test_text_with_a_length_is_read_as_text(tmp_path: Path) -> None:
    tamis.create(tmp_path / "t", "c CHAR(3), st STRUCT<v: VARCHAR(5)>").append(
        pa.table({"c": ["a"], "st": [{"v": "b"}]})
    )
    source = TamisDataSource({"path": str(tmp_path / "t")})
    assert source.schema().simpleString() == "struct<c:string,st:struct<v:string>>"
    assert rows_read(source) == [{"c": "a  ", "st": {"v": "b"}}]


FOREIGN = {"Parquet files": "part-0.parquet", "a Delta table": "_delta_log/0.json"}


@pytest.mark.parametrize("kind", ["stream", "batch", "overwrite"])
@pytest.mark.parametrize("case", FOREIGN)
def test_a_folder_of_other_data_is_refused_before_a_byte_is_written(tmp_path: Path, kind: str, case: str) -> None:
    name, other, source = FOREIGN[case], tmp_path / "other", TamisDataSource({"path": str(tmp_path / "other")})
    (other / name).parent.mkdir(parents=True)
    (other / name).write_bytes(b"another's")
    before = sorted(other.rglob("*"))
    writer = source.streamWriter if kind == "stream" else source.writer
    with pytest.raises(InvalidInput, match=case) as caught:
        writer(STRUCT, kind == "overwrite")
    assert (caught.value.code, sorted(other.rglob("*"))) == ("PATH_NOT_EMPTY", before)


def test_a_store_that_can_hold_no_table_is_refused_before_tasks_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: a store that overwrites what should be written only if it is absent."""

    def overwrites(*_: Any) -> bool:
        return True

    monkeypatch.setattr(Store, "remote", True)
    monkeypatch.setattr(Store, "put_if_absent", overwrites)
    with pytest.raises(StoreUnavailable, match="overwrites objects"):
        TamisDataSource({"path": str(tmp_path / "new")}).writer(STRUCT, False)


def test_a_wrong_proof_is_logged_where_the_task_runs(
    source: TamisDataSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing carries it to the driver: a data source has no accumulator."""
    tamis.open(tmp_path / "t").alter().set_properties({"tamis.audit.percent": "100"}).commit()
    filtered = TamisDataSource({"path": str(tmp_path / "t"), "filter": "id = 1"})
    rows = [{"id": 1, "s": "a"}]
    with caplog.at_level(logging.ERROR, "tamis"):
        assert rows_read(filtered) == rows
        assert caplog.messages == []
        planted(monkeypatch, funnel, skip_all)
        with use(Production()):
            assert rows_read(filtered) == rows
        assert len(caplog.messages) == 1
        assert "AUDIT" in caplog.messages[0]
        assert "1 rows match" in caplog.messages[0]
        with pytest.raises(CorruptData) as caught:
            rows_read(filtered)
    assert (caught.value.code, len(caplog.messages)) == ("AUDIT_FAILED", 1)
