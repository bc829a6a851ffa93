"""The manifest of a source's files as parts of a table, with what their footers say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from tamis.bridges.adoption.readable_columns import check_ids, check_readable, check_schema
from tamis.bridges.adoption.source_statistics import footer_statistics
from tamis.bridges.sources.source_footers import SourceFooter, read_footers, source_changed_error
from tamis.bridges.sources.source_table import FILES, SourceTable
from tamis.core.stats.collection_limits import limits_within
from tamis.core.stats.statistics_budget import BYTES
from tamis.core.stats.statistics_columns import parse_name
from tamis.core.types import Schema
from tamis.errors import CorruptData, InvalidInput, NotFound
from tamis.storage.commit_log import Source
from tamis.storage.commit_log.deletion_vectors import read_bitmap
from tamis.storage.files.constant_columns import constant_columns
from tamis.storage.files.parquet.foreign_columns import (
    ForeignLayout,
    field_names,
    file_kind,
    foreign_names,
    unknown_names,
)
from tamis.storage.object_store import Store
from tamis.storage.object_store.parallel_requests import gather_requests
from tamis.storage.object_store.relative_paths import OUTSIDE
from tamis.storage.object_store.store import Entry
from tamis.world import new_id


@dataclass(frozen=True, slots=True)
class ExternalParts:
    """New parts over files of a source."""

    manifest: pa.Table = field(repr=False)
    deletions: dict[str, bytes] = field(repr=False)
    """The deletion vectors of those that lost rows in the source, by part id."""
    entries: tuple[Entry, ...] = field(repr=False)
    """The files as the store listed them."""
    extra_names: frozenset[tuple[str, ...]] = frozenset()
    """The names that files hold and the schema lacks, without what is below them."""
    bare_names: frozenset[str] | None = None
    """All names in files that are read by name; None: all were read by field ids."""


def external_parts(store: Store, table: SourceTable, source: Source, schema: Schema | None = None) -> ExternalParts:
    """Return the files of ``table`` as parts; ``store`` is that of the source.

    ``schema`` is the one under which they become parts, with its id (default: the source's). Files are listed and
    footers are read; nothing is written. Raises ``InvalidInput`` and ``CorruptData`` naming what does not fit.
    """
    schema = schema or table.schema
    check_schema(schema)
    files = table.files
    paths = files["path"]
    _check_inside(paths, source.root)
    entries = _entries(store, paths.to_pylist(), files["bytes"].to_pylist())
    footers = table.footers if table.footers is not None else read_footers(store, entries)
    _check_rows(footers, files["rows"].to_pylist())
    check_ids(footers, table)
    constants = files["constants"].to_pylist()
    extra, bare_names = _check_columns(footers, schema, source, constants)
    part_ids = [new_id() for _ in entries]
    count = len(entries)
    manifest = {
        "part_id": pa.array(part_ids, pa.string()),
        "path": paths.combine_chunks(),
        "format": pa.repeat("parquet", count),
        "schema_id": pa.repeat(pa.scalar(schema.schema_id, pa.int32()), count),
        "rows": pa.array([footer.metadata.num_rows for footer in footers], pa.int64()),
        "bytes": pa.array([entry.size for entry in entries], pa.int64()),
        "checksum": pa.nulls(count, pa.int64()),
        "footer_checksum": pa.array([footer.checksum for footer in footers], pa.int64()),
        "run_id": pa.nulls(count, pa.string()),
        "ordered": pa.repeat(pa.scalar(False), count),
        "blocks": pa.array([footer.blocks for footer in footers], pa.list_(pa.int32())),
        "source": pa.repeat(source.source_id, count),
        "constants": pa.array(constants, pa.string()),
        "etag": pa.array([entry.etag for entry in entries], pa.string()),
        "modified_micros": pa.array([entry.modified_micros for entry in entries], pa.int64()),
    }
    logged = {name: files[name].combine_chunks() for name in files.column_names if name not in FILES.names}
    found = footer_statistics(footers, schema, source, constants, _described_ids(schema, logged))
    statistics = found.with_metadata(logged, schema)
    gone, deletions = _deleted(part_ids, files["deletion"].to_pylist(), footers)
    live = pa.array([footer.metadata.num_rows > lost for footer, lost in zip(footers, gone, strict=True)], pa.bool_())
    return ExternalParts(pa.table(manifest | statistics).filter(live), deletions, tuple(entries), extra, bare_names)


def _deleted(
    part_ids: Sequence[str], vectors: Sequence[bytes | None], footers: Sequence[SourceFooter]
) -> tuple[list[int], dict[str, bytes]]:
    """Return how many rows each file lost, and the deletion vectors of the files that keep others.

    Raises ``CorruptData`` (``SOURCE_DIFFERS``) for a deleted row that the file does not have.
    """
    gone, kept = [], {}
    for part_id, vector, footer in zip(part_ids, vectors, footers, strict=True):
        rows = read_bitmap(vector, footer.path) if vector else BitMap()
        if len(rows) and rows.max() >= footer.metadata.num_rows:
            raise CorruptData(
                f"The source deletes row {rows.max()} of the file {footer.path}, which has {footer.metadata.num_rows}.",
                code="SOURCE_DIFFERS",
                name=footer.path,
                remedy="Repair the source; adopting it would give other rows than its own readers give.",
            )
        gone.append(len(rows))
        if vector and 0 < len(rows) < footer.metadata.num_rows:
            kept[part_id] = vector
    return gone, kept


def _described_ids(schema: Schema, logged: Mapping[str, pa.Array]) -> frozenset[int]:
    """Return the columns whose statistics are kept: as many as fit, and those of which the source says something."""
    ids = limits_within(schema, BYTES, ()).fields
    names = [parse_name(name) for name, values in logged.items() if values.null_count < len(values)]
    said = frozenset(name.id for name in names if name is not None)
    return said | frozenset(i for i, path in schema.paths.items() if path[0] in ids)


def _check_inside(paths: pa.ChunkedArray, root: str) -> None:
    outside = pc.match_substring_regex(paths, OUTSIDE).to_numpy(zero_copy_only=False)
    outside |= pc.match_substring_regex(paths, "^[A-Za-z][A-Za-z0-9+.-]*:").to_numpy(zero_copy_only=False)
    if outside.any():
        path = paths[int(np.flatnonzero(outside)[0])].as_py()
        raise InvalidInput(
            f"The file {path} lies outside of the source {root}.",
            code="OUTSIDE_SOURCE",
            name=path,
            remedy="Move the file below the source, or copy the rows with Spark.",
        )


def _entries(store: Store, paths: Sequence[str], sizes: Sequence[int | None]) -> list[Entry]:
    """Return what the store says of the files. Raises ``CorruptData`` (``SOURCE_CHANGED``) naming one that is gone."""
    listed = _listed(store, paths)
    found = []
    for path, size in zip(paths, sizes, strict=True):
        entry = listed.get(path)
        if entry is None:
            raise source_changed_error(path, "is gone")
        if size is not None and entry.size != size:
            raise source_changed_error(path, f"has {entry.size} bytes instead of {size}")
        found.append(entry)
    return found


FEW = 1_000
"""As many files are asked for one by one; a listing of a large source takes longer."""


def _listed(store: Store, paths: Sequence[str]) -> dict[str, Entry]:
    if len(paths) > FEW:
        return {entry.path: entry for entry in store.list()}

    def one(path: str) -> Entry | None:
        try:
            return store.entry(path)
        except NotFound:
            return None

    return {entry.path: entry for entry in gather_requests(store, one, paths) if entry is not None}


def _check_rows(footers: Sequence[SourceFooter], rows: Sequence[int | None]) -> None:
    for footer, said in zip(footers, rows, strict=True):
        if said is not None and said != footer.metadata.num_rows:
            raise CorruptData(
                f"The file {footer.path} has {footer.metadata.num_rows} rows, and its source says {said}.",
                code="SOURCE_DIFFERS",
                name=footer.path,
                remedy="Repair the source; adopting it would give other rows than its own readers give.",
            )


def _check_columns(
    footers: Sequence[SourceFooter], schema: Schema, source: Source, constants: Sequence[str | None]
) -> tuple[frozenset[tuple[str, ...]], frozenset[str] | None]:
    """Check each kind of file once; return the names that the schema lacks, and those in files without ids.

    What a file holds of a column that is constant is never read.
    """
    seen = set()
    extra: set[tuple[str, ...]] = set()
    bare_names: set[str] | None = None
    for footer, text in zip(footers, constants, strict=True):
        bare = footer.schema.remove_metadata()
        physical = footer.metadata.schema
        given = frozenset(constant_columns(text, schema))
        kind = (file_kind(bare), given, tuple(physical.column(at).physical_type for at in range(len(physical))))
        if kind not in seen:
            seen.add(kind)
            names = foreign_names(source, schema, bare)
            check_readable(footer, ForeignLayout(bare, schema, names), schema, given)
            extra.update(unknown_names(list(bare), schema.fields, names))
            if not names.by_id:
                bare_names = (bare_names or set()) | set(field_names(bare))
    return frozenset(extra), None if bare_names is None else frozenset(bare_names)
