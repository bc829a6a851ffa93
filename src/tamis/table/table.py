"""The public ``Table`` object: a table at a path. It delegates all work to the engine.

Each scan reads the latest version, under the schema that the object held when it was opened; ``refresh()``
adopts the newest schema. A table opened with a version or timestamp stays there and is read only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.core.expr import Expr
from tamis.core.types import Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine import operations
from tamis.engine.operations import Result
from tamis.engine.scan import Options, Report, Scan
from tamis.engine.scan.index_stage import check_index_options
from tamis.engine.scan.reader_fence import check_fence, retype_null_tests
from tamis.engine.scan.scan_options import mapping_items
from tamis.errors import InvalidInput
from tamis.lazy_imports import lazy_module
from tamis.storage.commit_log import Head, Operation, Snapshot, load
from tamis.storage.commit_log import create as create_state
from tamis.storage.commit_log import history as state_history
from tamis.storage.commit_log.following import check_writable
from tamis.storage.object_store import Store, open_store
from tamis.table import scan_request
from tamis.table.change_verbs import ChangeVerbs
from tamis.table.export_verbs import ExportVerbs
from tamis.table.index_verbs import IndexVerbs
from tamis.table.read_verbs import ReadVerbs
from tamis.table.row_stream import MergeSource, arrow_stream, is_spark
from tamis.table.scan_request import RowFilter
from tamis.table.schema_source import schema_from
from tamis.table.schema_verbs import SchemaVerbs, check_names, check_same_table
from tamis.table.source_verbs import SourceVerbs
from tamis.table.table_definition import PENDING, logical_schema, new_head, with_schema
from tamis.table.upkeep_verbs import UpkeepVerbs
from tamis.world import world

if TYPE_CHECKING:
    from tamis.table import merge_builder, metadata_tables, polars_source, spark_dispatch, table_card
    from tamis.table.merge_builder import Merge
else:
    merge_builder = lazy_module("tamis.table.merge_builder")
    metadata_tables = lazy_module("tamis.table.metadata_tables")
    polars_source = lazy_module("tamis.table.polars_source")
    spark_dispatch = lazy_module("tamis.table.spark_dispatch")
    table_card = lazy_module("tamis.table.table_card")


def create(
    path: str | os.PathLike[str],
    schema: Any = None,
    *,
    cluster_by: Sequence[str] = (),
    format: str = "parquet",  # noqa: A002  # the public name
    properties: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Table:
    """Create an empty table at ``path``; without a schema, the first append brings it.

    ``schema`` is DDL text (``id BIGINT NOT NULL, ts TIMESTAMP``), a ``pyarrow.Schema`` or any object with
    ``__arrow_c_schema__``, or rows whose schema is taken: a DataFrame of pandas, Polars or Spark, or an Arrow
    table. The rows themselves are not written; ``append`` them.

    Raises ``AlreadyExists`` if there is a table already, ``InvalidInput`` or ``NotFound`` for an invalid
    argument.
    """
    head = new_head(schema_from(schema), cluster_by, format, properties or {})
    store = open_store(scan_request.checked_path(path), dict(mapping_items(storage_options or {}, "storage_options")))
    return Table(store, create_state(store, head, Operation("create")))


def open(  # noqa: A001  # the public name
    path: str | os.PathLike[str],
    version: int | None = None,
    timestamp: Any = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> Table:
    """Open the table at ``path``: the latest version, or a fixed version given by number or time.

    Always reads current metadata, bypassing this process's caches.
    Raises ``NotFound`` (``TABLE_NOT_FOUND``, ``VERSION_NOT_FOUND``), ``CorruptData``.
    """
    at = scan_request.load_arguments(version, timestamp)
    store = open_store(scan_request.checked_path(path), dict(mapping_items(storage_options or {}, "storage_options")))
    return Table(store, load(store, at.get("version"), at.get("timestamp_micros"), afresh=True), pinned=bool(at))


def scan_polars(
    table: Table | str | os.PathLike[str],
    version: int | None = None,
    timestamp: Any = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> Any:
    """Return a Polars ``LazyFrame`` over a table, or over the table at a path.

    A query reads only the columns that it needs, and skips parts and blocks by its filter. The version is that of
    the call. Raises ``InvalidInput`` (``MISSING_PACKAGE``) without Polars, and the errors of ``open``.
    """
    if not isinstance(table, Table):
        return polars_source.lazy_frame(open(table, version, timestamp, storage_options=storage_options).scan())
    if storage_options is not None:
        raise InvalidInput(
            "storage_options were given for a table that is open.",
            code="BAD_OPTION",
            name="storage_options",
            remedy="Give them to tamis.open(…), or give a path here.",
        )
    return polars_source.lazy_frame(table.scan(version=version, timestamp=timestamp))


class Table(ChangeVerbs, SchemaVerbs, IndexVerbs, ReadVerbs, UpkeepVerbs, ExportVerbs, SourceVerbs):
    """A table at a path. ``repr`` summarizes its state."""

    def __init__(self, store: Store, snapshot: Snapshot, *, pinned: bool = False) -> None:
        self._store = store
        self._snapshot = self._held = snapshot
        self._schema = snapshot.head.schema
        self._pinned = pinned

    @property
    def path(self) -> str:
        return self._store.url

    @property
    def schema(self) -> pa.Schema:
        """The schema this object reads under, with column ids in the field metadata; empty if none yet."""
        return to_arrow_schema(self._schema) if self._schema else pa.schema([])

    @property
    def schema_id(self) -> int | None:
        """The schema's position in the table's sequence, or None if there is none yet."""
        return self._schema.schema_id if self._schema else None

    @property
    def version(self) -> int:
        """The version that this object last loaded."""
        return self._snapshot.version

    @property
    def properties(self) -> dict[str, str]:
        return {name: value for name, value in self._snapshot.head.properties.items() if name != PENDING}

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that this object last loaded."""
        return self._snapshot

    @property
    def store(self) -> Store:
        return self._store

    def refresh(self) -> Table:
        """Adopt the newest version and schema; no-op for a table opened at a version."""
        if not self._pinned:
            self._adopt(load(self._store))
        return self

    def append(self, data: Any, *, merge_schema: bool = False) -> Result:
        """Append the rows of any Arrow stream or Spark DataFrame.

        Arrow streams are written locally in bounded memory, DataFrames by the executors. The memory of a batch must
        not change before the call returns. Rows are interpreted under the schema that this object holds: columns
        that the table has dropped since are dropped from them, and columns added since get their default. With
        ``merge_schema``, columns that only ``data`` has are added first, and columns that have a wider type in
        ``data`` are widened by the rules of ``alter().widen``. Raises ``SchemaMismatch`` for data that does not fit,
        and with ``merge_schema`` (``SCHEMA_CHANGED``) if a column was renamed or dropped since this object was opened.
        """
        if is_spark(data):
            return self._by_spark("append", data, merge_schema=merge_schema)
        stream = arrow_stream(data)
        if merge_schema:
            self.merge_columns(logical_schema(stream.schema))
        return self._write(
            stream,
            lambda snapshot, head, rows: operations.append(self._store, snapshot, head, rows, self._options(head)),
        )

    def overwrite(self, data: Any, row_filter: RowFilter | None = None, *, allow_outside: bool = False) -> Result:
        """Replace the rows that match ``row_filter`` (None: all) with those of ``data``, in one commit.

        Raises ``InvalidInput`` (``OUTSIDE_FILTER``) if a row of ``data`` does not match, unless
        ``allow_outside``. The filter of a Spark DataFrame's rows is read in the time zone and mode of its session.
        """
        allow = scan_request.checked_flag("allow_outside", allow_outside)
        if is_spark(data):
            plain = scan_request.plain_filter(row_filter, self._schema)
            return self._by_spark("overwrite", data, row_filter=plain, allow_outside=allow)

        def run(snapshot: Snapshot, head: Head, rows: pa.RecordBatchReader) -> tuple[Snapshot, Result]:
            options = self._options(head)
            options = replace(options, write_outside="allow") if allow else options
            conjuncts = None if row_filter is None else self.bind_filter(snapshot, row_filter, options)
            return operations.overwrite(self._store, snapshot, head, rows, conjuncts, options)

        return self._write(arrow_stream(data), run)

    def merge(self, data: Any, on: str) -> Merge:
        """Start a merge of ``data`` on the condition ``on``, such as ``target.id = source.id``.

        ``data`` is any Arrow stream or a Spark DataFrame. Add clauses, then call ``execute()``.
        """
        self._writable()
        if is_spark(data):
            return merge_builder.Merge(
                on, lambda merge, _: self._by_spark("merge", data, on=merge.on, clauses=merge.clauses)
            )
        source = MergeSource(data)
        return merge_builder.Merge(
            on, lambda merge, progress: self._merged(source.stream(), merge.on, merge.clauses, progress=progress)
        )

    def upsert(self, data: Any, on: Sequence[str] | str, *, progress: operations.Progress | None = None) -> Result:
        """Update the rows whose key columns ``on`` match a row of ``data``, and insert its other rows.

        Keys are compared as the table stores them: 1.5 is 1 in a column of whole numbers. The rows of
        a Spark DataFrame are computed once and kept on the executors meanwhile.

        Raises ``InvalidInput`` (``DUPLICATE_KEYS``).
        """
        keys = merge_builder.stored_keys(on, self._schema)
        condition = merge_builder.upsert_condition(keys)
        if is_spark(data):
            clauses = merge_builder.upsert_clauses(data.columns)
            return self._by_spark("merge", data, on=condition, clauses=clauses, keys=keys)
        rows = arrow_stream(data)
        return self._merged(
            rows, condition, merge_builder.upsert_clauses(rows.schema.names), keys=list(keys), progress=progress
        )

    def scan(
        self,
        row_filter: RowFilter | None = None,
        selected_fields: Sequence[str] | str = ("*",),
        *,
        version: int | None = None,
        timestamp: Any = None,
        now: Any = None,
        limit: int | None = None,
        order_by: Any = None,
        keys: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Scan:
        """Return a lazy scan of the latest version (or of ``version`` or ``timestamp``).

        ``row_filter`` is Spark SQL text, or a pyarrow or Polars expression that means the same there. ``keys``
        (``{"id": array}``) keeps only rows whose column is among the values: an Arrow array or anything that
        Arrow can convert to one. ``order_by`` ("ts DESC NULLS LAST, id", or a sequence) returns the first
        ``limit`` rows in that order; the order of ties is unspecified.

        Raises ``NotFound`` and ``InvalidInput`` for invalid arguments, ``SchemaFenced`` if the table's schema
        has diverged from what this object's schema can read of the filter; reading raises it for the selected fields.
        """
        start = world().monotonic()
        at = scan_request.load_arguments(version, timestamp)
        snapshot, schema, cost = self._at(at)
        seconds = world().monotonic() - start
        chosen = Options.resolve(options, None, snapshot.head.properties)
        check_index_options(options or {}, chosen, snapshot.head)
        pinned = self._pinned or bool(at)
        given = scan_request.ScanArguments(row_filter, selected_fields, now, limit, order_by, keys, pinned)
        scan = scan_request.make_scan(self._store, snapshot, schema, given, chosen, (*cost, seconds))
        check_fence(snapshot, scan.reader, Schema(()), [*scan.conjuncts, *(by.column for by in scan.order)])
        return scan

    def explain(
        self, row_filter: RowFilter | None = None, selected_fields: Sequence[str] | str = ("*",), **scan: Any
    ) -> Report:
        """Report what a scan with the same arguments would read, and why; reads metadata only."""
        return self.scan(row_filter, selected_fields, **scan).explain()

    def history(self, limit: int | None = None) -> pa.Table:
        """List the commits up to the newest version (or to the opened one), newest first."""
        return state_history(
            self._store, scan_request.checked_limit(limit), self._snapshot.commit if self._pinned else None
        )

    def detail(self) -> pa.Table:
        """Return one row: id, path, format, clustering, counts, properties, features."""
        return metadata_tables.detail(self._store, self._latest())

    def metadata(self, name: str) -> pa.Table:
        """Return a metadata table: ``history, snapshots, segments, parts, columns, schemas, indexes, constraints``."""
        return metadata_tables.table(self._store, self._latest(), name)

    def __repr__(self) -> str:
        return table_card.text(self._store.url, self._snapshot, self._schema)

    def _repr_html_(self) -> str:
        return table_card.markup(self._store.url, self._snapshot, self._schema)

    def _at(self, at: Mapping[str, int]) -> tuple[Snapshot, Schema | None, tuple[int, int]]:
        """Return the snapshot to read, its reader schema, and the cost of opening it (bytes, requests)."""
        if self._pinned and not at:
            return self._snapshot, self._schema, (0, 0)
        log = self._store.with_new_counters()
        if at:
            snapshot = load(log, at.get("version"), at.get("timestamp_micros"))
            check_same_table(snapshot, self._snapshot.head.table_id, None)
        else:
            snapshot = self._latest(log)
        schema = snapshot.head.schema if at else self._schema
        return snapshot, schema, (log.io.bytes + snapshot.io.bytes, log.io.requests + snapshot.io.requests)

    def _latest(self, store: Store | None = None) -> Snapshot:
        """Load the newest version, adopting its schema if this object has none. ``store`` counts the cost."""
        if self._pinned:
            return self._snapshot
        snapshot = self._newest(store)
        if self._schema is None:
            self._adopt(snapshot)
        self._snapshot = snapshot
        return snapshot

    def _latest_with_names(self) -> Snapshot:
        """Load the newest version for a row change that names columns.

        Raises ``SchemaFenced``, or ``SchemaMismatch`` if a name now refers to another column.
        """
        snapshot = self._latest()
        check_names(snapshot, self._schema)
        return snapshot

    def _newest(self, store: Store | None = None) -> Snapshot:
        """Load the newest version, whatever its schema.

        Raises ``SchemaFenced`` (``TABLE_REPLACED``) if it is of another table.
        """
        held = self._schema  # before it is loaded: another thread may add a column meanwhile
        snapshot = load(store or self._store)
        check_same_table(snapshot, self._snapshot.head.table_id, held)
        return snapshot

    def _write(
        self, rows: pa.RecordBatchReader, run: Callable[[Snapshot, Head, pa.RecordBatchReader], tuple[Snapshot, Result]]
    ) -> Result:
        self._writable()
        snapshot = self._latest()
        check_writable(snapshot.head, self.path)
        head = snapshot.head if snapshot.head.schema else with_schema(snapshot.head, rows.schema)
        if snapshot.head.schema:
            rows = self._adapt_to_current(rows, head)
        self._snapshot, result = run(snapshot, head, rows)
        self._schema = self._schema or self._snapshot.head.schema
        return result

    def _change(self, run: Callable[[Snapshot], tuple[Snapshot, Result]]) -> Result:
        """Apply ``run`` to the newest version, and retry on later ones if concurrent commits conflict."""
        self._writable()
        check_writable(self._latest().head, self.path)
        self._snapshot, result = operations.retry_conflicts(self._latest, run)
        return result

    def _merged(
        self, rows: pa.RecordBatchReader, on: str, clauses: Sequence[operations.MergeClause], **more: Any
    ) -> Result:
        self._writable()
        check_writable(self._latest().head, self.path)
        options = self._options(self._latest().head)
        self._snapshot, result = operations.merge_rows(
            self._store, self._latest_with_names, rows, on, clauses, options, **more
        )
        return result

    def _by_spark(self, verb: str, data: Any, **arguments: Any) -> Result:
        self._writable()
        if verb not in {"append", "overwrite"}:
            arguments["latest"] = self._latest_with_names
        result = spark_dispatch.run_on_spark(verb, self, data, **arguments)
        self.refresh() if self._schema is None else self._latest()
        return result

    def bind_filter(self, snapshot: Snapshot, row_filter: RowFilter, options: Options) -> tuple[Expr, ...]:
        """Resolve a filter under this object's schema. Raises ``SchemaFenced`` if a named column has been replaced."""
        held = self._schema or snapshot.schema or Schema(())
        found = retype_null_tests(scan_request.parse_filter(row_filter, held, options)[0], snapshot.schema or held)
        check_fence(snapshot, held, Schema(()), found)
        return found

    def _writable(self) -> None:
        if self._pinned:
            raise InvalidInput(
                f"The table was opened at version {self.version} and is read only.",
                code="PINNED",
                name=self.path,
                remedy="Open it without version and timestamp to write.",
            )

    def _options(self, head: Head) -> Options:
        return Options.resolve(None, None, head.properties)
