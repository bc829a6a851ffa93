"""The columns of a table as Delta's metadata tells them: types, names in files, and types that were widened.

Columns are found by their names while every live file has them under the current ones, which all readers understand.
Else the table has Delta's column mapping by id, and readers are to find columns by the ids in the files. Many find
them by their physical names even so; ``misnamed`` says which columns those would read wrongly. The mapping stays, and
so does the physical name that a column has been given, because statistics in the log are written under it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tamis.bridges.export.delta_statistics import plain_json
from tamis.core.schema.widening import type_widens
from tamis.core.types import TIMESTAMP_NTZ, Array, DataType, Field, Map, Schema, String, Struct

MAPPING = "columnMapping"
WIDENING = "typeWidening"
LOCAL_TIMES = "timestampNtz"
VECTORS = "deletionVectors"

_MODE = "delta.columnMapping.mode"
_ILLEGAL = re.compile(r"[ ,;{}()\n\t=]")
"""Characters that no column's name has in a Delta table without column mapping."""


@dataclass(frozen=True, slots=True)
class DeltaSchema:
    """The metadata of a version's columns."""

    json: dict[str, Any]
    physical: Mapping[int, str]
    """By column id, the name of the column in statistics."""
    mapped: bool
    features: tuple[str, ...]
    misnamed: tuple[str, ...]
    """Columns that some live file has under another than the physical name, or whose name is another column's there."""

    @property
    def text(self) -> str:
        return plain_json(self.json)

    def configuration(self, highest_column_id: int) -> dict[str, str]:
        """Return the table's properties in Delta."""
        mapping = {_MODE: "id", "delta.columnMapping.maxColumnId": str(highest_column_id)} if self.mapped else {}
        widening = {"delta.enableTypeWidening": "true"} if WIDENING in self.features else {}
        return mapping | widening


def delta_schema(
    schema: Schema, live: Sequence[Schema], before: Mapping[int, str], features: Sequence[str]
) -> DeltaSchema:
    """Return Delta's schema.

    ``before`` are the physical names that an earlier export gave, by column id, and ``features`` those that it needed.
    """
    mapped = MAPPING in features or _needs_mapping(schema, live)
    physical = _physical(schema, live, before) if mapped else {f.id: f.name for _, f in schema.walk()}
    changes = _type_changes(schema, live)
    needed = {
        MAPPING: mapped,
        WIDENING: bool(changes),
        LOCAL_TIMES: any(f.type == TIMESTAMP_NTZ for _, f in schema.walk()),
    }
    every = [*features, *(name for name, needs in needed.items() if needs and name not in features)]
    misnamed = _misnamed(schema, physical, live)
    written = _SchemaWriter(physical, mapped, changes).struct(schema.fields)
    return DeltaSchema(written, physical, mapped, tuple(every), misnamed)


def physical_names(schema_json: Mapping[str, Any], schema: Schema | None) -> dict[int, str]:
    """Return the physical names in a schema that an earlier export wrote, by column id.

    Without column mapping a name is looked up in ``schema``, the table's schema at that version.
    """
    found: dict[int, str] = {}
    for field in _struct_fields(schema_json):
        if "delta.columnMapping.id" in field["metadata"]:
            found[field["metadata"]["delta.columnMapping.id"]] = field["metadata"]["delta.columnMapping.physicalName"]
    if not found and schema is not None:
        return {f.id: f.name for _, f in schema.walk()}
    return found


def _struct_fields(schema_json: Any) -> list[dict[str, Any]]:
    """Return the fields of structs at any depth."""
    if not isinstance(schema_json, dict):
        return []
    inner = [f for key in ("type", "elementType", "keyType", "valueType") for f in _struct_fields(schema_json.get(key))]
    fields = schema_json.get("fields", [])
    return [*fields, *inner, *(f for field in fields for f in _struct_fields(field["type"]))]


def _needs_mapping(schema: Schema, live: Sequence[Schema]) -> bool:
    names = {_place(schema, f): f.id for _, f in schema.walk()}
    if any(_ILLEGAL.search(f.name) for _, f in schema.walk()):
        return True
    for older in live:
        for _, f in older.walk():
            now = schema.by_id.get(f.id)
            if now is not None and now.name != f.name:
                return True
            if names.get(_place(older, f), f.id) != f.id:  # another column has the name of one that is gone
                return True
    return False


def _place(schema: Schema, field: Field) -> tuple[int, str]:
    """Return what a reader by name knows a field by: what it is in, and its name ignoring case."""
    path = schema.paths[field.id]
    return (path[-2] if len(path) > 1 else 0, field.name.lower())


