"""Stable sorting by whole-number keys packed into 64-bit words, which NumPy sorts several times faster than Arrow.

Each word holds the keys of a row, and below them the row's number where there is room: then sorting the words alone
gives the order, and rows with equal keys stay in order by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Words = np.ndarray[Any, np.dtype[np.uint64]]

_Kind = Literal["quicksort", "stable"]

WORD_BITS = 64


def packed_order(keys: Sequence[pa.Array], *, in_runs: bool = False) -> pa.UInt64Array | None:
    """Return the indices that sort rows stably by ``keys``, ascending; None if they do not fit into 64 bits.

    ``in_runs``: the rows are a few sorted runs, one after the other, which are merged several times as fast.
    NULLs of a key must be equal to one another in the order, whatever their values: an earlier key separates them
    from the others.
    """
    rows = len(keys[0])
    if not rows or not all(is_packable(key.type) for key in keys):
        return None
    spans = [_span(key) for key in keys]
    bits = [int(high - low).bit_length() for low, high in spans]
    if sum(bits) > WORD_BITS:
        return None
    row_bits = (rows - 1).bit_length()
    kind: _Kind = "stable" if in_runs else "quicksort"  # a stable sort looks for runs first
    words = np.zeros(rows, dtype=np.uint64)
    for key, (low, _), width in zip(keys, spans, bits, strict=True):
        words <<= np.uint64(width) if width < WORD_BITS else np.uint64(0)  # one key of 64 bits: the words are zero
        words |= offset_words(key, low)
    if sum(bits) + row_bits <= WORD_BITS:
        return pa.array(_sorted_rows(words, row_bits, kind))
    order = np.argsort(words, kind=kind).astype(np.uint64)
    ordered = words[order]
    starts = np.empty(rows, dtype=np.bool_)
    starts[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    if starts.all() or 2 * row_bits > WORD_BITS:
        return pa.array(order) if starts.all() else None
    # The order of rows with equal keys is arbitrary so far: sort by the place of the key, then by the row.
    places = np.cumsum(starts, dtype=np.uint64)
    places -= np.uint64(1)
    places <<= np.uint64(row_bits)
    places |= order
    places.sort(kind=kind)
    places &= np.uint64((1 << row_bits) - 1)
    return pa.array(places)


def _sorted_rows(words: Words, row_bits: int, kind: _Kind) -> Words:
    """Return the row numbers in the order of (word, row); ``words`` are overwritten."""
    words <<= np.uint64(row_bits)
    words |= np.arange(len(words), dtype=np.uint64)
    words.sort(kind=kind)
    words &= np.uint64((1 << row_bits) - 1)
    return words


def is_packable(kind: pa.DataType) -> bool:
    """Whether values of the Arrow type are signed whole numbers of at most 64 bits, or are stored as such."""
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_temporal(kind)) and kind.bit_width <= WORD_BITS


def _span(key: pa.Array) -> tuple[int, int]:
    """Return the least and greatest value as whole numbers; zeros without any."""
    bounds = pc.min_max(integers_of(key))
    return (bounds["min"].as_py() or 0, bounds["max"].as_py() or 0)


def offset_words(key: pa.Array, low: int) -> Words:
    """Return the distance of each value from ``low``, modulo 2^64; zero for NULL."""
    values = integers_of(key)
    known = values.is_valid().to_numpy(zero_copy_only=False) if values.null_count else None
    filled = (values if known is None else values.fill_null(0)).to_numpy()
    # Wraps around where the span exceeds 63 bits; the difference is right modulo 2^64.
    offsets: Words = filled.astype(np.int64, copy=False).view(np.uint64) - np.uint64(low % (1 << WORD_BITS))
    if known is not None:
        offsets[~known] = 0
    return offsets


def integers_of(key: pa.Array) -> pa.Array:
    """Return the values of a packable type as the whole numbers that they are stored as."""
    if pa.types.is_signed_integer(key.type):
        return key
    return key.view(pa.int32() if key.type.bit_width == 32 else pa.int64())
