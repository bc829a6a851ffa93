"""Rows as integers: equal rows have equal codes, so that NumPy can compare and count them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Ints = np.ndarray[Any, np.dtype[np.int64]]


def row_codes(rows: pa.Table) -> Ints:
    """Return an integer per row that is equal for equal rows."""
    return _joint(len(rows), rows.columns)


def _joint(size: int, columns: Iterable[pa.Array | pa.ChunkedArray]) -> Ints:
    keys = np.zeros(size, dtype=np.int64)
    for codes in (c for column in columns for c in _codes(column)):
        _, keys = np.unique(keys * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
    return keys


def _codes(column: pa.Array | pa.ChunkedArray) -> Iterator[Ints]:
    """Yield one or more arrays of integers that together distinguish a column's values."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # longer than one array can be
        array = pa.concat_arrays(array.chunks)
    if pa.types.is_struct(array.type):
        yield array.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
        for child in array.flatten():
            yield from _codes(child)
        return
    if pa.types.is_nested(array.type):
        array = _sequences(array)
    if pa.types.is_null(array.type):
        return
    flat = array.view(pa.int64()) if pa.types.is_duration(array.type) else array
    yield flat.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _sequences(array: pa.Array) -> pa.Array:
    """Return lists or maps as the bytes of their elements' codes; maps are compared in the order of their entries."""
    elements = (array.keys, array.items) if pa.types.is_map(array.type) else (array.values,)
    codes = np.ascontiguousarray(_joint(len(elements[0]), elements), dtype=np.int64)
    ends = array.offsets.to_numpy().astype(np.int64) * codes.itemsize
    whole = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(array), [None, pa.py_buffer(ends), pa.py_buffer(codes)]
    )
    return pc.if_else(array.is_valid(), whole, None)


def occurrence_numbers(keys: Ints) -> Ints:
    """Return, for each row, how many equal rows precede it."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.searchsorted(ordered, ordered, side="left")
    out = np.empty(len(keys), dtype=np.int64)
    out[order] = np.arange(len(keys)) - first
    return out
