"""Finds the columns of a table in Parquet files that other writers made.

Invariant: a column is found by its field id where the source says so and the file has field ids, else by its name in
the source. Field ids that the source does not vouch for mean nothing: old writers numbered fields by themselves.
Names are those of Spark: where a file has no column of the exact name, the only one that differs in case is the column.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from tamis.core.types import Array, DataType, Field, Map, Schema, Struct
from tamis.core.types.arrow import FIELD_ID
from tamis.storage.commit_log import Source
from tamis.storage.files.column_conversion import FieldIndex, Names
from tamis.storage.files.parquet.column_layout import UNKNOWN, Layout
from tamis.storage.files.parquet.footer import Footer


@dataclass(frozen=True, slots=True)
class ForeignNames(Names):
    """How the fields of one foreign file are found: by ``by_id``, else by name."""

    column_names: Mapping[int, str] = field(default_factory=dict)
    by_id: bool = False
    exact: bool = False
    """Whether a name that differs in case is another one, as in Iceberg's name mappings."""

    def position(self, fields: FieldIndex, column_id: int) -> int | None:
        if self.by_id:
            return fields.at_id(column_id)
        name = self.column_names.get(column_id)
        if name is None:
            known = self.schema.by_id.get(column_id)
            name = None if known is None else known.name
        if name is None:
            return None
        found = fields.by_name.get(name)
        if found is not None or self.exact:
            return found
        near = fields.by_lower_name.get(name.lower(), [])
        return near[0] if len(near) == 1 else None


def foreign_names(source: Source, schema: Schema, found: pa.Schema) -> ForeignNames:
    """Return how the columns of ``schema``, under which the part was adopted, are found in the file's schema."""
    by_id = source.by_field_id and any(has_ids(f) for f in found)
    return ForeignNames(schema, source.column_names, by_id, exact=source.kind == "iceberg")


def has_ids(f: pa.Field) -> bool:
    """Return whether the field, or one below it, has a field id."""
    kind = f.type
    return FIELD_ID in (f.metadata or {}) or (
        pa.types.is_nested(kind) and any(has_ids(kind.field(at)) for at in range(kind.num_fields))
    )


class ForeignLayout(Layout):
    """Leaves of a foreign file in its order, each with the path of ids that leads to it.

    Fields that the schema lacks have the id ``UNKNOWN``.
    """

    def __init__(self, file_schema: pa.Schema, schema: Schema, names: ForeignNames) -> None:
        self._schema = schema
        matched = _matched(list(file_schema), schema.fields, names)
        self.fields: list[pa.Field] = []
        """The file's leaf fields."""
        self.own: list[int] = []
        """The ids of the leaves themselves."""
        self.nearest: list[int] = []
        """The ids of the innermost fields of the schema that are leaves, or hold them; ``UNKNOWN`` without one."""
        self.leaves, self.top = [], []
        for f, known in zip(file_schema, matched, strict=True):
            self.top.append(UNKNOWN if known is None else known.id)
            for path, own, nearest, leaf in _paths(f, known, (), names):
                self.leaves.append(path)
                self.own.append(own)
                self.nearest.append(nearest)
                self.fields.append(leaf)
        self.held = frozenset(i for path in self.leaves for i in path)

    def select(self, ids: Collection[int]) -> list[int]:
        """Return the leaves at or below these ids.

        A field that the file lacks, in a struct that it has, is represented by a leaf of the struct, which shows
        where the struct is NULL and where only its fields are. If that leaf lies in a map, all leaves of the map are
        chosen.
        """
        wanted = frozenset(ids)
        chosen = {at for at, path in enumerate(self.leaves) if not wanted.isdisjoint(path)}
        for i in wanted - self.held:
            above = next((a for a in reversed(self._schema.paths.get(i, ())[:-1]) if a in self.held), None)
            if above is not None and not any(above in self.leaves[at] for at in chosen):
                shown = min((path for path in self.leaves if above in path), key=len)  # maps have the long ones
                chosen.update(at for at, path in enumerate(self.leaves) if path == shown)
        return sorted(chosen)


