"""Writing a stream by ``writeStream.foreachBatch``: a function that takes each micro-batch once."""

from __future__ import annotations

import weakref
from typing import Any

from tamis.engine.operations import Result
from tamis.errors import InvalidInput
from tamis.spark.jvm_bridge.adapter import bridge_of
from tamis.spark.streaming.running_query import running_batch_millis, running_run_id
from tamis.spark.streaming.stream_sink import append_epoch, query_of
from tamis.spark.write.insert_by_path import append
from tamis.storage.commit_log import Operation, Snapshot, StreamEpoch
from tamis.table import Table

_LAST: dict[tuple[str, str], tuple[str, int, weakref.ref[Any]]] = {}
"""By table and query: the run, the epoch and the DataFrame of the last call, whichever writer it was of.

A DataFrame that is gone counts as another one than that of a later call.
"""
_MOST_KEPT = 1_000
"""Entries of ``_LAST``; the oldest one is dropped."""


class StreamWriter:
    """Function of a DataFrame and its epoch. ``last`` is the result of the last call."""

    def __init__(self, table: Table, query: str | None = None) -> None:
        self._table = table
        self._query = query
        self.last: Result | None = None

    def __call__(self, df: Any, epoch: int) -> None:
        """Append the rows of ``df`` unless the table has this micro-batch.

        Raises what an append raises, and ``InvalidInput``: ``EPOCH_TWICE`` for another DataFrame of the same
        micro-batch, ``EPOCH_DIFFERS`` if the table has another micro-batch under this epoch. Spark then stops the query
        and repeats the batch when it is started again.
        """
        query = self._query or query_of(df)
        key = self._table.store.location.resolved_url, query
        if _is_second(df, key, epoch):
            raise InvalidInput(
                f"Micro-batch {epoch} was written already: the table takes one DataFrame of each.",
                code="EPOCH_TWICE",
                name="epoch",
                remedy="Give the other DataFrame a writer of its own: stream_writer(query='…'). The rows that were "
                "written first are committed, so that a union of the two would be skipped.",
            )

        def appended(_: Snapshot, operation: Operation) -> Result:
            return append(self._table, df, operation)

        stream = StreamEpoch(query, epoch, running_batch_millis(bridge_of(df.sparkSession), epoch))
        self.last = append_epoch(self._table.store, stream, appended)
        _remember(df, key, epoch)

    def __repr__(self) -> str:
        return f"StreamWriter({self._table.store.url!r}, query={self._query!r})"


def _is_second(df: Any, key: tuple[str, str], epoch: int) -> bool:
    """Whether another DataFrame of the same micro-batch was written, or was found to be in the table."""
    run = running_run_id(bridge_of(df.sparkSession))
    last_run, last_epoch, last = _LAST.get(key, (None, -1, None))
    return run is not None and (run, epoch) == (last_run, last_epoch) and last is not None and last() is not df


def _remember(df: Any, key: tuple[str, str], epoch: int) -> None:
    run = running_run_id(bridge_of(df.sparkSession))
    if run is not None:
        _LAST.pop(key, None)
        _LAST[key] = run, epoch, weakref.ref(df)
    if len(_LAST) > _MOST_KEPT:
        del _LAST[next(iter(_LAST))]
