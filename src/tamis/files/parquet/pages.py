"""Pages: where they are, and how rows are read by those that hold them.

The library decodes whole column chunks. So from the pages that are wanted a small Parquet file is made in memory (a footer of our own before the very
bytes of the pages, dictionaries first), which it decodes like any other. For that the pages of all plain columns of a block must hold the same
rows: the writer ends one every ``PAGE_ROWS`` rows, and notes where each begins. A chunk for which the note does not fit is read whole.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamis.files.parquet.thrift import column_chunk, row_group, seal_footer

PAGE_ROWS = 1024
"""Rows of a page. At 1,024 a file of 120 columns is 1% larger than at 8,192, and one row costs an eighth (docs/design/0014)."""
PAGES = "tamis.pages"
"""Footer note: where each page begins."""

Octets = bytes | memoryview

Ordinals = np.ndarray[Any, np.dtype[np.int64]]


def note_of(starts: Sequence[int]) -> str:
    """Differences as varints would be, but simpler: 32-bit whole numbers whose bytes lie plane by plane, compressed."""
    deltas = np.diff(np.array([0, *starts], dtype=np.int64)).astype("<u4")
    planes = np.ascontiguousarray(deltas.view(np.uint8).reshape(-1, 4).T).tobytes()
    packed = bytes(pa.Codec("zstd", 3).compress(planes, asbytes=True))
    return f"{PAGE_ROWS} {len(starts)} " + base64.b64encode(packed).decode()


def starts_in(footer: pq.FileMetaData) -> Ordinals:
    """Where pages begin, rising; nothing where the file does not say, or says nonsense."""
    try:
        rows, count, packed = (footer.metadata or {})[PAGES.encode()].split(b" ")
        if int(rows) != PAGE_ROWS:
            return np.zeros(0, dtype=np.int64)
        planes = bytes(pa.Codec("zstd").decompress(base64.b64decode(packed), 4 * int(count), asbytes=True))
        deltas = np.frombuffer(planes, np.uint8).reshape(4, -1).T.copy().view("<u4").ravel()
        starts: Ordinals = np.cumsum(deltas.astype(np.int64))
    except (KeyError, ValueError, TypeError, pa.ArrowException, OSError):
        return np.zeros(0, dtype=np.int64)
    return starts


class Pages:
    """The pages of one file's plain columns."""

    def __init__(self, footer: pq.FileMetaData, schema: pa.Schema) -> None:
        self._footer, self._starts = footer, starts_in(footer)
        self._flat: dict[int, pa.Field] = {}
        leaf = 0
        for f in schema:
            width = _leaves(f.type)
            if width == 1 and not pa.types.is_nested(f.type):
                self._flat[leaf] = f
            leaf += width

    def readable(self, leaves: Sequence[int], blocks: Sequence[int]) -> dict[tuple[int, int], Ordinals] | None:
        """Where the pages of each of these chunks begin, and where the last one ends; None where a chunk has to be read whole."""
        found: dict[tuple[int, int], Ordinals] = {}
        if not len(self._starts) or not all(leaf in self._flat for leaf in leaves):
            return None
        for block in blocks:
            group = self._footer.row_group(block)
            expected = -(-group.num_rows // PAGE_ROWS)
            for leaf in leaves:
                chunk = group.column(leaf)
                begin = chunk.data_page_offset
                end = (chunk.dictionary_page_offset or begin) + chunk.total_compressed_size
                a, z = np.searchsorted(self._starts, (begin, end))
                if z - a != expected or self._starts[a] != begin:
                    return None
                found[block, leaf] = np.append(self._starts[a:z], end)
        return found

    def is_flat(self, leaf: int) -> bool:
        return leaf in self._flat

    def field(self, leaf: int) -> pa.Field:
        return self._flat[leaf]

    def dictionary(self, block: int, leaf: int) -> tuple[int, int] | None:
        """Offset and length of a chunk's dictionary."""
        chunk = self._footer.row_group(block).column(leaf)
        at = chunk.dictionary_page_offset
        return None if at is None or at >= chunk.data_page_offset else (at, chunk.data_page_offset - at)


def runs_of(pages: Ordinals) -> list[tuple[int, int]]:
    """The pages (rising) as runs: first, and one behind the last."""
    cuts = np.flatnonzero(np.diff(pages) != 1) + 1
    return [(int(run[0]), int(run[-1]) + 1) for run in np.split(pages, cuts)]


def excerpt(fields: Sequence[pa.Field], groups: Iterable[tuple[int, Sequence[tuple[Octets, Sequence[Octets]]]]], codec: str) -> pa.Buffer:
    """A Parquet file of these columns. ``groups``: rows, and for each column its dictionary (or nothing) and its pages, as bytes."""
    pieces: list[Octets] = [b"PAR1"]
    at = 4
    built, total = [], 0
    head, kinds = _head(fields)
    for rows, columns in groups:
        chunks = []
        for kind, name, (dictionary, pages) in zip(kinds, (f.name for f in fields), columns, strict=True):
            size = len(dictionary) + sum(len(p) for p in pages)
            chunks.append(column_chunk(kind, name, codec, rows, size, at + len(dictionary), at if dictionary else None))
            if dictionary:
                pieces.append(dictionary)
            pieces += pages
            at += size
        built.append(row_group(chunks, rows))
        total += rows
    pieces.append(seal_footer(head, total, built))
    return pa.py_buffer(b"".join(pieces))


def _head(fields: Sequence[pa.Field]) -> tuple[bytes, list[str]]:
    """The beginning of a footer, up to the end of the schema, as the library writes it for these columns; and their physical types."""
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, pa.schema(fields), store_schema=False, store_decimal_as_integer=True).close()
    raw = sink.getvalue().to_pybytes()
    footer = raw[-8 - int.from_bytes(raw[-8:-4], "little") : -8]
    schema = pq.ParquetFile(pa.BufferReader(raw)).schema
    return footer[: footer.index(NO_ROWS)], [schema.column(at).physical_type for at in range(len(fields))]


NO_ROWS = b"\x16\x00\x19\x0c"
"""How a footer goes on behind the schema when there are neither rows nor row groups."""


def _leaves(data_type: pa.DataType) -> int:
    if not pa.types.is_nested(data_type):
        return 1
    return sum(_leaves(data_type.field(at).type) for at in range(data_type.num_fields))
