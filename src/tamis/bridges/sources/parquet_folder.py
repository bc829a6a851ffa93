"""A folder of Parquet files, Hive-partitioned or not, as a source."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa

from tamis.bridges.sources.hive_partitions import (
    check_depth,
    partition_constants,
    partition_fields,
    partitions_of,
    with_partitions,
)
from tamis.bridges.sources.parquet_schema import merged_schema
from tamis.bridges.sources.source_footers import read_footers
from tamis.bridges.sources.source_kinds import PARQUET, data_files
from tamis.bridges.sources.source_table import FILES, SourceTable
from tamis.core.types import DataType, Field, Schema
from tamis.errors import InvalidInput
from tamis.storage.object_store import Store


def parquet_folder(
    store: Store, *, partition_types: Mapping[str, DataType] | None = None, binary_as_string: bool = False
) -> SourceTable:
    """Return the folder at the root of ``store``: every file that is not hidden is one of it.

    Raises ``NotFound`` (``SOURCE_NOT_FOUND``) and ``InvalidInput`` naming the file, column or folder that does not fit.
    """
    entries = data_files(store)
    paths = [entry.path for entry in entries]
    check_depth(paths)
    partitions = partitions_of(paths)
    footers = read_footers(store, entries)
    columns = merged_schema(footers, binary_as_string=binary_as_string).fields
    folders = partition_fields(partitions, partition_types or {})
    schema = Schema(_distinct(with_partitions(columns, folders))).assign_ids(0)
    named = {f.name.lower(): f for f in schema}
    constants = partition_constants(partitions, [named[f.name.lower()] for f in folders])
    texts: list[str | None] = [json.dumps(one) if one else None for one in constants]
    files = pa.table(
        {
            "path": [entry.path for entry in entries],
            "bytes": [entry.size for entry in entries],
            "rows": [footer.metadata.num_rows for footer in footers],
            "etag": [entry.etag for entry in entries],
            "modified_micros": [entry.modified_micros for entry in entries],
            "constants": texts,
            "deletion": [None] * len(entries),
        },
        schema=FILES,
    )
    return SourceTable(PARQUET, store.url, schema, files, footers=tuple(footers))


def _distinct(fields: Sequence[Field]) -> tuple[Field, ...]:
    seen: set[str] = set()
    for field in fields:
        if field.name.lower() in seen:
            raise InvalidInput(
                f"There are two columns of the name {field.name!r}, ignoring case.",
                code="AMBIGUOUS_COLUMN",
                name=field.name,
                remedy="Rename one of them in the source.",
            )
        seen.add(field.name.lower())
    if not fields:
        raise InvalidInput(
            "The files have no columns.",
            code="BAD_SCHEMA",
            name="schema",
            remedy="Adopt files with at least one column.",
        )
    return tuple(fields)
