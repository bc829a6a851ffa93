"""The part writer: batches in, durable parts out, one manifest row each. The same code runs locally and in Spark's workers.

Law: a part is yielded after its file is durable, and a file whose part was never yielded is an orphan that no table knows. Parts and
blocks hold rows in the order in which they came. Memory is bounded by one block, whatever comes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from tamis.core.stats import Collector
from tamis.core.stats.columns.clustering_tuples import ends
from tamis.core.stats.columns.page_statistics import NOTE, PageStatistics
from tamis.core.stats.json_paths.packed_paths import DROPPED, PACKED, packed
from tamis.core.stats.json_paths.path_rows import table_of
from tamis.core.stats.statistics_budget import budget, trim
from tamis.core.types import Schema
from tamis.engine.part_writer.clustering_order import Order
from tamis.engine.part_writer.conformed_batches import conform
from tamis.engine.part_writer.document_shredding import Shredder
from tamis.sizes import SIZES
from tamis.storage.files import PAGE_ROWS, PartWriter, WriteOptions, create_part
from tamis.storage.files.formats import format_named
from tamis.storage.files.parquet.row_group_statistics import NANS
from tamis.storage.files.spark_schema_json import schema_json
from tamis.storage.object_store import Store, open_store
from tamis.world import new_id

PART_BYTES = 128 * 2**20
BLOCK_BYTES = 4 * 2**20
"""Blocks hold about so many bytes of Arrow data, within the bounds of ``BLOCK_ROWS`` (measured: docs/design/0004)."""
BLOCK_ROWS = (SIZES.block_rows, SIZES.largest_block_rows)
WIDE_ROWS, WIDE_BYTES = SIZES.wide_block_rows, 32 * 2**20
"""Rows so wide that fewer would do are so many in a block, unless they are more bytes: the footer has an entry for each column of each block."""


@dataclass(frozen=True, slots=True)
class WriteSpec:
    """Where and how to write; picklable. ``block_rows`` 0: by the rows' width. ``collect``: statistics of every column."""

    url: str
    schema: Schema
    storage_options: Mapping[str, Any] = field(default_factory=dict)
    format: str = "parquet"
    part_bytes: int = PART_BYTES
    block_rows: int = 0
    collect: bool = True
    cluster_by: tuple[tuple[int, ...], ...] = ()
    stats_bytes: int | None = None
    """The budget of a part's statistics; None: ``tamis.core.stats.statistics_budget``'s own."""
    keep: tuple[tuple[int, str], ...] = ()
    """Columns (by id) and paths whose statistics go last where the budget is short."""
    run_id: str = ""
    """What parts that are sorted together share."""
    shred: tuple[tuple[int, str], ...] = ()
    """Paths (column id, path) of documents whose values are kept apart (``files.shredded_leaves``)."""
    folder: str = "data"
    """Where parts stand below the table's root."""
    by_page: int = 0
    """Of so many columns, the first ones, the file has statistics of every page."""
    page_rows: int = PAGE_ROWS


def write_parts(batches: Iterable[pa.RecordBatch], spec: WriteSpec) -> Iterator[pa.Table]:
    """Writes all rows; yields a manifest of one row (``PART_COLUMNS`` and statistics) per part. No rows, no parts.

    Batches are brought into the table's schema first (see ``conform``). A part ends with the block that reaches ``spec.part_bytes``.
    """
    store, part = open_store(spec.url, spec.storage_options), None
    format_named(spec.format)
    try:
        for block in _blocks(conform(batches, spec.schema), spec.block_rows):
            part = part or _Part(store, spec)
            part.write(block)
            if part.size >= spec.part_bytes:
                finished, part = part, None
                yield finished.close()
        if part is not None:
            finished, part = part, None
            yield finished.close()
    finally:
        if part is not None:
            part.abort()


