"""The stream sink of a Spark plan: ``StreamInsert`` passes it each micro-batch as a DataFrame.

Invariant: the rows of an epoch of a query are in the table once, however often the epoch is repeated. The commit
records query and epoch, and a table that has them skips the batch. A batch that was written but not committed leaves
files that no version references.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tamis.engine.operations import Result
from tamis.errors import InvalidInput
from tamis.spark.catalog.loaded_table import LoadedTable
from tamis.spark.jvm_bridge.adapter import bridge_of
from tamis.spark.streaming.running_query import running_batch_millis
from tamis.spark.write.insert import insert_rows
from tamis.spark.write.session_frames import python_frame
from tamis.storage.commit_log import Operation, Snapshot, StreamEpoch, load
from tamis.storage.commit_log.stream_epochs import next_streams
from tamis.storage.object_store import Store

_STREAMING = "org.apache.spark.sql.connector.write.streaming.StreamingWrite"
_QUERY_ID = "sql.streaming.queryId"
"""The local property in which Spark keeps the id of the query that a micro-batch belongs to: that of its checkpoint."""


def append_epoch(store: Store, stream: StreamEpoch, append: Callable[[Snapshot, Operation], Result]) -> Result:
    """Run ``append`` unless the table has this micro-batch.

    Raises ``InvalidInput`` (``EPOCH_DIFFERS``) if it has another one under this epoch.
    """
    snapshot = load(store)
    if next_streams(store, snapshot.commit, stream) is None:
        return Result(snapshot.version)
    return append(snapshot, Operation("append", {"query": stream.query, "epoch": stream.epoch}, stream=stream))


def streaming_write(table: LoadedTable) -> Any:
    """Return a Java ``StreamingWrite`` into ``table`` for the session of the query."""
    table.bridge.install_strategy("StreamInsert")
    return table.bridge.implement(
        [_STREAMING, "org.apache.spark.sql.execution.streaming.Sink"], StreamSink(table.store, type(table))
    )


class StreamSink:
    """Appends each micro-batch by an INSERT into the newest version, loaded as a ``made``."""

    def __init__(self, store: Store, made: type[LoadedTable]) -> None:
        self._store = store
        self._made = made

    def addBatch(self, epoch: int, data: Any) -> None:  # noqa: N802  # Spark's name
        df = python_frame(data)

        def append(snapshot: Snapshot, operation: Operation) -> Result:
            handle = self._made.opened_by_path(bridge_of(df.sparkSession), self._store, snapshot, df)
            handle.operation = operation
            return insert_rows(handle, df, None)

        batch_millis = running_batch_millis(bridge_of(df.sparkSession), epoch)
        append_epoch(self._store, StreamEpoch(query_of(df), epoch, batch_millis), append)

    def __str__(self) -> str:
        return f"tamis stream into {self._store.url}"


def query_of(df: Any) -> str:
    found = df.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
    if not found:
        raise InvalidInput(
            "This DataFrame is not a micro-batch of a streaming query.",
            code="NO_QUERY",
            name="query",
            remedy="Use it in writeStream.foreachBatch(…), or name the query: stream_writer(query='…').",
        )
    return str(found)
