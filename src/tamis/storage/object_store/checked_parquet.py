"""Parquet files whose bytes are all checksummed and whose columns can be read separately.

The footer lists the CRC-32 of every column's bytes; the object that names the file holds the CRC-32 of the
footer. Any tool can read the files: the list is in the footer's key-value metadata (``tamis.crc32``).
"""

from __future__ import annotations

import json
import mmap
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.sizes import SIZES

CHECKSUMS = "tamis.crc32"
"""Key of the footer's list: column name → [[offset, length, CRC-32] …].

There is one entry for each Parquet column below the column and each row group.
"""

TAIL = 8
"""Bytes after Parquet's metadata: its length and the magic number."""

GROUP_ROWS = SIZES.manifest_group_rows
"""Rows at which a row group is written; bounds the encoder's memory."""

_MAGIC = 4

_REPEATED = ("segment_id", "format", "run_id", "source", "constants")
"""Low-cardinality columns, where a dictionary pays off; bounds and ids read faster without one."""

Chunk = tuple[int, int, int]
"""(offset, length, CRC-32) of a byte range in a file."""


@dataclass(frozen=True)
class Footer:
    """The decoded end of a file: Parquet's metadata and each column's chunks."""

    tail: bytes
    metadata: pq.FileMetaData
    chunks: dict[str, list[Chunk]]

    @property
    def names(self) -> list[str]:
        """Column names, in order."""
        return list(self.chunks)

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema that was written."""
        return pq.ParquetFile(_only(self.tail)).schema_arrow.remove_metadata()


class Encoder:
    """Write a file incrementally; only the compressed bytes and one row group are held in memory.

    Only the encoded bytes tell the checksums that belong into the footer. So the file's end is written again
    when they are known.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._sink = pa.BufferOutputStream()
        self._writer = _writer(self._sink, schema)
        self._held: list[pa.Table] = []
        self._rows = 0

    def add(self, table: pa.Table) -> None:
        """Append rows that have the encoder's schema."""
        self._held.append(table)
        if sum(len(held) for held in self._held) >= GROUP_ROWS:
            self._flush()

    def finish(self) -> tuple[bytes, int, int]:
        """Return the file's bytes, the length of its end, and the number of rows."""
        self._flush()
        self._writer.close()
        encoded = self._sink.getvalue()
        metadata = pq.read_metadata(pa.BufferReader(encoded))
        chunks: dict[str, list[Chunk]] = {name: [] for name in self._schema.names}
        data = memoryview(encoded)
        for name, start, length in _places(metadata, self._schema):
            chunks[name].append((start, length, zlib.crc32(data[start : start + length])))
        end = self._end(chunks, metadata)
        old = int.from_bytes(data[-TAIL:-4], "little") + TAIL
        return b"".join((data[:-old], end)), len(end), self._rows

    def _end(self, chunks: Mapping[str, list[Chunk]], metadata: pq.FileMetaData) -> bytes:
        """Return the file's last bytes: ``metadata`` with the list of checksums."""
        empty = pa.BufferOutputStream()
        with _writer(empty, self._schema) as writer:
            writer.add_key_value_metadata({CHECKSUMS: json.dumps(chunks, separators=(",", ":"))})
        whole = pq.read_metadata(pa.BufferReader(empty.getvalue()))
        if metadata.num_row_groups:
            whole.append_row_groups(metadata)
        sink = pa.BufferOutputStream()
        whole.write_metadata_file(sink)
        return bytes(sink.getvalue())[_MAGIC:]

    def _flush(self) -> None:
        table = pa.concat_tables(self._held or [self._schema.empty_table()]).combine_chunks()
        self._held = []
        if not len(table):
            return
        self._writer.write_table(table, row_group_size=len(table))
        self._rows += len(table)


def footer(tail: bytes) -> Footer:
    """Decode the footer from a file's last bytes."""
    metadata = pq.read_metadata(_only(tail))
    return Footer(tail, metadata, json.loads((metadata.metadata or {})[CHECKSUMS.encode()]))


def decode(end: Footer, size: int, names: Sequence[str], chunks: Mapping[int, bytes]) -> pa.Table:
    """Decode the columns ``names`` from their ``chunks``, keyed by offset.

    The chunks are copied into an otherwise empty image of the file; untouched pages of the image cost
    nothing.
    """
    image = mmap.mmap(-1, size)
    for offset, chunk in chunks.items():
        image[offset : offset + len(chunk)] = chunk
    file = pq.ParquetFile(pa.BufferReader(pa.py_buffer(image)), metadata=end.metadata)
    return file.read(columns=list(names), use_threads=False)


def _only(tail: bytes) -> pa.BufferReader:
    """A file that consists of its end only."""
    return pa.BufferReader(b"PAR1" + tail)


def _writer(sink: pa.BufferOutputStream, schema: pa.Schema) -> pq.ParquetWriter:
    few = [name for name in _REPEATED if name in schema.names]
    return pq.ParquetWriter(sink, schema, compression="zstd", write_statistics=False, use_dictionary=few or False)


def _places(metadata: pq.FileMetaData, schema: pa.Schema) -> list[tuple[str, int, int]]:
    """List the (column, offset, length) of each column chunk."""
    owners = [field.name for field in schema for _ in range(_leaves(field.type))]
    out = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for at, owner in enumerate(owners):
            chunk = group.column(at)
            out.append((owner, chunk.dictionary_page_offset or chunk.data_page_offset, chunk.total_compressed_size))
    return out


def _leaves(data_type: pa.DataType) -> int:
    """Count the Parquet columns that a value of this type takes."""
    return max(1, sum(_leaves(data_type.field(i).type) for i in range(data_type.num_fields)))
