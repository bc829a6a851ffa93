"""Cache of decoded evidence: small statistics tables that a process evaluates repeatedly.

Invariant: cached evidence describes immutable bytes (a version's manifest, a part's blocks), and is keyed by
the identity of the objects it was decoded from.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa

from tamis.core.stats import TableEvidence
from tamis.core.types import Schema
from tamis.storage.files import PartFile, PartRef
from tamis.storage.object_store.lru_cache import LruCache

LIMIT = 16 * 2**20
LARGEST = 2**20
"""Bytes of statistics beyond which evaluation dominates the cost of decoding."""

_tables = LruCache[tuple[pa.Table, tuple[Schema, ...], TableEvidence]](LIMIT)
_pages = LruCache[tuple[tuple[Schema, ...], pa.Int64Array, TableEvidence]](LIMIT)
_blocks = LruCache[tuple[tuple[Schema, ...], TableEvidence]](LIMIT)


def evidence_of(table: pa.Table, schemas: Mapping[int, Schema]) -> TableEvidence:
    """Return the evidence of the manifest rows ``table``, decoded once per identity of table and schemas."""
    key = (id(table), *map(id, schemas.values()))
    found = _tables.get(key)
    if found is None:
        # referenced, so that their ids are not reused
        found = table, tuple(schemas.values()), TableEvidence(table, schemas)
        if (size := table.nbytes) <= LARGEST:
            _tables.put(key, found, 3 * size + 4096)
    return found[-1]


def page_evidence(
    part: PartFile, ref: PartRef, url: str, schemas: Mapping[int, Schema]
) -> tuple[pa.Int64Array, TableEvidence] | None:
    """Return an open part's page statistics: rows per page, and evidence per page; None if absent."""
    key = (url, *ref.file_key, ref.schema_id, *map(id, schemas.values()))
    found = _pages.get(key)
    if found is None:
        table = part.pages()
        if table is None:
            return None
        table = table.append_column("schema_id", pa.array([ref.schema_id] * len(table), pa.int32()))
        found = tuple(schemas.values()), table["rows"].combine_chunks(), TableEvidence(table, schemas)
        _pages.put(key, found, 2 * table.nbytes + 4096)
    return found[1:]


def block_evidence(
    part: PartFile, ref: PartRef, url: str, ids: Collection[int], schemas: Mapping[int, Schema]
) -> TableEvidence:
    """Return an open part's block statistics of the columns ``ids``, one row per block."""
    key = (url, *ref.file_key, ref.schema_id, frozenset(ids), *map(id, schemas.values()))
    found = _blocks.get(key)
    if found is None:
        table = part.statistics(ids)
        table = table.append_column("schema_id", pa.array([ref.schema_id] * len(table), pa.int32()))
        found = tuple(schemas.values()), TableEvidence(table, schemas)
        _blocks.put(key, found, 2 * table.nbytes + 4096)
    return found[-1]
