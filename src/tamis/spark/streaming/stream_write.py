"""Writing a stream: the function for ``foreachBatch``, and the sink of ``toTable`` and ``start(path)``.

Invariant: the rows of a query's epoch are in the table exactly once, whatever is repeated. The commit holds
query and epoch, and a table that already has them takes nothing. A batch that was written but not committed
leaves files that no version references.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.engine.operations import Result
from tamis.errors import InvalidInput
from tamis.spark.write.insert import dataframe
from tamis.storage.commit_log import Operation, load
from tamis.storage.commit_log.stream_epochs import next_streams
from tamis.storage.object_store import Store

if TYPE_CHECKING:
    from tamis.spark.catalog.spark_table import SparkTable

_STREAMING = "org.apache.spark.sql.connector.write.streaming.StreamingWrite"
_QUERY_ID = "sql.streaming.queryId"
"""Local property of a micro-batch with the id of its query, which Spark takes from the checkpoint."""


class StreamWriter:
    """Function of a DataFrame and its epoch. ``last`` is the result of the last call."""

    def __init__(self, store: Store, query: str | None = None) -> None:
        self._store = store
        self._query = query
        self.last: Result | None = None

    def __call__(self, df: Any, epoch: int) -> None:
        """Append the rows of ``df`` unless this epoch, or a later one, is in the table.

        Raises what an append raises. Spark then stops the query and repeats the batch when it is started
        again.
        """
        from tamis.spark.write.spark_write import append
        from tamis.table import Table

        query = self._query or _query_of(df)
        snapshot = load(self._store)
        if next_streams(self._store, snapshot.commit, (query, epoch)) is None:
            self.last = Result(snapshot.version)
            return
        self.last = append(Table(self._store, snapshot), df, Operation("append", {"query": query, "epoch": epoch}, stream=(query, epoch)))

    def __repr__(self) -> str:
        return f"StreamWriter({self._store.url!r}, query={self._query!r})"


def streaming_write(table: SparkTable) -> Any:
    """A Java ``StreamingWrite`` into ``table``, for the session of the calling query."""
    table.bridge.plan_with("StreamInsert")
    return table.bridge.implement([_STREAMING, "org.apache.spark.sql.execution.streaming.Sink"], StreamSink(table.store))


class StreamSink(StreamWriter):
    """Spark's sink, called by ``StreamInsert`` instead of tasks that would write row by row."""

    def addBatch(self, epoch: int, data: Any) -> None:  # noqa: N802  # Spark's name
        self(dataframe(data), epoch)

    def __str__(self) -> str:
        return f"tamis stream into {self._store.url}"


def _query_of(df: Any) -> str:
    found = df.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
    if not found:
        raise InvalidInput(
            "This DataFrame is no micro-batch of a streaming query.",
            code="NO_QUERY",
            name="query",
            remedy="Use it in writeStream.foreachBatch(…), or name the query: stream_writer(query='…').",
        )
    return str(found)
