"""The JSON form of a table's head, as stored in the commit that changes it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from tamis.core.schema import Dropped, dropped_in
from tamis.core.schema.carried_defaults import carried_schemas
from tamis.core.types import Schema
from tamis.storage.commit_log.external_sources import source_from_json, source_to_json
from tamis.storage.commit_log.model import Head, IndexDefinition, IndexPath
from tamis.storage.commit_log.table_constraints import (
    Constraint,
    constraint_from_json,
    constraint_to_json,
    enforced_constraints,
    with_live_columns,
)

UNENFORCED = "tamis:constraints"
"""The property that stores constraints that nobody enforces.

Writers that do not know constraints change the head without losing them, because they keep every property.
"""


def head_to_json(head: Head) -> dict[str, Any]:
    value = {
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
        "dropped": [gone.to_json() for gone in head.dropped],
        "ordered_since": head.ordered_since,
    }
    if head.indexes:
        value["indexes"] = [_index_to_json(index) for index in head.indexes]
    if head.numbered:
        value["numbered"] = {str(column): following for column, following in head.numbered.items()}
    if head.sources:
        value["sources"] = [source_to_json(source) for source in head.sources]
    if checks := enforced_constraints(head.constraints):
        value["constraints"] = [constraint_to_json(one) for one in checks]
    if unenforced := [constraint_to_json(one) for one in head.constraints if one not in checks]:
        value["properties"] = {**head.properties, UNENFORCED: json.dumps(unenforced)}
    return value


def head_from_json(value: dict[str, Any]) -> Head:
    """Decode the output of ``head_to_json``.

    Unknown keys are ignored; what must not be ignored is a feature.
    """
    schemas = carried_schemas(Schema.from_json(schema) for schema in value["schemas"])
    properties = dict(value["properties"])
    dropped = value.get("dropped")  # absent in heads of earlier writers: derived from the schemas
    constraints = _constraints(value, properties, schemas)
    return Head(
        table_id=value["table_id"],
        name=value["name"],
        schemas=schemas,
        highest_column_id=value["highest_column_id"],
        cluster_by=tuple(tuple(path) for path in value["cluster_by"]),
        format=value["format"],
        properties=properties,
        comment=value["comment"],
        reader_features=tuple(value["reader_features"]),
        writer_features=tuple(value["writer_features"]),
        created_micros=value["created_micros"],
        indexes=tuple(_index_from_json(index) for index in value.get("indexes", ())),
        dropped=dropped_in(schemas) if dropped is None else tuple(Dropped.from_json(gone) for gone in dropped),
        ordered_since=value.get("ordered_since", 0),
        numbered={int(column): following for column, following in value.get("numbered", {}).items()},
        constraints=constraints,
        sources=tuple(source_from_json(source) for source in value.get("sources", ())),
    )


def _constraints(
    value: dict[str, Any], properties: dict[str, str], schemas: tuple[Schema, ...]
) -> tuple[Constraint, ...]:
    """Return the constraints; those that nobody enforces are taken out of ``properties``."""
    checks = tuple(constraint_from_json(one) for one in value.get("constraints", ()))
    unenforced = [constraint_from_json(one) for one in json.loads(properties.pop(UNENFORCED, "[]"))]
    return (*checks, *with_live_columns(unenforced, schemas[-1] if schemas else None))


def _index_to_json(index: IndexDefinition) -> dict[str, Any]:
    value = {
        **asdict(index),
        "columns": [list(path) for path in index.columns],
        "paths": [asdict(path) for path in index.paths],
    }
    return value if index.paths else {name: part for name, part in value.items() if name != "paths"}


def _index_from_json(value: dict[str, Any]) -> IndexDefinition:
    return IndexDefinition(
        index_id=value["index_id"],
        name=value["name"],
        columns=tuple(tuple(path) for path in value["columns"]),
        build=value["build"],
        created_version=value["created_version"],
        created_micros=value["created_micros"],
        paths=tuple(IndexPath(path["id"], path["path"], path["type"]) for path in value.get("paths", ())),
    )
