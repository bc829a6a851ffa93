"""Carries the defaults of columns from one schema of a table to the next.

Invariant: rows that are older than a column show the same value of it under every schema. The JSON form of a default
names the fields of structs and depends on all types within the column, while fields are what their ids say. So a
default is encoded again under each schema. The SQL text of the default of later rows cannot be: changes that would give
its values to other fields are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tamis.core.types import Array, DataType, Field, Map, Schema, Struct
from tamis.core.types.arrow import to_arrow_type
from tamis.core.types.defaults import initial_json, initial_scalar
from tamis.core.types.logical import with_children
from tamis.errors import IncompatibleSchema, InvalidInput, TamisError

_WITHOUT_FIELDS = re.compile(
    r"\s*(NULL|(array|map)\s*\(\s*\)|CAST\s*\(\s*NULL\s+AS\s.*\))\s*", re.IGNORECASE | re.DOTALL
)
"""Texts of defaults that give no field a value, whatever fields there are."""


def carry_defaults(before: Schema, after: Schema) -> Schema:
    """Return ``after`` with the initial defaults that its columns have in ``before``, at every depth.

    Columns match by id; one that ``before`` lacks keeps its own default. Raises ``IncompatibleSchema``
    (``MIGRATION_TYPE_CHANGE``) for a default that the column's new type does not hold, and ``CorruptData`` for one that
    is not of its old type.
    """
    held = {f.id: f for f in _with_default(before.fields)}
    return replace(after, fields=tuple(_carried(f, held) for f in after.fields)) if held else after


def carried_schemas(schemas: Iterable[Schema]) -> tuple[Schema, ...]:
    """Return a table's schemas, in order, with each default as the first schema that has its column says.

    Earlier releases left a default as it was when something within its column was renamed, dropped or widened. One that
    cannot be carried stays as it is: reading it tells what is wrong.
    """
    found: list[Schema] = []
    for schema in schemas:
        try:
            found.append(carry_defaults(found[-1], schema) if found else schema)
        except TamisError:
            found.append(schema)
    return tuple(found)


def check_default_texts(before: Schema, after: Schema) -> None:
    """Check that the SQL text of each default means what it meant before.

    Spark casts the text's value to the column's type, fields by position; where their number differs, it reads no row.
    Raises ``InvalidInput`` (``BAD_DEFAULT``) naming a column with a text that did not change, and other fields.
    """
    for f in after:
        text, old = f.write_default, before.by_id.get(f.id)
        if text is None or _WITHOUT_FIELDS.fullmatch(text) or old is None or old.write_default != text:
            continue
        if _field_ids(old.type) != _field_ids(f.type):
            raise InvalidInput(
                f"The default {text!r} of column {f.name!r} gives fields by position, "
                "and this change adds, drops or moves one.",
                code="BAD_DEFAULT",
                name=f.name,
                remedy="Drop the default first, and set it again afterwards; older rows keep their values.",
            )


def _field_ids(data_type: DataType) -> tuple[Any, ...]:
    """Return the ids of all fields in a type, in order."""
    return tuple((f.id, _field_ids(f.type)) for f in data_type.children)


def _with_default(fields: tuple[Field, ...]) -> Iterator[Field]:
    for f in fields:
        if f.initial_default is not None:
            yield f
        if f.type.children:
            yield from _with_default(f.type.children)


def _carried(f: Field, held: dict[int, Field]) -> Field:
    if f.type.children:
        f = replace(f, type=with_children(f.type, tuple(_carried(child, held) for child in f.type.children)))
    old = held.get(f.id)
    if old is None:
        return f
    if old.type == f.type:
        return replace(f, initial_default=old.initial_default)
    initial_scalar(old)  # raises for a default that is not of its type
    try:
        return replace(f, initial_default=_converted(old.initial_default, old, f))
    except pa.ArrowException as error:
        raise IncompatibleSchema(
            f"The default of column {f.name!r} for older rows does not fit {f.type}: {error}.",
            code="MIGRATION_TYPE_CHANGE",
            name=f.name,
            remedy="Keep the type, or add a new column.",
        ) from error


def _converted(value: Any, old: Field, new: Field) -> Any:
    """Convert a value in the JSON form of ``old`` to that of ``new``, the same column in a later schema."""
    if value is None or old.type == new.type:
        return value
    match old.type, new.type:
        case Struct(before), Struct(after):
            known = {f.id: f for f in before}
            return {
                f.name: _converted(value.get(known[f.id].name), known[f.id], f) if f.id in known else f.initial_default
                for f in after
            }
        case Array(before), Array(after):
            return [_converted(item, before, after) for item in value]
        case Map(key, item), Map(new_key, new_item):
            return [[_converted(k, key, new_key), _converted(v, item, new_item)] for k, v in value]
    return initial_json(initial_scalar(replace(old, initial_default=value)).cast(to_arrow_type(new.type)))