def int96_columns(footer: Footer, layout: ForeignLayout) -> frozenset[int]:
    """Return the ids of the leaves that the file stores as INT96."""
    physical = (footer.schema.column(at).physical_type for at in range(len(layout.own)))
    return frozenset(own for own, stored in zip(layout.own, physical, strict=True) if stored == "INT96")


def _matched(found: list[pa.Field], known: tuple[Field, ...], names: ForeignNames) -> list[Field | None]:
    """Return the schema's field for each field of the file, or None."""
    matched: list[Field | None] = [None] * len(found)
    for one, at in zip(known, names.positions(found, known), strict=True):
        if at is not None:
            matched[at] = one
    return matched


def unknown_names(found: list[pa.Field], known: tuple[Field, ...], names: ForeignNames) -> Iterator[tuple[str, ...]]:
    """Yield the paths of names of a file's fields that ``known`` lacks, without the fields below them.

    Elements, keys and values of arrays and maps have the names that they have in a schema.
    """
    for f, match in zip(found, _matched(found, known, names), strict=True):
        yield from ((f.name, *rest) for rest in ([()] if match is None else _names_below(f.type, match.type, names)))


def _names_below(kind: pa.DataType, data_type: DataType, names: ForeignNames) -> Iterator[tuple[str, ...]]:
    if pa.types.is_struct(kind) and isinstance(data_type, Struct):
        yield from unknown_names(list(kind), data_type.fields, names)
    elif pa.types.is_map(kind) and isinstance(data_type, Map):
        for f, inner in ((kind.key_field, data_type.key), (kind.item_field, data_type.value)):
            yield from ((inner.name, *rest) for rest in _names_below(f.type, inner.type, names))
    elif is_listed(kind) and isinstance(data_type, Array):
        element = data_type.element
        yield from ((element.name, *rest) for rest in _names_below(kind.value_field.type, element.type, names))


Leaf = tuple[tuple[int, ...], int, int, pa.Field]


def _paths(f: pa.Field, known: Field | None, above: tuple[int, ...], names: ForeignNames) -> Iterator[Leaf]:
    """Yield the path of ids, the own id, the nearest id of the schema and the field of each leaf at or below ``f``.

    The leaves of a map share one path, of all ids in it: maps are read whole.
    """
    path = (*above, UNKNOWN if known is None else known.id)
    kind = f.type
    data_type = None if known is None else known.type
    if pa.types.is_struct(kind):
        below = data_type.fields if isinstance(data_type, Struct) else ()
        for child, match in zip(kind, _matched(list(kind), below, names), strict=True):
            yield from _paths(child, match, path, names)
    elif pa.types.is_map(kind):
        key, value = (data_type.key, data_type.value) if isinstance(data_type, Map) else (None, None)
        inner = [*_paths(kind.key_field, key, path, names), *_paths(kind.item_field, value, path, names)]
        everything = tuple(dict.fromkeys(i for p, *_ in inner for i in p))
        yield from ((everything, *rest) for _, *rest in inner)
    elif is_listed(kind):
        element = data_type.element if isinstance(data_type, Array) else None
        yield from _paths(kind.value_field, element, path, names)
    else:
        yield path, path[-1], next((i for i in reversed(path) if i != UNKNOWN), UNKNOWN), f


def field_names(fields: Iterable[pa.Field]) -> Iterator[str]:
    """Yield the names of fields at any depth."""
    for f in fields:
        yield f.name
        if pa.types.is_nested(f.type):
            yield from field_names(f.type.field(at) for at in range(f.type.num_fields))


def file_kind(schema: pa.Schema) -> bytes:
    """Return a key of a file's columns and their field ids, which the equality of Arrow's schemas ignores."""
    return bytes(schema.remove_metadata().serialize().to_pybytes())


def is_listed(kind: pa.DataType) -> bool:
    """Return whether Arrow holds Parquet lists in this type."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
