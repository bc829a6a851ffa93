"""Filler values for positions below a NULL parent.

Parquet's writer refuses NULL in a required field, even there.
"""

from __future__ import annotations

import pyarrow as pa


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
