"""The columns and fields that an append adds to a table's schema or widens in it, if it is asked to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tamis.core.schema.schema_edits import Path
from tamis.core.schema.widening import type_widens
from tamis.core.types import NULL, Array, DataType, Field, Map, Schema, Struct
from tamis.core.types.logical import with_children


def added_fields(current: Schema, data: Schema) -> Iterator[tuple[Path, Field]]:
    """Yield the fields of ``data`` that ``current`` lacks, at every depth, with the paths to add them at.

    All of them are nullable. Names match case-insensitively.
    """
    yield from _fields(current.fields, data.fields, ())


def widened_fields(current: Schema, data: Schema) -> Iterator[tuple[Path, DataType]]:
    """Yield the fields of ``current`` whose type widens to that of ``data``, at every depth, with the new types.

    Map keys never change. A type that does not widen is left to the append, which converts or refuses it.
    """
    yield from _wider_fields(current.fields, data.fields, ())


def _wider_fields(current: tuple[Field, ...], data: tuple[Field, ...], path: Path) -> Iterator[tuple[Path, DataType]]:
    known = {f.name.lower(): f for f in current}
    for f in data:
        old = known.get(f.name.lower())
        if old is not None:
            yield from _wider(old.type, f.type, (*path, old.name))


def _wider(current: DataType, data: DataType, path: Path) -> Iterator[tuple[Path, DataType]]:
    match current, data:
        case Struct(old), Struct(new):
            yield from _wider_fields(old, new, path)
        case Array(old), Array(new):
            yield from _wider(old.type, new.type, (*path, "element"))
        case Map(_, old), Map(_, new):
            yield from _wider(old.type, new.type, (*path, "value"))
        case _ if not current.children and current != data and type_widens(current, data):
            yield path, data


def _fields(current: tuple[Field, ...], data: tuple[Field, ...], path: Path) -> Iterator[tuple[Path, Field]]:
    known = {f.name.lower(): f for f in current}
    for f in data:
        old = known.get(f.name.lower())
        if old is not None:
            yield from _inside(old.type, f.type, (*path, old.name))
        elif f.type != NULL:
            yield (*path, f.name), _nullable(f)


def _inside(current: DataType, data: DataType, path: Path) -> Iterator[tuple[Path, Field]]:
    match current, data:
        case Struct(old), Struct(new):
            yield from _fields(old, new, path)
        case Array(old), Array(new):
            yield from _inside(old.type, new.type, (*path, "element"))
        case Map(_, old), Map(_, new):
            yield from _inside(old.type, new.type, (*path, "value"))


def columns_of_data(schema: Schema) -> Schema:
    """Return a schema that was inferred from data without NOT NULL and defaults, which say nothing of the next data.

    A DataFrame's columns have the defaults of the tables that it reads.
    """
    return replace(schema, fields=tuple(_nullable(f) for f in schema.fields))


def _nullable(f: Field) -> Field:
    """Make everything in the field nullable except map keys, because the next batch may lack it, without defaults."""
    inner = tuple(
        replace(_nullable(c), nullable=not (isinstance(f.type, Map) and c.name == "key")) for c in f.type.children
    )
    plain = replace(f, nullable=True, write_default=None)
    return replace(plain, type=with_children(f.type, inner)) if inner else plain
