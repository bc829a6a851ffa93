"""Pads CHAR values with blanks to their length, at any depth.

Invariant: every value that a reader returns, or a writer stores, is padded. Files of other writers and values that are
given apart from the rows (defaults, partition values) need not be, so they pass through here.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.types.arrow import to_arrow_field, to_arrow_type
from tamis.core.types.logical import Array, DataType, Map, String, Struct, with_children


def char_length(data_type: DataType) -> int | None:
    """Return the length in characters of a CHAR type, None for any other type."""
    return data_type.length if isinstance(data_type, String) and data_type.kind == "char" else None


def has_char(data_type: DataType) -> bool:
    """Return whether a type is CHAR or contains it."""
    return char_length(data_type) is not None or any(has_char(f.type) for f in data_type.children)


def without_lengths(data_type: DataType) -> DataType:
    """Return a type with STRING for each CHAR and VARCHAR, at any depth."""
    if isinstance(data_type, String):
        return String(collation=data_type.collation)
    inner = tuple(replace(f, type=without_lengths(f.type)) for f in data_type.children)
    return with_children(data_type, inner) if inner else data_type


def padded_array(array: pa.Array, data_type: DataType) -> pa.Array:
    """Return an array of ``data_type`` with its CHAR values padded; longer values stay as they are."""
    length = char_length(data_type)
    if length is not None:
        return pc.utf8_rpad(array, width=length, padding=" ")
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
    validity, offsets = array.buffers()[:2]
    arrow = to_arrow_type(data_type)
    return pa.Array.from_buffers(
        arrow, len(array), [validity, offsets], array.null_count, array.offset, children=[values]
    )


def padded_high(high: pa.Array, length: int) -> pa.Array:
    """Return upper bounds of unpadded values as those of values padded to ``length``; NULL: unknown.

    A character below the blank may come after a value's end, and sorts before the blanks that take its place.
    """
    lower = pc.fill_null(pc.match_substring_regex(high, r"[\x00-\x1f]"), False)
    grown = pc.utf8_rpad(high, width=length, padding=" ")
    return pc.if_else(lower, pa.scalar(None, high.type), grown) if pc.any(lower).as_py() else grown
