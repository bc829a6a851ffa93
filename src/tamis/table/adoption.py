"""``tamis.adopt``: a table over the files of a foreign one, which stay where they are."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tamis.bridges.adoption.adopt_source import Adoption, adopt_by_reference, check_places
from tamis.bridges.adoption.log_sources import check_options, read_log_source
from tamis.bridges.sources.parquet_folder import parquet_folder
from tamis.bridges.sources.source_kinds import ICEBERG, PARQUET, source_kind
from tamis.bridges.sources.source_table import SourceTable
from tamis.core.expr.column_definitions import parse_columns
from tamis.core.types import DataType, Schema
from tamis.core.types.arrow import from_arrow_schema
from tamis.engine.operations.rows.append import create_with_rows
from tamis.engine.scan import Options
from tamis.engine.scan.scan_options import mapping_items
from tamis.errors import InvalidInput
from tamis.storage.commit_log import Head
from tamis.storage.commit_log.features import FOLLOWING
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
    follow: bool = False,
    source_options: Mapping[str, Any] | None = None,
    properties: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Table | Adoption:
    """Create a table at ``path`` over the files of ``source``; return the table.

    The source is a folder of Parquet files, a Delta table, or an Iceberg table. Folders ``k=v`` of Parquet files become
    columns, with the types that Spark infers, or those of ``partition_types`` ("day DATE"); ``binary_as_string`` reads
    binaries in them that are not marked as texts as texts, as Hive and Impala wrote them. ``source_options`` say how a
    Delta or an Iceberg table is read, such as ``version``, or the ``catalog`` that knows the table ``source``.

    ``mode="reference"``: the files stay where they are, none is read but for its footer, and none is ever written or
    deleted. ``mode="copy"``: their rows are written into the table. ``follow=True`` keeps a Delta or an Iceberg
    table's position, so that ``Table.sync`` takes its later versions; nothing else changes the rows and columns then.
    ``dry_run`` returns what would be adopted, and writes nothing. Options of the source's store begin with ``source.``
    in ``storage_options``, here and whenever the table is opened.

    Raises ``AlreadyExists`` if there is a table at ``path``, ``NotFound`` (``SOURCE_NOT_FOUND``), ``InvalidInput`` and
    ``CorruptData`` naming the file or column that does not fit; then nothing was written.
    """
    asked = AdoptionOptions(mode, dry_run, partition_types, binary_as_string, follow, source_options, properties)
    store = open_store(scan_request.checked_path(path), dict(mapping_items(storage_options or {}, "storage_options")))
    table, adoption = adopt_into(store, source, asked)
    return adoption if table is None else table


@dataclass(frozen=True, slots=True)
class AdoptionOptions:
    """What a caller of ``adopt`` asked for, unchecked."""

    mode: str = REFERENCE
    dry_run: bool = False
    partition_types: str | None = None
    binary_as_string: bool = False
    follow: bool = False
    source_options: Mapping[str, Any] | None = None
    properties: Mapping[str, Any] | None = None
    name: str = ""
    """What the table is called in its catalog."""


def adopt_into(store: Store, source: str | os.PathLike[str], asked: AdoptionOptions) -> tuple[Table | None, Adoption]:
    """Create the table of ``store`` as ``adopt`` does; return it (None: a dry run), and what was adopted."""
    following = scan_request.checked_flag("follow", asked.follow)
    mode = _mode(asked.mode, follow=following)
    types = {} if asked.partition_types is None else _types(asked.partition_types)
    texts = scan_request.checked_flag("binary_as_string", asked.binary_as_string)
    given = dict(mapping_items(asked.source_options or {}, "source_options"))
    text = os.fspath(scan_request.checked_path(source))
    table = _from_log(store, text, given, follow=following)
    if table is None:
        table = parquet_folder(store.open_source_store(text), partition_types=types, binary_as_string=texts)
    elif types or texts:
        raise InvalidInput(
            f"A source of the kind {table.kind!r} says the types of its columns itself.",
            code="BAD_OPTION",
            name="partition_types" if types else "binary_as_string",
            remedy="Leave partition_types and binary_as_string out: they are for folders of Parquet files.",
        )
    place = store.open_source_store(table.root)
    check_places(store, place)

    def make_head(schema: Schema) -> Head:
        head = replace(new_head(None, (), "parquet", asked.properties or {}), name=asked.name)
        head = with_columns(head, schema)
        return replace(head, writer_features=(*head.writer_features, FOLLOWING)) if following else head

    if scan_request.checked_flag("dry_run", asked.dry_run):
        return None, adopt_by_reference(store, table, make_head, dry_run=True)[1]
    if mode == COPY:
        return _copied(store, place, table, make_head)
    snapshot, adoption = adopt_by_reference(store, table, make_head)
    assert snapshot is not None
    return Table(store, snapshot), adoption


def _mode(given: str, *, follow: bool) -> str:
    if given not in {REFERENCE, COPY}:
        raise InvalidInput(
            f"mode cannot be {given!r}.", code="BAD_OPTION", name="mode", remedy=f"Give {REFERENCE!r} or {COPY!r}."
        )
    if follow and given == COPY:
        raise InvalidInput(
            "A copy of a source does not follow it.",
            code="BAD_OPTION",
            name="follow",
            remedy='Give mode="reference", or leave follow out.',
        )
    return given


def _types(text: str) -> dict[str, DataType]:
    return {f.name: f.type for f in from_arrow_schema(parse_columns(text))}


def _from_log(store: Store, source: str, given: dict[str, Any], *, follow: bool) -> SourceTable | None:
    """Return the source at ``source`` if it has a log; None for a folder of Parquet files."""
    if given.get("catalog") is not None:
        kind, place, storage = ICEBERG, source, store.options_for_source()
    elif source.endswith(".metadata.json"):
        kind, place, storage = ICEBERG, source, store.open_source_store(source).options
    else:
        found = store.open_source_store(source)
        kind, place, storage = source_kind(found), found.url, found.options
    if kind == PARQUET:
        check_options(kind, given, follow=follow)
        if follow:
            raise InvalidInput(
                f"{place} is a folder of Parquet files, which has no versions that a table could follow.",
                code="SOURCE_FIXED",
                name=place,
                remedy="Adopt it without follow=True; adopt it again when its files have changed.",
            )
        return None
    if "timestamp" in given:
        given["timestamp"] = scan_request.load_arguments(None, given["timestamp"])["timestamp_micros"]
    return read_log_source(kind, place, storage, given, follow=follow)


def _copied(
    store: Store, place: Store, table: SourceTable, make_head: Callable[[Schema], Head]
) -> tuple[Table, Adoption]:
    """Write the rows of a source into a new table, in one commit."""
    options = {f"{SOURCE}{name}": value for name, value in place.options.items()}
    aside = open_store(f"memory://adopt-{new_id()}", options)
    try:
        snapshot, adoption = adopt_by_reference(aside, table, make_head)
        assert snapshot is not None
        head = make_head(table.schema)
        rows = Table(aside, snapshot).scan().to_batches()
        made = create_with_rows(store, head, rows, Options.resolve(None, None, head.properties))
        return Table(store, made), replace(adoption, version=made.version)
    finally:
        for entry in aside.list():
            aside.delete(entry.path)
