"""Reads compressed and columnar metadata from untrusted sources; checks every size before allocating.

Anyone who can write to the table's folder can write a log. A number in it must therefore not decide how much
memory a reader allocates: 64 KB of zstd can unpack to gigabytes, and so can the compressed buffers of an
Arrow stream.
"""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa

MOST_UNPACKED = 64 * 2**20
"""Limit on the unpacked bytes of a compressed piece of metadata.

Tamis writes at most a megabyte unless tables are thousands of columns wide.
"""

MOST_ROWS = 2**28
"""Limit on the rows of a table of metadata, or of a bitmap of rows."""


def bounded_integer(value: Any, most: int, what: str) -> int:
    """Return ``value`` if it is an integer from 0 to ``most``, else raise ``ValueError`` naming ``what``."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError(f"{what} is {str(value)[:40]}, which is not within 0 and the limit of {most}")
    return value


def unpacked_zstd(packed: bytes, size: Any, most: int = MOST_UNPACKED) -> bytes:
    """Unpack a zstd frame of ``size`` bytes.

    Raises ``ValueError`` if ``size`` exceeds ``most`` and ``pa.ArrowException`` if the frame has another
    size.
    """
    wanted = bounded_integer(size, most, "the unpacked size")
    found = bytes(pa.Codec("zstd").decompress(packed, wanted, asbytes=True))
    if len(found) != wanted:
        raise ValueError(f"{len(found)} bytes instead of {wanted}")
    return found


def read_stream(raw: Any) -> pa.Table:
    """Read the table in an Arrow IPC stream, with a limit on its unpacked size.

    Compressed buffers may take at most ``MOST_UNPACKED`` bytes. Raises ``ValueError`` for larger ones, for
    layouts that express much in few bytes, and for more rows than bits; ``pa.ArrowException`` for an invalid
    stream.
    """
    data = pa.py_buffer(raw)
    for message in pa.ipc.MessageReader.open_stream(data):
        if message.type == "record batch":
            header, size = message.metadata.to_pybytes(), data.size
            try:
                rows, compressed = _batch(header)
                unpacked = _unpacked(header, message.body) if compressed else 0
            except struct.error as error:
                raise ValueError(f"its record batch cannot be read: {error}") from None
            size = max(size, bounded_integer(unpacked, MOST_UNPACKED, "the unpacked size"))
            bounded_integer(rows, min(8 * size, MOST_ROWS), "the number of rows")
    with pa.ipc.open_stream(data) as stream:
        for kind in set(stream.schema.types):
            _check_layout(kind)
        return stream.read_all()


def _check_layout(kind: pa.DataType) -> None:
    views = (
        pa.types.is_dictionary,
        pa.types.is_run_end_encoded,
        pa.types.is_list_view,
        pa.types.is_large_list_view,
        pa.types.is_string_view,
        pa.types.is_binary_view,
    )
    if any(test(kind) for test in views) or (pa.types.is_fixed_size_list(kind) and kind.list_size > MOST_ROWS):
        raise ValueError(f"metadata has no {kind}")
    for at in range(kind.num_fields):
        _check_layout(kind.field(at).type)


def _unpacked(message: bytes, body: pa.Buffer) -> int:
    """Return the declared unpacked size of a record batch's compressed buffers.

    Arrow would allocate that much.
    """
    root = struct.unpack_from("<I", message, 0)[0]
    header = _field(message, root, 2)
    batch = header + struct.unpack_from("<I", message, header)[0]
    place = _field(message, batch, 2)
    if not place:
        return 0
    vector = place + struct.unpack_from("<I", message, place)[0]
    count, data, total = struct.unpack_from("<I", message, vector)[0], body.to_pybytes(), 0
    for at in range(vector + 4, vector + 4 + 16 * count, 16):
        offset, length = struct.unpack_from("<qq", message, at)
        if length < 8:
            continue  # an empty buffer
        if not 0 <= offset <= len(data) - 8:
            raise ValueError("a buffer lies outside of its message")
        said = struct.unpack_from("<q", data, offset)[0]
        total += (
            length if said == -1 else bounded_integer(said, MOST_UNPACKED, "the unpacked size of a buffer")
        )  # -1: not compressed
    return total


def _batch(message: bytes) -> tuple[int, bool]:
    """Return the number of rows in a record batch's message, and whether its buffers are compressed."""
    root = struct.unpack_from("<I", message, 0)[0]
    header = _field(message, root, 2)
    batch = header + struct.unpack_from("<I", message, header)[0]
    length = _field(message, batch, 0)
    return (struct.unpack_from("<q", message, length)[0] if length else 0), _field(message, batch, 3) != 0


def _field(message: bytes, table: int, index: int) -> int:
    """Return the offset of a field in a flatbuffer table; 0 if it is absent."""
    entries = table - struct.unpack_from("<i", message, table)[0]
    place = 4 + 2 * index
    if place >= struct.unpack_from("<H", message, entries)[0]:
        return 0
    offset = struct.unpack_from("<H", message, entries + place)[0]
    return table + offset if offset else 0
