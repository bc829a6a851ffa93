"""Bitmaps of row ordinals in the portable serialization of 64-bit roaring bitmaps, as Delta and Iceberg write them."""

from __future__ import annotations

import struct
from typing import Any

from pyroaring import BitMap, BitMap64


def portable_rows(data: bytes) -> Any:
    """Return the bitmap. Raises ``ValueError`` and ``struct.error`` for what is none, or has rows beyond 2^32."""
    buckets = struct.unpack("<q", data[:8])[0]
    if buckets == 1 and data[8:12] == b"\0\0\0\0":
        return BitMap.deserialize(data[12:])
    wide = BitMap64.deserialize(data)
    if len(wide) and wide.max() >= 2**32:
        raise ValueError("it has rows beyond 2^32")
    return BitMap(wide)
