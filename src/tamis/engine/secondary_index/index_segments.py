"""Index segments as recorded in the table's log.

There are two kinds of entries: built ones (the index parts, and the ordered ids of the base parts they
cover), and unbuilt ones (the base parts, and the reason). An entry records only facts of its own build, never
a copy of the table's state.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import TamisError
from tamis.sizes import SIZES
from tamis.storage.commit_log import PART_COLUMNS, Snapshot
from tamis.storage.files import PartRef
from tamis.storage.object_store import Store
from tamis.storage.object_store.metadata_files import Columns, columns_from_json, store_rows
from tamis.storage.object_store.metadata_union import wanted_columns
from tamis.world import new_id, world

INLINE_COVERS = SIZES.index_inline_covers
"""The maximum number of base part ids stored inline in the commit."""
SCHEME = 3
"""The version of path entries.

Since 1 entries of texts say where they are unsure, since 2 those of dates and instants; since 3 those of columns of
JSON text hold the values of documents with an escaped single quote. Older ones answer no filters on such paths.
"""
FOLDER = "index"
"""The folder of index parts below the table's root."""
_COVERS = pa.schema([("part_id", pa.string())])


@dataclass(frozen=True, slots=True)
class IndexSegment:
    """An index entry; ``parts`` is None if it only records why nothing was built."""

    segment_id: str
    index_id: str
    micros: int
    schema_id: int
    rows: int
    bytes: int
    count: int
    """The number of index parts."""
    parts: Columns | None
    covered: tuple[str, ...] | Columns
    reason: str | None
    scheme: int = SCHEME

    def covers(self, store: Store) -> pa.Array:
        """Return the ids of the base parts by ordinal. Raises ``CorruptData``."""
        if isinstance(self.covered, tuple):
            return pa.array(self.covered, pa.string())
        return self.covered.read(store, lambda _: ["part_id"])["part_id"].combine_chunks()

    def manifest(self, store: Store, ids: frozenset[int]) -> pa.Table:
        """Return the index parts: ``PART_COLUMNS`` and the statistics of ``ids``. Raises ``CorruptData``."""
        assert self.parts is not None
        return self.parts.read(store, lambda names: wanted_columns(names, PART_COLUMNS, ids))


def built_entry(
    store: Store, index_id: str, schema_id: int, manifest: pa.Table, covers: Sequence[str]
) -> dict[str, Any]:
    """Return the entry of an index segment whose parts are durable."""
    segment_id = new_id()
    at_rest = store_rows(store, [manifest], manifest.schema, _path(segment_id, "parts"))
    return {
        "segment_id": segment_id,
        "index_id": index_id,
        "micros": world().now_micros(),
        "schema_id": schema_id,
        "scheme": SCHEME,
        "rows": sum(manifest["rows"].to_pylist()),
        "bytes": sum(manifest["bytes"].to_pylist()),
        "count": len(manifest),
        "manifest": at_rest.to_json(),
        "covers": covers_json(store, segment_id, covers),
    }


def unbuilt_entry(store: Store, index_id: str, covers: Sequence[str], reason: str) -> dict[str, Any]:
    """Return an entry that records why these base parts are not covered."""
    segment_id = new_id()
    return {
        "segment_id": segment_id,
        "index_id": index_id,
        "micros": world().now_micros(),
        "covers": covers_json(store, segment_id, covers),
        "reason": reason,
    }


def covers_json(store: Store, segment_id: str, covers: Sequence[str]) -> Any:
    """Return base part ids in the form an entry stores."""
    if len(covers) <= INLINE_COVERS:
        return list(covers)
    return store_rows(
        store, [pa.table([pa.array(covers, pa.string())], schema=_COVERS)], _COVERS, _path(segment_id, "covers")
    ).to_json()


def with_covers(store: Store, entry: IndexSegment, covers: Sequence[str]) -> dict[str, Any]:
    """Return a new entry for the same index parts, or of the same reason, with other base parts at the same places."""
    if entry.parts is None:
        return unbuilt_entry(store, entry.index_id, covers, entry.reason or "")
    segment_id = new_id()
    return {
        "segment_id": segment_id,
        "index_id": entry.index_id,
        "micros": entry.micros,
        "schema_id": entry.schema_id,
        "rows": entry.rows,
        "bytes": entry.bytes,
        "count": entry.count,
        "scheme": entry.scheme,
        "manifest": entry.parts.to_json(),
        "covers": covers_json(store, segment_id, covers),
    }


def renamed_covers(
    snapshot: Snapshot, store: Store, names: Mapping[str, str]
) -> tuple[tuple[dict[str, Any], ...], tuple[str, ...]]:
    """Return the entries to add and the ids of those to remove, so that indexes cover parts under new ids.

    ``names`` gives the new id by the old one, of parts over the same file. An entry that cannot be read stays.
    """
    old, new = pa.array(list(names), pa.string()), pa.array(list(names.values()), pa.string())
    add, remove = [], []
    for entry in live_entries(snapshot):
        try:
            covers = entry.covers(store)
        except TamisError:
            continue
        at = pc.index_in(covers, value_set=old)
        if at.null_count == len(at):
            continue
        add.append(with_covers(store, entry, pc.coalesce(new.take(at), covers).to_pylist()))
        remove.append(entry.segment_id)
    return tuple(add), tuple(remove)


def _path(segment_id: str, table: str) -> str:
    return f"_tamis/manifest/{segment_id}.index.{table}.parquet"


def live_entries(snapshot: Snapshot) -> list[IndexSegment]:
    """Return the live entries of all indexes, oldest first, ignoring unintelligible ones."""
    found = (_parsed(text) for text in snapshot.index_segments["detail"].to_pylist())
    return [entry for entry in found if entry is not None]


@lru_cache(maxsize=16_384)
def _parsed(text: str) -> IndexSegment | None:
    try:
        value = json.loads(text)
        covers = value["covers"]
        return IndexSegment(
            segment_id=value["segment_id"],
            index_id=value["index_id"],
            micros=value.get("micros", 0),
            schema_id=value.get("schema_id", -1),
            rows=value.get("rows", 0),
            bytes=value.get("bytes", 0),
            count=value.get("count", 0),
            parts=columns_from_json(value["manifest"]) if value.get("manifest") else None,
            covered=tuple(covers) if isinstance(covers, list) else columns_from_json(covers),
            reason=value.get("reason"),
            scheme=value.get("scheme", 0),
        )
    except (LookupError, TypeError, ValueError, TamisError):
        return None


def refs_of(parts: pa.Table) -> list[PartRef]:
    """Convert manifest rows to parts with all their rows."""
    known = {f.name for f in fields(PartRef)} - {"deletion", "candidates", "all_match"}
    rows = parts.select([name for name in parts.column_names if name in known]).to_pylist()
    return [PartRef(**{**row, "blocks": tuple(row["blocks"] or ())}) for row in rows]
