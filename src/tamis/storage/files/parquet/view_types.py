"""Views of texts and binaries, which some writers note as the types of their columns, as plain arrays."""

from __future__ import annotations

import pyarrow as pa


def without_views(table: pa.Table) -> pa.Table:
    """Return ``table`` with plain texts and binaries: Arrow has no ``take`` of views."""
    fields = [f.with_type(plain_type(f.type)) for f in table.schema]
    if all(f.type == old.type for f, old in zip(fields, table.schema, strict=True)):
        return table
    return table.cast(pa.schema(fields, table.schema.metadata))


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type with plain texts and binaries in the place of views, at any depth."""
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(plain_type(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(*(f.with_type(plain_type(f.type)) for f in (kind.key_field, kind.item_field)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(plain_type(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(plain_type(kind.value_type)))
    return kind
