"""Turns manifests of new parts into a segment; small ones go into the commit, larger ones into files.

The files are written before the commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core import stats
from tamis.core.stats.json_paths.packed_paths import unpack_paths
from tamis.errors import InvalidInput
from tamis.storage.commit_log.checked_parts import drop_tested_constraints
from tamis.storage.commit_log.commit_objects import ROOT
from tamis.storage.commit_log.commit_record import Segment
from tamis.storage.commit_log.model import PART_COLUMNS
from tamis.storage.object_store.metadata_files import Columns, inline_table, store_rows
from tamis.storage.object_store.metadata_union import is_statistic, stack_tables
from tamis.storage.object_store.store import Store
from tamis.world import new_id

MANIFESTS = f"{ROOT}/manifest"


def manifest_path(segment_id: str, table: str = "parts") -> str:
    """Return the path of a segment's table that is a file."""
    return f"{MANIFESTS}/{segment_id}.parquet" if table == "parts" else f"{MANIFESTS}/{segment_id}.{table}.parquet"


def add_segment(store: Store, add: Sequence[pa.Table], tables: Mapping[str, pa.Table]) -> Segment | None:
    """Build the segment of the parts that ``add`` lists, with its stored tables; None if there are no parts.

    Raises ``InvalidInput`` (``BAD_MANIFEST``) for a manifest that lacks a column of ``PART_COLUMNS``, or has one twice.
    """
    manifests = [table for table in add if len(table)]
    for manifest in manifests:
        names = set(manifest.schema.names)
        if missing := [name for name in PART_COLUMNS if name not in names]:
            raise InvalidInput(
                f"A manifest lacks the column {missing[0]!r}.",
                code="BAD_MANIFEST",
                name=missing[0],
                remedy="Give every column of PART_COLUMNS.",
            )
        if len(names) < manifest.num_columns:
            name = next(name for name in names if manifest.schema.names.count(name) > 1)
            raise InvalidInput(
                f"A manifest has a duplicate column {name!r}.",
                code="BAD_MANIFEST",
                name=name,
                remedy="Give each column once.",
            )
    if not manifests:
        return None
    manifest, paths = unpack_paths(drop_tested_constraints(stack_tables(manifests)).combine_chunks())
    tables = {**paths, **tables}
    segment_id = new_id()
    schema_ids = pc.unique(manifest["schema_id"]).to_pylist()
    named = {"parts": manifest, **{name: table for name, table in tables.items() if len(table)}}
    union = (
        stats.union_statistics(manifest)
        if len(manifest) > 1
        else manifest.select([at for at, name in enumerate(manifest.schema.names) if is_statistic(name)])
    )
    at_rest: dict[str, Columns] = {
        name: store_rows(store, [table], table.schema, manifest_path(segment_id, name)) for name, table in named.items()
    }
    return Segment(
        segment_id=segment_id,
        parts=len(manifest),
        rows=pc.sum(manifest["rows"]).as_py() or 0,
        bytes=pc.sum(manifest["bytes"]).as_py() or 0,
        schema_id=schema_ids[0] if len(schema_ids) == 1 else None,
        tables=at_rest,
        statistics=inline_table(union) if union.num_columns else None,
    )
