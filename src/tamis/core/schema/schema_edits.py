"""Single schema changes, as made by ALTER TABLE and ``table.alter()``.

Invariant: an edit changes exactly one property of exactly one column id and leaves everything else equal,
including ids. Whether the result may follow the previous schema is decided elsewhere
(``tamis.core.schema.schema_sequence``), and so is the form of its defaults (``carried_defaults``); a result that could
not be a schema at all is rejected here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tamis.core.schema.widening import type_widens
from tamis.core.types import NO_ID, Array, DataType, Field, Map, Schema, Struct
from tamis.core.types.logical import with_children
from tamis.errors import AlreadyExists, IncompatibleSchema, InvalidInput

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """The position at which a field is shown: first, or after another field. Presentation only."""

    after: str | None = None


def add(schema: Schema, path: Path, field: Field, place: Place | None = None) -> Schema:
    """Add ``field`` (ids given) below ``path[:-1]``.

    Raises ``AlreadyExists`` if the name is taken and ``IncompatibleSchema`` for a required field.
    """
    name = ".".join(path)
    if not field.nullable:
        raise IncompatibleSchema(
            f"Column {name!r} would be new and NOT NULL: older data has no value for it.",
            code="MIGRATION_ADD_REQUIRED",
            name=name,
            remedy="Make it nullable; a default fills it for older rows.",
        )
    named = replace(field, name=path[-1])
    if not path[:-1]:
        return replace(schema, fields=_placed(schema.fields, named, place, name))
    above = schema.find(path[:-1])[-1]
    if not isinstance(above.type, Struct):
        raise InvalidInput(
            f"Column {above.name!r} is {above.type}, to which no field can be added.",
            code="BAD_COLUMN",
            name=name,
            remedy="Name a struct; inside an array or a map say 'element', 'key' or 'value'.",
        )
    return _changed(schema, above.id, lambda f: replace(f, type=Struct(_placed(f.type.children, named, place, name))))


def drop(schema: Schema, path: Path) -> Schema:
    """Drop the field.

    Raises ``InvalidInput`` for the last field of a table or a struct, and for the inside of an array or a
    map.
    """
    found = _member(schema, path, "dropped")
    siblings = found[-2].type.children if len(found) > 1 else schema.fields
    if len(siblings) == 1:
        what = f"the only field of {found[-2].name!r}" if len(found) > 1 else "the table's only column"
        raise InvalidInput(
            f"{'.'.join(path)!r} is {what}.",
            code="LAST_COLUMN",
            name=".".join(path),
            remedy="Add another first, or drop the whole." if len(found) > 1 else "Add another first.",
        )
    kept = tuple(f for f in siblings if f.id != found[-1].id)
    if len(found) == 1:
        return replace(schema, fields=kept)
    return _changed(schema, found[-2].id, lambda f: replace(f, type=Struct(kept)))


def rename(schema: Schema, path: Path, name: str) -> Schema:
    """Rename the field. Raises ``AlreadyExists`` if a sibling has the name."""
    found = _member(schema, path, "renamed")
    siblings = found[-2].type.children if len(found) > 1 else schema.fields
    _free([f for f in siblings if f.id != found[-1].id], name)
    return _changed(schema, found[-1].id, lambda f: replace(f, name=name))


def drop_not_null(schema: Schema, path: Path) -> Schema:
    """Make the field nullable. Raises ``IncompatibleSchema`` for a map's key."""
    found = schema.find(path)
    if len(found) > 1 and isinstance(found[-2].type, Map) and found[-2].type.key.id == found[-1].id:
        raise IncompatibleSchema(
            f"Field {'.'.join(path)!r} is a map key, and a key is never NULL.",
            code="MIGRATION_MAP_KEY",
            name=".".join(path),
            remedy="Keep the key NOT NULL.",
        )
    return _changed(schema, found[-1].id, lambda f: replace(f, nullable=True))


def widen(schema: Schema, path: Path, to: DataType) -> Schema:
    """Widen the field's type. Raises ``IncompatibleSchema`` unless ``to`` holds all its values."""
    old = schema.find(path)[-1]
    if old.type.children or not type_widens(old.type, to):
        raise IncompatibleSchema(
            f"Field {'.'.join(path)!r} is {old.type}, which does not widen to {to}.",
            code="MIGRATION_TYPE_CHANGE",
            name=".".join(path),
            remedy=(
                "Types widen from smaller to larger integers, float to double, date to timestamp_ntz, "
                "and decimals to more digits; else add a new column."
            ),
        )
    return _changed(schema, old.id, lambda f: replace(f, type=to))


