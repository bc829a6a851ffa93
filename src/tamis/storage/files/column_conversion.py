"""Converts Arrow values from a file's schema to a reader's, matching fields by column id.

Invariant: fields match by id. What the source lacks is NULL, or its initial default if its parent is not
NULL; what the target lacks is dropped; leaves are cast without loss. Only leaves that change type are copied.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.types import VARIANT, Array, Field, Map, Schema, Struct
from tamis.core.types.arrow import FIELD_ID, to_arrow_field, to_arrow_type
from tamis.core.types.blank_values import blank_array, null_array, struct_array
from tamis.core.types.defaults import initial_scalar

_UUID = 16
"""Bytes of a UUID."""


@dataclass(frozen=True, slots=True)
class Names:
    """Field names for sources without ids: those of the schema under which the source was written."""

    schema: Schema

    def positions(self, source: Iterable[pa.Field], wanted: Iterable[Field]) -> list[int | None]:
        """Return the position in ``source`` of each wanted column, or None."""
        fields = FieldIndex(source)
        return [self.position(fields, f.id) for f in wanted]

    def position(self, fields: FieldIndex, column_id: int) -> int | None:
        """Return the position of the column with this id, or None."""
        found = fields.at_id(column_id)
        known = self.schema.by_id.get(column_id)
        return found if found is not None or known is None else fields.without_id.get(known.name)


class FieldIndex:
    """The positions of fields by id and by name; of duplicates, the first."""

    def __init__(self, fields: Iterable[pa.Field]) -> None:
        self._by_id: dict[bytes, int] = {}
        self.by_name: dict[str, int] = {}
        self.without_id: dict[str, int] = {}
        self._names: list[str] = []
        for at, f in enumerate(fields):
            text = (f.metadata or {}).get(FIELD_ID)
            if text is None:
                self.without_id.setdefault(f.name, at)
            else:
                self._by_id.setdefault(text, at)
            self.by_name.setdefault(f.name, at)
            self._names.append(f.name)

    def at_id(self, column_id: int) -> int | None:
        """Return the position of the field with this id, or None."""
        return self._by_id.get(str(column_id).encode())

    @cached_property
    def by_lower_name(self) -> dict[str, list[int]]:
        """All positions by the name in lower case."""
        found: dict[str, list[int]] = {}
        for at, name in enumerate(self._names):
            found.setdefault(name.lower(), []).append(at)
        return found


def convert_array(array: pa.Array, target: Field, names: Names) -> pa.Array:
    """Convert ``array`` to values of ``target``; nested fields match by id, or by ``names``.

    Raises ``pa.ArrowException`` if a value does not fit.
    """
    match target.type:
        case Struct(fields):
            places = names.positions(array.type, fields)
            children = [_child(array, at, f, names) for f, at in zip(fields, places, strict=True)]
            return _struct(array, children, [to_arrow_field(f) for f in fields])
        case Array(element):
            array = plain_list(array)
            if array.type.value_type != to_arrow_type(element.type):
                array = drop_unreferenced(array)
            values = convert_array(array.values, element, names)
            return replace_values(array, pa.list_(to_arrow_field(element)), values)
        case Map(key, value):
            if array.type != to_arrow_type(target.type):
                array = drop_unreferenced(array)
            entries = pa.StructArray.from_arrays(
                [convert_array(array.keys, key, names), convert_array(array.items, value, names)],
                fields=[to_arrow_field(key), to_arrow_field(value)],
            )
            return replace_values(array, to_arrow_type(target.type), entries)
    return _leaf(array, to_arrow_type(target.type))


def plain_list(array: pa.Array) -> pa.ListArray:
    """Return lists of any layout (of 64-bit offsets, of one length) as those of 32-bit offsets, which a column has.

    Raises ``pa.ArrowException`` if there are too many elements.
    """
    if pa.types.is_list(array.type):
        return array
    if pa.types.is_fixed_size_list(array.type):
        values, filled = array.flatten(), array.is_valid().cast(pa.int64())  # NULL has no elements there
        ends = pc.cumulative_sum(pc.multiply(filled, array.type.list_size))
        offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    elif pa.types.is_large_list(array.type):
        first = array.offsets[0].as_py()
        offsets = pc.subtract(array.offsets, first)
        values = array.values.slice(first, offsets[-1].as_py())
    else:
        return array.cast(pa.list_(array.type.value_field))
    # a cast of the lists would cast the elements, too, which it refuses if a NULL has fields that are NOT NULL
    kind = pa.list_(array.type.value_field)
    return pa.ListArray.from_arrays(offsets.cast(pa.int32()), values, kind, mask=array.is_null())


def drop_unreferenced(array: pa.Array) -> pa.Array:
    """Return lists of 32-bit offsets, or maps, without elements that no list refers to: these need not convert."""
    if not array.null_count and array.offset == 0 and len(array.offsets):
        first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
        held = array.keys if pa.types.is_map(array.type) else array.values
        if first == 0 and last == len(held):
            return array
    return pc.take(array, pa.array(np.arange(len(array))))


def missing_column(target: Field, length: int) -> pa.Array:
    """Return the values of a column that the source lacks: NULL, or its initial default."""
    if target.initial_default is None:
        return null_array(to_arrow_type(target.type), length)
    return pa.repeat(initial_scalar(target), length)


def _child(array: pa.StructArray, at: int | None, target: Field, names: Names) -> pa.Array:
    return missing_column(target, len(array)) if at is None else convert_array(array.field(at), target, names)


def _struct(array: pa.StructArray, children: list[pa.Array], fields: list[pa.Field]) -> pa.Array:
    """Return structs that are NULL where those of ``array`` are.

    Required fields have blank values there: ORC and Vortex read NULL below a NULL, which Parquet's writer refuses.
    """
    if not array.null_count:
        return struct_array(children, fields, len(array))
    nulls = array.is_null()
    filled = [
        child if f.nullable or not child.null_count else pc.if_else(nulls, blank_array(f.type, len(child)), child)
        for child, f in zip(children, fields, strict=True)
    ]
    return struct_array(filled, fields, len(array), nulls)


def replace_values(array: pa.Array, data_type: pa.DataType, values: pa.Array) -> pa.Array:
    """Return a list of 32-bit offsets or a map over other values."""
    validity, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(
        data_type, len(array), [validity, offsets], array.null_count, array.offset, children=[values]
    )


def _leaf(array: pa.Array, target: pa.DataType) -> pa.Array:
    if array.type == target and not pa.types.is_struct(target):
        return array
    if target == to_arrow_type(VARIANT):
        at = {f.name: i for i, f in enumerate(array.type)}
        return _struct(array, [array.field(at[f.name]) for f in target], list(target))
    if pa.types.is_duration(target) and array.type == pa.int64():  # the stored form in Parquet
        return array.view(target)
    if pa.types.is_string(target) and pa.types.is_fixed_size_binary(array.type) and array.type.byte_width == _UUID:
        return _uuids(array)
    return array.cast(target)


def _uuids(array: pa.Array) -> pa.Array:
    """Return UUIDs, which foreign files hold as 16 bytes, in their usual form as text."""
    values = [None if value is None else value.hex() for value in array.to_pylist()]
    texts = pa.array(values, pa.string())
    groups = [pc.utf8_slice_codeunits(texts, start, stop) for start, stop in pairwise((0, 8, 12, 16, 20, 32))]
    return pc.binary_join_element_wise(*groups, "-")
