"""Reads Parquet: chosen row groups × leaf columns, fetched in merged ranges, decoded by pyarrow."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamis.core.stats.columns.page_statistics import NOTE, pages_of
from tamis.core.types import STRING, Schema
from tamis.core.types.dictionary_arrays import DICTIONARY_TEXT
from tamis.cost_model import COSTS
from tamis.sizes import SIZES
from tamis.storage.files.column_conversion import Names, convert_array
from tamis.storage.files.corrupt_parts import corrupt_part
from tamis.storage.files.file_source import PartSource, Stream, read_twice
from tamis.storage.files.parquet.array_pieces import array_cuts, read_groups, runs_within
from tamis.storage.files.parquet.column_layout import Layout
from tamis.storage.files.parquet.dictionary_texts import (
    dictionary_values,
    is_dictionary_text,
    plain_values,
    taken_pieces,
)
from tamis.storage.files.parquet.excerpt_file import Octets
from tamis.storage.files.parquet.footer import CACHE_BYTES, Footer, footer_of
from tamis.storage.files.parquet.page_excerpt import DECODED_VALUES, EXCERPT_SHARE, Excerpt
from tamis.storage.files.parquet.page_offsets import Pages, count_touched_pages, even_boundaries
from tamis.storage.files.parquet.row_group_statistics import block_statistics
from tamis.storage.files.parquet.view_types import without_views
from tamis.storage.files.protocol import IoCounters, PartRef, Piece
from tamis.storage.files.shredded_leaves import LEAVES, Leaf, decode_leaves, with_leaves
from tamis.storage.object_store.lru_cache import LruCache

PIECE_ROWS = SIZES.piece_rows
PIECE_BYTES = 64 * 2**20
"""Largest run of adjacent blocks, in rows and uncompressed bytes, that is decoded together.

A call costs as much as some thousand rows.
"""
CHOSEN_PIECES = 4
"""Factor on ``PIECE_ROWS`` for narrow pieces, and for pages that hold chosen rows, as few decoded rows are kept."""
NARROW_BYTES = 4 * 2**20
"""Uncompressed bytes of a narrow piece, which stays in a processor's cache."""

Ordinals = np.ndarray[Any, np.dtype[np.int64]]


def open_parquet(store: Any, ref: PartRef, schema: Schema) -> ParquetPart:
    """Open the part and check its footer. Raises ``CorruptData``.

    ``schema`` is the one under which the part was written.
    """
    source = PartSource(store, ref)
    footer = footer_of(source)
    leaves = decode_leaves((footer.metadata or {}).get(LEAVES.encode(), b"").decode("utf-8", "replace"))
    return ParquetPart(source, with_leaves(schema, leaves), footer, leaves)


class Shape:
    """Data derived from a footer and the schema under which the part was written.

    It holds both, so that their ``id()`` values, used as cache keys, stay valid.
    """

    def __init__(self, footer: Footer, schema: Schema, layout: Layout, names: Names, pages: Pages) -> None:
        self.held = footer, schema
        self.layout, self.names, self.pages = layout, names, pages
        self.rows = np.array([footer.row_group(i).num_rows for i in range(footer.num_row_groups)], dtype=np.int64)
        self.starts = np.concatenate([[0], np.cumsum(self.rows)])


_shapes = LruCache[Shape](CACHE_BYTES)

FEW_SHARE = COSTS.few_rows_share
"""Share of the rows up to which columns are decoded a few at a time: a call costs as much as some thousand values."""


