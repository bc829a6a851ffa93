"""The schema that Spark writes into the footers of its Parquet files: what the file's own types do not say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from tamis.bridges.sources.delta_schema import spark_field
from tamis.core.types import DataType
from tamis.errors import TamisError

ROW_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
"""The key of the schema among a footer's notes."""
_STORED_OTHERWISE = ("variant", "interval", "geometry", "geography")
"""Beginnings of types that Spark stores as others: structs, numbers and bytes."""


@lru_cache(64)
def declared_columns(row_schema: bytes | None) -> Mapping[str, DataType]:
    """Return the types of columns by name; those that cannot be read are left out."""
    found = {}
    for value in _fields(row_schema):
        try:
            found[value["name"]] = spark_field(value).type
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, TamisError):
            continue
    return found


@lru_cache(64)
def columns_stored_otherwise(row_schema: bytes | None) -> Mapping[str, str]:
    """Return the columns that hold a type that Spark stores as another, with the name of that type."""
    found = {str(value.get("name")): _stored_otherwise(value.get("type")) for value in _fields(row_schema)}
    return {name: kind for name, kind in found.items() if kind is not None}


def _fields(row_schema: bytes | None) -> list[dict[str, Any]]:
    try:
        fields = json.loads(row_schema or b"{}").get("fields", [])
    except (ValueError, AttributeError, RecursionError):
        return []
    return [value for value in fields if isinstance(value, dict)] if isinstance(fields, list) else []


def _stored_otherwise(kind: Any) -> str | None:
    if isinstance(kind, str):
        return kind if kind.startswith(_STORED_OTHERWISE) else None
    if not isinstance(kind, dict):
        return None
    below = [f.get("type") for f in kind.get("fields") or () if isinstance(f, dict)]
    below += [kind.get(key) for key in ("elementType", "keyType", "valueType")]
    return next((found for one in below if (found := _stored_otherwise(one)) is not None), None)
