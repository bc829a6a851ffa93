"""Writing a stream: what ``writeStream.foreachBatch`` calls with each micro-batch, and what ``toTable`` and ``start(path)`` do.

Law: the rows of an epoch of a query are in the table once, whatever is repeated: the commit holds the query and the epoch, and a table that has them
already takes nothing. A batch that was written and not committed leaves files that no version names.
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
"""The local property in which Spark keeps the id of the query that a micro-batch belongs to: that of its checkpoint."""


class StreamWriter:
    """Called with a DataFrame and its epoch; ``last`` is what the last call did."""

    def __init__(self, store: Store, query: str | None = None) -> None:
        self._store = store
        self._query = query
        self.last: Result | None = None

    def __call__(self, df: Any, epoch: int) -> None:
        """Appends the rows of ``df`` unless this epoch, or a later one, is in the table. Raises what an append raises: Spark then stops the query, and repeats the batch when it is started again."""
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
    """A Java ``StreamingWrite`` into ``table``, for the session of the query that asks."""
    table.bridge.plan_with("StreamInsert")
    return table.bridge.implement([_STREAMING, "org.apache.spark.sql.execution.streaming.Sink"], StreamSink(table.store))


class StreamSink(StreamWriter):
    """The same for a plan of Spark's: ``StreamInsert`` calls it, in the place of tasks that would write row by row."""

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