class ParquetPart:
    """One open Parquet file (see ``PartFile``). Not thread-safe."""

    def __init__(self, source: PartSource, schema: Schema, footer: Footer, leaves: tuple[Leaf, ...] = ()) -> None:
        self.leaves = leaves
        self._source, self._ref, self._schema, self._footer = source, source.ref, schema, footer
        self._ranges = _Ranges(source)
        self._stream = Stream(source.ref, source.ref.bytes, self._ranges.read)
        self._views: dict[tuple[str, ...], pq.ParquetFile] = {}
        key = (*source.key, id(footer), id(schema), *self._found_by())
        shape = _shapes.get(key)
        if shape is None:
            shape = self._shape()
            _shapes.put(key, shape, 2 * footer.serialized_size)  # it grows as chunks are looked up
        self._layout, self._names, self._pages = shape.layout, shape.names, shape.pages
        self._rows, self._starts = shape.rows, shape.starts

    @property
    def block_rows(self) -> Sequence[int]:
        return [int(n) for n in self._rows]

    @cached_property
    def _file(self) -> pq.ParquetFile:
        """The library's view of the file, with every column in its own type."""
        return self._opened(())

    def _opened(self, texts: tuple[str, ...]) -> pq.ParquetFile:
        """Return the library's view of the file; ``texts`` names the columns that are read as dictionaries."""
        with self._stream.decoding("its footer"):
            return pq.ParquetFile(
                pa.PythonFile(self._stream, mode="r"),
                metadata=self._footer,
                read_dictionary=texts,
                pre_buffer=False,
                page_checksum_verification=True,
                arrow_extensions_enabled=False,
                coerce_int96_timestamp_unit="us",  # only foreign files have any; as nanoseconds, they might not fit
            )

    def _found_by(self) -> tuple[object, ...]:
        """Return what determines, besides the schema, how columns are found in the file."""
        return ()

    def _shape(self) -> Shape:
        found = self._file.schema_arrow
        with self._stream.decoding("its footer"):
            names, pages = Names(self._schema), Pages(self._footer, found)
            return Shape(self._footer, self._schema, Layout(found, self._schema), names, pages)

    @property
    def stride(self) -> int:
        return PIECE_ROWS

    @property
    def io(self) -> IoCounters:
        return self._source.io

    def read(self, columns: Sequence[int], blocks: Sequence[int], rows: Ordinals | None = None) -> Iterator[Piece]:
        leaves, row_limits = self._layout.select(columns), self._rows
        cuts = np.zeros(len(self._starts), np.int64) if rows is None else np.searchsorted(rows, self._starts)
        hits = np.diff(cuts)
        if rows is not None:
            blocks = [b for b in blocks if hits[b]]
            if self._pages.readable(leaves):
                row_limits = np.minimum(
                    count_touched_pages(rows, self._starts, self._pages.rows) * self._pages.rows, self._rows
                )
        for chunk in self._chunks(leaves, blocks, row_limits, chosen=rows is not None):
            if rows is None:
                runs = [(int(self._starts[b]), int(self._starts[b + 1])) for b in chunk]
                first = 0
                for batch in self._batches(leaves, chunk):
                    yield Piece(chunk[0], runs_within(runs, first, first + len(batch)), batch)
                    first += len(batch)
                continue
            found = rows[cuts[chunk[0]] : cuts[chunk[-1] + 1]]
            if len(found) != int(hits[chunk].sum()):  # rows of other blocks, too
                found = np.concatenate([rows[cuts[b] : cuts[b + 1]] for b in chunk])
            skipped = self._starts[chunk] + self._rows[chunk] - np.cumsum(self._rows[chunk])
            taken = found - np.repeat(skipped, hits[chunk])
            first = 0
            for batch in self._chosen(leaves, chunk, taken):
                yield Piece(chunk[0], found[first : first + len(batch)], batch)
                first += len(batch)

    def cost(self, columns: Sequence[int], blocks: Sequence[int]) -> int:
        leaves = self._layout.select(columns)
        return sum(self._pages.chunk(b, at).size for b in blocks for at in leaves)

    def decoded_rows(self, columns: Sequence[int], rows: Ordinals) -> int:
        leaves = self._layout.select(columns)
        whole = self._hit_rows(rows)
        paged = [at for at in leaves if self._pages.is_flat(at)]
        if not leaves:
            return 0
        if not paged or not self._pages.readable(paged):
            return whole
        edges = even_boundaries(self._rows, self._pages.rows)
        touched = np.diff(np.searchsorted(rows, edges.rows)) > 0
        hit = np.diff(np.searchsorted(rows, self._starts)) > 0
        if np.count_nonzero(touched) > EXCERPT_SHARE * int(np.diff(edges.blocks)[hit].sum()):
            return whole
        skipped = whole - int(np.diff(edges.rows)[touched].sum())
        return whole - skipped * len(paged) // len(leaves)

    def _hit_rows(self, rows: Ordinals) -> int:
        """Count the rows of the blocks that hold any of ``rows``."""
        return int(self._rows[np.diff(np.searchsorted(rows, self._starts)) > 0].sum())

    def statistics(self, ids: Collection[int]) -> pa.Table:
        return block_statistics(self._footer, self._layout, self._schema, ids)

    def pages(self) -> pa.Table | None:
        note = (self._footer.metadata or {}).get(NOTE.encode())
        return None if note is None else pages_of(note, self._ref.rows)

    def _chunks(
        self, leaves: Sequence[int], blocks: Sequence[int], row_limits: Ordinals, *, chosen: bool
    ) -> Iterator[list[int]]:
        """Group blocks to decode together.

        ``row_limits`` limits the rows decoded of each block; all are decoded if the note of pages does not match.
        """
        chunk: list[int] = []
        rows = size = 0
        noted = True
        for block in blocks:
            found = [self._pages.chunk(block, at) for at in leaves]
            fits, whole = all(one.first >= 0 for one in found), int(self._rows[block])
            more = int(row_limits[block]) if fits else whole
            weight = sum(one.inflated for one in found) * more // max(whole, 1)
            most = PIECE_ROWS * (CHOSEN_PIECES if (chosen and fits) or size + weight <= NARROW_BYTES else 1)
            if chunk and (rows + more > most or size + weight > PIECE_BYTES or fits != noted):
                yield chunk
                chunk, rows, size = [], 0, 0
            noted = fits
            chunk.append(block)
            rows, size = rows + more, size + weight
        if chunk:
            yield chunk

    def _chosen(self, leaves: Sequence[int], blocks: list[int], taken: Ordinals) -> Iterator[pa.RecordBatch]:
        """Read chosen rows: plain columns by pages if these are few, other columns by whole chunks."""
        plan = Excerpt.plan(
            self._pages, [at for at in leaves if self._pages.is_flat(at)], blocks, self._rows[blocks], taken
        )
        arrays = None if plan is None else read_twice(lambda: self._excerpt(plan, blocks), self._source)
        if plan is None or arrays is None:
            yield from self._batches(leaves, blocks, taken)
            return
        with self._stream.decoding(f"pages of blocks {blocks}"):
            paged = {
                str(i): self._typed(i, a) for i, a in zip(self._layout.top_column_ids(plan.leaves), arrays, strict=True)
            }
        names = [str(i) for i in self._layout.top_column_ids(leaves)]
        rest = sorted(set(leaves).difference(plan.leaves))
        first = 0
        for others in self._batches(rest, blocks, taken):  # of no columns if there is no rest
            size = len(others)
            some = paged if size == len(taken) else {name: a.slice(first, size) for name, a in paged.items()}
            found = {**some, **dict(zip(others.schema.names, others.columns, strict=True))}
            yield pa.RecordBatch.from_arrays([found[name] for name in names], names=names)
            first += size

    def _excerpt(self, plan: Excerpt, blocks: list[int]) -> list[pa.Array] | None:
        """Read what is planned; None if the pages are not those that were expected, or too large for arrays."""
        fetched = self._source.get(plan.ranges)
        with self._stream.decoding(f"pages of blocks {blocks}"):
            return self._from_pages(plan, fetched)

    def _from_pages(self, plan: Excerpt, fetched: Sequence[Octets]) -> list[pa.Array] | None:
        return plan.decode(fetched)

    def _batches(
        self, leaves: Sequence[int], blocks: list[int], taken: Ordinals | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Decode the columns of these leaves in the part's own types: all rows, or those ``taken``.

        Yields one batch, or several if a column does not fit into one array. Texts that the file holds as dictionaries
        stay so.
        """
        length = int(self._rows[blocks].sum())
        count = length if taken is None else len(taken)
        if not leaves:
            yield _no_columns(count)
            return
        columns = read_twice(lambda: self._decoded(leaves, blocks, length, taken), self._source)
        tops = self._layout.top_column_ids(leaves)
        for first, end in pairwise(array_cuts(columns, count)):
            with self._stream.decoding(f"blocks {blocks}"):
                arrays = [self._array(i, c.slice(first, end - first)) for i, c in zip(tops, columns, strict=True)]
            if end == count:
                columns = []  # not to hold them beside the last batch
            yield pa.RecordBatch.from_arrays(arrays, names=[str(i) for i in tops])

    def _array(self, column_id: int, column: pa.ChunkedArray) -> pa.Array:
        encoded = self._stays_encoded(column_id, column)
        return dictionary_values(column) if encoded else self._typed(column_id, plain_values(column))

    def _decoded(
        self, leaves: Sequence[int], blocks: list[int], length: int, taken: Ordinals | None
    ) -> list[pa.ChunkedArray]:
        """Decode the whole chunks of these leaves; a few columns at a time if only few rows are ``taken``."""
        few = taken is not None and len(taken) <= FEW_SHARE * length
        batches = self._layout.batches(leaves, DECODED_VALUES // max(length, 1)) if few else [list(leaves)]
        self._ranges.fetch([self._range(b, at) for b in blocks for at in leaves])
        file = self._reading(leaves, blocks)
        found: list[pa.ChunkedArray] = []
        try:
            for some in batches:
                with self._stream.decoding(f"blocks {blocks}"):
                    table = without_views(read_groups(file, blocks, some, length))
                if len(table) != length:
                    raise corrupt_part(self._ref, f"has blocks of {len(table)} rows where {length} were said")
                with self._stream.decoding(f"blocks {blocks}"):
                    found += [taken_pieces(column, taken) for column in table.columns]
        finally:
            self._ranges.forget()
        return found

    def _stays_encoded(self, column_id: int, array: pa.Array | pa.ChunkedArray) -> bool:
        """Whether the column is a STRING that the file holds as a dictionary."""
        return bool(array.type == DICTIONARY_TEXT) and self._is_text(column_id)

    def _reading(self, leaves: Sequence[int], blocks: list[int]) -> pq.ParquetFile:
        """Return a view of the file that reads texts as dictionaries where these chunks hold them so."""
        pages = self._pages
        flat = [(pages.field(at), [pages.chunk(b, at) for b in blocks]) for at in leaves if pages.is_flat(at)]
        texts = tuple(f.name for f, chunks in flat if is_dictionary_text(f, chunks))
        if not texts:
            return self._file
        if texts not in self._views:
            self._views[texts] = self._opened(texts)
        return self._views[texts]

    def _is_text(self, column_id: int) -> bool:
        known = self._schema.by_id.get(column_id)
        return known is not None and known.type == STRING

    def _typed(self, column_id: int, array: pa.Array) -> pa.Array:
        known = self._schema.by_id.get(column_id)
        return (
            array
            if known is None
            else convert_array(array, self._layout.prune(known, array.type, self._names), self._names)
        )

    def _range(self, block: int, leaf: int) -> tuple[int, int]:
        chunk = self._pages.chunk(block, leaf)
        return chunk.end - chunk.size, chunk.size


def _no_columns(length: int) -> pa.RecordBatch:
    """Return a batch that has no columns but a length."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), length, [None]))


class _Ranges:
    """Prefetched ranges of the file for the library to read; any other read makes its own request."""

    def __init__(self, source: PartSource) -> None:
        self._source = source
        self._held: list[tuple[int, memoryview]] = []

    def fetch(self, ranges: list[tuple[int, int]]) -> None:
        """Fetch these (offset, length) ranges, merging adjacent ones."""
        ref = self._source.ref
        spans: list[tuple[int, int]] = []
        for offset, length in sorted(ranges):
            if offset < 0 or length < 0 or offset + length > ref.bytes:
                raise corrupt_part(ref, "has a footer that points outside of the file")
            if spans and offset <= spans[-1][0] + spans[-1][1]:
                spans[-1] = (spans[-1][0], max(spans[-1][1], offset + length - spans[-1][0]))
            else:
                spans.append((offset, length))
        self._held = [(offset, chunk) for (offset, _), chunk in zip(spans, self._source.get(spans), strict=True)]

    def forget(self) -> None:
        self._held = []

    def read(self, offset: int, length: int) -> memoryview:
        for start, chunk in self._held:
            if start <= offset < start + len(chunk):
                return chunk[offset - start : offset - start + length]
        return self._source.get([(offset, min(length, self._source.ref.bytes - offset))])[0]
