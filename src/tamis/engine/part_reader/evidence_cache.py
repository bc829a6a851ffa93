"""Evidence that was decoded before: small tables of statistics by which a process judges filters again and again.

Law: what is remembered is evidence about bytes that never change (a version's manifest, a part's blocks), found again by the very objects that it was decoded from.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa

from tamis.core.stats import TableEvidence
from tamis.core.types import Schema
from tamis.storage.files import PartFile, PartRef
from tamis.storage.files.open_files import Recent

LIMIT = 16 * 2**20
LARGEST = 2**20
"""Bytes of statistics from which judging them takes so long that decoding does not matter."""

_tables = Recent[tuple[pa.Table, tuple[Schema, ...], TableEvidence]](LIMIT)
_pages = Recent[tuple[tuple[Schema, ...], pa.Int64Array, TableEvidence]](LIMIT)
_blocks = Recent[tuple[tuple[Schema, ...], TableEvidence]](LIMIT)


def evidence_of(table: pa.Table, schemas: Mapping[int, Schema]) -> TableEvidence:
    """The evidence of the manifest rows ``table``; decoded once for as long as the table and the schemas are the same objects."""
    key = (id(table), *map(id, schemas.values()))
    found = _tables.get(key)
    if found is None:
        found = table, tuple(schemas.values()), TableEvidence(table, schemas)  # they are held, so that their ids stay theirs
        if (size := table.nbytes) <= LARGEST:
            _tables.put(key, found, 2 * size + 4096)
    return found[-1]


def page_evidence(part: PartFile, ref: PartRef, url: str, schemas: Mapping[int, Schema]) -> tuple[pa.Int64Array, TableEvidence] | None:
    """What an open part says of its pages, a row each, and how many rows each has; None where it says nothing."""
    key = (url, ref.path, ref.bytes, ref.checksum, *map(id, schemas.values()))
    found = _pages.get(key)
    if found is None:
        table = part.pages()
        if table is None:
            return None
        table = table.append_column("schema_id", pa.array([ref.schema_id] * len(table), pa.int32()))
        found = tuple(schemas.values()), table["rows"].combine_chunks(), TableEvidence(table, schemas)
        _pages.put(key, found, 2 * table.nbytes + 4096)
    return found[1:]


def block_evidence(part: PartFile, ref: PartRef, url: str, ids: Collection[int], schemas: Mapping[int, Schema]) -> TableEvidence:
    """What an open part says of its blocks about the columns ``ids``, a row each."""
    key = (url, ref.path, ref.bytes, ref.checksum, frozenset(ids), *map(id, schemas.values()))
    found = _blocks.get(key)
    if found is None:
        table = part.statistics(ids)
        table = table.append_column("schema_id", pa.array([ref.schema_id] * len(table), pa.int32()))
        found = tuple(schemas.values()), TableEvidence(table, schemas)
        _blocks.put(key, found, 2 * table.nbytes + 4096)
    return found[-1]
