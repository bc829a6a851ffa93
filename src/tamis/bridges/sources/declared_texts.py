"""The CHAR and VARCHAR types that Spark declares beside a schema, in which they are STRING.

Delta's log and the footers of Spark's Parquet files have them as the text of a column's whole type.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tamis.core.expr.column_definitions import parse_columns
from tamis.core.types import STRING, DataType, String, Struct
from tamis.core.types.arrow import from_arrow_field
from tamis.core.types.logical import with_children
from tamis.errors import TamisError

_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
ROW_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
"""The key of the schema that Spark writes into the footers of its files."""


def declared_type(metadata: Mapping[str, Any]) -> str | None:
    """Return the declared type in the metadata of a column, or None."""
    declared = metadata.get(_DECLARED)
    return declared if isinstance(declared, str) else None


def with_declared_texts(data_type: DataType, declared: str | None) -> DataType:
    """Return a type with the CHAR and VARCHAR of ``declared`` where both are texts; what cannot be read is ignored."""
    if declared is None:
        return data_type
    try:
        return _merged(data_type, from_arrow_field(parse_columns(f"c {declared}").field(0)).type)
    except (TamisError, pa.ArrowException):
        return data_type


def _merged(data_type: DataType, declared: DataType) -> DataType:
    if isinstance(declared, String):
        return declared if data_type == STRING else data_type
    if type(data_type) is not type(declared) or not data_type.children:
        return data_type
    others = {f.name: f.type for f in declared.children}
    if not isinstance(data_type, Struct):
        others = {f.name: o.type for f, o in zip(data_type.children, declared.children, strict=True)}
    inner = tuple(replace(f, type=_merged(f.type, others.get(f.name, f.type))) for f in data_type.children)
    return with_children(data_type, inner)


def declared_columns(row_schema: bytes | None) -> dict[str, str]:
    """Return the declared types by column in ``row_schema``, what a footer has under ``ROW_SCHEMA``."""
    try:
        found = json.loads(row_schema or b"{}").get("fields", [])
        given = {f["name"]: declared_type(f.get("metadata") or {}) for f in found}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}
    return {name: declared for name, declared in given.items() if declared is not None}
