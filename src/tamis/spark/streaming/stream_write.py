"""Writing a stream by ``writeStream.foreachBatch``: a function that takes each micro-batch once."""

from __future__ import annotations

from typing import Any

from tamis.engine.operations import Result
from tamis.errors import InvalidInput
from tamis.spark.streaming.stream_sink import append_epoch, query_of
from tamis.spark.write.insert_by_path import append
from tamis.storage.commit_log import Operation, Snapshot
from tamis.table import Table

_RUN = "spark.jobGroup.id"
"""The local property in which Spark keeps the id of the run of a query: another one after each restart."""


class StreamWriter:
    """Function of a DataFrame and its epoch. ``last`` is the result of the last call."""

    def __init__(self, table: Table, query: str | None = None) -> None:
        self._table = table
        self._query = query
        self._appended: tuple[str | None, int, Any] | None = None
        """The run, the epoch and the DataFrame of the last call that appended rows."""
        self.last: Result | None = None

    def __call__(self, df: Any, epoch: int) -> None:
        """Append the rows of ``df`` unless this epoch, or a later one, is in the table.

        Raises what an append raises, and ``InvalidInput`` (``EPOCH_TWICE``) for another DataFrame of the same
        micro-batch. Spark then stops the query and repeats the batch when it is started again.
        """
        run = df.sparkSession.sparkContext.getLocalProperty(_RUN)
        last_run, last_epoch, last = self._appended or (None, -1, None)
        if run is not None and (run, epoch) == (last_run, last_epoch) and df is not last:
            raise InvalidInput(
                f"Micro-batch {epoch} was written already: the table takes one DataFrame of each.",
                code="EPOCH_TWICE",
                name="epoch",
                remedy="Write the union of the DataFrames, or give each a writer: stream_writer(query='…').",
            )

        def appended(_: Snapshot, operation: Operation) -> Result:
            made = append(self._table, df, operation)
            self._appended = run, epoch, df
            return made

        self.last = append_epoch(self._table.store, self._query or query_of(df), epoch, appended)

    def __repr__(self) -> str:
        return f"StreamWriter({self._table.store.url!r}, query={self._query!r})"
