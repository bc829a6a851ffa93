"""Gathers bytes, numbers and texts at positions in the binary form of VARIANT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

Ints = np.ndarray[Any, np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]

PADDING = 8
_WIDEST = 1024
"""Bytes of a row up to which it is copied as a whole."""
_UNUSED_BITS = np.array([{3: 56, 4: 48, 5: 32}.get(header >> 2, 0) for header in range(256)], dtype=np.int64)
"""By header: the unused bits of the eight bytes after an integer's header."""
WIDE_DECIMAL = 10
_UNUSED_OF_DECIMALS = np.array([32 if kind == WIDE_DECIMAL - 2 else 0 for kind in range(64)], dtype=np.int64)


def longs_at(data: Bytes, at: Ints, header: Bytes) -> Ints:
    """Return the values of integers with these headers."""
    unused = _UNUSED_BITS.take(header)
    values = words_at(data, at + 1)
    values <<= unused
    values >>= unused
    return values


_LONG = 6 << 2
"""The header of an integer of eight bytes."""
_UNUSED_BEHIND = np.array([{3: 48, 4: 40, 5: 24}.get(header >> 2, 0) for header in range(256)], dtype=np.int64)
"""By header: the unused bits behind an integer in the eight bytes that begin with the header."""
_DECIMAL4 = 8 << 2


def longs_in(words: Ints, header: Bytes) -> Ints | None:
    """Return integers that are whole within the eight bytes that begin with their headers; None unless all are.

    ``words`` are these bytes; they are overwritten.
    """
    if (header == _LONG).any():
        return None
    unused = _UNUSED_BEHIND.take(header)
    words <<= unused
    words >>= unused
    words >>= 8
    return words


def decimals_in(words: Ints, header: Bytes) -> tuple[Ints, Ints] | None:
    """Return decimals as ``longs_in`` does integers, as (unscaled, scale)."""
    if not (header == _DECIMAL4).all():
        return None
    scale = words >> 8
    scale &= 0xFF
    words <<= 16
    words >>= 32
    return words, scale


def decimals_at(data: Bytes, at: Ints, header: Bytes) -> tuple[Ints, Ints, Bools]:
    """Return decimals with these headers as (unscaled, scale), and which have at most 8 bytes.

    The numbers of the others are meaningless.
    """
    kind = header >> 2
    unused = _UNUSED_OF_DECIMALS.take(kind)
    values = words_at(data, at + 2)
    values <<= unused
    values >>= unused
    return values, bytes_at(data, at + 1).astype(np.int64), kind != WIDE_DECIMAL


def places_at(data: Bytes, at: Ints, header: Bytes) -> tuple[Ints, Ints]:
    """Return where strings with these headers begin, and their lengths in bytes."""
    short = (header & 3) == 1
    lengths = (header >> 2).astype(np.int64)
    starts = at + 1
    if not short.all():
        rest = ~short
        lengths[rest] = little_endian(data, starts[rest], 4)
        starts = np.where(short, starts, starts + 4)
    return starts, lengths


def string_slices(data: Bytes, starts: Ints, lengths: Ints, kind: Any = None) -> pa.Array:
    """Return strings at ascending positions in ``data``, without reading what is between them."""
    ends = np.minimum(starts + lengths, len(data))
    starts = np.minimum(starts, ends)
    if len(starts) and (len(data) >= 2**31 or (starts[1:] < ends[:-1]).any()):
        return pa.array(
            [data[a:b].tobytes() for a, b in zip(starts.tolist(), ends.tolist(), strict=True)], pa.binary()
        ).view(kind or pa.string())
    edges = np.empty(2 * len(starts) + 1, np.int32)
    edges[0:-1:2], edges[1::2] = starts, ends
    edges[-1] = edges[-2] if len(starts) else 0
    spread = pa.Array.from_buffers(
        kind or pa.string(), 2 * len(starts), [None, pa.py_buffer(edges), pa.py_buffer(data)]
    )
    return spread.take(pa.array(np.arange(0, 2 * len(starts), 2)))


def all_equal(values: pa.BinaryArray) -> bool:
    """Return whether all values are the same bytes, at least one; False if some are NULL."""
    if not len(values) or values.null_count:
        return False
    ends = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    size, start, rest = int(ends[1] - ends[0]), int(ends[0]), int(ends[-1] - ends[1])
    if not size or rest != size * (len(values) - 1) or (ends[1:] - ends[:-1] != size).any():
        return False
    data = values.buffers()[2]  # equal to itself one value further on
    return bool(data.slice(start, rest).equals(data.slice(start + size, rest)))


def little_endian(data: Bytes, at: Ints, size: int) -> Ints:
    """Read unsigned little-endian numbers of ``size`` bytes."""
    if size == 1:
        return bytes_at(data, at).astype(np.int64)
    return words_at(data, at) & np.int64((1 << (8 * size)) - 1)


def words_at(data: Bytes, at: Ints) -> Ints:
    """Read the eight bytes that begin at each position."""
    words = np.ndarray((len(data) - PADDING + 1,), np.dtype("V8"), data, 0, (1,))
    return words[np.clip(at, 0, len(words) - 1)].view("<i8")


def rows_at(data: Bytes, at: Ints, count: int, size: int) -> Any:
    """Read ``count`` unsigned little-endian numbers of ``size`` bytes from each position on; a row for each position.

    Damaged positions give some numbers, never an error.
    """
    width = count * size
    if size == 3 or not 0 < width <= min(_WIDEST, len(data)):
        return little_endian(data, at[:, None] + np.arange(count) * size, size)
    pieces = np.ndarray((len(data) - width + 1,), np.dtype(f"V{width}"), data, 0, (1,))
    return pieces[np.clip(at, 0, len(pieces) - 1)].view(f"<u{size}").reshape(len(at), count)


def bytes_at(data: Bytes, at: Ints) -> Bytes:
    """Read bytes at positions; damaged positions give some byte, never an error."""
    return np.take(data, at, mode="clip")
