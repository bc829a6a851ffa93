"""Reading: chosen row groups × leaf columns, fetched in merged ranges, decoded by pyarrow, named by column id."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamis.errors import CorruptData, NotFound
from tamis.files.convert import Names, convert
from tamis.files.corrupt import corrupt
from tamis.files.parquet.excerpt import Excerpt
from tamis.files.parquet.footer import Footer, footer_of
from tamis.files.parquet.layout import Layout
from tamis.files.parquet.pages import Pages
from tamis.files.parquet.statistics import block_statistics
from tamis.files.protocol import IoCounters, PartRef, Piece
from tamis.types import Schema

PIECE_ROWS = 65_536
PIECE_BYTES = 64 * 2**20
"""Blocks in a row are decoded together up to so many rows and (uncompressed) bytes: a call costs as much as some thousand rows."""

Ordinals = np.ndarray[Any, np.dtype[np.int64]]


def open_parquet(store: Any, ref: PartRef, schema: Schema) -> ParquetPart:
    """The part, its footer checked. ``schema`` is the one that it was written under. Raises ``CorruptData``."""
    own = store.fresh()
    return ParquetPart(own, ref, schema, footer_of(own, ref))


class ParquetPart:
    """One open Parquet file (see ``PartFile``). Not for several threads at once."""

    def __init__(self, store: Any, ref: PartRef, schema: Schema, footer: Footer) -> None:
        self._store, self._ref, self._schema, self._footer = store, ref, schema, footer
        self._names = Names(schema)
        self._source = _Ranges(store, ref)
        try:
            self._file = pq.ParquetFile(
                pa.PythonFile(self._source, mode="r"),
                metadata=footer,
                pre_buffer=False,
                page_checksum_verification=True,
                arrow_extensions_enabled=False,
            )
            self._layout = Layout(self._file.schema_arrow, schema)
            self._pages = Pages(footer, self._file.schema_arrow)
        except (pa.ArrowException, OSError) as error:
            raise corrupt(ref, f"cannot be opened ({error})") from error
        self._rows = np.array([footer.row_group(i).num_rows for i in range(footer.num_row_groups)], dtype=np.int64)
        self._starts = np.concatenate([[0], np.cumsum(self._rows)])

    @property
    def block_rows(self) -> Sequence[int]:
        return [int(n) for n in self._rows]

    @property
    def io(self) -> IoCounters:
        return IoCounters(self._store.io.bytes, self._store.io.requests)

    def read(self, columns: Sequence[int], blocks: Sequence[int], rows: Ordinals | None = None) -> Iterator[Piece]:
        leaves = self._layout.select(columns)
        if rows is not None:
            hit = np.diff(np.searchsorted(rows, self._starts)) > 0
            blocks = [b for b in blocks if hit[b]]
        for chunk in self._chunks(leaves, blocks):
            if rows is None:
                positions = np.concatenate([np.arange(self._starts[b], self._starts[b + 1]) for b in chunk])
                yield Piece(chunk[0], positions, self._decode(leaves, chunk))
                continue
            offsets = np.cumsum(self._rows[chunk]) - self._rows[chunk]
            cuts = [(np.searchsorted(rows, self._starts[b]), np.searchsorted(rows, self._starts[b + 1])) for b in chunk]
            within = [rows[a:z] - self._starts[b] + offset for b, (a, z), offset in zip(chunk, cuts, offsets, strict=True)]
            taken = np.concatenate(within)
            if len(taken):
                yield Piece(chunk[0], np.concatenate([rows[a:z] for a, z in cuts]), self._chosen(leaves, chunk, taken))

    def cost(self, columns: Sequence[int], blocks: Sequence[int]) -> int:
        leaves = self._layout.select(columns)
        return sum(self._footer.row_group(b).column(at).total_compressed_size for b in blocks for at in leaves)

    def statistics(self, ids: Collection[int]) -> pa.Table:
        return block_statistics(self._footer, self._layout, self._schema, ids)

    def _chunks(self, leaves: Sequence[int], blocks: Sequence[int]) -> Iterator[list[int]]:
        chunk: list[int] = []
        rows = size = 0
        for block in blocks:
            more = self._footer.row_group(block)
            weight = sum(more.column(at).total_uncompressed_size for at in leaves)
            if chunk and (rows + more.num_rows > PIECE_ROWS or size + weight > PIECE_BYTES):
                yield chunk
                chunk, rows, size = [], 0, 0
            chunk.append(block)
            rows, size = rows + more.num_rows, size + weight
        if chunk:
            yield chunk

    def _chosen(self, leaves: Sequence[int], blocks: list[int], taken: Ordinals) -> pa.RecordBatch:
        """Rows of these blocks: plain columns by the pages that hold them, where these are few; the others by whole chunks."""
        plan = Excerpt.plan(self._pages, [at for at in leaves if self._pages.is_flat(at)], blocks, self._rows[blocks], taken)
        if plan is None:
            return self._decode(leaves, blocks, taken)
        fetched = self._source.get(plan.ranges)
        try:
            arrays = dict(zip(self._layout.tops(plan.leaves), plan.decode(fetched), strict=True))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise corrupt(self._ref, f"cannot be decoded in pages of blocks {blocks} ({error})") from error
        found = {i: self._typed(i, a) for i, a in arrays.items()}
        rest = [at for at in leaves if at not in plan.leaves]
        if rest:
            others = self._decode(rest, blocks, taken)
            found |= {int(name): column for name, column in zip(others.schema.names, others.columns, strict=True)}
        tops = self._layout.tops(leaves)
        return pa.RecordBatch.from_arrays([found[i] for i in tops], names=[str(i) for i in tops])

    def _decode(self, leaves: Sequence[int], blocks: list[int], taken: Ordinals | None = None) -> pa.RecordBatch:
        """The columns that these leaves make up, in the part's own types; all rows of the blocks or those ``taken``."""
        length = int(self._rows[blocks].sum())
        if not leaves:
            return _no_columns(length if taken is None else len(taken))
        self._source.fetch([self._range(b, at) for b in blocks for at in leaves])
        tops = self._layout.tops(leaves)
        try:
            table = self._file.reader.read_row_groups(blocks, column_indices=list(leaves), use_threads=False)
            if len(table) != length:
                raise corrupt(self._ref, f"has blocks of {len(table)} rows where {length} were said")
            arrays = [_one(column) for column in table.columns]
            if taken is not None:
                indices = pa.array(taken)
                arrays = [a.take(indices) for a in arrays]
            arrays = [self._typed(i, a) for i, a in zip(tops, arrays, strict=True)]
        except CorruptData:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise corrupt(self._ref, f"cannot be decoded in blocks {blocks} ({error})") from error
        finally:
            self._source.forget()
        return pa.RecordBatch.from_arrays(arrays, names=[str(i) for i in tops])

    def _typed(self, column_id: int, array: pa.Array) -> pa.Array:
        known = self._schema.by_id.get(column_id)
        return array if known is None else convert(array, self._layout.prune(known, array.type, self._names), self._names)

    def _range(self, block: int, leaf: int) -> tuple[int, int]:
        chunk = self._footer.row_group(block).column(leaf)
        start = (
            chunk.data_page_offset if chunk.dictionary_page_offset is None else min(chunk.dictionary_page_offset, chunk.data_page_offset)
        )
        return start, chunk.total_compressed_size


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _no_columns(length: int) -> pa.RecordBatch:
    """A batch without columns that still has a length."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), length, [None]))


class _Ranges(io.RawIOBase):
    """The file as pyarrow sees it: only ranges that were fetched before can be read."""

    def __init__(self, store: Any, ref: PartRef) -> None:
        super().__init__()
        self._store, self._ref, self._at = store, ref, 0
        self._held: list[tuple[int, memoryview]] = []

    def fetch(self, ranges: list[tuple[int, int]]) -> None:
        """Gets these (offset, length) ranges, adjacent ones as one."""
        spans: list[tuple[int, int]] = []
        for offset, length in sorted(ranges):
            if offset < 0 or offset + length > self._ref.bytes:
                raise corrupt(self._ref, "has a footer that points outside of the file")
            if spans and offset <= spans[-1][0] + spans[-1][1]:
                spans[-1] = (spans[-1][0], max(spans[-1][1], offset + length - spans[-1][0]))
            else:
                spans.append((offset, length))
        self._held = [(offset, memoryview(chunk)) for (offset, _), chunk in zip(spans, self.get(spans), strict=True)]

    def get(self, ranges: list[tuple[int, int]]) -> list[bytes]:
        """The bytes of these (offset, length) ranges, near ones by one request. Nothing is kept."""
        try:
            found: list[bytes] = self._store.get_ranges(self._ref.path, ranges)
        except NotFound as error:
            raise corrupt(self._ref, "is missing", "PART_MISSING") from error
        except CorruptData as error:
            raise corrupt(self._ref, f"is shorter than the {self._ref.bytes} bytes that were committed", "TRUNCATED") from error
        return found

    def forget(self) -> None:
        self._held = []

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def size(self) -> int:
        return self._ref.bytes

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._ref.bytes}[whence] + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        length = self._ref.bytes - self._at if size is None or size < 0 else size
        return bytes(self._next(length))

    def read_buffer(self, size: int) -> pa.Buffer:
        """What pyarrow calls instead of ``read`` where it can: nothing is copied."""
        return pa.py_buffer(self._next(size))

    def _next(self, length: int) -> memoryview:
        data = self._slice(self._at, length)
        self._at += len(data)
        return data

    def _slice(self, offset: int, length: int) -> memoryview:
        for start, chunk in self._held:
            if start <= offset < start + len(chunk):
                return chunk[offset - start : offset - start + length]
        return memoryview(self._store.get_range(self._ref.path, offset, min(length, self._ref.bytes - offset)))
