"""Rows as integers: equal rows have equal codes, so that NumPy can compare and count them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

Ints = np.ndarray[Any, np.dtype[np.int64]]


def row_codes(rows: pa.Table) -> Ints:
    """Return an integer per row that is equal for equal rows."""
    keys = np.zeros(len(rows), dtype=np.int64)
    for codes in (c for column in rows.columns for c in _codes(column.combine_chunks())):
        _, keys = np.unique(keys * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
    return keys


def _codes(column: pa.Array | pa.ChunkedArray) -> Iterator[Ints]:
    """Yield one or more arrays of integers that together distinguish a column's values."""
    array = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_struct(array.type):
        yield array.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
        for child in array.flatten():
            yield from _codes(child)
        return
    # lists and maps as text: slow, but only for commits that add and remove parts
    if pa.types.is_nested(array.type):
        array = pa.array([None if v is None else repr(v) for v in array.to_pylist()], pa.string())
    if pa.types.is_null(array.type):
        return
    flat = array.view(pa.int64()) if pa.types.is_duration(array.type) else array
    yield flat.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False).astype(np.int64)


def occurrence(keys: Ints) -> Ints:
    """Return, for each row, how many equal rows precede it."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.searchsorted(ordered, ordered, side="left")
    out = np.empty(len(keys), dtype=np.int64)
    out[order] = np.arange(len(keys)) - first
    return out
