"""Conversion between Spark's schemas, as the JSON of a ``StructType``, and the table's.

Field metadata holds column ids only if requested, for Spark 4.1 and newer, which load a table again to run a
plan. Comments, defaults, ``char`` and ``varchar``, and collations are read from the metadata keys that Spark
uses and written back to them.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tamis.bridges.sources.declared_texts import with_declared_texts
from tamis.core.types import BINARY_COLLATION, NULL, Array, DataType, Field, Map, Schema, String, Struct
from tamis.core.types.char_values import without_lengths
from tamis.core.types.logical import type_from_json
from tamis.errors import InvalidInput, TamisError

COMMENT = "comment"
CURRENT_DEFAULT = "CURRENT_DEFAULT"
EXISTS_DEFAULT = "EXISTS_DEFAULT"
CHAR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"
COLLATIONS = "__COLLATIONS"
GENERATION_EXPRESSION = "GENERATION_EXPRESSION"
FIELD_ID = "__FIELD_ID"
SCHEMA_ID = "tamis.schema"
"""Metadata key for the id of the schema under which a column was resolved.

Spark loses the ids of struct fields on the way to a scan, but keeps a column's own metadata.
"""
_PROVIDERS = {"UTF8_BINARY": "spark", "UTF8_LCASE": "spark"}  # all other collations are provided by ICU


def from_spark(struct_json: str) -> Schema:
    """The logical schema, without ids, of ``StructType.json()``.

    Raises ``InvalidInput`` naming a column whose type is not supported.
    """
    fields = []
    for column in json.loads(struct_json)["fields"]:
        try:
            fields.append(_field(column))
        except TamisError as error:
            raise InvalidInput(
                f"Column {column['name']!r}: {error.message}", code=error.code, name=column["name"], remedy=error.remedy
            ) from None
    return Schema(tuple(fields))


def to_spark(schema: Schema, *, ids: bool = False) -> str:
    """The schema as JSON for Spark's ``DataType.fromJson``.

    ``ids``: with column ids in the metadata, where Spark looks when it loads a table again, and the
    schema's id.
    """
    struct = _type_json(schema.as_struct(), "", {})
    if ids:
        _identify(struct, schema.as_struct())
        for column in struct["fields"]:
            column["metadata"][SCHEMA_ID] = schema.schema_id
    return json.dumps(struct)


def to_python_spark(schema: Schema) -> str:
    """The schema as JSON for rows that Python hands to Spark, which must be STRING where columns are CHAR or VARCHAR.

    What a column is declared as is in its metadata, by which Spark pads what it compares, if Spark can read it there.
    """
    plain = replace(schema, fields=tuple(replace(f, type=without_lengths(f.type)) for f in schema.fields))
    struct = json.loads(to_spark(plain))
    for column, before, after in zip(struct["fields"], schema.fields, plain.fields, strict=True):
        if before.type != after.type and _readable(before.type):
            column["metadata"][CHAR_VARCHAR] = str(before.type)
    return json.dumps(struct)


def _readable(data_type: DataType) -> bool:
    """Whether Spark reads the text of the type in metadata, where it quotes no names and knows no collations."""
    if isinstance(data_type, String):
        return data_type.collation == BINARY_COLLATION
    plain = not isinstance(data_type, Struct) or all(
        f.name.isascii() and f.name.isidentifier() for f in data_type.fields
    )
    return plain and all(_readable(f.type) for f in data_type.children)


def _identify(spark: Any, ours: DataType) -> None:
    """Write the ids of struct fields into their metadata."""
    if isinstance(ours, Struct):
        for column, f in zip(spark["fields"], ours.fields, strict=True):
            column["metadata"][FIELD_ID] = str(f.id)
            _identify(column["type"], f.type)
        return
    if isinstance(spark, dict):
        for key, inner in zip(
            [k for k in ("elementType", "keyType", "valueType") if k in spark], ours.children, strict=True
        ):
            _identify(spark[key], inner.type)


def pruned_schema(schema: Schema, required: dict[str, Any]) -> Schema:
    """The schema reduced to the columns and struct fields of Spark's schema (JSON), in its order."""
    return replace(schema, fields=tuple(_pruned(schema.find(f["name"])[0], f["type"]) for f in required["fields"]))


