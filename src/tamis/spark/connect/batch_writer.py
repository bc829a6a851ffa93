"""Batch writes of the Python data source: append and overwrite, each one commit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter

from tamis.engine.operations.rows.append import create_with_parts
from tamis.engine.operations.rows.overwrite import Replacement, commit_overwrite, snapshot_parts
from tamis.spark.connect.write_target import PartsWritten, WriteTarget, manifests_of, target_of
from tamis.spark.write.own_reads import OwnReads
from tamis.spark.write.spark_write import commit_rows
from tamis.storage.commit_log import Operation
from tamis.storage.commit_log.model import ReadSet


class BatchWriter(DataSourceArrowWriter):  # type: ignore[misc]  # PySpark ships no types for it
    """Tasks write parts; ``commit``, in a worker of the driver, makes them visible."""

    def __init__(self, target: WriteTarget, *, overwrite: bool) -> None:
        self._target = target
        self._overwrite = overwrite

    def write(self, iterator: Iterator[pa.RecordBatch]) -> PartsWritten:
        return self._target.write_task(iterator)

    def commit(self, messages: list[Any]) -> None:
        target, manifests = target_of(messages, self._target), manifests_of(messages)
        store, head, options = target.options.store(), target.head, target.table_options
        if target.version is None:
            create_with_parts(store, head, manifests)
        elif self._overwrite:
            snapshot = target.base()
            commit_overwrite(store, snapshot, head, Replacement(None, snapshot_parts(snapshot), manifests), options)
        else:
            read = None if target.options.read_version is None else OwnReads(ReadSet(), None)
            commit_rows(store, target.base(), head, manifests, Operation("append"), options=options, own=read)

    def abort(self, messages: list[Any]) -> None:
        """Leave the files to vacuum: a commit that seems to have failed may have landed, and need them."""
