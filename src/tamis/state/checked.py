"""Parquet files of which no byte is believed unchecked, and only the wanted columns are read.

The footer lists the CRC-32 of every column's bytes; whoever names the file holds the CRC-32 of the footer. Any tool can
read the files: the list stands in the footer's key-value metadata (``tamis.crc32``).
"""

from __future__ import annotations

import json
import mmap
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

CHECKSUMS = "tamis.crc32"
"""Key of the footer's list: column name → [[offset, length, CRC-32] …], one for each Parquet column below it."""

TAIL = 8
"""Bytes after Parquet's metadata: its length and the magic."""


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file's end says: Parquet's metadata, column names, and by column the (offset, length, CRC-32) of its chunks."""

    metadata: pq.FileMetaData
    names: tuple[str, ...]
    chunks: dict[str, list[tuple[int, int, int]]]


def encode(table: pa.Table) -> tuple[bytes, int]:
    """The file's bytes, and the length of its end.

    Written twice: the checksums of the first writing go into the footer of the second, which is the same before it.
    """
    plain = _write(table, {})
    metadata = pq.read_metadata(pa.BufferReader(plain))
    sums: dict[str, list[tuple[int, int, int]]] = {name: [] for name in table.column_names}
    owners = [field.name for field in table.schema for _ in range(_leaves(field.type))]
    for group in range(metadata.num_row_groups):
        for at, owner in enumerate(owners):
            chunk = metadata.row_group(group).column(at)
            start, length = chunk.dictionary_page_offset or chunk.data_page_offset, chunk.total_compressed_size
            sums[owner].append((start, length, zlib.crc32(plain[start : start + length])))
    data = _write(table, {CHECKSUMS: json.dumps(sums, separators=(",", ":"))})
    return data, int.from_bytes(data[-TAIL:-4], "little") + TAIL


def footer(tail: bytes) -> Footer:
    """The footer that a file's last bytes hold."""
    metadata = pq.read_metadata(pa.BufferReader(b"PAR1" + tail))
    sums = json.loads((metadata.metadata or {})[CHECKSUMS.encode()])
    return Footer(metadata, tuple(sums), {name: [(o, n, c) for o, n, c in chunks] for name, chunks in sums.items()})


def decode(end: Footer, size: int, names: Sequence[str], chunks: Mapping[int, bytes]) -> pa.Table:
    """The columns ``names`` from their chunks, by offset, placed into an otherwise empty image of the file (pages not touched cost nothing)."""
    image = mmap.mmap(-1, size)
    for offset, chunk in chunks.items():
        image[offset : offset + len(chunk)] = chunk
    file = pq.ParquetFile(pa.BufferReader(pa.py_buffer(image)), metadata=end.metadata)
    return file.read(columns=list(names), use_threads=False)


def _write(table: pa.Table, extra: Mapping[str, str]) -> bytes:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, compression="zstd", write_statistics=False) as writer:
        writer.write_table(table, row_group_size=max(1, len(table)))
        if extra:
            writer.add_key_value_metadata(dict(extra))
    return bytes(sink.getvalue())


def _leaves(data_type: pa.DataType) -> int:
    """How many Parquet columns a value of this type takes."""
    return max(1, sum(_leaves(data_type.field(i).type) for i in range(data_type.num_fields)))
