"""Rows as integers: equal rows have equal codes, so that NumPy can compare and count them.

Columns are coded chunk by chunk: the chunks of a column may be too large for one array.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Ints = np.ndarray[Any, np.dtype[np.int64]]

_WIDE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
"""Types whose offsets suffice for the distinct values of all chunks together."""


def row_codes(rows: pa.Table) -> Ints:
    """Return an integer per row that is equal for equal rows."""
    return _joint(len(rows), rows.columns)


def _joint(size: int, columns: Iterable[pa.ChunkedArray]) -> Ints:
    keys = np.zeros(size, dtype=np.int64)
    for codes in (c for column in columns for c in _codes(column)):
        _, keys = np.unique(keys * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
    return keys


def _codes(column: pa.ChunkedArray) -> Iterator[Ints]:
    """Yield one or more arrays of integers that together distinguish a column's values."""
    kind = column.type
    if pa.types.is_struct(kind):
        yield column.is_valid().to_numpy().astype(np.int64)
        for child in column.flatten():
            yield from _codes(child)
    elif not pa.types.is_null(kind):
        flat = _sequences(column) if pa.types.is_nested(kind) else _flat(column)
        encoded = flat.dictionary_encode(null_encoding="encode")  # all chunks have one dictionary
        numbers = (chunk.indices.to_numpy(zero_copy_only=False) for chunk in encoded.chunks)
        yield np.concatenate([np.zeros(0, dtype=np.int64), *numbers])


def _flat(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values in a type that Arrow encodes, however many bytes they have."""
    if pa.types.is_duration(column.type):
        return pa.chunked_array([chunk.view(pa.int64()) for chunk in column.chunks], pa.int64())
    return column.cast(_WIDE[column.type]) if column.type in _WIDE else column


def _sequences(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return lists or maps as the bytes of their elements' codes; maps are compared in the order of their entries."""
    kind = column.type
    names = {"keys": kind.key_type, "items": kind.item_type} if pa.types.is_map(kind) else {"values": kind.value_type}
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    offsets = [chunk.offsets.to_numpy().astype(np.int64) for chunk in chunks]
    elements = [
        pa.chunked_array(
            [getattr(chunk, name).slice(at[0], at[-1] - at[0]) for chunk, at in zip(chunks, offsets, strict=True)],
            inner,
        )
        for name, inner in names.items()
    ]
    codes = np.ascontiguousarray(_joint(len(elements[0]), elements), dtype=np.int64)
    found, start = [], 0
    for chunk, at in zip(chunks, offsets, strict=True):
        ends = at - at[0] + start
        whole = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(chunk), [None, pa.py_buffer(ends * codes.itemsize), pa.py_buffer(codes)]
        )
        found.append(pc.if_else(chunk.is_valid(), whole, None))
        start = int(ends[-1])
    return pa.chunked_array(found, pa.large_binary())


def occurrence_numbers(keys: Ints) -> Ints:
    """Return, for each row, how many equal rows precede it."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.searchsorted(ordered, ordered, side="left")
    out = np.empty(len(keys), dtype=np.int64)
    out[order] = np.arange(len(keys)) - first
    return out
