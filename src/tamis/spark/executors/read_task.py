"""Read tasks in Spark's Python workers: read parts, convert batches to Spark's types, send back counters.

Independent of the JVM. A task arrives as one pickled ``Task``; batches are returned in part order.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa

from tamis.core.expr import Expr, short_sql
from tamis.core.types.arrow import to_arrow_schema
from tamis.core.types.bounded_batches import joined_batches
from tamis.engine.part_reader import ReadCounters, ReadSpec, ScanScattering, read_part
from tamis.engine.scan.partial_aggregates import Aggregation, aggregate_stream
from tamis.engine.scan.skip_audit import Proof, audit_violation, log_violation, read_audited
from tamis.engine.secondary_index import SharedLookup, read_shared
from tamis.sizes import SIZES
from tamis.spark.executors.row_metadata import METADATA, PART, POSITION, file_url, metadata_array, metadata_type
from tamis.storage.files import PartRef

SMALLEST_BATCH = SIZES.smallest_batch_rows
"""Minimum rows of a batch sent to the JVM; smaller ones are concatenated.

Sending a batch costs about as much as sending a thousand rows.
"""
LARGEST_BATCH = SIZES.largest_batch_rows
JOINED_BYTES = SIZES.joined_batch_bytes
"""Maximum bytes of concatenated batches: wide rows cost much more than sending their batches."""


@dataclass(frozen=True, slots=True)
class Task:
    """The work of one partition.

    ``proofs``: what planning proved about each audited part, by part id; reading checks it. ``shared``: index
    look-ups that the task does itself. ``keys``: additional conjuncts from the join keys of one execution.
    ``scan``: the name under which the task is counted, if not the scan's own. ``span``, for Spark's reader:
    where the task begins in its first part and ends in its last one, as shares of their bytes.
    """

    index: int
    refs: tuple[PartRef, ...]
    proofs: Mapping[str, Proof] = field(default_factory=dict)
    shared: tuple[SharedLookup, ...] = ()
    keys: tuple[Expr, ...] = ()
    scan: str | None = None
    span: tuple[float, float] = (0.0, 1.0)


@dataclass(slots=True)
class Outcome:
    """The result of one attempt of a task.

    ``key``: scan, SQL execution (or stage) and task. ``attempt``: stage id and attempt number.
    """

    key: tuple[str, str, int]
    attempt: tuple[int, int]
    counters: ReadCounters = field(default_factory=ReadCounters)
    violations: list[tuple[str, str]] = field(default_factory=list)
    """Audited parts with a wrong proof, and the problem found."""


class Read:
    """The read function of one scan, pickled once for all its tasks.

    ``accumulator`` takes ``{key: Outcome}``, or is None to count nothing, and to log audit violations where the task
    runs. ``metadata``: fields of ``_metadata`` that rows come with, besides their positions. ``strict``: an audit
    violation fails the task.
    """

    def __init__(
        self, scan: str, spec: ReadSpec, accumulator: Any, *, metadata: tuple[str, ...] = (), strict: bool = False
    ) -> None:
        self.scan = scan
        self.metadata = metadata
        self.spec = spec
        self.accumulator = accumulator
        self.strict = strict

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the rows of the tasks in the last column of ``batches``, in order."""
        for batch in batches:
            for payload in batch.column(batch.num_columns - 1):
                task: Task = pickle.loads(payload.as_py())  # noqa: S301  # made by our driver, sent by Spark like code
                yield from self._task(task)

    def _task(self, task: Task) -> Iterator[pa.RecordBatch]:
        key, attempt = _outcome_key(task.scan or self.scan, task.index)
        outcome = Outcome(key, attempt)
        try:
            yield from join_batches(self._rows(task, outcome), SMALLEST_BATCH)
        finally:
            if self.accumulator is not None:
                self.accumulator.add({key: outcome})

    def _rows(self, task: Task, outcome: Outcome) -> Iterator[pa.RecordBatch]:
        """The rows in Spark's types."""
        target = spark_schema(to_arrow_schema(self.spec.schema))
        for ref, batch in self._read(task, outcome):
            yield self._with_positions(batch, target, ref) if self.spec.positions else cast_batch(batch, target)

    def _with_positions(self, batch: pa.RecordBatch, target: pa.Schema, ref: PartRef) -> pa.RecordBatch:
        """The batch with the part id and ordinal of each row, and with ``_metadata`` if it is asked for."""
        columns = cast_batch(batch.select(range(len(target))), target).columns if target.names else []
        ordinals = batch.column(len(target))
        fields = [*target]
        if self.metadata:
            columns.append(metadata_array(self.metadata, ref, file_url(self.spec, ref), ordinals))
            fields.append(pa.field(METADATA, pa.struct(metadata_type(self.metadata)), nullable=False))
        columns += [pa.repeat(pa.scalar(ref.part_id), len(batch)), ordinals]
        fields += [pa.field(PART, pa.string(), nullable=False), pa.field(POSITION, pa.int64(), nullable=False)]
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))

    def _read(self, task: Task, outcome: Outcome) -> Iterator[tuple[PartRef, pa.RecordBatch]]:
        """The rows as read, with their part."""
        spec = replace(self.spec, conjuncts=(*self.spec.conjuncts, *task.keys)) if task.keys else self.spec
        counters = outcome.counters
        read = partial(read_part, scattering=ScanScattering())

        def found(part: str, problem: str) -> None:
            outcome.violations.append((part, problem))
            error = audit_violation(spec.url, " AND ".join(short_sql(c) for c in spec.conjuncts), part, problem)
            if self.strict:
                raise error
            if self.accumulator is None:  # nothing carries the outcome to the driver, which logs it otherwise
                log_violation(error)

        for ref in task.refs:
            proof = task.proofs.get(ref.part_id)
            batches = (
                read_shared(ref, spec, counters, task.shared, read)
                if proof is None
                else read_audited(ref, proof, spec, counters, found)
            )
            for batch in batches:
                yield ref, batch


