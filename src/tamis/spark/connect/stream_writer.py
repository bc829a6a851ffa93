"""Stream writes of the Python data source: each epoch of a query is one commit, and is in the table once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter

from tamis.engine.operations import Result
from tamis.spark.connect.write_target import PartsWritten, WriteTarget, checkpoint_batch_millis, manifests_of, target_of
from tamis.spark.streaming.stream_sink import append_epoch
from tamis.spark.write.spark_write import commit_rows
from tamis.storage.commit_log import Operation, Snapshot, StreamEpoch


class StreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]  # PySpark ships no types for it
    """Appends the batches of one streaming query, which ``query`` identifies."""

    def __init__(self, target: WriteTarget, query: str) -> None:
        self._target = target
        self._query = query

    def write(self, iterator: Iterator[pa.RecordBatch]) -> PartsWritten:
        return self._target.write_task(iterator)

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803  # Spark's name
        target = target_of(messages, self._target)

        def append(_: Snapshot, operation: Operation) -> Result:
            return commit_rows(
                target.options.store(),
                target.base(),
                target.head,
                manifests_of(messages),
                operation,
                options=target.table_options,
            )

        stream = StreamEpoch(self._query, batchId, checkpoint_batch_millis(self._target.options, batchId))
        append_epoch(target.options.store(), stream, append)

    def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: N803  # Spark's name
        """Leave the files to vacuum: a commit that seems to have failed may have landed, and need them."""
