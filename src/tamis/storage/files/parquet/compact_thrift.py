"""The part of Thrift's compact protocol needed to write a Parquet footer.

Field numbers are those of parquet.thrift.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

_PHYSICAL = {
    name: at
    for at, name in enumerate(
        ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
    )
}
CODECS = {"UNCOMPRESSED": 0, "SNAPPY": 1, "GZIP": 2, "BROTLI": 4, "LZ4": 7, "ZSTD": 6}
"""Numbers of the codecs by the library's names: it calls LZ4_RAW by that of LZ4, and LZ4 of Hadoop by none."""
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_STOP = b"\x00"
NUMBER = b"\x80\x80\x80\x80\x00"
"""A number of fixed width: a varint may have more bytes than it needs. This one is 0."""
_SHIFTS = np.arange(len(NUMBER)) * 7
_TOO_LARGE = 1 << (7 * len(NUMBER) - 1)


def thrift_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(value: int) -> bytes:
    return thrift_varint(value << 1)  # zigzag encoding of a non-negative number


def _header(kind: int, size: int) -> bytes:
    return bytes([size << 4 | kind]) if size < 15 else bytes([0xF0 | kind]) + thrift_varint(size)


@lru_cache(4096)
def _constant(kind: str, name: str, codec: str) -> bytes:
    """Encode fields 1 to 4 of a column's metadata: physical type, encodings, path, codec."""
    text = name.encode()
    encodings = _header(_I32, 3) + _number(_PLAIN) + _number(_RLE) + _number(_RLE_DICTIONARY)
    return (
        bytes([0x10 | _I32])
        + _number(_PHYSICAL[kind])
        + bytes([0x10 | _LIST])
        + encodings
        + bytes([0x10 | _LIST])
        + _header(_BINARY, 1)
        + thrift_varint(len(text))
        + text
        + bytes([0x10 | _I32])
        + _number(CODECS[codec])
    )


def column_chunk(kind: str, name: str, codec: str, *, dictionary: bool) -> bytes:
    """Encode a ColumnChunk with ``NUMBER`` in place of four numbers, or five with a dictionary.

    They are its number of values, its size in bytes, which is given twice since the uncompressed size is not
    needed, and the offsets of its first data page and of its dictionary.
    """
    number = bytes([0x10 | _I64])
    meta = _constant(kind, name, codec) + number + NUMBER + number + NUMBER + number + NUMBER
    meta += bytes([0x20 | _I64]) + NUMBER
    if dictionary:
        meta += bytes([0x20 | _I64]) + NUMBER
    return bytes([0x20 | _I64]) + _number(0) + bytes([0x10 | _STRUCT]) + meta + _STOP + _STOP


def row_group(chunks: Sequence[bytes]) -> bytes:
    """Encode a RowGroup of these columns, with ``NUMBER`` in place of its number of rows."""
    number = bytes([0x10 | _I64])
    return (
        bytes([0x10 | _LIST])
        + _header(_STRUCT, len(chunks))
        + b"".join(chunks)
        + number
        + _number(0)
        + number
        + NUMBER
        + _STOP
    )


def thrift_text(text: str) -> bytes:
    """Encode a text as the field after the one before it."""
    data = text.encode()
    return bytes([0x10 | _BINARY]) + thrift_varint(len(data)) + data


def schema_head(columns: int) -> bytes:
    """Encode a footer's version and the beginning of its schema, which the elements of so many columns follow."""
    root = bytes([0x30 | _I32]) + _number(0) + thrift_text("schema") + bytes([0x10 | _I32]) + _number(columns) + _STOP
    return bytes([0x10 | _I32]) + _number(2) + bytes([0x10 | _LIST]) + _header(_STRUCT, columns + 1) + root


def encode_footer(head: bytes, groups: Sequence[bytes]) -> bytes:
    """Encode the footer that begins with ``head`` (version and schema), without its length and the magic.

    ``NUMBER`` takes the place of the total number of rows.
    """
    return (
        head
        + bytes([0x10 | _I64])
        + NUMBER
        + bytes([0x10 | _LIST])
        + _header(_STRUCT, len(groups))
        + b"".join(groups)
        + _STOP
    )


def wide_numbers(values: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Encode each number in as many bytes as ``NUMBER`` has.

    Raises ``ValueError`` if one is negative, or 2**34 or more.
    """
    wrong = values[(values < 0) | (values >= _TOO_LARGE)]
    if len(wrong):
        raise ValueError(f"{wrong[0]} does not fit into {len(NUMBER)} bytes")
    encoded = (((values << 1)[:, None] >> _SHIFTS) & 0x7F).astype(np.uint8)
    encoded[:, :-1] |= 0x80
    return encoded
