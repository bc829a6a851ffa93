"""Stores types that a format cannot represent, or represents wrongly, as integers.

Invariant: the stored type has the same bits, so reading only changes the name of the type
(``files.column_conversion``). Every field is nullable in the file: the table enforces NOT NULL.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from tamis.core.types.blank_values import struct_array

Keep = Callable[[pa.DataType], pa.DataType]
"""Maps an atomic type to the type in which a format stores it."""


def stored_schema(schema: pa.Schema, keep: Keep) -> pa.Schema:
    """Return the file's schema, with names as of the time of writing; void columns are not stored."""
    return pa.schema([pa.field(f.name, stored_type(f.type, keep)) for f in schema if not pa.types.is_null(f.type)])


def stored_type(data_type: pa.DataType, keep: Keep) -> pa.DataType:
    if pa.types.is_struct(data_type):
        return pa.struct([pa.field(f.name, stored_type(f.type, keep)) for f in data_type])
    if pa.types.is_map(data_type):
        key = pa.field("key", stored_type(data_type.key_type, keep), nullable=False)
        return pa.map_(key, pa.field("value", stored_type(data_type.item_type, keep)))
    if pa.types.is_list(data_type):
        return pa.list_(pa.field("element", stored_type(data_type.value_type, keep)))
    return keep(data_type)


def as_stored(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Convert ``array`` to ``target``, its stored type; only the structure of nested values is rebuilt.

    Values below a NULL struct become NULL: ORC's library would write a value hidden there as the next row's
    (docs/design/0014).
    """
    if pa.types.is_struct(target):
        if array.offset:  # libraries that import arrays disagree on a slice of a struct of slices
            array = array.take(pa.array(np.arange(len(array))))
        children = [as_stored(child, f.type) for child, f in zip(array.flatten(), target, strict=True)]
        return struct_array(children, target, len(array), array.is_null() if array.null_count else None)
    if pa.types.is_map(target):
        entries = pa.StructArray.from_arrays(
            [as_stored(array.keys, target.key_type), as_stored(array.items, target.item_type)],
            fields=[target.key_field, target.item_field],
        )
        return _over(array, target, entries)
    if pa.types.is_list(target):
        return _over(array, target, as_stored(array.values, target.value_type))
    return array if array.type.equals(target) else array.view(target)


def _over(array: pa.Array, target: pa.DataType, values: pa.Array) -> pa.Array:
    validity, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(
        target, len(array), [validity, offsets], array.null_count, array.offset, children=[values]
    )
