"""Conversion of Arrow arrays to plain layouts: no dictionaries, run lengths or views, at any depth.

Arrow lacks kernels for some layouts: it cannot take rows of views, or join and compare run-end encoded
arrays. User data is converted on entry, so that no verb needs to handle these layouts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_kinds = pa.types
_LISTS: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, pa.Field], pa.DataType]]] = [
    (lambda a: _kinds.is_list(a) or _kinds.is_list_view(a), lambda _, f: pa.list_(f)),
    (lambda a: _kinds.is_large_list(a) or _kinds.is_large_list_view(a), lambda _, f: pa.large_list(f)),
    (_kinds.is_fixed_size_list, lambda a, f: pa.list_(f, a.list_size)),
]


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the plain type with the same values."""
    if _kinds.is_dictionary(kind) or _kinds.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if _kinds.is_string_view(kind):
        return pa.string()
    if _kinds.is_binary_view(kind):
        return pa.binary()
    if _kinds.is_struct(kind):
        return pa.struct([plain_field(f) for f in kind])
    if _kinds.is_map(kind):
        return pa.map_(plain_field(kind.key_field), plain_field(kind.item_field), kind.keys_sorted)
    for matches, made in _LISTS:
        if matches(kind):
            return made(kind, plain_field(kind.value_field))
    return kind


def plain_field(f: pa.Field) -> pa.Field:
    return f.with_type(plain_type(f.type))


def to_plain(array: pa.Array) -> pa.Array:
    """Convert to ``plain_type``; a plain array is returned unchanged."""
    kind = plain_type(array.type)
    return array if array.type == kind else _made(array, kind)


def plain_stream(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Convert every column to a plain layout."""
    schema = pa.schema([plain_field(f) for f in reader.schema], metadata=reader.schema.metadata)
    if schema.types == reader.schema.types:
        return reader
    return pa.RecordBatchReader.from_batches(
        schema, (pa.RecordBatch.from_arrays([to_plain(c) for c in batch.columns], schema=schema) for batch in reader)
    )


def _made(array: pa.Array, kind: pa.DataType) -> pa.Array:
    held = array.type
    if _kinds.is_dictionary(held):
        return to_plain(array.dictionary).take(array.indices)
    if _kinds.is_run_end_encoded(held):
        return to_plain(array.values).take(_runs(array))
    mask = array.is_null() if array.null_count else None
    if _kinds.is_struct(held):
        return pa.StructArray.from_arrays(
            [to_plain(array.field(at)) for at in range(held.num_fields)], fields=list(kind), mask=mask
        )
    # may be unordered and overlapping; Arrow's cast loses their offsets
    if _kinds.is_list_view(held) or _kinds.is_large_list_view(held):
        ends = np.cumsum(pc.fill_null(pc.list_value_length(array), 0), dtype=np.int64)
        offsets = pa.array(np.concatenate([[0], ends])).cast(pa.int32() if _kinds.is_list(kind) else pa.int64())
        made = pa.ListArray if _kinds.is_list(kind) else pa.LargeListArray
        return made.from_arrays(offsets, to_plain(array.flatten()), type=kind, mask=mask)
    if _kinds.is_map(held):
        entries = [to_plain(array.keys), to_plain(array.items)]
        return _around(array, kind, pa.StructArray.from_arrays(entries, fields=[kind.key_field, kind.item_field]))
    if _kinds.is_nested(held):
        return _around(array, kind, to_plain(array.values))
    return array.cast(kind)  # a view


def _around(array: pa.Array, kind: pa.DataType, values: pa.Array) -> pa.Array:
    """Wrap ``values`` in the lists of ``array``."""
    own = array.buffers()[: kind.num_buffers]
    return pa.Array.from_buffers(kind, len(array), own, array.null_count, array.offset, children=[values])


def _runs(array: pa.RunEndEncodedArray) -> pa.Array:
    """Return the run index of each row."""
    rows = np.arange(array.offset, array.offset + len(array))
    return pa.array(np.searchsorted(np.asarray(array.run_ends), rows, side="right"))
