"""Reads a version of a Delta table as files for an adoption, from its log alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tamis.bridges.sources.delta_deletions import deletion_bitmaps
from tamis.bridges.sources.delta_log import DeltaSnapshot, in_commit_since, list_log, read_snapshot, version_at
from tamis.bridges.sources.delta_partitions import partition_constants
from tamis.bridges.sources.delta_schema import DeltaSchema, delta_schema
from tamis.bridges.sources.delta_statistics import file_statistics
from tamis.bridges.sources.foreign_paths import Root, source_root
from tamis.bridges.sources.source_table import FILES, SourceTable
from tamis.core.types import Schema


@dataclass(frozen=True, slots=True)
class DeltaOptions:
    """How a Delta table is read.

    ``outside``: files outside its root are allowed. ``zone``: the time zone of partition timestamps without one.
    """

    storage_options: Mapping[str, Any] | None = None
    outside: bool = False
    zone: str | None = None


def read_delta(
    place: str,
    options: DeltaOptions = DeltaOptions(),
    *,
    version: int | None = None,
    timestamp_micros: int | None = None,
    previous: Schema | None = None,
) -> SourceTable:
    """Return a version of the Delta table at ``place``: the newest, the given one, or the newest at a time.

    ``previous`` is our schema of an earlier version, whose column ids are kept. Raises ``NotFound``, ``CorruptData``
    and ``InvalidInput`` as the modules that it consists of do.
    """
    root = source_root(place, options.storage_options, outside=options.outside)
    listing = list_log(root.store)
    if timestamp_micros is not None:
        newest = read_snapshot(root.store, listing=listing)
        configuration = newest.metadata.get("configuration") or {}
        since = in_commit_since(configuration, root.store.url)
        version = version_at(root.store, listing, timestamp_micros, in_commit_since=since)
    return source_table(root, read_snapshot(root.store, version, listing=listing), options, previous)


def source_table(
    root: Root, snapshot: DeltaSnapshot, options: DeltaOptions, previous: Schema | None, highest: int = 0
) -> SourceTable:
    """Return a snapshot as a source; new columns get ids above ``highest``."""
    schema = delta_schema(snapshot.metadata, root.store.url, previous, highest)
    return SourceTable(
        "delta",
        root.store.url,
        schema.schema,
        source_files(root, snapshot.files, schema, options.zone),
        version=str(snapshot.version),
        timestamp_micros=snapshot.micros,
        column_names=schema.column_names,
        by_field_id=schema.mode == "id",
        properties={"table_id": snapshot.metadata.get("id")},
    )


def source_files(root: Root, added: pa.Table, schema: DeltaSchema, zone: str | None) -> pa.Table:
    """Return added files as ``FILES`` with statistics."""
    partitions = {p.field.id for p in schema.partitions}
    bounds = file_statistics(added, [p for p in schema.places if p.field.id not in partitions])
    rows = bounds.pop("rows")
    fixed = partition_constants(_whole(added["partitionValues"]), schema.partitions, rows, zone)
    columns = {
        "path": root.resolve_all(_whole(added["path"]), encoded=True),
        "bytes": _whole(added["size"]),
        "rows": rows,
        "etag": pa.nulls(len(added), pa.string()),
        "modified_micros": pa.nulls(len(added), pa.int64()),
        "constants": fixed.pop("constants"),
        "deletion": deletion_bitmaps(root, _whole(added["deletionVector"]), rows),
    }
    assert list(columns) == FILES.names
    return pa.table({**columns, **fixed, **bounds})


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
