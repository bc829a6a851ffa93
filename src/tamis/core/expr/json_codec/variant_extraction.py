"""Makes columns of the values that a walk through a VARIANT column has found."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.json_codec.variant_bytes import Ints, bytes_at, little_endian, string_slices
from tamis.core.expr.json_codec.variant_columns import ARRAY, OBJECT, OTHER, Nodes

NO_NAMES = b"\x01\x00\x00"
"""Metadata without keys."""
_SCALAR_BYTES = {
    0: 1,
    1: 1,
    2: 1,
    3: 2,
    4: 3,
    5: 5,
    6: 9,
    7: 9,
    8: 6,
    9: 10,
    10: 18,
    11: 5,
    12: 9,
    13: 9,
    14: 5,
    15: 5,
    16: 5,
}
_BYTES_OF = np.array([1 + (h >> 2) if h & 3 == 1 else _SCALAR_BYTES.get(h >> 2, 1) for h in range(256)], dtype=np.int64)
_LENGTH_FOLLOWS = np.array([h & 3 == 0 and h >> 2 in (15, 16) for h in range(256)])


def cut_out(array: pa.StructArray, found: Nodes) -> pa.StructArray:
    """Return the values of ``found``, reached from the rows of ``array``, as a column.

    Each value keeps the rest of its row after it, which readers ignore.
    """
    values = array.field("value")
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(array) + 1].astype(
        np.int64
    )
    offsets -= offsets[0]
    there = found.at >= 0
    pieces = string_slices(
        found.data, np.where(there, found.at, offsets[:-1]), np.where(there, offsets[1:] - found.at, 0), pa.binary()
    )
    return pa.StructArray.from_arrays([pieces, array.field("metadata")], fields=list(array.type), mask=pa.array(~there))


def separate_documents(array: pa.StructArray, found: Nodes) -> tuple[pa.StructArray, bool]:
    """Return the values of ``found``, at most one per row of ``array``, as a column of separate documents.

    Scalars are stored without their surroundings. The second result is whether all values lie within their
    rows; otherwise they are damaged, and reading them here differs from reading them in place.
    """
    values = array.field("value")
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(array) + 1].astype(
        np.int64
    )
    offsets -= offsets[0]
    there = found.at >= 0
    kinds = found.kinds()
    nested = np.isin(kinds, (OBJECT, ARRAY, OTHER))
    room = np.where(there, offsets[1:] - found.at, 0)
    sizes = np.where(there, np.where(nested, room, _sizes(found)), 0)
    sound = bool((~there | ((found.at >= offsets[:-1]) & (sizes <= room))).all())
    pieces = string_slices(found.data, np.where(there, found.at, offsets[:-1]), sizes, pa.binary())
    metadata = pc.if_else(pa.array(nested), array.field("metadata"), pa.scalar(NO_NAMES, pa.binary()))
    return pa.StructArray.from_arrays([pieces, metadata], fields=list(array.type), mask=pa.array(~there)), sound


def _sizes(found: Nodes) -> Ints:
    """Return the size in bytes of each scalar, including its header."""
    header = bytes_at(found.data, found.at)
    sizes = _BYTES_OF[header]
    long = _LENGTH_FOLLOWS[header]
    if long.any():
        sizes[long] += little_endian(found.data, found.at[long] + 1, 4)
    return sizes
