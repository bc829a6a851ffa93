"""Makes what surrounds the streams of an ORC file: chunks, the footer and the postscript.

The names and numbers of fields are those of ORC's specification (version 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.storage.files.orc.protobuf import bytes_field, number_field, number_records

MAGIC = b"ORC"
"""The bytes before the first stripe, and in the postscript."""
BLOCK = 64 * 2**10
"""Bytes of a compressed chunk before its compression; also the least that the library takes."""
_ZSTD = 5
_VERSION = b"\x00\x0c"
"""0.12, the version that this ORC library writes."""
_WRITER_VERSION = 6
_CPP_WRITER = 1


def whole_chunks(data: bytes) -> bytes:
    """Return ``data`` as chunks that are not compressed: three bytes of length and a mark stand before each."""
    pieces = (data[at : at + BLOCK] for at in range(0, len(data), BLOCK))
    return b"".join((len(piece) << 1 | 1).to_bytes(3, "little") + piece for piece in pieces)


def compressed_chunks(data: bytes) -> bytes:
    """Return ``data`` as chunks that are compressed where that makes them smaller."""
    codec = pa.Codec("zstd", 3)
    pieces = []
    for at in range(0, len(data), BLOCK):
        piece = data[at : at + BLOCK]
        packed = codec.compress(piece, asbytes=True)
        smaller = len(packed) < len(piece)
        pieces.append((len(packed) << 1).to_bytes(3, "little") + packed if smaller else whole_chunks(piece))
    return b"".join(pieces)


def unpacked_chunks(data: memoryview, most: int) -> bytes:
    """Return what ``whole_chunks`` or ORC's zstd made chunks of. Raises ``ValueError`` beyond ``most`` bytes."""
    out, at = bytearray(), 0
    while at < len(data):
        head = int.from_bytes(data[at : at + 3], "little")
        piece = data[at + 3 : at + 3 + (head >> 1)]
        at += 3 + (head >> 1)
        out += piece if head & 1 else pa.CompressedInputStream(pa.BufferReader(piece), "zstd").read()
        if len(out) > most:
            raise ValueError(f"more than {most} bytes of metadata")
    return bytes(out)


def tail_bytes(
    types: Sequence[bytes], stripes: np.ndarray[Any, np.dtype[np.int64]], metadata: bytes = b"", stride: int = 0
) -> bytes:
    """Return metadata, footer and postscript of a file with these stripes.

    ``types`` are messages of type Type. ``stripes`` has a row per stripe: its offset, the lengths of its indexes,
    data and footer, its rows. ``metadata`` is the message with the stripes' statistics, as chunks. ``stride`` are the
    rows of a row group; 0 without indexes.
    """
    content = len(MAGIC) if not len(stripes) else int(stripes[-1, :4].sum())
    footer = whole_chunks(
        b"".join(
            (
                number_field(1, len(MAGIC)),
                number_field(2, content),
                number_records(3, *((at + 1, stripes[:, at]) for at in range(5))).tobytes(),
                *(bytes_field(4, one) for one in types),
                number_field(6, int(stripes[:, 4].sum())),
                number_field(8, stride),
                number_field(9, _CPP_WRITER),
            )
        )
    )
    postscript = b"".join(
        (
            number_field(1, len(footer)),
            number_field(2, _ZSTD),
            number_field(3, BLOCK),
            bytes_field(4, _VERSION),
            number_field(5, len(metadata)),
            number_field(6, _WRITER_VERSION),
            bytes_field(8000, MAGIC),
        )
    )
    return b"".join((metadata, footer, postscript, bytes([len(postscript)])))
