"""Rows that may have one of some keys, by the hashes of their keys: the hashes of all rows are sorted once.

Invariant: keys that Arrow's join takes for equal have equal hashes. So values are hashed by their bits; what stands
below a NULL, which equals nothing, does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.types.bounded_batches import slices_within
from tamis.core.types.numbered_rows import NumberedRows

Hashes = np.ndarray[Any, np.dtype[np.uint64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

_PIECE_BYTES = 4 * 2**20
"""Bytes of keys that are hashed at once; NumPy takes some times as many."""
_WORD = 8
"""Bytes that are hashed at once."""
_WORDS = 8
"""Words at either end of a text that are hashed. Texts that differ between them only are not told apart."""
_FIRST_BYTES = np.array([256**count - 1 for count in range(_WORD + 1)], dtype=np.uint64)
"""Masks of the first bytes of a word, by their number."""
_FACTORS = np.array([0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53], dtype=np.uint64)
"""The factors of MurmurHash3's finalizer."""
_SHIFT = np.uint64(33)


class KeyLookup:
    """Finds the rows of ``table`` that may have one of some keys; ``names`` are the columns of its keys."""

    def __init__(self, table: pa.Table, names: list[str]) -> None:
        self._rows = NumberedRows(table)
        keys = table.select(names)
        hashes, places = _table_hashes(keys), np.flatnonzero(_without_null(keys))
        self._order: Ints = places[np.argsort(hashes[places])]
        self._hashes: Hashes = hashes[self._order]

    def candidates(self, keys: pa.Table) -> pa.RecordBatch | None:
        """Return all rows that have one of ``keys``, and maybe others; None if there are none."""
        wanted = np.sort(_table_hashes(keys)[_without_null(keys)])  # ``np.unique`` takes fifty times as long
        wanted = wanted[np.diff(wanted, prepend=~wanted[:1]) != 0]
        first = np.searchsorted(self._hashes, wanted, side="left")
        counts = np.searchsorted(self._hashes, wanted, side="right") - first
        before = np.cumsum(counts) - counts
        places = np.repeat(first - before, counts) + np.arange(counts.sum())
        return self._rows.take(np.sort(self._order[places])) if len(places) else None


def _without_null(keys: pa.Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which rows have no NULL in their keys; others match nothing."""
    known = np.ones(len(keys), dtype=np.bool_)
    for column in keys.columns:
        if column.null_count:
            known &= column.is_valid().to_numpy()
    return known


def _table_hashes(keys: pa.Table) -> Hashes:
    pieces = (piece for batch in keys.to_batches() for piece in slices_within(batch, _PIECE_BYTES))
    return np.concatenate([np.zeros(0, dtype=np.uint64), *map(_row_hashes, pieces)])


def _row_hashes(keys: pa.RecordBatch) -> Hashes:
    found = np.zeros(len(keys), dtype=np.uint64)
    for column in keys.columns if len(keys) else ():
        for words in _words(column):
            found = _mixed(found ^ words)
    return found


def _words(column: pa.Array) -> Iterator[Hashes]:
    """Yield the values as numbers of 64 bits; none for types that keys do not have, which are not told apart."""
    kind, types = column.type, pa.types
    if types.is_string(kind) or types.is_binary(kind):
        yield _text_hashes(column)
    elif types.is_boolean(kind):
        yield from _words(column.cast(pa.uint8()))
    elif types.is_primitive(kind) or types.is_decimal(kind):
        width = kind.bit_width // 8
        per_value = max(width // _WORD, 1)
        bits = np.frombuffer(
            column.buffers()[1], f"u{width // per_value}", len(column) * per_value, column.offset * width
        )
        yield from (bits[at::per_value].astype(np.uint64) for at in range(per_value))


def _text_hashes(column: pa.Array) -> Hashes:
    _, ends, texts = column.buffers()
    offsets = np.frombuffer(ends, np.int32, len(column) + 1, column.offset * 4).astype(np.int64)
    starts, lengths, size = offsets[:-1] - offsets[0], np.diff(offsets), int(offsets[-1] - offsets[0])
    data = np.zeros(size + _WORD, dtype=np.uint8)
    if size:
        data[:size] = np.frombuffer(texts, np.uint8, size, int(offsets[0]))
    at_each_byte: Hashes = np.ndarray(size + 1, "<u8", data, strides=(1,))
    found = _mixed(lengths.astype(np.uint64))

    def add(rows: Ints, places: Ints, left: Ints) -> None:
        words = at_each_byte[places] & _FIRST_BYTES[np.minimum(left, _WORD)]
        found[rows] = _mixed(found[rows] ^ words)

    for begin in range(0, _WORDS * _WORD, _WORD):
        if not len(rows := np.flatnonzero(lengths > begin)):
            return found
        add(rows, starts[rows] + begin, lengths[rows] - begin)
    for back in range(_WORD, (_WORDS + 1) * _WORD, _WORD):
        rows = np.flatnonzero(lengths > _WORDS * _WORD + back - _WORD)
        add(rows, starts[rows] + lengths[rows] - back, lengths[rows])
    return found


def _mixed(words: Hashes) -> Hashes:
    """Return other numbers, one for each number, of which all bits depend on all bits."""
    for factor in _FACTORS:
        words = (words ^ (words >> _SHIFT)) * factor
    return words ^ (words >> _SHIFT)
