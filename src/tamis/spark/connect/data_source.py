"""A Python ``DataSource`` over tables by path: planned by a worker of the server, read and written by its executors.

Invariant: a read returns all rows that the option ``filter`` keeps, and every write is one commit.
"""

from __future__ import annotations

import importlib
import json
import pickle
import re
from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tamis.core.types.identifiers import split_list
from tamis.engine.scan import Options, Scan
from tamis.engine.scan.skip_audit import audit_is_strict
from tamis.errors import InvalidInput
from tamis.spark.connect.batch_writer import BatchWriter
from tamis.spark.connect.read_write_options import ReadWriteOptions, replaced_table
from tamis.spark.connect.write_target import WriteTarget, query_id
from tamis.spark.executors.partitions import Cut, Sizes
from tamis.spark.executors.read_task import Read
from tamis.spark.jvm_bridge.spark_types import CHAR_VARCHAR, to_spark
from tamis.storage.commit_log import Snapshot, load
from tamis.table.scan_request import ScanArguments, make_scan

_SIZES = Sizes(largest=128 * 2**20, opening=4 * 2**20, parallelism=8)
"""Spark's defaults for partition sizes; a Python data source does not see the session's settings."""
_TYPES = {"type", "elementType", "keyType", "valueType"}
_WITH_LENGTH = re.compile(r"(var)?char\(\d+\)")


class TamisDataSource(DataSource):  # type: ignore[misc]  # PySpark ships no types for it
    """``format("tamis")`` for ``spark.dataSource.register``.

    Options: ``versionAsOf`` or ``timestampAsOf``; ``columns`` ("a, b") and ``filter`` (Spark SQL text), which decide
    what is read; ``readVersion``, the version of the table that a batch's rows depend on; others are those of the
    object store. A DataFrame reads the version at which it was made.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._options = ReadWriteOptions.of(dict(options))
        self._read_at: tuple[int, str] | None = None
        """The version that ``schema`` found, and the table's id."""

    @classmethod
    def name(cls) -> str:
        return "tamis"

    def schema(self) -> StructType:
        snapshot = self._options.snapshot()
        self._read_at = snapshot.version, snapshot.head.table_id
        return _struct(_scan(self._options, snapshot))

    def reader(self, schema: StructType) -> DataSourceReader:
        return TableReader(self._options, self._read_at, schema)

    def writer(self, schema: StructType, overwrite: bool) -> Any:  # Spark's signature
        return BatchWriter(WriteTarget.of(self._options, schema.json()), overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:  # noqa: N802  # Spark's signature
        if not hasattr(datasource, "DataSourceStreamArrowWriter"):
            raise _no_stream_writer(self._options.path)
        if overwrite:
            raise _no_complete_mode(self._options.path)
        self._options.refuse_read_version("A stream")
        stream_writer = importlib.import_module("tamis.spark.connect.stream_writer").StreamWriter
        return stream_writer(WriteTarget.of(self._options, schema.json()).created(), query_id(self._options))

    def streamReader(self, schema: StructType) -> Any:  # noqa: N802, ARG002  # Spark's signature
        raise _no_stream(self._options.path)

    def simpleStreamReader(self, schema: StructType) -> Any:  # noqa: N802, ARG002  # Spark's signature
        raise _no_stream(self._options.path)


class TableReader(DataSourceReader):  # type: ignore[misc]  # PySpark ships no types for it
    """Plans a scan where Spark plans, and reads its tasks on executors.

    Takes no filters from Spark (``pushFilters``): Spark 4.1 to 4.3 keeps what was planned with one query's filters
    for all other queries of the same DataFrame, which would lose their rows. The option ``filter`` prunes.
    """

    def __init__(self, options: ReadWriteOptions, read_at: tuple[int, str] | None, schema: StructType) -> None:
        snapshot = options.snapshot() if read_at is None else load(options.store(), read_at[0])
        if read_at is not None and snapshot.head.table_id != read_at[1]:
            raise replaced_table(options.path)
        scan = _scan(options, snapshot)
        if schema.simpleString() != _struct(scan).simpleString():
            raise InvalidInput(
                f"The schema {schema.simpleString():.200} is not the table's.",
                code="BAD_OPTION",
                name="schema",
                remedy='Leave schema(…) out, and name columns by option("columns", "a, b").',
            )
        self._options, self._snapshot = options, snapshot
        self._planned: tuple[Read, list[bytes]] | None = None

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(task) for task in self._plan()[1]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # Spark's partition of a source without any
            return
        read, _ = self._plan()
        yield from read([pa.record_batch([pa.array([partition.value], pa.binary())], ["task"])])

    def _plan(self) -> tuple[Read, list[bytes]]:
        """Plan at the first call; return the read function and the pickled tasks."""
        if self._planned is None:
            plan = _scan(self._options, self._snapshot).plan_read()
            tasks = [pickle.dumps(task, pickle.HIGHEST_PROTOCOL) for task in Cut(plan, _SIZES).tasks()]
            self._planned = Read("connect", plan.spec, None, strict=audit_is_strict()), tasks
        return self._planned

    def __getstate__(self) -> dict[str, Any]:
        """Executors get the read function alone. Spark pickles this object before it asks for partitions."""
        return {"_planned": (self._plan()[0], [])}


def _struct(scan: Scan) -> StructType:
    """Return the schema as Spark knows it; text with a length is STRING, which Arrow batches of Python can hold."""

    def plain(node: Any, key: str = "") -> Any:
        if isinstance(node, list):
            return [plain(item) for item in node]
        if isinstance(node, dict):
            return {k: plain(v, k) for k, v in node.items() if k != CHAR_VARCHAR}
        return "string" if key in _TYPES and _WITH_LENGTH.fullmatch(str(node)) else node

    return StructType.fromJson(plain(json.loads(to_spark(scan.selected))))


def _scan(options: ReadWriteOptions, snapshot: Snapshot) -> Scan:
    columns = ("*",) if options.columns is None else split_list(options.columns)
    chosen = Options.resolve(None, None, snapshot.head.properties)
    arguments = ScanArguments(options.row_filter, columns)
    return make_scan(options.store(), snapshot, snapshot.head.schema, arguments, chosen, (0, 0, 0.0))


def _no_stream(path: str) -> InvalidInput:
    return InvalidInput(
        "A registered TamisDataSource reads no streams.",
        code="UNSUPPORTED_READ",
        name=path,
        remedy="Read the table in batches, or serve it by `tamis spark connect`, where readStream works.",
    )


def _no_stream_writer(path: str) -> InvalidInput:
    return InvalidInput(
        "This Spark hands Python data sources no Arrow batches of a stream; Spark 4.1 and newer do.",
        code="UNSUPPORTED_WRITE",
        name=path,
        remedy="Write the stream by foreachBatch, and each DataFrame in append mode.",
    )


def _no_complete_mode(path: str) -> InvalidInput:
    return InvalidInput(
        "A stream appends to a table; complete mode would replace it with each batch.",
        code="UNSUPPORTED_WRITE",
        name=path,
        remedy='Use outputMode("append"), or foreachBatch with mode("overwrite").',
    )
