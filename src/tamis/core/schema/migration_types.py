"""Migration types: the shape of a schema, with deleted fields remembered at every depth.

A shape is built from Arrow types with fields keyed by name (for the checks over histories), or from logical
types keyed by column id (for a table's own schemas). The rules (``tamis.core.schema.migration_rules``) only
use shapes.
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
    """Base of the four kinds of shapes."""


@dataclass(frozen=True, slots=True)
class Leaf(Shape):
    """A type without inner fields.

    Two leaves are the same type iff ``type`` is equal; ``text`` is its name in messages.
    """

    type: Hashable
    text: str


@dataclass(frozen=True, slots=True)
class Place:
    """A field inside a shape: ``key`` is its identity, ``name`` its current name."""

    key: Hashable
    name: str
    shape: Shape
    nullable: bool


@dataclass(frozen=True, slots=True)
class Record(Shape):
    """A struct: its live fields in order, and the keys of deleted fields with their last names."""

    fields: tuple[Place, ...]
    deleted: dict[Hashable, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sequence(Shape):
    """A list; ``kind`` distinguishes list, large list and fixed-size list."""

    kind: Hashable
    item: Place


@dataclass(frozen=True, slots=True)
class Mapping(Shape):
    """A map. Keys cannot change."""

    key: Place
    value: Place


Memory = AbstractMapping[int, AbstractMapping[int, str]]
_NOTHING: Memory = {}


def from_arrow(schema: pa.Schema) -> Record:
    """Return the shape of an Arrow schema, with fields keyed by name."""
    return Record(tuple(_arrow_place(f) for f in schema))


def from_fields(
    fields: tuple[Field, ...], dropped: Memory = _NOTHING, *, presented: bool = False, parent: int = 0
) -> Record:
    """Return the shape of logical fields, keyed by column id.

    ``dropped`` are deleted fields (ids and last names) by the parent's id, 0 at the top. Fields are in the
    order of their ids, because FIRST and AFTER are presentation only; with ``presented``, they are in the
    given order.
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
