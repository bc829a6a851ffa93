"""NULL columns, and filler values for positions below a NULL parent.

Parquet's writer refuses NULL in a required field, even there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc


def blank_array(data_type: pa.DataType, length: int) -> pa.Array:
    """Return ``length`` non-NULL values of any type: zeros, empty texts and lists, structs of these."""
    if pa.types.is_struct(data_type):
        if not data_type.num_fields:
            return pa.array([{}] * length, data_type)
        return pa.StructArray.from_arrays([blank_array(f.type, length) for f in data_type], fields=list(data_type))
    offsets = pa.py_buffer(bytes(4 * (length + 1)))
    if pa.types.is_map(data_type):
        entries = pa.struct([data_type.key_field, data_type.item_field])
        return pa.Array.from_buffers(data_type, length, [None, offsets], children=[pa.array([], entries)])
    if pa.types.is_list(data_type):
        return pa.Array.from_buffers(data_type, length, [None, offsets], children=[pa.array([], data_type.value_type)])
    if pa.types.is_string(data_type) or pa.types.is_binary(data_type):
        return pa.Array.from_buffers(data_type, length, [None, offsets, pa.py_buffer(b"")])
    return pa.Array.from_buffers(data_type, length, [None, pa.py_buffer(bytes(-(-data_type.bit_width * length // 8)))])


def null_array(data_type: pa.DataType, length: int) -> pa.Array:
    """Return ``length`` NULLs of any type, with blank values in the required fields below them."""
    if not pa.types.is_struct(data_type) or not data_type.num_fields:
        return pa.nulls(length, data_type)
    children = [null_array(f.type, length) if f.nullable else blank_array(f.type, length) for f in data_type]
    return pa.StructArray.from_arrays(children, fields=list(data_type), mask=pa.repeat(True, length))


def struct_array(
    children: Sequence[pa.Array], fields: Iterable[pa.Field], length: int, nulls: pa.BooleanArray | None = None
) -> pa.StructArray:
    """Return ``length`` structs of these children, NULL where ``nulls`` is true.

    Arrow takes the length from the children, and makes an array without rows if there are none.
    """
    if children:
        return pa.StructArray.from_arrays(children, fields=list(fields), mask=nulls)
    validity = None if nulls is None else pc.invert(nulls).buffers()[1]
    return pa.Array.from_buffers(pa.struct([]), length, [validity])