def block_rows_for(batch: pa.RecordBatch) -> int:
    """A power of two of rows, so that a block of rows as wide as these is worth a read and not too much for one."""
    low, high = BLOCK_ROWS
    width = max(int(batch.nbytes) // max(len(batch), 1), 1)
    rows = max(BLOCK_BYTES // width, min(WIDE_ROWS, WIDE_BYTES // width))
    return min(max(1 << (max(rows, 1).bit_length() - 1), low), high)


def _blocks(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of exactly ``rows`` (the last has fewer)."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if not len(batch):
            continue
        rows = rows or block_rows_for(batch)
        held.append(batch)
        count += len(batch)
        while count >= rows:
            block, held = _cut(held, rows)
            count -= rows
            yield from block
    if count:
        yield from _cut(held, count)[0]


def _cut(held: list[pa.RecordBatch], rows: int) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
    """The first ``rows`` rows as one batch (several where 32-bit offsets do not suffice), and the rest."""
    taken: list[pa.RecordBatch] = []
    for at, batch in enumerate(held):
        if len(batch) >= rows:
            taken.append(batch.slice(0, rows))
            left = batch.slice(rows)
            rest = ([left] if len(left) else []) + held[at + 1 :]
            break
        taken.append(batch)
        rows -= len(batch)
    whole = taken if len(taken) == 1 else pa.Table.from_batches(taken).combine_chunks().to_batches()
    return whole, rest


class _Part:
    """One part being written."""

    def __init__(self, store: Store, spec: WriteSpec) -> None:
        self._spec, self._id = spec, new_id()
        self._path = f"{spec.folder}/{self._id}.{format_named(spec.format).extension}"
        options = WriteOptions(self._id, schema_json(spec.schema), spec.page_rows)
        self._shredder = Shredder(spec.schema, spec.shred)
        self._writer: PartWriter = create_part(store, self._path, spec.format, self._shredder.schema, options)
        self._collector = Collector(spec.schema) if spec.collect else None
        self._order = Order(spec.schema, spec.cluster_by) if spec.cluster_by else None
        paged = replace(spec.schema, fields=spec.schema.fields[: spec.by_page])
        self._pages = PageStatistics(paged, spec.page_rows) if spec.by_page else None
        self._ordered = bool(spec.cluster_by)
        self._first: pa.RecordBatch | None = None
        self._last: pa.RecordBatch | None = None
        self._rows = 0

    @property
    def size(self) -> int:
        return self._writer.size

    def write(self, block: pa.RecordBatch) -> None:
        self._writer.write(self._shredder.add(block))
        self._rows += len(block)
        if self._collector is not None:
            self._collector.update(block)
        if self._pages is not None:
            self._pages.update(block)
        if self._order is not None and self._ordered:
            # Looked at, not believed: whoever relies on the order later must be able to.
            joint = block.slice(0, 1) if self._last is None else pa.concat_batches([self._last, block.slice(0, 1)])
            self._ordered = self._order.holds(joint) and self._order.holds(block)
            self._first = self._first or block.take(pa.array([0]))  # a slice would hold the whole block
            self._last = block.slice(len(block) - 1)

    def close(self) -> pa.Table:
        notes = {} if self._collector is None else {NANS: json.dumps(self._collector.nans())}
        if self._pages is not None:
            notes[NOTE] = self._pages.note()
        done = self._writer.close(notes | self._shredder.notes)
        row = {
            "part_id": pa.array([self._id]),
            "path": pa.array([self._path]),
            "format": pa.array([self._spec.format]),
            "schema_id": pa.array([self._spec.schema.schema_id], pa.int32()),
            "rows": pa.array([self._rows], pa.int64()),
            "bytes": pa.array([done.bytes], pa.int64()),
            "checksum": pa.array([done.checksum], pa.int64()),
            "footer_checksum": pa.array([done.footer_checksum], pa.int64()),
            "run_id": pa.array([self._spec.run_id or None], pa.string()),
            "ordered": pa.array([self._ordered]),
            "blocks": pa.array([done.blocks], pa.list_(pa.int32())),
        }
        return pa.table(row | self._statistics() | self._ends())

    def _statistics(self) -> dict[str, pa.Array]:
        """Within the budget. The rows of JSON paths are packed into the part's own row: who commits it makes a table of them."""
        if self._collector is None:
            return {}
        room = budget(self._spec.stats_bytes, self._rows)
        left = trim(self._collector.finish(), self._collector.documents(), room, frozenset(self._spec.keep))
        found = dict(zip(left.statistics.column_names, left.statistics.columns, strict=True))
        if left.dropped:
            found[DROPPED] = pa.array([left.dropped], pa.int32())
        rows = table_of(left.documents)
        return found if rows is None else found | {PACKED: pa.array([packed(rows)], pa.binary())}

    def _ends(self) -> dict[str, pa.Array]:
        """The first and last clustering tuple of a part in order."""
        if self._collector is None or not self._ordered or self._first is None or self._last is None:
            return {}
        return dict(ends(self._spec.schema, self._spec.cluster_by, self._first, self._last))

    def abort(self) -> None:
        self._writer.abort()
