"""Arrow values of one schema as values of another, by column ids: how a file's columns become a reader's.

Law: fields match by id; what the source lacks is NULL, or its initial default where its parent is not NULL; what the target lacks is
dropped; leaves are cast without loss. Nothing but leaves that change type is copied.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tamis.core.types import VARIANT, Array, Field, Map, Schema, Struct
from tamis.core.types.arrow import FIELD_ID, to_arrow_field, to_arrow_type
from tamis.core.types.defaults import initial_scalar


@dataclass(frozen=True, slots=True)
class Names:
    """What fields were called where the source has no ids in it: the schema that it was written under."""

    schema: Schema

    def find(self, fields: list[pa.Field], column_id: int) -> int | None:
        """Which of ``fields`` is the column with this id."""
        for at, f in enumerate(fields):
            if _id_of(f) == column_id:
                return at
        known = self.schema.by_id.get(column_id)
        if known is None:
            return None
        return next((at for at, f in enumerate(fields) if _id_of(f) is None and f.name == known.name), None)


def _id_of(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(FIELD_ID)
    return None if text is None else int(text)


def convert(array: pa.Array, target: Field, names: Names) -> pa.Array:
    """``array``, whose nested fields carry ids (or their ``names``), as values of ``target``. Raises ``pa.ArrowException`` where a value does not fit."""
    match target.type:
        case Struct(fields):
            source = list(array.type)
            children = [_child(array, names.find(source, f.id), f, names) for f in fields]
            return _struct(array, children, [to_arrow_field(f) for f in fields])
        case Array(element):
            values = convert(array.values, element, names)
            return _rebuild(array, pa.list_(to_arrow_field(element)), values)
        case Map(key, value):
            entries = pa.StructArray.from_arrays(
                [convert(array.keys, key, names), convert(array.items, value, names)], fields=[to_arrow_field(key), to_arrow_field(value)]
            )
            return _rebuild(array, to_arrow_type(target.type), entries)
    return _leaf(array, to_arrow_type(target.type))


def missing(target: Field, length: int) -> pa.Array:
    """What a column shows that the source does not have."""
    if target.initial_default is None:
        return pa.nulls(length, to_arrow_type(target.type))
    return pa.repeat(initial_scalar(target), length)


def _child(array: pa.StructArray, at: int | None, target: Field, names: Names) -> pa.Array:
    return missing(target, len(array)) if at is None else convert(array.field(at), target, names)


def _struct(array: pa.StructArray, children: list[pa.Array], fields: list[pa.Field]) -> pa.Array:
    mask = array.is_null() if array.null_count else None
    if not fields:
        return (
            pa.Array.from_buffers(pa.struct([]), len(array), [None])
            if mask is None
            else pa.array([{} if v else None for v in array.is_valid().to_pylist()], pa.struct([]))
        )
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _rebuild(array: pa.Array, data_type: pa.DataType, values: pa.Array) -> pa.Array:
    """A list or map over other values."""
    validity, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(data_type, len(array), [validity, offsets], array.null_count, array.offset, children=[values])


def _leaf(array: pa.Array, target: pa.DataType) -> pa.Array:
    if array.type == target and not pa.types.is_struct(target):
        return array
    if target == to_arrow_type(VARIANT):
        at = {f.name: i for i, f in enumerate(array.type)}
        return _struct(array, [array.field(at[f.name]) for f in target], list(target))
    if pa.types.is_duration(target) and array.type == pa.int64():  # as Parquet keeps it
        return array.view(target)
    return array.cast(target)
