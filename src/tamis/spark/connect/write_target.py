"""The table that a write of a Python data source goes to: its head, and the parts that tasks write for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from tamis.core.schema.additions import columns_of_data
from tamis.engine.operations.rows.append import new_rows, write_rows
from tamis.engine.part_writer.arrow_casts import match_fields
from tamis.engine.scan import Options
from tamis.errors import Conflict, InvalidInput, NotFound, TamisError
from tamis.spark.connect.read_write_options import ReadWriteOptions, replaced_table
from tamis.spark.executors.write_task import from_ipc, to_ipc
from tamis.spark.jvm_bridge.spark_types import from_spark
from tamis.storage.commit_log import Head, Operation, Snapshot, create, load
from tamis.storage.commit_log.path_checks import check_free, check_store
from tamis.storage.commit_log.version_points import parse_version
from tamis.storage.object_store import Store, open_store
from tamis.table.table_definition import checked_columns, new_head, with_columns


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """A table as a write found it. ``version`` is None if the write creates it."""

    options: ReadWriteOptions
    head: Head
    version: int | None

    @staticmethod
    def of(options: ReadWriteOptions, struct_json: str) -> WriteTarget:
        """Load the table in the version that the rows were computed from, or define it by the DataFrame's columns.

        Raises ``InvalidInput`` for options of reads, and where there is something else than a table;
        ``SchemaMismatch`` for columns that are not the table's; ``StoreUnavailable`` if the store can hold no table.
        """
        for name, value in {
            "versionAsOf": options.version,
            "timestampAsOf": options.timestamp,
            "columns": options.columns,
            "filter": options.row_filter,
        }.items():
            if value is not None:
                raise InvalidInput(
                    f"A write does not take the option {name}.",
                    code="BAD_OPTION",
                    name=name,
                    remedy="Leave it out, or select and filter the DataFrame.",
                )
        columns = checked_columns(columns_of_data(from_spark(struct_json)))
        store = options.store()
        try:
            snapshot = load(store, None if options.read_version is None else parse_version(options.read_version))
        except NotFound as error:
            if error.code != "TABLE_NOT_FOUND" or options.read_version is not None:
                raise
            check_free(store)  # before tasks write files there
            check_store(store)
            return WriteTarget(options, with_columns(new_head(None, (), "parquet", {}), columns), None)
        head = snapshot.head if snapshot.head.schema else with_columns(snapshot.head, columns)
        assert head.schema is not None
        match_fields(list(columns.names), head.schema.fields)
        return WriteTarget(options, head, snapshot.version)

    @property
    def table_options(self) -> Options:
        return Options.resolve(None, None, self.head.properties)

    def write_task(self, batches: Iterator[pa.RecordBatch]) -> PartsWritten:
        """Write the rows of one task, sorted by the clustering columns. Runs on executors."""
        assert self.head.schema is not None
        store = self.options.store()
        rows = new_rows(store, self.head, batches)
        written = write_rows(store, self.head, rows, self.table_options, complete=True)
        return PartsWritten([to_ipc(manifest) for manifest in written], self)

    def base(self) -> Snapshot:
        """Return the version that the parts are written for, against which a commit is checked.

        Raises ``Conflict`` (``CONFLICT_VACUUMED``) if vacuum has removed it, ``SchemaFenced`` (``TABLE_REPLACED``).
        """
        assert self.version is not None
        store = self.options.store()
        try:
            found = load(store, self.version)
        except NotFound as error:
            latest = load(store)
            if error.code != "VERSION_NOT_FOUND" or latest.head.table_id != self.head.table_id:
                raise replaced_table(store.url) from error
            raise Conflict(
                f"Version {self.version}, for which the rows were written, was vacuumed meanwhile.",
                code="CONFLICT_VACUUMED",
                name=store.url,
                remedy="Write again; vacuum with a retention longer than any write takes.",
            ) from error
        if found.head.table_id != self.head.table_id:
            raise replaced_table(store.url)
        return found

    def created(self) -> WriteTarget:
        """Return this target after creating its table, if there was none, without rows."""
        if self.version is not None:
            return self
        made = create(self.options.store(), self.head, Operation("create"))
        return replace(self, head=made.head, version=made.version)


@dataclass
class PartsWritten(WriterCommitMessage):  # type: ignore[misc]  # PySpark ships no types for it
    """What a task wrote: manifest rows as Arrow IPC, and the table for which it wrote them."""

    manifests: list[bytes]
    target: WriteTarget


def target_of(messages: list[PartsWritten | None], otherwise: WriteTarget) -> WriteTarget:
    """Return the table for which tasks wrote; ``otherwise`` if none did.

    Spark makes a stream's writer again before each commit, when the table may have changed. A commit must be checked
    against the version that the tasks knew.
    """
    return next((message.target for message in messages if message is not None), otherwise)


def manifests_of(messages: list[PartsWritten | None]) -> list[pa.Table]:
    """Return the manifest rows of the tasks that succeeded; those that failed sent None."""
    return [from_ipc(data) for message in messages if message is not None for data in message.manifests]


def query_id(options: ReadWriteOptions) -> str:
    """Return the id of a streaming query, which Spark keeps in its checkpoint.

    Raises ``InvalidInput`` (``NO_QUERY``) if it cannot be read. Without it, a restarted query could append an epoch
    twice.
    """
    problem = "No checkpointLocation is given"
    if options.checkpoint is not None:
        try:
            found = json.loads(_checkpoint(options).get("metadata"))["id"]
        except (TamisError, ValueError, KeyError, TypeError) as error:
            problem = f"The checkpoint {options.checkpoint} cannot be read: {error}"
        else:
            return str(found)
    raise InvalidInput(
        f"{problem.rstrip('.')}.",
        code="NO_QUERY",
        name="checkpointLocation",
        remedy='Set option("checkpointLocation", …) to a folder or URL that tamis can open, too.',
    )


def checkpoint_batch_millis(options: ReadWriteOptions, epoch: int) -> int | None:
    """Return when Spark made a micro-batch, in milliseconds since 1970, as the checkpoint says; None if it does not.

    Raises the errors of the checkpoint's store: without the time, a known epoch would be skipped unchecked.
    """
    try:
        _, metadata, *_ = _checkpoint(options).get(f"offsets/{epoch}").splitlines()
        return int(json.loads(metadata)["batchTimestampMs"])
    except (NotFound, ValueError, KeyError, TypeError):
        return None


def _checkpoint(options: ReadWriteOptions) -> Store:
    """Open the checkpoint, with the options of the table's store if both are of one kind."""
    assert options.checkpoint is not None
    try:
        return open_store(options.checkpoint, dict(options.storage))
    except InvalidInput:
        return open_store(options.checkpoint, None)
