"""The schema that Spark writes into the footers of its Parquet files: what the file's own types do not say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tamis.bridges.sources.declared_texts import COLLATIONS
from tamis.bridges.sources.delta_schema import spark_field
from tamis.core.types import DataType
from tamis.errors import TamisError

ROW_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
"""The key of the schema among a footer's notes."""
_STORED_OTHERWISE = ("variant", "interval", "geometry", "geography")
"""Beginnings of types that Spark stores as others: structs, numbers and bytes."""


@dataclass(frozen=True, slots=True)
class RowSchema:
    """What Spark declares of a file's columns, by name."""

    types: Mapping[str, DataType]
    """Types; those that cannot be read are left out."""
    hidden: Mapping[str, str]
    """Columns whose values cannot be taken for what Parquet says, with what they hold."""


def row_schema_of(note: bytes | None) -> RowSchema:
    """Return what the note under ``ROW_SCHEMA`` declares; nothing if it is no schema."""
    types, hidden = {}, {}
    for value in _fields(note):
        name = str(value.get("name"))
        if (kind := _stored_otherwise(value.get("type"))) is not None:
            hidden[name] = kind.upper()
            continue
        try:
            types[name] = spark_field(value).type
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, TamisError):
            if COLLATIONS in json.dumps(value):
                hidden[name] = "a collated text beside a type that is unknown here"
    return RowSchema(types, hidden)


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
