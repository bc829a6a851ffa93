"""Locates the pages of a Parquet file.

The writer ends a page of every column after ``WriteOptions.page_rows`` rows, and notes that number and where each page
begins, but for chunks in which the library ended a page early. A chunk that does not match the note is read whole.

Earlier releases noted the pages of such chunks, too. Behind a page that ended early, all others hold other rows than
their place says; in a chunk whose last page is not full, their number may still be the expected one.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamis.core.types.bounded_decoding import unpacked_zstd
from tamis.storage.files.parquet.compact_thrift import CODECS
from tamis.storage.files.parquet.excerpt_file import ExcerptColumn, schema_element
from tamis.storage.files.protocol import PAGE_ROWS

PAGES = "tamis.pages"
"""Key of the footer's note of page offsets."""

Ordinals = np.ndarray[Any, np.dtype[np.int64]]


def encode_page_note(starts: Sequence[int] | Ordinals, page_rows: int = PAGE_ROWS) -> str:
    """Encode page offsets as 32-bit differences, split into byte planes and compressed."""
    deltas = np.diff(np.array([0, *starts], dtype=np.int64)).astype("<u4")
    planes = np.ascontiguousarray(deltas.view(np.uint8).reshape(-1, 4).T).tobytes()
    packed = bytes(pa.Codec("zstd", 3).compress(planes, asbytes=True))
    return f"{page_rows} {len(starts)} " + base64.b64encode(packed).decode()


def decode_page_note(footer: pq.FileMetaData) -> tuple[int, Ordinals]:
    """Return the rows per page and the page offsets, ascending.

    There are no offsets if the note is missing or invalid.
    """
    try:
        rows, count, packed = (footer.metadata or {})[PAGES.encode()].split(b" ")
        planes = unpacked_zstd(base64.b64decode(packed), 4 * int(count))
        deltas = np.frombuffer(planes, np.uint8).reshape(4, -1).T.copy().view("<u4").ravel()
        starts: Ordinals = np.cumsum(deltas.astype(np.int64))
    except (KeyError, ValueError, TypeError, pa.ArrowException, OSError):
        return PAGE_ROWS, np.zeros(0, dtype=np.int64)
    return (int(rows), starts) if int(rows) > 0 else (PAGE_ROWS, starts[:0])


class Chunk(NamedTuple):
    """A column chunk in its file.

    ``first`` is the position of its first page among all noted pages, or -1 if the chunk does not match the
    note.
    """

    rows: int
    size: int
    """Its size in bytes, including the dictionary."""
    inflated: int
    """Its size before compression."""
    begin: int
    """Offset of the first data page."""
    end: int
    dictionary: int
    """Offset of the dictionary, or -1 if it has none."""
    first: int
    codec: str


_DICTIONARY_BYTES, _PAGE_BYTES = 2**20, 2**30
"""Bytes of a dictionary, and of a page, at which the library ended a page early for earlier releases."""
_BATCH_ROWS = 1_024
"""Rows of the library's batches then, after each of which it looked at these bytes."""


def _may_be_shifted(chunk: Chunk, page_rows: int) -> bool:
    """Return whether a page may have ended early although the chunk has as many pages as it would have otherwise."""
    if _BATCH_ROWS % page_rows == 0:  # each batch ended with a page
        return False
    least = _DICTIONARY_BYTES if chunk.dictionary >= 0 else _PAGE_BYTES
    return chunk.rows % page_rows != 0 and chunk.inflated >= least


class PageBoundaries(NamedTuple):
    """Where pages begin in some blocks, whose rows are numbered as if they were one."""

    rows: Ordinals
    """The first row of each page; the number of all rows at the end."""
    blocks: Ordinals
    """For each block, the number of its first page; the number of all pages at the end."""