def _pruned(f: Field, required: Any) -> Field:
    return replace(f, type=_pruned_type(f.type, required)) if isinstance(required, dict) else f


def _pruned_type(ours: DataType, required: dict[str, Any]) -> DataType:
    match ours:
        case Struct(fields):
            by_name = {f.name: f for f in fields}
            return Struct(tuple(_pruned(by_name[f["name"]], f["type"]) for f in required["fields"]))
        case Array(element):
            return Array(_pruned(element, required["elementType"]))
        case Map(key, value):
            return Map(_pruned(key, required["keyType"]), _pruned(value, required["valueType"]))
    return ours


def _field(column: dict[str, Any]) -> Field:
    metadata = column.get("metadata") or {}
    collations, declared = metadata.get(COLLATIONS) or {}, metadata.get(CHAR_VARCHAR)
    whole = declared is not None and not isinstance(column["type"], dict)
    data_type = _type(declared if whole else column["type"], column["name"], collations)
    if not whole:
        data_type = with_declared_texts(data_type, declared)
    return Field(
        name=column["name"],
        type=data_type,
        nullable=column["nullable"],
        comment=metadata.get(COMMENT),
        write_default=metadata.get(CURRENT_DEFAULT),
    )


def _type(value: Any, path: str, collations: dict[str, str]) -> DataType:
    if isinstance(value, dict):
        match value["type"]:
            case "struct":
                return Struct(tuple(_field(f) for f in value["fields"]))
            case "array":
                return Array(
                    Field("element", _type(value["elementType"], f"{path}.element", collations), value["containsNull"])
                )
            case "map":
                return Map(
                    Field("key", _type(value["keyType"], f"{path}.key", collations), nullable=False),
                    Field("value", _type(value["valueType"], f"{path}.value", collations), value["valueContainsNull"]),
                )
            case other:
                raise _unsupported(str(other))
    try:
        found = type_from_json(value)
    except InvalidInput:
        raise _unsupported(str(value)) from None
    if found == NULL:
        raise _unsupported("void")
    if isinstance(found, String) and path in collations:
        if found.length is not None:  # Spark's schemas in JSON have collations of STRING alone
            raise InvalidInput(
                f"Type {found} with a collation is not supported.",
                code="UNSUPPORTED_TYPE",
                name=path,
                remedy="Make it a STRING with the collation, and check its length by a constraint.",
            )
        return String(found.kind, found.length, collations[path].split(".", 1)[-1])
    return found


def _unsupported(name: str) -> InvalidInput:
    return InvalidInput(
        f"Type {name} is not supported.",
        code="UNSUPPORTED_TYPE",
        name=name,
        remedy="Cast the column to a supported type, such as STRING or BIGINT.",
    )


def _field_json(f: Field) -> dict[str, Any]:
    collations: dict[str, str] = {}
    nullable = f.nullable or f.computed  # Spark hands over NULL for a value that is to be computed
    out = {"name": f.name, "type": _type_json(f.type, f.name, collations), "nullable": nullable}
    metadata: dict[str, Any] = {COLLATIONS: collations} if collations else {}
    if f.comment is not None:
        metadata[COMMENT] = f.comment
    if f.write_default is not None:
        # Spark requires both. Our reader, never Spark, fills in the values for parts older than the column.
        metadata |= {CURRENT_DEFAULT: f.write_default, EXISTS_DEFAULT: f.write_default}
    if f.generated is not None:
        metadata[GENERATION_EXPRESSION] = f.generated.expression
    return {**out, "metadata": metadata}


def _type_json(data_type: DataType, path: str, collations: dict[str, str]) -> Any:
    match data_type:
        case Struct(fields):
            return {"type": "struct", "fields": [_field_json(f) for f in fields]}
        case Array(element):
            inner = _type_json(element.type, f"{path}.element", collations)
            return {"type": "array", "elementType": inner, "containsNull": element.nullable}
        case Map(key, value):
            return {
                "type": "map",
                "keyType": _type_json(key.type, f"{path}.key", collations),
                "valueType": _type_json(value.type, f"{path}.value", collations),
                "valueContainsNull": value.nullable,
            }
        case String(kind, length, collation):
            if collation != BINARY_COLLATION:
                collations[path] = f"{_PROVIDERS.get(collation, 'icu')}.{collation}"
            return kind if length is None else f"{kind}({length})"
    return data_type.to_json()
