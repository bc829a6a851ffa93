"""CREATE TABLE AS SELECT and CREATE OR REPLACE TABLE: rows first, then one commit for table and rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tamis.engine.operations.result import Result, written_counts
from tamis.engine.operations.rows.append import create_with_parts, discard_parts
from tamis.engine.part_writer.identity_values import identity_of
from tamis.engine.scan import Options
from tamis.errors import TamisError
from tamis.spark.catalog.create_table import check_create_options, is_format_option
from tamis.spark.catalog.loaded_table import _CATALOG, INTERFACES, LoadedTable
from tamis.spark.catalog.spark_table import SparkTable
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.spark.jvm_bridge.spark_errors import unsupported_statement
from tamis.spark.write import spark_write as write
from tamis.spark.write.insert import Insert, V1Write, WriteBuilder
from tamis.spark.write.own_reads import check_own_reads
from tamis.storage.commit_log import Head, Operation, Proposal, ReadSet, Snapshot, commit
from tamis.storage.files.formats import check_format
from tamis.storage.object_store import Store
from tamis.table.table_definition import FORMAT
from tamis.world import new_id

Hook = Callable[[], None]


def commit_replacement(store: Store, replaces: Snapshot, head: Head, manifests: Sequence[Any]) -> Snapshot:
    """Replace rows, columns and properties of a table in one commit.

    Raises ``Conflict`` if others have changed its rows meanwhile.
    """
    rows, parts, size = written_counts(list(manifests))
    proposal = Proposal(
        operation=Operation("replace", metrics={"rows_inserted": rows, "parts_added": parts, "bytes_written": size}),
        table_id=replaces.head.table_id,
        read_version=replaces.version,
        read_operation_id=replaces.commit.operation_id,
        reads=ReadSet(),  # the rows may come from this table: rows that others add meanwhile must not be lost
        blind_append=False,
        head=head,
        add=manifests,
        # if there is nothing to remove, a stream reads the rows as an append
        replace_all=bool(len(replaces.segments) or len(replaces.index_segments)),
        operation_id=new_id(),
    )
    return commit(store, proposal)


class StagedTable(SparkTable):
    """A table that is not created, or not replaced, yet.

    ``replaces`` is the snapshot that it replaces, if any. ``manifests`` holds the written parts until the
    commit.
    """

    def __init__(
        self, bridge: Bridge, store: Store, replaces: Snapshot | None, head: Head, names: tuple[str, ...], abort: Hook
    ) -> None:
        self.bridge = bridge
        self.store = store
        self.replaces = replaces
        self.names = names
        self.head = head
        self.result: Result | None = None
        self.manifests: list[Any] = []
        self._abort = abort

    def java(self, planning: Sequence[Any] | None = None) -> Any:
        return self.bridge.implement([_CATALOG + "StagedTable", *INTERFACES], self, None, planning)

    def _value(self) -> tuple[object, ...]:
        return self.store, self.head.table_id, id(self)

    def version(self) -> str | None:
        return None

    def newWriteBuilder(self, info: Any) -> Any:  # noqa: N802  # Spark's name
        options = self.bridge.dict(info.options().asCaseSensitiveMap())
        chosen = check_create_options(options).get(FORMAT)
        self.head = _head_of_rows(self.head, chosen or self.head.format)
        return StagedWrite(self, {k: v for k, v in options.items() if not is_format_option(k)}).java()

    def commitStagedChanges(self) -> None:  # noqa: N802  # Spark's name
        written, self.manifests = self.manifests, []  # Spark aborts also where the commit may have landed
        try:
            self._commit(written)
        except TamisError as error:
            if error.code != "COMMIT_UNKNOWN":
                self.manifests = written
            raise

    def _commit(self, manifests: list[Any]) -> None:
        if self.replaces is None:
            create_with_parts(self.store, self.head, manifests)
        else:
            commit_replacement(self.store, self.replaces, self.head, manifests)

    def abortStagedChanges(self) -> None:  # noqa: N802  # Spark's name
        """Delete the written files of a table that was not made. Without a known outcome, they are left to vacuum."""
        discard_parts(self.store, self.manifests)
        if self.replaces is None:
            self._abort()


def _head_of_rows(head: Head, data_format: str) -> Head:
    """Return the head of a table made of a query's rows, without the defaults of the tables that the query reads.

    Raises ``InvalidInput`` (``UNKNOWN_FORMAT``, or as ``check_format``).
    """
    assert head.schema is not None
    check_format(data_format, head.schema)
    fields = tuple(replace(field, write_default=None) for field in head.schema.fields)
    return replace(head, schemas=(*head.schemas[:-1], replace(head.schema, fields=fields)), format=data_format)


class StagedWrite(WriteBuilder):
    def build(self) -> Any:
        return self.table.bridge.implement(["org.apache.spark.sql.connector.write.V1Write"], StagedV1Write(self))


class StagedV1Write(V1Write):
    def toInsertableRelation(self) -> Any:  # noqa: N802  # Spark's name
        relation = "org.apache.spark.sql.sources.InsertableRelation"
        return self.builder.table.bridge.implement([relation], StagedInsert(self.builder))


class StagedInsert(Insert):
    """Writes rows and leaves the commit to the staged table."""

    def write(self, df: Any, table: LoadedTable, options: Options) -> Result | None:
        assert isinstance(table, StagedTable)
        if table.head.schema is not None and identity_of(table.head.schema) is not None:
            raise unsupported_statement(
                "CREATE TABLE … AS SELECT with an identity column", "Create the table, then INSERT INTO it."
            )
        if table.replaces is not None:
            check_own_reads(df, table.bridge, table.store, table.replaces)
        table.manifests += write.write_rows(df, table.store, table.head, options)
        return None
