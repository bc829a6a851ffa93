"""Migration types: what a schema's shape is, with the deleted fields remembered at every depth (seed 001, "Tracking deleted fields").

A shape is built from Arrow types with fields keyed by name (the pure checks), or from logical types keyed by column id
(a table's own schemas). The rules (``tamis.core.schema.migration_rules``) see shapes only.
"""

from __future__ import annotations

from collections.abc import Hashable
from collections.abc import Mapping as AbstractMapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from tamis.core.types import Array, DataType, Field, Map, Struct

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Shape:
    """Base of the four kinds."""


@dataclass(frozen=True, slots=True)
class Leaf(Shape):
    """A type without inner fields; two leaves are the same type iff ``type`` is equal. ``text`` is for people."""

    type: Hashable
    text: str


@dataclass(frozen=True, slots=True)
class Place:
    """A place for values inside a shape: ``key`` is what the field is, ``name`` what it is called."""

    key: Hashable
    name: str
    shape: Shape
    nullable: bool


@dataclass(frozen=True, slots=True)
class Record(Shape):
    """A struct: live fields in order, and the keys of fields that once were and are no more, with their last names."""

    fields: tuple[Place, ...]
    deleted: dict[Hashable, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sequence(Shape):
    """A list; ``kind`` tells list kinds apart (list, large list, fixed size)."""

    kind: Hashable
    item: Place


@dataclass(frozen=True, slots=True)
class Mapping(Shape):
    """A map. Keys may not change."""

    key: Place
    value: Place


Memory = AbstractMapping[int, AbstractMapping[int, str]]
_NOTHING: Memory = {}


def from_arrow(schema: pa.Schema) -> Record:
    """The shape of an Arrow schema, fields keyed by name."""
    return Record(tuple(_arrow_place(f) for f in schema))


def from_fields(fields: tuple[Field, ...], dropped: Memory = _NOTHING, *, presented: bool = False, parent: int = 0) -> Record:
    """The shape of logical fields, keyed by column id, with what was ever ``dropped`` in each (ids and last names by the parent's id, 0 at the top).

    In the order of the ids: FIRST and AFTER are presentation only. ``presented``: in the order given.
    """
    ordered = fields if presented else sorted(fields, key=_by_id)
    return Record(tuple(_place(f, dropped, presented) for f in ordered), dict(dropped.get(parent, {}).items()))


def _arrow_place(f: pa.Field, name: str | None = None) -> Place:
    name = f.name if name is None else name
    return Place(name, name, _arrow_shape(f.type), f.nullable)


def _arrow_shape(data_type: pa.DataType) -> Shape:
    import pyarrow.types as p

    if not data_type.num_fields and not p.is_struct(data_type):
        return Leaf(data_type, str(data_type))
    if p.is_struct(data_type):
        return Record(tuple(_arrow_place(f) for f in data_type))
    if p.is_map(data_type):
        return Mapping(_arrow_place(data_type.key_field, "key"), _arrow_place(data_type.item_field, "value"))
    if p.is_fixed_size_list(data_type):
        return Sequence(("fixed", data_type.list_size), _arrow_place(data_type.value_field, "element"))
    for kind in ("list", "large_list", "list_view", "large_list_view"):
        if getattr(p, f"is_{kind}")(data_type):
            return Sequence(kind, _arrow_place(data_type.value_field, "element"))
    return Leaf(data_type, str(data_type))


def _by_id(f: Field) -> int:
    return f.id


def _place(f: Field, dropped: Memory, presented: bool) -> Place:
    return Place(f.id, f.name, _shape(f, dropped, presented), f.nullable)


def _shape(f: Field, dropped: Memory, presented: bool) -> Shape:
    match f.type:
        case Struct(fields):
            return from_fields(fields, dropped, presented=presented, parent=f.id)
        case Array(element):
            return Sequence("list", _place(element, dropped, presented))
        case Map(key, value):
            return Mapping(_place(key, dropped, presented), _place(value, dropped, presented))
        case leaf:
            return _leaf(leaf)


@cache
def _leaf(data_type: DataType) -> Leaf:
    return Leaf(data_type, str(data_type))
