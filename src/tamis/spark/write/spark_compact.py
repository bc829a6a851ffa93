"""Compaction by Spark: executors read, sort and write the parts of a group; the driver commits."""

from __future__ import annotations

import functools
import json
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.types import Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.operations.layout.compact import Rewrite, Work, Workers
from tamis.engine.operations.layout.compaction_candidates import Group
from tamis.engine.operations.layout.curve_clustering import KEY, layout_boundaries, with_keys
from tamis.engine.operations.rows.append import discard_parts, write_spec
from tamis.engine.part_reader import ReadCounters, ReadSpec, read_part
from tamis.engine.part_writer import write_parts
from tamis.spark.executors import write_task as task
from tamis.spark.executors.executor_function import executor_function
from tamis.spark.executors.read_task import cast_batch, spark_schema
from tamis.spark.jvm_bridge.session_checks import check_classic
from tamis.spark.jvm_bridge.spark_types import to_python_spark
from tamis.spark.scan.scan_frame import ordered_tasks
from tamis.spark.write.spark_index import spark_index_builder
from tamis.spark.write.spark_job import spark_job
from tamis.spark.write.spark_write import arrange_rows, map_rows
from tamis.storage.files import PartRef


def executor_workers(spark: Any) -> Workers:
    """The executors of ``spark`` as workers of ``layout.compact``."""
    return Workers(rewriter(spark), spark_index_builder(spark))


def rewriter(spark: Any) -> Rewrite:
    """The function by which ``layout.compact`` rewrites a group on the executors of ``spark``."""
    check_classic(spark)
    return functools.partial(_rewrite, spark)


def _rewrite(spark: Any, work: Work, group: Group) -> list[pa.Table]:
    with spark_job(spark, "compact", work.store.url):
        return _rewritten(spark, work, group)


def _rewritten(spark: Any, work: Work, group: Group) -> list[pa.Table]:
    head, options = work.head, work.write_options(group)
    assert head.schema is not None
    spec = replace(
        write_spec(work.store, head, head.schema, options), checks=(), generate=False
    )  # the rows are not new
    read = work.read_spec()
    sorts = work.layout is not None or bool(head.cluster_by)
    bins = _bins(group, options.write_part_bytes, spark.sparkContext.defaultParallelism if sorts else 1)
    manifests: list[pa.Table] = []
    try:
        if not sorts:
            tasks = [pickle.dumps((refs, read, spec)) for refs in bins]
            done = spark.sparkContext.parallelize(tasks, len(tasks)).map(executor_function(spark, copy_parts)).collect()
            manifests += (task.from_ipc(m) for of_task in done for m in of_task)
            return manifests
        cuts = (
            None
            if work.layout is None
            else layout_boundaries(_rows([*group.parts], read), head.schema, work.layout, group.rows)
        )
        reader = _Reader(read, work.layout, cuts)
        shipped = executor_function(spark, reader)
        frame = ordered_tasks(spark, [pickle.dumps(refs) for refs in bins]).mapInArrow(
            shipped, _spark_type(reader.schema)
        )
        if work.layout is None:
            sorted_rows = arrange_rows(frame, head, options)
        else:
            count = max(1, -(-group.bytes // options.write_part_bytes))
            sorted_rows = frame.repartitionByRange(count, KEY.name).sortWithinPartitions(KEY.name).drop(KEY.name)
        job = map_rows(sorted_rows, functools.partial(task.write_rows, spec=spec), task.RESULT)
        manifests += (task.from_ipc(bytes(row[0])) for row in job.collect())
    except BaseException:
        discard_parts(work.store, manifests)
        raise
    return manifests


def copy_parts(pickled: bytes) -> list[bytes]:
    """Rewrite the live rows of some parts in order; return manifests as IPC.

    The argument is a pickled ``(refs, read spec, write spec)``.
    """
    refs, read, spec = pickle.loads(pickled)  # noqa: S301  # made by our own driver
    return [task.to_ipc(manifest) for manifest in write_parts(_rows(refs, read), spec)]


class _Reader:
    """Reads the parts of a task, for ``mapInArrow``; adds the curve key for curve clustering."""

    def __init__(self, read: ReadSpec, layout: Any, cuts: Any) -> None:
        self._read, self._layout, self._cuts = read, layout, cuts
        fields = read.schema.fields if layout is None else (*read.schema.fields, KEY)
        self.schema = Schema(fields, read.schema.schema_id)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        target = spark_schema(to_arrow_schema(self.schema))
        for batch in batches:
            for payload in batch.column(batch.num_columns - 1):
                rows = _rows(pickle.loads(payload.as_py()), self._read)  # noqa: S301  # made by our own driver
                if self._layout is not None:
                    rows = with_keys(rows, self._read.schema, self._layout, self._cuts)
                for found in rows:
                    yield cast_batch(found, target)


def _rows(refs: Iterable[PartRef], read: ReadSpec) -> Iterator[pa.RecordBatch]:
    for ref in refs:
        yield from read_part(ref, read, ReadCounters())


def _bins(group: Group, part_bytes: int, cores: int) -> list[list[PartRef]]:
    """The parts in order, cut into tasks of about ``part_bytes``.

    Tasks are smaller if needed to keep ``cores`` cores busy.
    """
    refs = list(group.parts)
    size = max(1, min(part_bytes, -(-group.bytes // max(cores, 1))))
    number = (np.cumsum(group.parts.column("bytes")) - 1) // size
    cuts = (np.flatnonzero(np.diff(number)) + 1).tolist()
    return [refs[a:b] for a, b in zip([0, *cuts], [*cuts, len(refs)], strict=True)]


def _spark_type(schema: Schema) -> Any:
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(to_python_spark(schema)))
