"""Converts between logical types and Arrow types.

Parts store and scans return the Arrow form. Column ids travel as ``PARQUET:field_id`` metadata, which Parquet
files keep. A VARIANT is a struct of two binaries whose ``metadata`` field is marked ``variant``, as in
PySpark.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.types import logical as t
from tamis.core.types.schema import Schema
from tamis.errors import InvalidInput

FIELD_ID = b"PARQUET:field_id"
SPARK_TYPE = b"tamis:type"
"""Field metadata for what Arrow cannot express: ``char(5)``, a collation, the fields of an interval."""
GENERATED = b"tamis:generated"
"""Field metadata of a generated column, as JSON. Only definitions of tables have it: rows never do."""
IDENTITY = b"tamis:identity"
"""Field metadata of an identity column, as JSON. Only definitions of tables have it."""

_ATOMIC = {
    t.BOOLEAN: pa.bool_(),
    t.BYTE: pa.int8(),
    t.SHORT: pa.int16(),
    t.INTEGER: pa.int32(),
    t.LONG: pa.int64(),
    t.FLOAT: pa.float32(),
    t.DOUBLE: pa.float64(),
    t.BINARY: pa.binary(),
    t.DATE: pa.date32(),
    t.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    t.TIMESTAMP_NTZ: pa.timestamp("us"),
    t.NULL: pa.null(),
    t.YEAR_MONTH: pa.int32(),
    t.VARIANT: pa.struct(
        [
            pa.field("value", pa.binary(), nullable=False),
            pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
        ]
    ),
}


def to_arrow_type(data_type: t.DataType) -> pa.DataType:
    """Return the Arrow type in which values of ``data_type`` are stored and returned."""
    match data_type:
        case t.Atomic():
            return _ATOMIC[data_type]
        case t.Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case t.String():
            return pa.string()
        case t.Time():
            return pa.time64("us")
        case t.DayTimeInterval():
            return pa.duration("us")
        case t.Struct(fields):
            return pa.struct([to_arrow_field(f) for f in fields])
        case t.Array(element):
            return pa.list_(to_arrow_field(element))
        case t.Map(key, value):
            return pa.map_(to_arrow_field(key), to_arrow_field(value))
    raise _unsupported(str(data_type))


def to_arrow_field(f: t.Field) -> pa.Field:
    metadata = {}
    if f.id != t.NO_ID:
        metadata[FIELD_ID] = str(f.id).encode()
    if (isinstance(f.type, t.String) and f.type != t.STRING) or isinstance(f.type, t.DayTimeInterval | t.Time):
        metadata[SPARK_TYPE] = str(f.type).encode()
    return pa.field(f.name, to_arrow_type(f.type), nullable=f.nullable, metadata=metadata or None)


def to_arrow_schema(schema: Schema, *, generated: bool = False) -> pa.Schema:
    """Return the Arrow schema of ``schema``, with column ids in the fields' metadata.

    ``generated``: also with how generated and identity columns get their values, to define a table.
    """
    fields = [to_arrow_field(f) for f in schema.fields]
    for at, f in enumerate(schema.fields if generated else ()):
        for key, how in ((GENERATED, f.generated), (IDENTITY, f.identity)):
            if how is not None:
                generation = {key: json.dumps(how.to_json()).encode()}
                fields[at] = fields[at].with_metadata({**(fields[at].metadata or {}), **generation})
    return pa.schema(fields)


def from_arrow_field(f: pa.Field) -> t.Field:
    metadata = f.metadata or {}
    declared = metadata.get(SPARK_TYPE)
    data_type = t.type_from_json(declared.decode()) if declared else from_arrow_type(f.type)
    how = metadata.get(GENERATED)
    generated = None if how is None else t.Generation.from_json(json.loads(how))
    counted = metadata.get(IDENTITY)
    identity = None if counted is None else t.Identity.from_json(json.loads(counted))
    identifier = int(metadata.get(FIELD_ID, t.NO_ID))
    return t.Field(f.name, data_type, f.nullable, identifier, generated=generated, identity=identity)


def from_arrow_schema(schema: pa.Schema) -> Schema:
    """Return the logical schema of Arrow data, with ids from the metadata.

    Raises ``InvalidInput`` for types that Spark lacks.
    """
    return Schema(tuple(from_arrow_field(f) for f in schema))


_LOSSLESS: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], t.DataType]]] = [
    (pa.types.is_dictionary, lambda a: from_arrow_type(a.value_type)),
    (pa.types.is_run_end_encoded, lambda a: from_arrow_type(a.value_type)),
    (pa.types.is_unsigned_integer, lambda a: _UNSIGNED[a.bit_width]),
    (pa.types.is_float16, lambda _: t.FLOAT),
    (lambda a: pa.types.is_string(a) or pa.types.is_large_string(a) or pa.types.is_string_view(a), lambda _: t.STRING),
    (
        lambda a: pa.types.is_large_binary(a) or pa.types.is_binary_view(a) or pa.types.is_fixed_size_binary(a),
        lambda _: t.BINARY,
    ),
    (lambda a: pa.types.is_decimal(a) and a.precision <= 38, lambda a: t.Decimal(a.precision, a.scale)),
    (pa.types.is_date64, lambda _: t.DATE),
    (pa.types.is_time, lambda _: t.Time(6)),
    (pa.types.is_timestamp, lambda a: t.TIMESTAMP_NTZ if a.tz is None else t.TIMESTAMP),
    (pa.types.is_duration, lambda _: t.DayTimeInterval()),
    (pa.types.is_map, lambda a: t.Map(_inner("key", a.key_field), _inner("value", a.item_field))),
    (pa.types.is_struct, lambda a: _struct(list(a))),
    (
        lambda a: (
            pa.types.is_list(a)
            or pa.types.is_large_list(a)
            or pa.types.is_fixed_size_list(a)
            or pa.types.is_list_view(a)
        ),
        lambda a: t.Array(_inner("element", a.value_field)),
    ),
]
_UNSIGNED: dict[int, t.DataType] = {8: t.SHORT, 16: t.INTEGER, 32: t.LONG, 64: t.Decimal(20, 0)}


def from_arrow_type(data_type: pa.DataType) -> t.DataType:
    """Return the logical type of Arrow values.

    Types that widen without loss are accepted (unsigned integers, time units, large and dictionary types).
    """
    for logical, arrow in _ATOMIC.items():
        if logical is not t.VARIANT and data_type == arrow:
            return logical
    for matches, convert in _LOSSLESS:
        if matches(data_type):
            return convert(data_type)
    raise _unsupported(str(data_type))


def orderable_array(array: pa.Array) -> pa.Array:
    """Return ``array`` in a type whose minimum and maximum Arrow computes: durations as whole numbers."""
    return array.view(pa.int64()) if pa.types.is_duration(array.type) else array


def sortable_array(array: pa.Array) -> pa.Array:
    """Return ``array`` in a type that Arrow sorts and ranks, in the same order: also booleans as whole numbers."""
    return array.cast(pa.int8()) if pa.types.is_boolean(array.type) else orderable_array(array)


def _inner(name: str, f: pa.Field) -> t.Field:
    return replace(from_arrow_field(f), name=name)


def _struct(fields: list[pa.Field]) -> t.DataType:
    return t.VARIANT if _is_variant(fields) else t.Struct(tuple(from_arrow_field(f) for f in fields))


def _is_variant(fields: list[pa.Field]) -> bool:
    return any(f.name == "metadata" and (f.metadata or {}).get(b"variant") == b"true" for f in fields)


def _unsupported(name: str) -> InvalidInput:
    return InvalidInput(
        f"Type {name} is not supported.",
        code="UNSUPPORTED_TYPE",
        name=name,
        remedy="Cast the column to a supported type.",
    )


def integer_column(table: pa.Table, name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return a column of whole numbers as a new array, NULL as 0."""
    column = table[name]
    if column.null_count:  # to ask first is six times as fast for few rows
        column = pc.fill_null(column, 0)
    values: np.ndarray[Any, np.dtype[np.int64]] = column.to_numpy().astype(np.int64)
    return values
