"""Batches whose bytes are bounded: rows are measured, batches cut, and small neighbours joined.

A number of rows alone bounds no memory; and texts, lists and maps have 32-bit offsets, so that arrays of more than
2 GiB in all cannot be joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Ints = np.ndarray[Any, np.dtype[np.int64]]

_OFFSET = 4
"""Bytes of an offset, which every text, list or map has."""


def row_sizes(columns: Iterable[pa.Array], length: int) -> Ints:
    """Return about how many bytes each of ``length`` rows takes, without a dictionary."""
    sizes = np.zeros(length, dtype=np.int64)
    for column in columns:
        sizes += _value_sizes(column)
    return sizes


def spans_within(sizes: Ints, most_bytes: int, most_rows: int) -> Iterator[slice]:
    """Yield consecutive spans of rows of these ``sizes`` within both limits; a row beyond them has its own."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(ends):
        before = int(ends[start - 1]) if start else 0
        end = int(np.searchsorted(ends, before + most_bytes, side="right"))
        end = min(max(end, start + 1), start + most_rows)
        yield slice(start, end)
        start = end


def slices_within(batch: pa.RecordBatch, most_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``batch`` in slices of about ``most_bytes`` at most; a larger row has its own."""
    if len(batch) < 2 or batch.nbytes <= most_bytes:
        yield batch
        return
    for span in spans_within(row_sizes(batch.columns, len(batch)), most_bytes, len(batch)):
        yield batch.slice(span.start, span.stop - span.start)


def joined_batches(batches: Iterable[pa.RecordBatch], enough_rows: int, most_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in the same order, neighbours joined to ``enough_rows`` as far as ``most_bytes`` allow.

    No batch is cut, and none is empty.
    """
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if not held and len(batch) >= enough_rows:
            yield batch
            continue
        if not len(batch):
            continue
        if held and size + batch.nbytes > most_bytes:
            yield _joined(held)
            held, rows, size = [], 0, 0
        held.append(batch)
        rows += len(batch)
        size += batch.nbytes
        if rows >= enough_rows:
            yield _joined(held)
            held, rows, size = [], 0, 0
    if held:
        yield _joined(held)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _value_sizes(array: pa.Array) -> Ints | int:
    """Return the bytes of each value, or of all if they are the same."""
    kind, types = array.type, pa.types
    if types.is_string(kind) or types.is_binary(kind) or types.is_large_string(kind) or types.is_large_binary(kind):
        lengths: Ints = pc.fill_null(pc.binary_length(array), 0).to_numpy().astype(np.int64)
        return lengths + _OFFSET
    if types.is_dictionary(kind):
        of_values = _value_sizes(array.dictionary)
        if isinstance(of_values, int):
            return of_values
        found: Ints = pc.fill_null(pa.array(of_values).take(array.indices), 0).to_numpy()
        return found
    if types.is_struct(kind):
        return row_sizes(array.flatten(), len(array))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        return _list_sizes(array)
    try:
        return max(int(kind.bit_width) // 8, 1)
    except ValueError:  # a type without offsets of 32 bits, such as views
        return int(array.nbytes) // max(len(array), 1)


def _list_sizes(array: pa.Array) -> Ints:
    offsets = array.offsets.to_numpy().astype(np.int64)
    first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    inner = (array.keys, array.items) if pa.types.is_map(array.type) else (array.values,)
    ends = np.concatenate([[0], np.cumsum(row_sizes((values.slice(first, count) for values in inner), count))])
    sizes: Ints = np.diff(ends[offsets - first]) + _OFFSET
    return sizes
