"""A schema in Spark's JSON, for the footers of files that Spark may read without Tamis."""

from __future__ import annotations

import json
from typing import Any

from tamis.core.types import Array, DataType, Field, Map, Schema, String, Struct


def schema_json(schema: Schema) -> str:
    """Return the text of ``StructType.json()``; CHAR, VARCHAR and collated columns become plain strings."""
    return json.dumps(_type(schema.as_struct()), separators=(",", ":"))


def _type(data_type: DataType) -> Any:
    match data_type:
        case Struct(fields):
            return {"type": "struct", "fields": [_field(f) for f in fields]}
        case Array(element):
            return {"type": "array", "elementType": _type(element.type), "containsNull": element.nullable}
        case Map(key, value):
            return {
                "type": "map",
                "keyType": _type(key.type),
                "valueType": _type(value.type),
                "valueContainsNull": value.nullable,
            }
        case String():
            return "string"
    return data_type.to_json()


def _field(field: Field) -> dict[str, Any]:
    return {"name": field.name, "type": _type(field.type), "nullable": field.nullable, "metadata": {}}
