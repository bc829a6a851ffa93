"""Locates the pages of a Parquet file and builds excerpts from them.

The library decodes whole column chunks. To decode only wanted pages, a small Parquet file is built in memory
(a new footer, and the original bytes of the pages, dictionaries first), which the library decodes like any
other. This requires that the pages of all plain columns of a block hold the same rows: the writer ends a page
every ``WriteOptions.page_rows`` rows, and notes that number and where each page begins. A chunk that does not
match the note is read whole.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamis.core.types.bounded_decoding import unpacked_zstd
from tamis.storage.files.parquet.compact_thrift import column_chunk, row_group, seal_footer
from tamis.storage.files.protocol import PAGE_ROWS

PAGES = "tamis.pages"
"""Key of the footer's note of page offsets."""

Octets = bytes | memoryview

Ordinals = np.ndarray[Any, np.dtype[np.int64]]


def note_of(starts: Sequence[int] | Ordinals, page_rows: int = PAGE_ROWS) -> str:
    """Encode page offsets as 32-bit differences, split into byte planes and compressed."""
    deltas = np.diff(np.array([0, *starts], dtype=np.int64)).astype("<u4")
    planes = np.ascontiguousarray(deltas.view(np.uint8).reshape(-1, 4).T).tobytes()
    packed = bytes(pa.Codec("zstd", 3).compress(planes, asbytes=True))
    return f"{page_rows} {len(starts)} " + base64.b64encode(packed).decode()


def noted(footer: pq.FileMetaData) -> tuple[int, Ordinals]:
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


class Pages:
    """The chunks of one file, and the pages of its plain columns."""

    def __init__(self, footer: pq.FileMetaData, schema: pa.Schema, *, trusted: bool = True) -> None:
        """``trusted``: the note of pages is the writer's own; a tool that rewrites a file may copy it."""
        self._footer = footer
        none: tuple[int, Ordinals] = PAGE_ROWS, np.zeros(0, dtype=np.int64)
        self.rows, self.starts = noted(footer) if trusted else none
        self._flat: dict[int, pa.Field] = {}
        self._chunks: dict[tuple[int, int], Chunk] = {}
        leaf = 0
        for f in schema:
            width = _leaves(f.type)
            if trusted and width == 1 and not pa.types.is_nested(f.type):
                self._flat[leaf] = f
            leaf += width

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
        a, z = np.searchsorted(self.starts, (begin, end)).tolist()
        fits = leaf in self._flat and z - a == -(-rows // self.rows) and z > a and int(self.starts[a]) == begin
        return Chunk(rows, size, said.total_uncompressed_size, begin, end, at, a if fits else -1, said.compression)

    def is_flat(self, leaf: int) -> bool:
        return leaf in self._flat

    def readable(self, leaves: Sequence[int]) -> bool:
        """Whether rows of all these columns can be read by pages."""
        return bool(len(self.starts)) and all(leaf in self._flat for leaf in leaves)

    def field(self, leaf: int) -> pa.Field:
        return self._flat[leaf]


def runs_in(rows: Ordinals, starts: Ordinals, page_rows: int) -> Ordinals:
    """Count the pages that ``rows`` (ascending) touch between each two of ``starts``.

    Pages are numbered from the start of the file, so the count may be one too high at the ends.
    """
    page = rows // page_rows
    touched = np.concatenate([[0], np.cumsum(np.diff(page, prepend=-1) != 0)])
    cuts = np.searchsorted(rows, starts)
    counts: Ordinals = np.diff(touched[cuts]) + (np.diff(cuts) > 0)
    return counts


def excerpt_file(
    fields: Sequence[pa.Field],
    codecs: Sequence[str],
    groups: Iterable[tuple[int, Sequence[tuple[Octets, Sequence[Octets]]]]],
) -> pa.Buffer:
    """Build a Parquet file of these columns.

    ``groups`` holds the number of rows and, for each column, the bytes of its dictionary (or nothing) and of
    its pages.
    """
    pieces: list[Octets] = [b"PAR1"]
    at = 4
    built, total = [], 0
    head, kinds = _head(tuple(fields))
    for rows, columns in groups:
        chunks = []
        for kind, f, codec, (dictionary, pages) in zip(kinds, fields, codecs, columns, strict=True):
            size = len(dictionary) + sum(len(p) for p in pages)
            chunks.append(
                column_chunk(kind, f.name, codec, rows, size, at + len(dictionary), at if dictionary else None)
            )
            if dictionary:
                pieces.append(dictionary)
            pieces += pages
            at += size
        built.append(row_group(chunks, rows))
        total += rows
    pieces.append(seal_footer(head, total, built))
    return pa.py_buffer(b"".join(pieces))


@lru_cache(256)
def _head(fields: tuple[pa.Field, ...]) -> tuple[bytes, list[str]]:
    """Return the start of a footer up to the schema, as the library writes it, and the physical types."""
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, pa.schema(fields), store_schema=False, store_decimal_as_integer=True).close()
    raw = sink.getvalue().to_pybytes()
    footer = raw[-8 - int.from_bytes(raw[-8:-4], "little") : -8]
    schema = pq.ParquetFile(pa.BufferReader(raw)).schema
    return footer[: footer.rindex(NO_ROWS)], [schema.column(at).physical_type for at in range(len(fields))]


NO_ROWS = b"\x16\x00\x19\x0c"
"""The bytes after the schema in a footer without rows and row groups."""


def _leaves(data_type: pa.DataType) -> int:
    if not pa.types.is_nested(data_type):
        return 1
    return sum(_leaves(data_type.field(at).type) for at in range(data_type.num_fields))
