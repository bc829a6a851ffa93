"""The schema of a Delta table as ours: types, column ids, and the names that its files have for the columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tamis.bridges.sources.declared_texts import declared_type, with_collations, with_declared_texts
from tamis.core.schema.widening import type_widens
from tamis.core.types import (
    BYTE,
    DOUBLE,
    INTEGER,
    INTEGRAL,
    LONG,
    NO_ID,
    NULL,
    SHORT,
    Array,
    DataType,
    Decimal,
    Field,
    Map,
    Schema,
    String,
    Struct,
)
from tamis.core.types.logical import type_from_json
from tamis.core.types.sibling_fields import Siblings
from tamis.errors import CorruptData, InvalidInput

FIRST_OWN_ID = 2**28
"""Delta numbers no elements, keys and values; with a column mapping, they get ids from here, apart from Delta's."""

_ID, _PHYSICAL, _NESTED = "delta.columnMapping.id", "delta.columnMapping.physicalName", "delta.columnMapping.nested.ids"
_CHANGES = "delta.typeChanges"
_MODES = ("none", "name", "id")


@dataclass(frozen=True, slots=True)
class Place:
    """A field below struct fields only: where files and statistics have it."""

    field: Field
    physical: tuple[str, ...]
    was_float: bool
    """Whether it was a FLOAT in older files."""


@dataclass(frozen=True, slots=True)
class DeltaSchema:
    """The schema, and by what files name its columns."""

    schema: Schema
    mode: str
    """The column mapping: ``none``, ``name`` or ``id``."""
    partitions: tuple[Place, ...]
    places: tuple[Place, ...] = field(repr=False)
    """All fields that are not in an array or a map."""
    column_names: Mapping[int, str] = field(repr=False, default_factory=dict)


def delta_schema(
    metadata: Mapping[str, Any], url: str, previous: Schema | None = None, highest: int = 0
) -> DeltaSchema:
    """Return the schema of a ``metaData`` action.

    Columns without an id in Delta keep the id that they have, by name, in ``previous``; new ones get ids above
    ``highest``, the highest that was ever given. Raises ``InvalidInput`` for a
    type that is not supported, ``CorruptData`` (``DELTA_LOG_DAMAGED``) for what is no schema.
    """
    try:
        mode = (metadata.get("configuration") or {}).get("delta.columnMapping.mode", "none")
        if mode not in _MODES:
            raise ValueError(f"the column mapping {mode!r}")
        reader = _Reader(mode != "none")
        fields = tuple(reader.field(f) for f in json.loads(metadata["schemaString"])["fields"])
        above = max(FIRST_OWN_ID if mode != "none" else 0, highest, previous.highest_id() if previous else 0)
        before = Siblings(previous.fields if previous else ())
        kept = tuple(_numbered(f, before) for f in fields)
        schema = Schema(kept).assign_ids(above)
        names, places = reader.named(schema)
        tops = {p.field.name: p for p in places if len(p.physical) == 1}
        partitions = tuple(tops[name] for name in metadata.get("partitionColumns") or ())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise CorruptData(
            f"The schema of the Delta table {url} cannot be understood: {error}",
            code="DELTA_LOG_DAMAGED",
            name=url,
            remedy="Repair the Delta table's log.",
        ) from error
    return DeltaSchema(schema, mode, partitions, places, names)


def physical_partitions(metadata: Mapping[str, Any]) -> list[str]:
    """Return the names that files have for the partition columns, which a rename does not change.

    A damaged schema is reported where it is read.
    """
    names = list(metadata.get("partitionColumns") or ())
    if (metadata.get("configuration") or {}).get("delta.columnMapping.mode", "none") == "none":
        return names
    try:
        fields = json.loads(metadata["schemaString"])["fields"]
        physical = {f["name"]: (f.get("metadata") or {}).get(_PHYSICAL, f["name"]) for f in fields}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return names
    return [physical.get(name, name) for name in names]


def spark_field(value: Mapping[str, Any]) -> Field:
    """Return a field of Spark's JSON of a schema, without ids. Raises ``ValueError`` or ``KeyError`` for other JSON."""
    return _Reader(mapped=False).field(value)


