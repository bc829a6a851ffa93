"""Tasks that read a change feed in Spark's Python workers.

Invariant: the rows of a commit that both removes and adds parts are read by one task, which cancels the rows that
the commit only copied. Any other commit may be divided by parts.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from tamis.engine.operations.rows.change_feed import Change, change_batches
from tamis.engine.part_reader import ReadSpec
from tamis.spark.executors.read_task import SMALLEST_BATCH, cast_batch, join_batches, spark_schema


def change_tasks(changes: Iterable[Change], task_bytes: int) -> list[tuple[Change, ...]]:
    """Divide the changes into tasks of about ``task_bytes``, in their order."""
    tasks: list[tuple[Change, ...]] = []
    waiting: list[Change] = []
    size = 0
    for piece in (piece for found in changes for piece in _pieces(found)):
        mine = sum(ref.bytes for ref in (*piece.deleted, *piece.inserted))
        if waiting and size + mine > task_bytes:
            tasks.append(tuple(waiting))
            waiting, size = [], 0
        waiting.append(piece)
        size += mine
    return [*tasks, tuple(waiting)] if waiting else tasks


def _pieces(found: Change) -> Iterator[Change]:
    deleted, inserted = tuple(found.deleted), tuple(found.inserted)
    if deleted and inserted:
        yield replace(found, deleted=deleted, inserted=inserted)
        return
    for ref in deleted or inserted:
        yield replace(found, deleted=(ref,) if deleted else (), inserted=() if deleted else (ref,))


class ChangeRead:
    """The read function of a change feed, pickled once for all its tasks."""

    def __init__(self, spec: ReadSpec, schema: pa.Schema, keys: tuple[str, ...]) -> None:
        self.spec, self.schema, self.keys = spec, schema, keys

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the rows of the tasks in the last column of ``batches``, in order."""
        target = spark_schema(self.schema)
        for batch in batches:
            for payload in batch.column(batch.num_columns - 1):
                task: tuple[Change, ...] = pickle.loads(payload.as_py())  # noqa: S301  # made by our driver
                rows = (rows for found in task for rows in change_batches(found, self.spec, self.schema, self.keys))
                yield from (cast_batch(rows, target) for rows in join_batches(rows, SMALLEST_BATCH))
