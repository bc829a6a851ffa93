"""Protocol Buffers' wire format, as far as ORC's metadata needs it.

``message_fields`` reads any message; the others make messages. Numbers in records that are made for many streams at
once have a fixed width: a decoder accepts a number with leading zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

WIDE = 9
"""Bytes of a number of fixed width, enough for 63 bits."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def message_fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield field number and value: an int, or bytes. Raises ``ValueError`` if ``message`` is cut or not one."""
    at, end = 0, len(message)
    try:
        while at < end:
            key, at = _number(message, at)
            kind = key & 7
            if kind == _VARINT:
                value, at = _number(message, at)
                yield key >> 3, value
                continue
            if kind == _BYTES:
                size, at = _number(message, at)
            elif kind in {_FIXED64, _FIXED32}:
                size = 8 if kind == _FIXED64 else 4
            else:
                raise ValueError(f"a field of kind {kind}")
            if at + size > end:
                raise ValueError("a field that is longer than its message")
            yield key >> 3, message[at : at + size]
            at += size
    except IndexError:
        raise ValueError("a number that is longer than its message") from None


def _number(message: bytes, at: int) -> tuple[int, int]:
    """Return the number at ``at`` and where it ends."""
    value = message[at]
    if value < 128:
        return value, at + 1
    value, shift = value & 127, 7
    while True:
        at += 1
        byte = message[at]
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at + 1
        shift += 7
        if shift >= 70:
            raise ValueError("a number of more than 64 bits")


def packed_numbers(value: bytes) -> list[int]:
    """Return the numbers of a packed repeated field."""
    found, at = [], 0
    while at < len(value):
        number, at = _number(value, at)
        found.append(number)
    return found


def encode_varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number_field(field: int, value: int) -> bytes:
    return encode_varint(field << 3 | _VARINT) + encode_varint(value)


def bytes_field(field: int, value: bytes) -> bytes:
    """Return a field of bytes, a text or a message."""
    return encode_varint(field << 3 | _BYTES) + encode_varint(len(value)) + value


def wide_varints(values: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return the numbers as varints of ``WIDE`` bytes, one row each; none may be negative."""
    shifted = values.astype(np.uint64)[:, None] >> (7 * np.arange(WIDE, dtype=np.uint64))
    out = (shifted & np.uint64(127)).astype(np.uint8)
    out[:, :-1] |= 128
    return out


def number_records(field: int, *columns: tuple[int, np.ndarray[Any, Any]]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return messages of numbers, one row each, all of the same length; ``columns`` are (field, values)."""
    body = 1 + WIDE
    out = np.empty((len(columns[0][1]), 2 + body * len(columns)), dtype=np.uint8)
    out[:, 0], out[:, 1] = field << 3 | _BYTES, body * len(columns)
    for place, (inner, values) in enumerate(columns):
        start = 2 + body * place
        out[:, start] = inner << 3 | _VARINT
        out[:, start + 1 : start + body] = wide_varints(values)
    return out
