"""Definition of a new table: columns, clustering, format and properties, all validated before storing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tamis.core.schema.clustering_key import clustering_key, named_twice
from tamis.core.types import NO_ID, NULL, VARIANT, DataType, Decimal, Field, Map, Schema, String, Struct
from tamis.core.types.arrow import from_arrow_field
from tamis.core.types.logical import with_children
from tamis.engine.scan import check_places, check_properties
from tamis.engine.scan.column_selection import find_fields, names_of
from tamis.engine.scan.scan_options import mapping_items
from tamis.errors import InvalidInput, NotFound, TamisError
from tamis.storage.commit_log import Head, next_schema
from tamis.storage.files.formats import check_format, format_named
from tamis.world import new_id, world

FORMAT, PLAIN = "tamis.format", "parquet"
"""The SQL property that chooses the data format, and the default format."""
PENDING = "tamis:cluster_by"
"""The property that stores the clustering column names of a table without a schema."""


def new_head(
    schema: pa.Schema | None, cluster_by: Sequence[str], data_format: str, properties: Mapping[str, Any]
) -> Head:
    """Build the head of a new table. Raises ``InvalidInput`` or ``NotFound`` naming the invalid argument."""
    data_format, properties = _format_of(data_format, properties)
    format_named(data_format)
    names = names_of(cluster_by, "cluster_by")
    head = Head(
        table_id=new_id(),
        format=data_format,
        properties=check_properties(properties),
        created_micros=world().now_micros(),
    )
    if schema is not None:
        made = with_schema(replace(head, properties={**head.properties, **_pending(names)}), schema)
        check_places(made.properties, made.schemas)
        return made
    return replace(head, properties={**head.properties, **_pending(names)})


def _format_of(chosen: str, properties: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the data format, which a SQL property may also set, and the other properties.

    Raises ``InvalidInput`` (``BAD_PROPERTY``) if argument and property disagree.
    """
    said = {key: value for key, value in mapping_items(properties, "properties") if str(key).lower() == FORMAT}
    if not said:
        return chosen, properties
    ((key, stored),) = list(said.items())[-1:]
    if chosen not in {PLAIN, stored}:
        raise InvalidInput(
            f"Conflicting formats: {chosen!r}, and {stored!r} in {key}.",
            code="BAD_PROPERTY",
            name=key,
            remedy="Give format=… alone.",
        )
    return stored, {name: value for name, value in properties.items() if name not in said}


def with_schema(head: Head, schema: pa.Schema) -> Head:
    """Apply ``with_columns`` to an Arrow schema, ignoring any ids it carries."""
    return with_columns(head, logical_schema(schema))


def with_columns(head: Head, schema: Schema) -> Head:
    """Give a schemaless table this schema, with new ids and the pending clustering names resolved.

    Raises ``InvalidInput`` or ``NotFound`` naming the invalid argument.
    """
    logical = schema.assign_ids(head.highest_column_id)
    check_format(head.format, logical)
    properties = dict(head.properties)
    names = json.loads(properties.pop(PENDING, "[]"))
    keys = tuple(clustering_column(logical, name) for name in names)
    return replace(next_schema(head, logical, keys), properties=properties)


def logical_schema(schema: pa.Schema) -> Schema:
    """Convert an Arrow schema, dropping ids and other foreign metadata.

    Raises ``InvalidInput`` naming the column.
    """
    return checked_schema(schema)


def checked_schema(schema: pa.Schema, *, keep_ids: bool = False) -> Schema:
    """Convert an Arrow schema, with or without the ids in its field metadata.

    Raises ``InvalidInput`` naming the column.
    """
    if not isinstance(schema, pa.Schema):
        raise InvalidInput(
            f"A schema is a pyarrow.Schema, not {type(schema).__name__}.",
            code="BAD_SCHEMA",
            name="schema",
            remedy="Use pyarrow.schema([...]).",
        )
    _check_names(list(schema))
    fields = []
    for f in schema:
        try:
            field = from_arrow_field(f)
            fields.append(checked_field(field if keep_ids else _without_id(field)))
        except TamisError as error:
            raise InvalidInput(
                f"Column {f.name!r}: {error.message}", code=error.code, name=f.name, remedy=error.remedy
            ) from error
    if not fields:
        raise InvalidInput(
            "A table needs a column.",
            code="BAD_SCHEMA",
            name="schema",
            remedy="Give one, or leave the schema to the first append.",
        )
    return Schema(tuple(fields))