def set_default(schema: Schema, path: Path, sql: str | None) -> Schema:
    """Set the default of later writes; older rows keep their values."""
    if len(path) > 1:
        raise nested_default(path)
    return _changed(schema, schema.find(path)[-1].id, lambda f: replace(f, write_default=sql))


def comment(schema: Schema, path: Path, text: str | None) -> Schema:
    return _changed(schema, schema.find(path)[-1].id, lambda f: replace(f, comment=text))


def move(schema: Schema, path: Path, place: Place) -> Schema:
    """Move the field among its siblings; readers are not affected."""
    found = _member(schema, path, "moved")
    siblings = found[-2].type.children if len(found) > 1 else schema.fields
    moved = _placed(tuple(f for f in siblings if f.id != found[-1].id), found[-1], place, ".".join(path))
    if len(found) == 1:
        return replace(schema, fields=moved)
    return _changed(schema, found[-2].id, lambda f: replace(f, type=Struct(moved)))


def with_ids(field: Field, above: int) -> Field:
    """Return ``field`` as a new column, with new ids for it and its contents, counted from ``above`` + 1."""

    def bare(f: Field) -> Field:
        inner = tuple(bare(child) for child in f.type.children)
        return replace(f, id=NO_ID, type=with_children(f.type, inner) if inner else f.type)

    return Schema((bare(field),)).assign_ids(above).fields[0]


def nested_default(path: Path) -> InvalidInput:
    return InvalidInput(
        f"{'.'.join(path)!r} is inside another column and cannot have a default.",
        code="BAD_DEFAULT",
        name=".".join(path),
        remedy="Give the default to a whole column.",
    )


def _changed(schema: Schema, target: int, change: Callable[[Field], Field]) -> Schema:
    """Return ``schema`` with one field, given by id, changed."""
    on_the_way = set(schema.paths[target])

    def visit(f: Field) -> Field:
        if f.id == target:
            return change(f)
        if f.id not in on_the_way:
            return f
        return replace(f, type=with_children(f.type, tuple(visit(child) for child in f.type.children)))

    return replace(schema, fields=tuple(visit(f) for f in schema.fields))


def _placed(fields: tuple[Field, ...], field: Field, place: Place | None, path: str) -> tuple[Field, ...]:
    _free(fields, field.name)
    if place is None:
        return (*fields, field)
    if place.after is None:
        return (field, *fields)
    at = next((i for i, f in enumerate(fields) if f.name.lower() == (place.after or "").lower()), None)
    if at is None:
        raise InvalidInput(
            f"{path!r} cannot be placed after {place.after!r}: there is no such field.",
            code="BAD_COLUMN",
            name=place.after,
            remedy="Neighbours are: " + ", ".join(f.name for f in fields) + ".",
        )
    return (*fields[: at + 1], field, *fields[at + 1 :])


def _free(fields: Sequence[Field], name: str) -> None:
    if not name:
        raise InvalidInput("A column has no name.", code="BAD_COLUMN", name=name, remedy="Give it one.")
    if any(f.name.lower() == name.lower() for f in fields):
        raise AlreadyExists(
            f"There is a column {name!r} already.",
            code="COLUMN_EXISTS",
            name=name,
            remedy="Choose another name; names are case-insensitive.",
        )


def _member(schema: Schema, path: Path, what: str) -> tuple[Field, ...]:
    """Return the fields down to a column or struct field.

    Raises ``InvalidInput`` for the inside of an array or a map, which has no name of its own.
    """
    found = schema.find(path)
    if len(found) > 1 and isinstance(found[-2].type, Array | Map):
        raise InvalidInput(
            f"{'.'.join(path)!r} is the {found[-1].name} of {found[-2].name!r} and cannot be {what}.",
            code="BAD_COLUMN",
            name=".".join(path),
            remedy=f"Name a column or a struct's field; {found[-2].name!r} as a whole can be {what}.",
        )
    return found
