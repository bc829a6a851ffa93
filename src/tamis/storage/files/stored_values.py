"""Values as formats other than Parquet keep them: what such a format cannot say, or says wrongly, is kept as the whole number that it is.

Law: the stored type has the same bits, so nothing is converted on the way out but the name of the type (``files.column_conversion``). In the file every
field may be NULL: which may not is the table's business.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

Keep = Callable[[pa.DataType], pa.DataType]
"""What a format keeps an atomic type as."""


def stored_schema(schema: pa.Schema, keep: Keep) -> pa.Schema:
    """The file's schema: names as they are at the time of writing. Void columns are not stored."""
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
    """``array`` as ``target``, which is its stored type. Only the skeleton of nested values is made anew.

    What lies below a NULL struct is NULL: a value that stands there unseen is written by ORC's library as the next row's (docs/design/0014).
    """
    if pa.types.is_struct(target):
        if array.offset:  # libraries that take arrays over differ on what a slice of a struct of slices is
            array = array.take(pa.array(np.arange(len(array))))
        children = [as_stored(child, f.type) for child, f in zip(array.flatten(), target, strict=True)]
        return pa.StructArray.from_arrays(children, fields=list(target), mask=array.is_null() if array.null_count else None)
    if pa.types.is_map(target):
        entries = pa.StructArray.from_arrays(
            [as_stored(array.keys, target.key_type), as_stored(array.items, target.item_type)], fields=[target.key_field, target.item_field]
        )
        return _over(array, target, entries)
    if pa.types.is_list(target):
        return _over(array, target, as_stored(array.values, target.value_type))
    return array if array.type.equals(target) else array.view(target)


def _over(array: pa.Array, target: pa.DataType, values: pa.Array) -> pa.Array:
    validity, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(target, len(array), [validity, offsets], array.null_count, array.offset, children=[values])
