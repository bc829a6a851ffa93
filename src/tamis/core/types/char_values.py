"""CHAR types: their length, and what a bound of values without padding says of padded ones."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.types.logical import DataType, String, with_children
from tamis.core.types.utf8_texts import padded_texts


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


def padded_high(high: pa.Array, length: int) -> pa.Array:
    """Return upper bounds of unpadded values as those of values padded to ``length``; NULL: unknown.

    A character below the blank may come after a value's end, and sorts before the blanks that take its place.
    """
    lower = pc.fill_null(pc.match_substring_regex(high, r"[\x00-\x1f]"), False)
    grown = padded_texts(high, length)
    return pc.if_else(lower, pa.scalar(None, high.type), grown) if pc.any(lower).as_py() else grown
