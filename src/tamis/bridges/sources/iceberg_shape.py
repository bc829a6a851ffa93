"""Checks that an Iceberg metadata file has the form of the specification where it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Damaged = Callable[[str], Exception]
"""Makes the error of a metadata file from what is wrong with it."""


def check_shape(content: Mapping[str, Any], damaged: Damaged) -> None:
    """Raise what ``damaged`` returns if a member that is read is missing or has another type."""
    for name in ("properties", "refs"):
        if not isinstance(content.get(name) or {}, dict):
            raise damaged(f"{name} is not an object")
    for name in ("schemas", "snapshots", "partition-specs"):
        found = content.get(name) or []
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise damaged(f"{name} is not a list of objects")
    _check_schemas(content, damaged)
    for snapshot in content.get("snapshots") or ():
        _check_members(snapshot, {"snapshot-id": int, "timestamp-ms": int}, "a snapshot", damaged)
        if not isinstance(snapshot.get("manifest-list", snapshot.get("manifests")), str | list):
            raise damaged(f"the snapshot {snapshot['snapshot-id']} has no manifest list")
    for name, ref in (content.get("refs") or {}).items():
        _check_members(ref, {"snapshot-id": int}, f"the ref {name}", damaged)
    specs: Any = content.get("partition-specs") or ({"spec-id": 0, "fields": content.get("partition-spec") or []},)
    for spec in specs:
        _check_members(spec, {"spec-id": int, "fields": list}, "a partition spec", damaged)
        for field in spec["fields"]:
            _check_members(field, {"transform": str}, "a partition field", damaged)
            if not isinstance(field.get("source-id", 0), int):
                raise damaged("the source-id of a partition field is not a number")


def _check_schemas(content: Mapping[str, Any], damaged: Damaged) -> None:
    schemas = content.get("schemas") or [content.get("schema")]
    for schema in schemas:
        _check_members(schema, {"fields": list}, "a schema", damaged)
    current = content.get("current-schema-id", schemas[-1].get("schema-id"))
    if current not in [schema.get("schema-id") for schema in schemas]:
        raise damaged(f"current-schema-id names no schema: {current}")


def _check_members(value: Any, kinds: Mapping[str, type], what: str, damaged: Damaged) -> None:
    for name, kind in kinds.items():
        found = value.get(name) if isinstance(value, dict) else None
        if not isinstance(found, kind) or isinstance(found, bool):
            raise damaged(f"{name} of {what} is missing or has another type")