def even_boundaries(sizes: Ordinals, page_rows: int) -> PageBoundaries:
    """Return the boundaries in blocks of ``sizes`` rows, each of whose pages but the last has ``page_rows`` rows."""
    counts = -(-sizes // page_rows)
    blocks = np.concatenate([[0], np.cumsum(counts)])
    within = np.arange(blocks[-1]) - np.repeat(blocks[:-1], counts)
    ends = np.cumsum(sizes)
    rows = within * page_rows + np.repeat(ends - sizes, counts)
    return PageBoundaries(np.append(rows, ends[-1:]), blocks)


class Pages:
    """The chunks of one file, and the pages of its plain columns, as the writer's note locates them."""

    def __init__(self, footer: pq.FileMetaData, schema: pa.Schema) -> None:
        self._footer = footer
        self.rows, self.starts = self._noted()
        self._flat: dict[int, pa.Field] = {}
        self._chunks: dict[tuple[int, int], Chunk] = {}
        self._columns: dict[tuple[int, str], ExcerptColumn | None] = {}
        leaf = 0
        for f in schema:
            width = _leaves(f.type)
            if width == 1 and not pa.types.is_nested(f.type):
                self._flat[leaf] = f
            leaf += width

    def _noted(self) -> tuple[int, Ordinals]:
        """Return the rows per page and the page offsets, as far as they are known from the beginning."""
        return decode_page_note(self._footer)

    def chunk(self, block: int, leaf: int) -> Chunk:
        """Return the chunk as the footer describes it, cached."""
        found = self._chunks.get((block, leaf))
        if found is None:
            found = self._chunks[block, leaf] = self._chunk(block, leaf)
        return found

    def _chunk(self, block: int, leaf: int) -> Chunk:
        group = self._footer.row_group(block)
        said, rows = group.column(leaf), group.num_rows
        begin, size, at = said.data_page_offset, said.total_compressed_size, said.dictionary_page_offset
        at = -1 if at is None or at >= begin else at
        end = (at if at >= 0 else begin) + size
        chunk = Chunk(rows, size, said.total_uncompressed_size, begin, end, at, -1, said.compression)
        fits = leaf in self._flat and self.excerpt_column(leaf, chunk.codec) is not None
        return chunk._replace(first=self._first_page(block, leaf, chunk)) if fits else chunk

    def _first_page(self, block: int, leaf: int, chunk: Chunk) -> int:
        """Return the number of the chunk's first page, or -1 if its pages are unknown or do not fit it."""
        del block, leaf
        a, z = np.searchsorted(self.starts, (chunk.begin, chunk.end)).tolist()
        fits = z - a == -(-chunk.rows // self.rows) and z > a and int(self.starts[a]) == chunk.begin
        return a if fits and not _may_be_shifted(chunk, self.rows) else -1

    def excerpt_column(self, leaf: int, codec: str) -> ExcerptColumn | None:
        """Return the description of a flat column for an excerpt.

        None if the library would read it as another type, or has no name for its codec.
        """
        if (leaf, codec) not in self._columns:
            f, said = self._flat[leaf], self._footer.schema.column(leaf)
            element = schema_element(self._decoded_type(f), f.nullable, said.physical_type, said.length)
            known = said.max_definition_level == int(f.nullable) and codec in CODECS
            self._columns[leaf, codec] = (
                ExcerptColumn(element, said.physical_type, codec) if known and element is not None else None
            )
        return self._columns[leaf, codec]

    def _decoded_type(self, f: pa.Field) -> pa.DataType:
        """Return the type to which the pages of a column are decoded."""
        return f.type

    def group_by_page_boundaries(
        self, leaves: Sequence[int], blocks: Sequence[int], sizes: Ordinals
    ) -> list[tuple[PageBoundaries, list[int]]]:
        """Group columns whose pages hold the same rows of these ``blocks``, which have ``sizes`` rows."""
        del blocks
        return [(even_boundaries(sizes, self.rows), list(leaves))]

    def is_flat(self, leaf: int) -> bool:
        return leaf in self._flat

    def readable(self, leaves: Sequence[int]) -> bool:
        """Whether rows of all these columns can be read by pages."""
        return bool(len(self.starts)) and all(leaf in self._flat for leaf in leaves)

    def field(self, leaf: int) -> pa.Field:
        return self._flat[leaf]


def count_touched_pages(rows: Ordinals, starts: Ordinals, page_rows: int) -> Ordinals:
    """Count the pages that ``rows`` (ascending) touch between each two of ``starts``.

    Pages are numbered from the start of the file, so the count may be one too high at the ends.
    """
    page = rows // page_rows
    touched = np.concatenate([[0], np.cumsum(np.diff(page, prepend=-1) != 0)])
    cuts = np.searchsorted(rows, starts)
    counts: Ordinals = np.diff(touched[cuts]) + (np.diff(cuts) > 0)
    return counts


def _leaves(data_type: pa.DataType) -> int:
    if not pa.types.is_nested(data_type):
        return 1
    return sum(_leaves(data_type.field(at).type) for at in range(data_type.num_fields))