class Fold(Read):
    """Read function that returns partial aggregates of each task's rows instead of the rows.

    The first task also returns what metadata has answered: ``answer``, from ``packed_rows``.
    """

    def __init__(
        self,
        scan: str,
        spec: ReadSpec,
        accumulator: Any,
        aggregation: Aggregation,
        answer: bytes,
        *,
        strict: bool = False,
    ) -> None:
        super().__init__(scan, spec, accumulator, strict=strict)
        self.aggregation = aggregation
        self.answer = answer

    def _rows(self, task: Task, outcome: Outcome) -> Iterator[pa.RecordBatch]:
        target = spark_schema(self.aggregation.schema)
        tables = [pa.ipc.open_stream(self.answer).read_all()] if task.index == 0 else []
        read = (
            aggregate_stream(self.aggregation, (batch for _, batch in self._read(task, outcome))) if task.refs else ()
        )
        for table in chain(tables, read):
            yield from (cast_batch(batch, target) for batch in table.to_batches())


def packed_rows(table: pa.Table) -> bytes:
    """Serialize a table so that it can be pickled with a read function."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _outcome_key(scan: str, index: int) -> tuple[tuple[str, str, int], tuple[int, int]]:
    """The outcome's key and attempt. Outside a Spark task, execution and attempt are empty."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return (scan, "", index), (0, 0)
    execution = context.getLocalProperty("spark.sql.execution.id") or f"stage {context.stageId()}"
    return (scan, execution, index), (context.stageId(), context.attemptNumber())


def rows_without_columns(count: int) -> pa.RecordBatch:
    """A batch of ``count`` rows for a query without columns.

    It has one column of NULLs, because PySpark turns batches without columns into one dictionary per row.
    """
    return pa.record_batch([pa.nulls(count)], ["none"])


def join_batches(batches: Iterable[pa.RecordBatch], smallest: int) -> Iterator[pa.RecordBatch]:
    """The same rows in the same order, with small batches concatenated to at least ``smallest`` rows if they fit."""
    for batch in joined_batches(batches, smallest, JOINED_BYTES):
        yield from _cut(batch)


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(batch), LARGEST_BATCH):
        yield batch.slice(start, LARGEST_BATCH)


def spark_schema(schema: pa.Schema) -> pa.Schema:
    """The Arrow types that Spark expects; only TIME differs from the table's (nanoseconds)."""
    return pa.schema([_spark_field(f) for f in schema])


def _spark_field(f: pa.Field) -> pa.Field:
    return pa.field(f.name, _spark_type(f.type), f.nullable, f.metadata)


def _spark_type(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_time64(data_type):
        return pa.time64("ns")
    if pa.types.is_struct(data_type):
        return pa.struct([_spark_field(f) for f in data_type])
    if pa.types.is_list(data_type):
        return pa.list_(_spark_field(data_type.value_field))
    if pa.types.is_map(data_type):
        return pa.map_(_spark_field(data_type.key_field), _spark_field(data_type.item_field))
    return data_type


def cast_batch(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """``batch`` cast to the types of ``target``; not copied if they are equal."""
    if not target.names:
        return rows_without_columns(len(batch))
    if batch.schema.equals(target):
        return batch
    columns = [c if c.type.equals(f.type) else c.cast(f.type) for c, f in zip(batch.columns, target, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=target)