class _Reader:
    """Reads Delta's JSON of a schema; remembers what our fields have no room for, by the order of the fields."""

    def __init__(self, mapped: bool) -> None:
        self.mapped = mapped
        self.field_metadata: list[Mapping[str, Any]] = []
        """The metadata of struct fields, parents first."""

    def field(self, value: Mapping[str, Any]) -> Field:
        metadata = value.get("metadata") or {}
        self.field_metadata.append({**metadata, "name": value["name"]})
        identifier = int(metadata[_ID]) if self.mapped else NO_ID
        nested = metadata.get(_NESTED) or {} if self.mapped else {}
        name = str(value["name"])
        data_type = self.type(value["type"], nested, str(metadata.get(_PHYSICAL, name)))
        data_type = with_collations(data_type, metadata, name)
        data_type = with_declared_texts(data_type, declared_type(metadata))
        comment = metadata.get("comment")
        return Field(name, data_type, bool(value["nullable"]), identifier, comment if comment else None)

    def type(self, value: Any, nested: Mapping[str, Any], path: str) -> DataType:
        if not isinstance(value, dict):
            return type_from_json(value)
        kind = value["type"]
        if kind == "struct":
            return Struct(tuple(self.field(f) for f in value["fields"]))
        if kind == "array":
            return Array(self.inner("element", value["elementType"], value["containsNull"], nested, path))
        if kind == "map":
            key = self.inner("key", value["keyType"], False, nested, path)
            return Map(key, self.inner("value", value["valueType"], value["valueContainsNull"], nested, path))
        raise ValueError(f"the type {kind!r}")

    def inner(self, name: str, value: Any, nullable: bool, nested: Mapping[str, Any], path: str) -> Field:
        below = f"{path}.{name}"
        identifier = int(nested.get(below, NO_ID))
        return Field(name, self.type(value, nested, below), bool(nullable), identifier)

    def named(self, schema: Schema) -> tuple[dict[int, str], tuple[Place, ...]]:
        """Return the names in files that differ from ours, and the places of fields, of the schema that was read."""
        field_metadata = iter(self.field_metadata)
        names: dict[int, str] = {}
        places: list[Place] = []

        def visit(fields: tuple[Field, ...], above: tuple[str, ...] | None) -> None:
            for f in fields:
                metadata = next(field_metadata)
                physical = str(metadata[_PHYSICAL]) if self.mapped else f.name
                if physical != f.name:
                    names[f.id] = physical
                path = None if above is None else (*above, physical)
                if path is not None:
                    places.append(Place(f, path, _was_float(metadata)))
                for inside, struct in _structs(f.type, path):
                    visit(struct.fields, inside)

        visit(schema.fields, ())
        return names, tuple(places)


def _structs(data_type: DataType, path: tuple[str, ...] | None) -> Iterator[tuple[tuple[str, ...] | None, Struct]]:
    """Yield the nearest structs in a type, with their path; it is None in arrays and maps."""
    if isinstance(data_type, Struct):
        yield path, data_type
    else:
        for child in data_type.children:
            yield from _structs(child.type, None)


def _was_float(metadata: Mapping[str, Any]) -> bool:
    changes = metadata.get(_CHANGES) or ()
    for change in changes:
        _check_change(str(change["fromType"]), str(change["toType"]), str(metadata["name"]))
    return any(c["fromType"] == "float" and not c.get("fieldPath") for c in changes)


def _check_change(old: str, new: str, name: str) -> None:
    """Raise ``InvalidInput`` (``DELTA_FEATURE``) for a change of type that Tamis does not read."""
    if not _delta_widens(type_from_json(old), type_from_json(new)):
        raise InvalidInput(
            f"Column {name!r} was changed from {old} to {new}, which Tamis does not read.",
            code="DELTA_FEATURE",
            name=name,
            remedy="Rewrite the Delta table's older files there, then adopt it.",
        )


def _delta_widens(old: DataType, new: DataType) -> bool:
    """Return whether older files of a Delta table can hold ``old`` where its schema has ``new``, and are read so."""
    if type_widens(old, new):
        return True
    if new == DOUBLE:
        return old in (BYTE, SHORT, INTEGER)
    if isinstance(new, Decimal) and old in INTEGRAL:
        return new.precision - new.scale >= (20 if old == LONG else 10)
    return False


def _numbered(f: Field, before: Siblings) -> Field:
    """Return the field with the ids that ``before`` has for what has none: by id, else by name and kind."""
    old = before.find_field(f)
    if old is not None and f.id == NO_ID and not _reads_as(old.type, f.type):
        old = None  # another column under the name, which came with an overwrite
    identifier = f.id if f.id != NO_ID or old is None else old.id
    children = f.type.children
    if not children:
        return replace(f, id=identifier)
    inside = old.type.children if old is not None and type(old.type) is type(f.type) else ()
    below = _numbered_children(f.type, inside)
    data_type: DataType = Struct(below)
    if isinstance(f.type, Array):
        data_type = Array(below[0])
    elif isinstance(f.type, Map):
        data_type = Map(below[0], below[1])
    return replace(f, id=identifier, type=data_type)


def _reads_as(old: DataType, new: DataType) -> bool:
    """Return whether files of ``old`` can be read as ``new``, so that both are one column."""
    if old == NULL:  # Parquet cannot hold VOID, so that no file has values of it
        return True
    if isinstance(old, String) and isinstance(new, String):  # CHAR, VARCHAR and STRING are one type in files
        return old.collation == new.collation
    return type(old) is type(new) if old.children or new.children else _delta_widens(old, new)


def _numbered_children(above: DataType, before: tuple[Field, ...]) -> tuple[Field, ...]:
    """Return the children of a nested type with the ids that ``before`` has for them."""
    if isinstance(above, Struct):
        known = Siblings(before)
        return tuple(_numbered(child, known) for child in above.children)
    found = []
    for child in above.children:
        named = before if child.id == NO_ID else [replace(o, id=child.id) for o in before if o.name == child.name]
        found.append(_numbered(child, Siblings(named)))
    return tuple(found)
