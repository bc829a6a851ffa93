"""The columns of a table as Iceberg's metadata tells them. Column ids are Iceberg's field ids: the files have them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal as PyDecimal
from typing import Any

import pyarrow as pa

from tamis.core.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    DataType,
    Decimal,
    Field,
    Map,
    Schema,
    String,
    Struct,
    Time,
)
from tamis.core.types.defaults import initial_scalar
from tamis.errors import InvalidInput

_NAMES: dict[DataType, str] = {
    BOOLEAN: "boolean",
    BYTE: "int",
    SHORT: "int",
    INTEGER: "int",
    LONG: "long",
    FLOAT: "float",
    DOUBLE: "double",
    BINARY: "binary",
    DATE: "date",
    TIMESTAMP: "timestamptz",
    TIMESTAMP_NTZ: "timestamp",
}


def iceberg_widens(old: DataType, new: DataType) -> bool:
    """Return whether Iceberg's readers take values of the type ``old`` as ``new``."""
    if isinstance(old, String) and isinstance(new, String):
        return True
    if isinstance(old, Decimal) and isinstance(new, Decimal):
        return old.scale == new.scale and old.precision <= new.precision
    names = (_NAMES.get(old), _NAMES.get(new))
    return old == new or names in {("int", "int"), ("int", "long"), ("float", "double")}


def iceberg_default(field: Field) -> bool:
    """Return whether Iceberg expresses the default of ``field``: JSON has no NaN, and readers take no nested ones."""
    value = initial_scalar(field).as_py()
    if isinstance(field.type, Struct | Array | Map):
        return value is None
    return not isinstance(value, float) or math.isfinite(value)


def check_names(schema: Schema) -> None:
    """Raise ``InvalidInput`` (``EXPORT_NAME``) for two fields that Iceberg calls the same: b in a, and "a.b"."""
    names: dict[str, int] = {}
    for path, field in schema.walk():
        name = ".".join(_word(schema, path, at) for at in range(len(path)))
        if names.setdefault(name, field.id) != field.id:
            raise InvalidInput(
                f"Iceberg calls two columns {name!r}: one that is inside of another, and one with dots in its name.",
                code="EXPORT_NAME",
                name=name,
                remedy="Rename one of them.",
            )


def _word(schema: Schema, path: Sequence[int], at: int) -> str:
    """Return what Iceberg calls one step of a path."""
    outer = schema.by_id[path[at - 1]].type if at else None
    if isinstance(outer, Map):
        return "key" if outer.key.id == path[at] else "value"
    return "element" if isinstance(outer, Array) else schema.by_id[path[at]].name


def iceberg_schema(schema: Schema, *, defaults: bool) -> dict[str, Any]:
    """Return a schema as Iceberg's JSON, with the initial defaults that version 3 has."""
    fields = [_field(f, defaults) for f in schema]
    return {"type": "struct", "schema-id": schema.schema_id, "fields": fields}


def _field(f: Field, defaults: bool) -> dict[str, Any]:
    written: dict[str, Any] = {"id": f.id, "name": f.name, "required": not f.nullable, "type": _type(f.type, defaults)}
    if f.comment is not None:
        written["doc"] = f.comment
    if defaults and f.initial_default is not None and iceberg_default(f):
        written["initial-default"] = default_json(initial_scalar(f), f.type)
    return written


def _type(data_type: DataType, defaults: bool) -> Any:
    match data_type:
        case Decimal(precision, scale):
            return f"decimal({precision}, {scale})"
        case String():
            return "string"
        case Time():
            return "time"
        case Struct(fields):
            return {"type": "struct", "fields": [_field(f, defaults) for f in fields]}
        case Array(element):
            return {
                "type": "list",
                "element-id": element.id,
                "element-required": not element.nullable,
                "element": _type(element.type, defaults),
            }
        case Map(key, value):
            return {
                "type": "map",
                "key-id": key.id,
                "key": _type(key.type, defaults),
                "value-id": value.id,
                "value-required": not value.nullable,
                "value": _type(value.type, defaults),
            }
    return _NAMES[data_type]  # other types were refused


def default_json(value: pa.Scalar, data_type: DataType) -> Any:
    """Return a value in Iceberg's JSON form of single values."""
    if not value.is_valid:
        return None
    plain = value.as_py()
    if isinstance(plain, bytes):
        return plain.hex()
    if isinstance(plain, PyDecimal):
        return str(plain)
    if isinstance(plain, datetime):
        text = plain.replace(tzinfo=None).isoformat(timespec="microseconds")
        return text + ("+00:00" if data_type == TIMESTAMP else "")
    if isinstance(plain, time):
        return plain.isoformat(timespec="microseconds")
    return plain.isoformat() if isinstance(plain, date) else plain
