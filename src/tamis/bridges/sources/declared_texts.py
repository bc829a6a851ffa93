"""What Spark declares beside a schema, in which it is STRING: CHAR, VARCHAR and collations.

Delta's log and the footers of Spark's Parquet files have CHAR and VARCHAR as the text of a column's whole type, and
collations by the path of the text below its field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tamis.core.expr.column_definitions import parse_columns
from tamis.core.types import STRING, DataType, String, Struct
from tamis.core.types.arrow import from_arrow_field
from tamis.core.types.logical import with_children
from tamis.errors import TamisError

_DECLARED, COLLATIONS = "__CHAR_VARCHAR_TYPE_STRING", "__COLLATIONS"


def declared_type(metadata: Mapping[str, Any]) -> str | None:
    """Return the declared type in the metadata of a column, or None."""
    declared = metadata.get(_DECLARED)
    return declared if isinstance(declared, str) else None


def with_declared_texts(data_type: DataType, declared: str | None) -> DataType:
    """Return a type with the CHAR and VARCHAR of ``declared`` where both are texts; what cannot be read is ignored."""
    if declared is None:
        return data_type
    try:
        return merged_texts(data_type, from_arrow_field(parse_columns(f"c {declared}").field(0)).type)
    except (TamisError, pa.ArrowException):
        return data_type


def merged_texts(data_type: DataType, declared: DataType) -> DataType:
    """Return a type with the texts of ``declared`` where it has a STRING; other types count as they are."""
    if isinstance(declared, String):
        return declared if data_type == STRING else data_type
    if type(data_type) is not type(declared) or not data_type.children:
        return data_type
    others = {f.name: f.type for f in declared.children}
    if not isinstance(data_type, Struct):
        others = {f.name: o.type for f, o in zip(data_type.children, declared.children, strict=True)}
    inner = tuple(replace(f, type=merged_texts(f.type, others.get(f.name, f.type))) for f in data_type.children)
    return with_children(data_type, inner)


def with_collations(data_type: DataType, metadata: Mapping[str, Any], path: str) -> DataType:
    """Return the type of the field ``path`` with the collations in its metadata; fields of structs have their own."""
    collations = metadata.get(COLLATIONS)
    if not isinstance(collations, dict) or isinstance(data_type, Struct):
        return data_type
    if isinstance(data_type, String):
        found = collations.get(path)
        return data_type if found is None else String(collation=str(found).split(".")[1])  # provider, name, version
    inner = (replace(f, type=with_collations(f.type, metadata, f"{path}.{f.name}")) for f in data_type.children)
    return with_children(data_type, tuple(inner)) if data_type.children else data_type


def has_collation(data_type: DataType) -> bool:
    """Return whether a text in the type has a collation other than that of bytes."""
    if isinstance(data_type, String):
        return data_type.collation != STRING.collation
    return any(has_collation(f.type) for f in data_type.children)
