"""Texts that are not UTF-8 in Vortex, whose library takes them but cannot always read them again.

It writes a constant as UTF-8 and panics where a selection leaves one value. Such a column is BINARY in the Vortex file
of its block, with the same bytes, and a STRING again when it is read.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tamis.core.types.utf8_texts import is_malformed
from tamis.storage.files.stored_values import as_stored, stored_type


def with_malformed_as_bytes(columns: Sequence[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    """Return a block whose columns with a text that is not UTF-8 are BINARY wherever they are texts."""
    kinds = [_as_bytes(f.type) if _has_malformed(c) else f.type for c, f in zip(columns, schema, strict=True)]
    arrays = [as_stored(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    fields = [f.with_type(kind) for f, kind in zip(schema, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def type_in_file(wanted: pa.DataType, held: pa.DataType) -> pa.DataType:
    """Return the type by which to read a column of the type ``wanted``: BINARY texts if the file ``held`` them so."""
    return _as_bytes(wanted) if has_text(wanted) and not has_text(held) else wanted


def _as_bytes(kind: pa.DataType) -> pa.DataType:
    return stored_type(kind, lambda leaf: pa.binary() if pa.types.is_string(leaf) else leaf)


def has_text(kind: pa.DataType) -> bool:
    """Return whether a type is or holds a text."""
    if pa.types.is_nested(kind):
        return any(has_text(kind.field(at).type) for at in range(kind.num_fields))
    return bool(pa.types.is_string(kind) or pa.types.is_string_view(kind) or pa.types.is_large_string(kind))


def _has_malformed(array: pa.Array) -> bool:
    kind = array.type
    if pa.types.is_string(kind):
        return is_malformed(array)
    if pa.types.is_struct(kind):
        return any(_has_malformed(child) for child in array.flatten())
    if pa.types.is_map(kind):
        return _has_malformed(array.keys) or _has_malformed(array.items)
    return bool(pa.types.is_list(kind)) and _has_malformed(array.values)