def _place_owners(live: Sequence[Schema]) -> dict[tuple[int, str], set[int]]:
    """Return the ids of the columns that are at each place in some live file."""
    owners: dict[tuple[int, str], set[int]] = {}
    for older in live:
        for _, f in older.walk():
            owners.setdefault(_place(older, f), set()).add(f.id)
    return owners


def _misnamed(schema: Schema, physical: Mapping[int, str], live: Sequence[Schema]) -> tuple[str, ...]:
    """Return the fields that a live file has under another name, or whose physical name it gives to another column."""
    owners = _place_owners(live)
    found = []
    for _, field in schema.walk():
        name = physical[field.id]
        others = owners.get((_place(schema, field)[0], name.lower()), set()) - {field.id}
        renamed = any(field.id in old.by_id and old.by_id[field.id].name != name for old in live)
        if others or renamed:
            found.append(schema.path_text(field))
    return tuple(found)


def _physical(schema: Schema, live: Sequence[Schema], before: Mapping[int, str]) -> dict[int, str]:
    """Return a physical name for each field: the one it has been given, or that of its newest file.

    No name is that of another column in some live file, if it has not been given before.
    """
    found: dict[int, str] = {}
    taken: set[tuple[int, str]] = set()
    owners = _place_owners(live)
    walked = [(path[-2] if len(path) > 1 else 0, f) for path, f in schema.walk()]
    for outer, field in sorted(walked, key=lambda at: at[1].id not in before):
        in_files = [old.by_id[field.id].name for old in reversed(live) if field.id in old.by_id]
        free = [n for n in (*in_files, field.name) if owners.get((outer, n.lower()), {field.id}) == {field.id}]
        choices = [before.get(field.id), *free, f"col-{field.id}"]
        name = next(n for n in choices if n is not None and (outer, n.lower()) not in taken)
        taken.add((outer, name.lower()))
        found[field.id] = name
    return found


def _type_changes(schema: Schema, live: Sequence[Schema]) -> dict[int, list[tuple[DataType, DataType]]]:
    """Return the widenings of each column that live files show, oldest first, by column id."""
    found: dict[int, list[tuple[DataType, DataType]]] = {}
    for _, field in schema.walk():
        if field.type.children:
            continue
        types = [old.by_id[field.id].type for old in live if field.id in old.by_id]
        steps = [t for at, t in enumerate([*types, field.type]) if at == 0 or t != [*types, field.type][at - 1]]
        pairs = [(a, b) for a, b in pairwise(steps) if not isinstance(a, String) and type_widens(a, b)]
        if pairs:
            found[field.id] = pairs
    return found


@dataclass(frozen=True, slots=True)
class _SchemaWriter:
    """Writes types as Delta's schema JSON."""

    physical: Mapping[int, str]
    mapped: bool
    changes: Mapping[int, list[tuple[DataType, DataType]]]

    def struct(self, fields: Sequence[Field]) -> dict[str, Any]:
        return {"type": "struct", "fields": [self.field(f) for f in fields]}

    def field(self, f: Field) -> dict[str, Any]:
        metadata: dict[str, Any] = {}
        if self.mapped:
            metadata["delta.columnMapping.id"] = f.id
            metadata["delta.columnMapping.physicalName"] = self.physical[f.id]
        if f.comment is not None:
            metadata["comment"] = f.comment
        changes = list(self._changes(f, ()))
        if changes:
            metadata["delta.typeChanges"] = changes
        return {"name": f.name, "type": self.type(f.type), "nullable": f.nullable, "metadata": metadata}

    def _changes(self, f: Field, path: tuple[str, ...]) -> list[dict[str, str]]:
        """Return the type changes of a field, and of what lies in its arrays and maps."""
        where = {"fieldPath": ".".join(path)} if path else {}
        out = [{"fromType": _name(a), "toType": _name(b), **where} for a, b in self.changes.get(f.id, ())]
        if isinstance(f.type, Array | Map):
            for child in f.type.children:
                out += self._changes(child, (*path, child.name))
        return out

    def type(self, data_type: DataType) -> Any:
        match data_type:
            case Struct(fields):
                return self.struct(fields)
            case Array(element):
                return {
                    "type": "array",
                    "elementType": self.type(element.type),
                    "containsNull": element.nullable,
                }
            case Map(key, value):
                return {
                    "type": "map",
                    "keyType": self.type(key.type),
                    "valueType": self.type(value.type),
                    "valueContainsNull": value.nullable,
                }
        return _name(data_type)


def _name(data_type: DataType) -> str:
    return "string" if isinstance(data_type, String) else str(data_type.to_json())
