"""The part writer: batches in, durable parts out, one manifest row each. Runs locally and in Spark's workers.

Invariant: a part is yielded after its file is durable; a file whose part was never yielded is an orphan that
no table references. Parts and blocks keep the input's row order. Memory is bounded by one block.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from tamis.core.stats import Collector
from tamis.core.stats.collection_limits import limits_within
from tamis.core.stats.columns.clustering_tuples import end_statistics
from tamis.core.stats.columns.page_statistics import NOTE, PageStatistics
from tamis.core.stats.statistics_budget import part_budget
from tamis.core.stats.statistics_columns import Figure
from tamis.core.types import Schema
from tamis.core.types.bounded_batches import joined_batches
from tamis.core.types.dictionary_arrays import LARGEST_ARRAY
from tamis.engine.part_writer.clustering_order import ClusteringOrder
from tamis.engine.part_writer.collecting_thread import CollectingThread
from tamis.engine.part_writer.conformed_batches import conform_batches
from tamis.engine.part_writer.document_shredding import Shredder
from tamis.engine.part_writer.identity_values import Numbering, number_rows
from tamis.engine.part_writer.row_checks import check_batches
from tamis.engine.part_writer.trimmed_statistics import trimmed_statistics
from tamis.sizes import SIZES
from tamis.storage.commit_log import Constraint
from tamis.storage.commit_log.checked_parts import add_tested_constraints
from tamis.storage.files import PartWriter, WriteOptions, create_part, page_rows_for
from tamis.storage.files.formats import format_named
from tamis.storage.files.parquet.row_group_statistics import NANS
from tamis.storage.files.spark_schema_json import schema_json
from tamis.storage.object_store import Store, open_store
from tamis.world import new_id

PART_BYTES = 128 * 2**20
BLOCK_ROWS = (SIZES.block_rows, SIZES.largest_block_rows)
"""The fewest and the most rows of a block (measured: docs/design/0004)."""
WIDE_ROWS, WIDE_BYTES = SIZES.wide_block_rows, 32 * 2**20
"""The minimum rows per block for wide rows, and the bytes that cap it.

The footer has an entry per column and block, so that blocks of few rows make it large.
"""


@dataclass(frozen=True, slots=True)
class WriteSpec:
    """Where and how to write; picklable.

    ``block_rows`` 0: derived from the row width. ``collect``: whether to collect statistics.
    """

    url: str
    schema: Schema
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    format: str = "parquet"
    part_bytes: int = PART_BYTES
    block_rows: int = 0
    collect: bool = True
    cluster_by: tuple[tuple[int, ...], ...] = ()
    stats_bytes: int | None = None
    """The budget of a part's statistics; None: the default of ``tamis.core.stats.statistics_budget``."""
    keep: tuple[tuple[int, str], ...] = ()
    """Columns (by id) and paths whose statistics are never dropped."""
    recent: tuple[tuple[int, str], ...] = ()
    """Columns (by id) and paths whose statistics are dropped last when the budget is short."""
    run_id: str = ""
    """Shared by parts that were sorted together."""
    shred: tuple[tuple[int, str], ...] = ()
    """Document paths (column id, path) whose values are stored separately (``files.shredded_leaves``)."""
    folder: str = "data"
    """The folder of the parts below the table's root."""
    by_page: int = 0
    """The number of leading columns with statistics per page."""
    page_rows: int = 0
    """The rows of a page; 0: derived from those of the first block."""
    checks: tuple[Constraint, ...] = ()
    """The CHECK constraints by which every row is tested."""
    generate: bool = True
    """Whether generated columns are computed and checked; off for rows in which they have been."""
    numbering: Numbering | None = None
    """How rows of a table with an identity column are numbered; None: they have numbers."""

    @property
    def refuses(self) -> bool:
        """Whether rows may be refused for their values, as often as they are written."""
        return bool(self.checks) or any(f.computed for f in self.schema)


def write_parts(batches: Iterable[pa.RecordBatch], spec: WriteSpec) -> Iterator[pa.Table]:
    """Write all rows; yield a one-row manifest (``PART_COLUMNS`` and statistics) per part. No rows, no parts.

    Batches are first conformed to the table's schema (``conform_batches``), and tested by ``spec.checks``. A part ends
    with the block that reaches ``spec.part_bytes``.
    """
    store, part = open_store(spec.url, spec.storage_options), None
    block_bytes = format_named(spec.format).block_bytes
    try:
        rows = conform_batches(batches, spec.schema, generate=spec.generate, fitted=True)
        if spec.numbering is not None:
            rows = number_rows(rows, spec.schema, store, spec.numbering)
        rows = check_batches(rows, spec.schema, spec.checks)
        for block in _blocks(rows, spec.block_rows, block_bytes):
            part = part or _Part(store, spec, spec.page_rows or page_rows_for(len(block)))
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


