"""A table's head as JSON, the form in which the commit that changes it holds it."""

from __future__ import annotations

from typing import Any

from tamis.state.model import Head
from tamis.types import Schema


def head_to_json(head: Head) -> dict[str, Any]:
    return {
        "table_id": head.table_id,
        "name": head.name,
        "schemas": [schema.to_json() for schema in head.schemas],
        "highest_column_id": head.highest_column_id,
        "cluster_by": [list(path) for path in head.cluster_by],
        "format": head.format,
        "properties": dict(head.properties),
        "comment": head.comment,
        "reader_features": list(head.reader_features),
        "writer_features": list(head.writer_features),
        "created_micros": head.created_micros,
    }


def head_from_json(value: dict[str, Any]) -> Head:
    """Inverse of ``head_to_json``; unknown keys are ignored (what must not be ignored is a feature)."""
    return Head(
        table_id=value["table_id"],
        name=value["name"],
        schemas=tuple(Schema.from_json(schema) for schema in value["schemas"]),
        highest_column_id=value["highest_column_id"],
        cluster_by=tuple(tuple(path) for path in value["cluster_by"]),
        format=value["format"],
        properties=dict(value["properties"]),
        comment=value["comment"],
        reader_features=tuple(value["reader_features"]),
        writer_features=tuple(value["writer_features"]),
        created_micros=value["created_micros"],
    )
