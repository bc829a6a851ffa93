"""The end of a Vortex file, which describes its segments and which the library reads before anything else.

The last eight bytes are the version, the length of the postscript and a magic number. The postscript is a
flatbuffer: a table of up to four locations (of type, layout, statistics and footer), each a table that begins
with an offset of 64 bits. All of them stand behind the data.
"""

from __future__ import annotations

import struct

_MAGIC = b"VTXF"
_LEAST = 64 * 2**10
"""Bytes that the library reads at the end of a file whose tail is not known."""


def tail_length(file: bytes) -> int:
    """Return how many bytes at the end of a Vortex file are its tail; a safe number if that is not known."""
    version_and_length = struct.unpack("<HH", file[-8:-4])
    postscript = file[-8 - version_and_length[1] : -8]
    try:
        offsets = _offsets(postscript) if file[-4:] == _MAGIC else []
    except struct.error:
        offsets = []
    start = min(offsets, default=-1)
    return len(file) - start if 0 <= start < len(file) else min(_LEAST, len(file))


def _offsets(postscript: bytes) -> list[int]:
    """Return the first field of each table that the root table refers to."""
    (root,) = struct.unpack_from("<I", postscript, 0)
    found = []
    for place in _fields(postscript, root):
        if place:
            table = place + struct.unpack_from("<I", postscript, place)[0]
            first = next(iter(_fields(postscript, table)), 0)
            found.append(struct.unpack_from("<Q", postscript, first)[0] if first else 0)
    return found


def _fields(data: bytes, table: int) -> list[int]:
    """Return where each field of a flatbuffer's table is stored; 0 if it is not."""
    at = table - struct.unpack_from("<i", data, table)[0]
    (size,) = struct.unpack_from("<H", data, at)
    offsets = struct.unpack_from(f"<{(size - 4) // 2}H", data, at + 4)
    return [table + offset if offset else 0 for offset in offsets]
