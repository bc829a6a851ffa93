"""Maps the leaf columns of a Parquet file to column ids."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from tamis.core.types import Array, Field, Schema, Struct
from tamis.core.types.arrow import FIELD_ID
from tamis.storage.files.column_conversion import Names


class Layout:
    """Leaves in the file's order, each with the path of ids that leads to it.

    Ids are the file's field ids, or are found by the names in ``schema`` if the file has none.
    """

    def __init__(self, file_schema: pa.Schema, schema: Schema) -> None:
        known = _identified(file_schema, schema.fields)
        self.leaves: list[tuple[int, ...]] = [
            path for f, one in zip(file_schema, known, strict=True) for path in _leaves(f, (), one)
        ]
        self.top: list[int] = [column_id for column_id, _ in known]

    def select(self, ids: Collection[int]) -> list[int]:
        """Return the leaves at or below these ids; maps are always read whole."""
        wanted = frozenset(ids)
        return [at for at, path in enumerate(self.leaves) if not wanted.isdisjoint(path)]

    def top_column_ids(self, leaves: Collection[int]) -> list[int]:
        """Return the ids of the top-level columns that contain these leaves, in the file's order."""
        return list(dict.fromkeys(self.leaves[at][0] for at in sorted(leaves)))

    def batches(self, leaves: Sequence[int], most: int) -> Iterator[list[int]]:
        """Cut leaves (ascending) into lists of about ``most``, between top-level columns."""
        batch: list[int] = []
        for at in leaves:
            if batch and len(batch) >= most and self.leaves[at][0] != self.leaves[batch[-1]][0]:
                yield batch
                batch = []
            batch.append(at)
        if batch:
            yield batch

    def prune(self, target: Field, array_type: pa.DataType, names: Names) -> Field:
        """Return ``target`` with only the struct fields that ``array_type`` has.

        Fields that were not read must not be filled in as missing.
        """
        match target.type:
            case Struct(fields):
                source = list(array_type)
                places = zip(fields, names.positions(source, fields), strict=True)
                kept = tuple(self.prune(f, source[at].type, names) for f, at in places if at is not None)
                return replace(target, type=Struct(kept))
            case Array(element):
                return replace(target, type=Array(self.prune(element, array_type.value_type, names)))
        return target


def leaf_fields(schema: pa.Schema) -> Iterator[tuple[str, pa.Field, bool]]:
    """Yield each leaf's Parquet path, its field, and whether it is the element of an array or map itself."""
    for f in schema:
        yield from _leaf_fields(f, f.name, False)


def _leaf_fields(f: pa.Field, path: str, element: bool) -> Iterator[tuple[str, pa.Field, bool]]:
    kind = f.type
    if pa.types.is_struct(kind):
        for child in kind:
            yield from _leaf_fields(child, f"{path}.{child.name}", False)
    elif pa.types.is_map(kind):
        yield from _leaf_fields(kind.key_field, f"{path}.key_value.key", True)
        yield from _leaf_fields(kind.item_field, f"{path}.key_value.value", True)
    elif pa.types.is_list(kind):
        yield from _leaf_fields(kind.value_field, f"{path}.list.element", True)
    else:
        yield path, f, element


UNKNOWN = -1


_Identified = tuple[int, tuple[Field, ...]]
"""The id of a field of the file, and the schema fields below it."""


def _identified(fields: Iterable[pa.Field], known: tuple[Field, ...]) -> list[_Identified]:
    """Find sibling fields of the file among the schema's: by id, or by name if they have none."""
    by_id = {k.id: k for k in reversed(known)}
    by_name = {k.name: k for k in reversed(known)}
    found: list[_Identified] = []
    for f in fields:
        text = (f.metadata or {}).get(FIELD_ID)
        match = by_id.get(int(text)) if text else by_name.get(f.name)
        if match is None:
            found.append((int(text) if text else UNKNOWN, ()))
        else:
            found.append((match.id, match.type.children))
    return found


def _leaves(f: pa.Field, above: tuple[int, ...], found: _Identified) -> Iterator[tuple[int, ...]]:
    column_id, below = found
    path = (*above, column_id)
    if pa.types.is_struct(f.type):
        if not below:  # VARIANT: two leaves, one column
            yield from (path for _ in f.type)
            return
        for child, one in zip(f.type, _identified(f.type, below), strict=True):
            yield from _leaves(child, path, one)
    elif pa.types.is_map(f.type):
        pair = f.type.key_field, f.type.item_field
        inner = [
            p for child, one in zip(pair, _identified(pair, below), strict=True) for p in _leaves(child, path, one)
        ]
        everything = tuple(dict.fromkeys(i for p in inner for i in p))
        yield from (everything for _ in inner)
    elif pa.types.is_list(f.type):
        (one,) = _identified([f.type.value_field], below)
        yield from _leaves(f.type.value_field, path, one)
    else:
        yield path
