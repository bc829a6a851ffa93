"""Writing a stream by ``writeStream.foreachBatch``: a function that takes each micro-batch once."""

from __future__ import annotations

from typing import Any

from tamis.engine.operations import Result
from tamis.spark.streaming.stream_sink import append_epoch, query_of
from tamis.spark.write.insert_by_path import append
from tamis.storage.object_store import Store
from tamis.table import Table


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
        query = self._query or query_of(df)
        self.last = append_epoch(
            self._store, query, epoch, lambda snapshot, operation: append(Table(self._store, snapshot), df, operation)
        )

    def __repr__(self) -> str:
        return f"StreamWriter({self._store.url!r}, query={self._query!r})"
