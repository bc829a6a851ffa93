"""``tamis.adopt``: a table over the files of a foreign one, which stay where they are."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from tamis.bridges.adoption.adopt_source import Adoption, adopt_by_reference, check_places
from tamis.bridges.sources.parquet_folder import parquet_folder
from tamis.bridges.sources.source_kinds import PARQUET, source_kind
from tamis.bridges.sources.source_table import SourceTable
from tamis.core.expr.column_definitions import columns
from tamis.core.types import DataType, Schema
from tamis.core.types.arrow import from_arrow_schema
from tamis.engine.scan.scan_options import items
from tamis.errors import InvalidInput
from tamis.storage.commit_log import Head, Operation
from tamis.storage.commit_log import create as create_state
from tamis.storage.object_store import Store, open_store
from tamis.storage.object_store.storage_options import SOURCE
from tamis.table import scan_request
from tamis.table.table import Table
from tamis.table.table_definition import new_head, with_columns
from tamis.world import new_id

REFERENCE, COPY = "reference", "copy"


def adopt(
    source: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    mode: str = REFERENCE,
    dry_run: bool = False,
    partition_types: str | None = None,
    binary_as_string: bool = False,
    properties: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Table | Adoption:
    """Create a table at ``path`` over the files of ``source``, a folder of Parquet files; return the table.

    Folders ``k=v`` become columns, with the types that Spark infers, or those of ``partition_types`` ("day DATE").
    ``mode="reference"``: the files stay where they are, none is read but for its footer, and none is ever written or
    deleted. ``mode="copy"``: their rows are written into the table. ``dry_run`` returns what would be adopted, and
    writes nothing. ``binary_as_string`` reads binaries that are not marked as texts as texts, as Hive and Impala wrote
    them. Options of the source's store begin with ``source.`` in ``storage_options``, here and whenever the table is
    opened.

    Raises ``AlreadyExists`` if there is a table at ``path``, ``NotFound`` (``SOURCE_NOT_FOUND``), ``InvalidInput`` and
    ``CorruptData`` naming the file or column that does not fit; then nothing was written.
    """
    mode = _mode(mode)
    store = open_store(scan_request.checked_path(path), dict(items(storage_options or {}, "storage_options")))
    place = store.beside(os.fspath(scan_request.checked_path(source)))
    check_places(store, place)
    types = {} if partition_types is None else _types(partition_types)
    table = _read(place, types, binary_as_string=scan_request.checked_flag("binary_as_string", binary_as_string))

    def make_head(schema: Schema) -> Head:
        return with_columns(new_head(None, (), "parquet", properties or {}), schema)

    if scan_request.checked_flag("dry_run", dry_run):
        return adopt_by_reference(store, table, make_head, dry_run=True)[1]
    if mode == COPY:
        return _copied(store, place, table, make_head)
    snapshot = adopt_by_reference(store, table, make_head)[0]
    assert snapshot is not None
    return Table(store, snapshot)


def _mode(given: str) -> str:
    if given not in {REFERENCE, COPY}:
        raise InvalidInput(
            f"mode cannot be {given!r}.", code="BAD_OPTION", name="mode", remedy=f"Give {REFERENCE!r} or {COPY!r}."
        )
    return given


def _types(text: str) -> dict[str, DataType]:
    return {f.name: f.type for f in from_arrow_schema(columns(text))}


def _read(place: Store, types: Mapping[str, DataType], *, binary_as_string: bool) -> SourceTable:
    """Return what lies at ``place``. Raises ``InvalidInput`` (``UNKNOWN_SOURCE_KIND``) if it cannot be adopted."""
    kind = source_kind(place)
    if kind == PARQUET:
        return parquet_folder(place, partition_types=types, binary_as_string=binary_as_string)
    raise InvalidInput(
        f"{place.url} is a table of {kind.capitalize()}, which this version cannot adopt.",
        code="UNKNOWN_SOURCE_KIND",
        name=place.url,
        remedy=f"Read its rows through {kind.capitalize()}, and append them.",
    )


def _copied(store: Store, place: Store, table: SourceTable, make_head: Callable[[Schema], Head]) -> Table:
    """Write the rows of a source into a new table, which is made once the source was found to be readable."""
    options = {f"{SOURCE}{name}": value for name, value in place.options.items()}
    aside = open_store(f"memory://adopt-{new_id()}", options)
    try:
        snapshot = adopt_by_reference(aside, table, make_head)[0]
        assert snapshot is not None
        made = Table(store, create_state(store, make_head(table.schema), Operation("create")))
        made.append(Table(aside, snapshot).scan().to_batches())
        return made
    finally:
        for entry in aside.list():
            aside.delete(entry.path)
