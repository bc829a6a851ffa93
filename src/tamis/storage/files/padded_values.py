"""Pads the CHAR values of a column with blanks, at any depth.

Invariant: every CHAR value that a reader returns is padded. Tamis and Spark pad what they write; others need not.
"""

from __future__ import annotations

import pyarrow as pa

from tamis.core.types import Array, DataType, Map, Struct
from tamis.core.types.arrow import to_arrow_field, to_arrow_type
from tamis.core.types.char_values import char_length, has_char
from tamis.core.types.utf8_texts import padded_texts
from tamis.storage.files.column_conversion import replace_values


def padded_array(array: pa.Array, data_type: DataType) -> pa.Array:
    """Return an array of ``data_type`` with its CHAR values padded; longer values stay as they are."""
    length = char_length(data_type)
    if length is not None:
        return padded_texts(array, length)
    if not has_char(data_type):
        return array
    match data_type:
        case Struct(fields):
            children = [padded_array(array.field(at), f.type) for at, f in enumerate(fields)]
            mask = array.is_null() if array.null_count else None
            return pa.StructArray.from_arrays(children, fields=[to_arrow_field(f) for f in fields], mask=mask)
        case Array(element):
            values = padded_array(array.values, element.type)
        case Map(key, value):
            entries = [padded_array(array.keys, key.type), padded_array(array.items, value.type)]
            values = pa.StructArray.from_arrays(entries, fields=[to_arrow_field(key), to_arrow_field(value)])
    return replace_values(array, to_arrow_type(data_type), values)
