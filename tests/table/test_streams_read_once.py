"""A stream of which a failed call has read rows is refused: what is left of it is not all of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.errors import InvalidInput, SchemaMismatch

ROWS = pa.table({"id": pa.array(range(10), pa.int64())})


@pytest.fixture
def table(tmp_path: Path) -> tamis.Table:
    made = tamis.create(tmp_path / "t", "id BIGINT NOT NULL")
    made.append(ROWS)
    return made


def failing_reader() -> pa.RecordBatchReader:
    """A stream whose source fails once, after its first batch, and could go on."""

    class Source:
        reads = 0

        def __iter__(self) -> Iterator[pa.RecordBatch]:
            return self

        def __next__(self) -> pa.RecordBatch:
            self.reads += 1
            if self.reads == 2:
                raise OSError("the source failed")
            if self.reads > 4:
                raise StopIteration
            return pa.record_batch({"id": pa.array([100 + self.reads], pa.int64())})

    return pa.RecordBatchReader.from_batches(ROWS.schema, Source())


VERBS: dict[str, Callable[[tamis.Table, Any], Any]] = {
    "append": lambda table, data: table.append(data),
    "overwrite": lambda table, data: table.overwrite(data),
    "overwrite some": lambda table, data: table.overwrite(data, "id > 3", allow_outside=True),
    "upsert": lambda table, data: table.upsert(data, "id"),
    "merge": lambda table, data: (
        table.merge(data, "target.id = source.id").when_not_matched_by_source_delete().execute()
    ),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_stream_that_a_failed_call_has_read_is_refused(table: tamis.Table, verb: str) -> None:
    data = failing_reader()
    with pytest.raises(OSError, match="the source failed"):
        VERBS[verb](table, data)
    with pytest.raises(InvalidInput, match="is a stream, and has been read before") as caught:
        VERBS[verb](table, data)
    assert caught.value.code == "BAD_DATA"
    assert tamis.open(table.path).scan().count() == 10


@pytest.mark.parametrize("verb", VERBS)
def test_a_stream_is_written_once(table: tamis.Table, verb: str) -> None:
    data = ROWS.to_reader()
    VERBS[verb](table, data)
    before = tamis.open(table.path).scan().count()
    with pytest.raises(InvalidInput, match="read before"):
        VERBS[verb](table, data)
    assert tamis.open(table.path).scan().count() == before > 0


def test_a_stream_of_which_nothing_was_read_may_be_given_again(table: tamis.Table) -> None:
    data = pa.table({"id": [1], "extra": [2]}).to_reader()
    with pytest.raises(SchemaMismatch):
        table.append(data)
    table.alter().add_column("extra", "BIGINT").commit()
    table.append(data)
    assert table.scan().count() == 11


def test_the_columns_of_a_stream_that_was_read_are_known(table: tamis.Table, tmp_path: Path) -> None:
    data = ROWS.to_reader()
    table.append(data)
    assert tamis.create(tmp_path / "other", data).schema.names == ["id"]


def test_what_holds_its_rows_may_be_given_again(table: tamis.Table) -> None:
    duckdb = pytest.importorskip("duckdb")
    polars = pytest.importorskip("polars")
    for data in (ROWS, ROWS.to_pandas(), polars.from_arrow(ROWS), duckdb.sql("SELECT range AS id FROM range(10)")):
        for _ in range(2):
            table.overwrite(data)
            assert table.scan().count() == 10
