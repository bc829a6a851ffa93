"""The one object that a user holds: a table at a path. It delegates, and decides nothing.

A held table follows, a query does not: each scan reads the latest version, under the schema that the table was opened with;
``refresh()`` adopts the newest. Opened with a version or timestamp, it stays there, and is read only.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from tamis import maintain
from tamis.errors import InvalidInput, SchemaFenced
from tamis.expr import Expr
from tamis.maintain import Result
from tamis.scan import Options, Report, Scan
from tamis.scan.instant import micros
from tamis.scan.options import items
from tamis.schema import check_table_reader
from tamis.state import Head, Operation, Snapshot, Store, load, open_store
from tamis.state import create as create_state
from tamis.state import history as state_history
from tamis.table import card, metadata
from tamis.table.definition import PENDING, new_head, with_schema
from tamis.table.request import checked_limit, make_scan, parse_filter
from tamis.table.stream import arrow_stream, is_spark
from tamis.types import Schema
from tamis.types.arrow import to_arrow_schema
from tamis.world import world


def create(
    path: str | os.PathLike[str],
    schema: pa.Schema | None = None,
    *,
    cluster_by: Sequence[str] = (),
    format: str = "parquet",  # noqa: A002  # the public name
    properties: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Table:
    """Makes a table at ``path``; without a schema the first append brings it.

    Raises ``AlreadyExists`` where one is, ``InvalidInput`` or ``NotFound`` naming what cannot be.
    """
    head = new_head(schema, cluster_by, format, properties or {})
    store = open_store(_url(path), dict(items(storage_options or {}, "storage_options")))
    return Table(store, create_state(store, head, Operation("create")))


def open(  # noqa: A001  # the public name
    path: str | os.PathLike[str],
    version: int | None = None,
    timestamp: Any = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> Table:
    """The table at ``path``: the latest version and what follows it, or the one of that number or time, for good.

    What is stored now is read, whatever this process remembers. Raises ``NotFound`` (``TABLE_NOT_FOUND``, ``VERSION_NOT_FOUND``), ``CorruptData``.
    """
    at = _point(version, timestamp)
    store = open_store(_url(path), dict(items(storage_options or {}, "storage_options")))
    return Table(store, load(store, **at, afresh=True), pinned=bool(at))


class Table:
    """A table at a path. ``repr`` shows what it holds."""

    def __init__(self, store: Store, snapshot: Snapshot, *, pinned: bool = False) -> None:
        self._store = store
        self._snapshot = snapshot
        self._schema = snapshot.head.schema
        self._pinned = pinned

    @property
    def path(self) -> str:
        return self._store.url

    @property
    def schema(self) -> pa.Schema:
        """The schema that this object reads under, column ids in the fields' metadata; empty for a table that has none yet."""
        return to_arrow_schema(self._schema) if self._schema else pa.schema([])

    @property
    def schema_id(self) -> int | None:
        """The schema's position in the table's sequence, or None before the first."""
        return self._schema.schema_id if self._schema else None

    @property
    def version(self) -> int:
        """The version that this object saw last."""
        return self._snapshot.version

    @property
    def properties(self) -> dict[str, str]:
        return {name: value for name, value in self._snapshot.head.properties.items() if name != PENDING}

    @property
    def snapshot(self) -> Snapshot:
        """The state that this object saw last."""
        return self._snapshot

    @property
    def store(self) -> Store:
        return self._store

    def refresh(self) -> Table:
        """Adopts the newest version and schema; a table opened at a version stays there."""
        if not self._pinned:
            self._snapshot = load(self._store)
            self._schema = self._snapshot.head.schema
        return self

    def append(self, data: Any) -> Result:
        """Adds the rows of any Arrow stream (locally, in bounded memory), or of a Spark DataFrame (by its executors)."""
        if is_spark(data):
            return self._by_spark("append", data)
        return self._write(
            arrow_stream(data), lambda snapshot, head, rows: maintain.append(self._store, snapshot, head, rows, self._options(head))
        )

    def overwrite(self, data: Any, row_filter: str | Expr | None = None) -> Result:
        """Replaces the rows that ``row_filter`` matches (None: all) by those of ``data``, in one commit."""
        if is_spark(data):
            return self._by_spark("overwrite", data, row_filter=row_filter)

        def run(snapshot: Snapshot, head: Head, rows: pa.RecordBatchReader) -> tuple[Snapshot, Result]:
            options = self._options(head)
            conjuncts = None if row_filter is None else parse_filter(row_filter, head.schema, options)[0]
            return maintain.overwrite(self._store, snapshot, head, rows, conjuncts, options)

        return self._write(arrow_stream(data), run)

    def scan(
        self,
        row_filter: str | Expr | None = None,
        selected_fields: Sequence[str] | str = ("*",),
        *,
        version: int | None = None,
        timestamp: Any = None,
        now: Any = None,
        limit: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Scan:
        """A lazy scan of the latest version (or of ``version``, ``timestamp``). ``row_filter`` is Spark SQL text.

        Raises ``NotFound`` and ``InvalidInput`` for what cannot be, ``SchemaFenced`` where the table has left this object's schema behind.
        """
        start = world().monotonic()
        at = _point(version, timestamp)
        snapshot, schema, cost = self._at(at)
        seconds = world().monotonic() - start
        return make_scan(
            self._store,
            snapshot,
            schema,
            row_filter,
            selected_fields,
            options=Options.resolve(options, None, snapshot.head.properties),
            now=now,
            limit=limit,
            opened=(*cost, seconds),
        )

    def explain(self, row_filter: str | Expr | None = None, selected_fields: Sequence[str] | str = ("*",), **scan: Any) -> Report:
        """What the scan of the same arguments would read, and why not less; reads metadata only."""
        return self.scan(row_filter, selected_fields, **scan).explain()

    def history(self, limit: int | None = None) -> pa.Table:
        """The commits, newest first."""
        return state_history(self._store, checked_limit(limit))

    def detail(self) -> pa.Table:
        """One row: id, path, format, clustering, counts, properties, features."""
        return metadata.detail(self._store, self._latest())

    def metadata(self, name: str) -> pa.Table:
        """One of the metadata tables ``history, snapshots, segments, parts, columns, schemas``."""
        return metadata.table(self._store, self._latest(), name)

    def __repr__(self) -> str:
        return card.text(self._store.url, self._snapshot, self._schema)

    def _repr_html_(self) -> str:
        return card.markup(self._store.url, self._snapshot, self._schema)

    def _at(self, at: Mapping[str, int]) -> tuple[Snapshot, Schema | None, tuple[int, int]]:
        """The snapshot to read, the schema to read it under, and what opening it cost (bytes, requests)."""
        if self._pinned and not at:
            return self._snapshot, self._schema, (0, 0)
        log = self._store.fresh()
        snapshot = self._same(load(log, at.get("version"), at.get("timestamp_micros"))) if at else self._latest(log)
        schema = snapshot.head.schema if at else self._schema
        return snapshot, schema, (log.io.bytes + snapshot.io.bytes, log.io.requests + snapshot.io.requests)

    def _latest(self, store: Store | None = None) -> Snapshot:
        """The newest version, if this object's schema is still valid for it. ``store`` counts what it costs."""
        if self._pinned:
            return self._snapshot
        snapshot = self._same(load(store or self._store))
        if self._schema is None:
            self._schema = snapshot.head.schema
        elif self._schema != snapshot.head.schema:
            check_table_reader(snapshot.head.schemas, self._schema)
        self._snapshot = snapshot
        return snapshot

    def _same(self, snapshot: Snapshot) -> Snapshot:
        """``snapshot`` itself. Raises ``SchemaFenced`` where it is of another table, made at this path after this one was dropped."""
        if snapshot.head.table_id != self._snapshot.head.table_id:
            raise SchemaFenced(
                f"Another table lies at {self.path} now: the one that was opened is gone.",
                code="TABLE_REPLACED",
                name=self.path,
                remedy="Open it again, or call refresh(), to go on with the table that is there now.",
            )
        return snapshot

    def _write(self, rows: pa.RecordBatchReader, run: Callable[[Snapshot, Head, pa.RecordBatchReader], tuple[Snapshot, Result]]) -> Result:
        self._writable()
        snapshot = self._latest()
        head = snapshot.head if snapshot.head.schema else with_schema(snapshot.head, rows.schema)
        self._snapshot, result = run(snapshot, head, rows)
        self._schema = self._schema or self._snapshot.head.schema
        return result

    def _by_spark(self, verb: str, data: Any, **arguments: Any) -> Result:
        self._writable()
        result: Result = getattr(importlib.import_module("tamis.spark.write"), verb)(self, data, **arguments)
        self.refresh() if self._schema is None else self._latest()
        return result

    def _writable(self) -> None:
        if self._pinned:
            raise InvalidInput(
                f"The table was opened at version {self.version} and is read only.",
                code="PINNED",
                name=self.path,
                remedy="Open it without version and timestamp to write.",
            )

    @staticmethod
    def _options(head: Head) -> Options:
        return Options.resolve(None, None, head.properties)


def _point(version: Any, timestamp: Any) -> dict[str, int]:
    """The arguments of ``state.load`` for a version or a time. Raises ``InvalidInput`` for both at once, or what is neither."""
    if version is not None and timestamp is not None:
        raise InvalidInput("A version and a timestamp are given.", code="BAD_VERSION", name="version", remedy="Give one of them.")
    if version is not None:
        if isinstance(version, bool) or not isinstance(version, int) or version < 0:
            raise InvalidInput(f"{version!r} is not a version.", code="BAD_VERSION", name=str(version), remedy="Versions are 0, 1, 2, ….")
        return {"version": version}
    return {} if timestamp is None else {"timestamp_micros": micros(timestamp)}


def _url(path: Any) -> str:
    if not isinstance(path, str | os.PathLike) or not str(path).strip():
        raise InvalidInput(
            f"{path!r} is not a path.", code="BAD_PATH", name=repr(path), remedy="Give a directory or a URL such as s3://bucket/table."
        )
    return os.fspath(path)