def block_rows_for(batch: pa.RecordBatch, block_bytes: int) -> int:
    """Return the rows per block of about ``block_bytes`` for this row width, a power of two."""
    low, high = BLOCK_ROWS
    width = max(int(batch.nbytes) // max(len(batch), 1) - _unstored(batch.schema), 1)
    rows = max(block_bytes // width, min(WIDE_ROWS, WIDE_BYTES // width))
    return min(max(1 << (max(rows, 1).bit_length() - 1), low), high)


def _unstored(schema: pa.Schema) -> int:
    """Return the bytes of a row that its decimals take as Arrow data but not in a file."""
    decimals = [kind for kind in schema.types if pa.types.is_decimal128(kind)]
    return sum(16 - (4 if kind.precision <= 9 else 8) for kind in decimals if kind.precision <= 18)


def _blocks(batches: Iterable[pa.RecordBatch], rows: int, block_bytes: int) -> Iterator[pa.RecordBatch]:
    """Regroup the rows into batches of exactly ``rows`` (the last may have fewer)."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if not len(batch):
            continue
        rows = rows or block_rows_for(batch, block_bytes)
        held.append(batch)
        count += len(batch)
        while count >= rows:
            block, held = _cut(held, rows)
            count -= rows
            yield from block
    if count:
        yield from _cut(held, count)[0]


def _cut(held: list[pa.RecordBatch], rows: int) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
    """Split off the first ``rows`` rows as one batch (several if 32-bit offsets may not suffice)."""
    taken: list[pa.RecordBatch] = []
    most = rows
    for at, batch in enumerate(held):
        if len(batch) >= rows:
            taken.append(batch.slice(0, rows))
            left = batch.slice(rows)
            rest = ([left] if len(left) else []) + held[at + 1 :]
            break
        taken.append(batch)
        rows -= len(batch)
    return list(joined_batches(taken, most, LARGEST_ARRAY)), rest


def _collector_for(spec: WriteSpec, first: pa.RecordBatch, writer: PartWriter) -> Collector:
    """Return a collector for the part that begins with the block ``first``, and which ``writer`` writes.

    A block of fewer rows than blocks have is the last, so that the part's rows and its budget are known. The extremes
    of so few rows are found sooner than in the file's footer.
    """
    if len(first) >= (spec.block_rows or BLOCK_ROWS[0]):
        return Collector(spec.schema, keep=spec.keep, recent=spec.recent, measured=writer.measured)
    named = {identifier for identifier, _ in (*spec.keep, *spec.recent)} | {i for path in spec.cluster_by for i in path}
    limits = limits_within(spec.schema, part_budget(spec.stats_bytes, len(first)), named)
    return Collector(spec.schema, keep=spec.keep, recent=spec.recent, limits=limits)


class _Part:
    """A part being written."""

    def __init__(self, store: Store, spec: WriteSpec, page_rows: int) -> None:
        self._spec, self._id = spec, new_id()
        self._path = f"{spec.folder}/{self._id}.{format_named(spec.format).extension}"
        options = WriteOptions(self._id, schema_json(spec.schema), page_rows)
        self._shredder = Shredder(spec.schema, spec.shred)
        self._writer: PartWriter = create_part(store, self._path, spec.format, self._shredder.schema, options)
        self._collector: Collector | None = None
        self._collecting: CollectingThread | None = None
        self._order = ClusteringOrder(spec.schema, spec.cluster_by) if spec.cluster_by else None
        paged = replace(spec.schema, fields=spec.schema.fields[: spec.by_page])
        self._pages = PageStatistics(paged, page_rows) if spec.by_page else None
        self._ordered = bool(spec.cluster_by)
        self._first: pa.RecordBatch | None = None
        self._last: pa.RecordBatch | None = None
        self._rows = 0

    @property
    def size(self) -> int:
        return self._writer.size

    def write(self, block: pa.RecordBatch) -> None:
        if not self._rows and self._spec.collect:
            self._collector = _collector_for(self._spec, block, self._writer)
            self._collecting = CollectingThread(self._collector.update)
        if self._collecting is not None:
            self._collecting.add(block)
        self._writer.write(self._shredder.add(block))
        self._rows += len(block)
        if self._pages is not None:
            self._pages.update(block)
        if self._order is not None and self._ordered:
            # Verified instead of trusted, because later readers rely on the order.
            joint = block.slice(0, 1) if self._last is None else pa.concat_batches([self._last, block.slice(0, 1)])
            self._ordered = self._order.is_sorted(joint) and self._order.is_sorted(block)
            self._first = self._first or block.take(pa.array([0]))  # a slice would hold the whole block
            self._last = block.slice(len(block) - 1)
        if self._collecting is not None:
            self._collecting.wait()  # a source may use the block's memory again for the next one

    def close(self) -> pa.Table:
        self._finish_collecting()
        notes = {} if self._collector is None else {NANS: json.dumps(self._collector.nans())}
        if self._pages is not None:
            notes[NOTE] = self._pages.note()
        done = self._writer.close(notes | self._shredder.notes)
        if self._collector is not None:
            self._collector.resolve(self._writer.extremes())
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
        made = pa.table(row | self._statistics())
        checks = [check.constraint_id for check in self._spec.checks]
        return add_tested_constraints(made, checks) if checks else made

    def _finish_collecting(self) -> None:
        if self._collecting is None:
            return
        try:
            self._collecting.wait()
        except BaseException:
            self.abort()
            raise
        self._collecting.close()

    def _statistics(self) -> dict[str, pa.Array]:
        if self._collector is None:
            return {}
        room = part_budget(self._spec.stats_bytes, self._rows)
        return trimmed_statistics(self._collector, room, self._spec.keep, self._spec.recent, self._ends())

    def _ends(self) -> Iterable[Figure]:
        """Return the first and last clustering tuple of a sorted part."""
        if not self._ordered or self._first is None or self._last is None:
            return ()
        return end_statistics(self._spec.schema, self._spec.cluster_by, self._first, self._last)

    def abort(self) -> None:
        if self._collecting is not None:
            self._collecting.close()
        self._writer.abort()