def checked_columns(schema: Schema) -> Schema:
    """Return ``schema``; raise ``InvalidInput`` for a duplicate name or an unsupported type at any depth."""
    _check_names(schema.fields)
    for f in schema:
        checked_field(f)
    return schema


def checked_field(field: Field) -> Field:
    """Return ``field``; raise ``InvalidInput`` for an unsupported type at any depth."""
    _check_type(field.type)
    return field


def _check_names(fields: Sequence[pa.Field | Field]) -> None:
    """Raise ``InvalidInput`` for an empty name, or one that equals another ignoring case."""
    seen = set[str]()
    for f in fields:
        if not f.name or f.name.lower() in seen:
            raise InvalidInput(
                f"Duplicate column {f.name!r}." if f.name else "A column has no name.",
                code="DUPLICATE_COLUMN" if f.name else "BAD_COLUMN",
                name=f.name,
                remedy="Give each column a unique name; names are compared ignoring case.",
            )
        seen.add(f.name.lower())


def clustering_column(schema: Schema, name: str) -> tuple[int, ...]:
    """Return a clustering column's id path.

    Raises ``NotFound``, or ``InvalidInput`` for a type without an order.
    """
    if not isinstance(name, str):
        raise InvalidInput(
            f"{name!r} is not a column name.", code="BAD_COLUMN", name="cluster_by", remedy="Give names as text."
        )
    try:
        found = find_fields(schema, name)
    except NotFound as error:
        raise NotFound(f"cluster_by: {error.message}", code=error.code, name=name, remedy=error.remedy) from error
    return clustering_key(found, name)


def _pending(names: tuple[str, ...]) -> dict[str, str]:
    if not all(isinstance(name, str) for name in names):
        raise InvalidInput(
            "cluster_by is a sequence of column names.",
            code="BAD_COLUMN",
            name="cluster_by",
            remedy="Give names as text.",
        )
    for at, name in enumerate(names):
        if name.lower() in (other.lower() for other in names[:at]):
            raise named_twice(name)
    return {PENDING: json.dumps(names)} if names else {}


def _check_type(data_type: DataType) -> None:
    """Raise ``InvalidInput`` for a type that no column can have, at any depth.

    These are void (a column of it could never hold a value), and decimals, texts and map keys that Arrow
    supports and Spark does not.
    """
    if data_type == NULL:
        raise InvalidInput(
            "it has no type: all its values are NULL.",
            code="UNSUPPORTED_TYPE",
            name="void",
            remedy="Give it a type, by a schema or a cast.",
        )
    if isinstance(data_type, Decimal) and not data_type.possible:
        raise _impossible(data_type, "the precision of a decimal is 1 to 38, its scale 0 to the precision")
    if isinstance(data_type, String) and data_type.kind != "string" and not data_type.length:
        raise _impossible(data_type, "it needs a length")
    if isinstance(data_type, Map) and any(isinstance(inner, Map) for inner in _nested_types(data_type.key.type)):
        raise _impossible(data_type, "the key of a map can hold no map")
    if isinstance(data_type, Map) and any(inner == VARIANT for inner in _nested_types(data_type.key.type)):
        raise _impossible(data_type, "the key of a map can hold no variant, whose values have no order")
    if isinstance(data_type, Struct):
        _check_names(data_type.fields)
    for child in data_type.children:
        _check_type(child.type)


def _nested_types(data_type: DataType) -> Iterator[DataType]:
    yield data_type
    for child in data_type.children:
        yield from _nested_types(child.type)


def _impossible(data_type: DataType, why: str) -> InvalidInput:
    return InvalidInput(
        f"there is no type {data_type}: {why}.",
        code="UNSUPPORTED_TYPE",
        name=str(data_type),
        remedy="Give it a type that Spark has.",
    )


def _without_id(f: Field) -> Field:
    inner = tuple(_without_id(child) for child in f.type.children)
    return replace(f, id=NO_ID, type=with_children(f.type, inner) if inner else f.type)
