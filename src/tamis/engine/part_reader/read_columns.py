"""The split into leader and follower columns, their file columns, and the conversion to the reader's schema.

A column that the filter names is a leader with everything selected from it, so that it is read once. If a
file can read the fields of a struct separately, fields that only the output needs are followers, and are
merged into the struct afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tamis.core.expr import Column, Expr
from tamis.core.types import STRING, Array, Field, Map, Schema, Struct
from tamis.core.types.arrow import to_arrow_field
from tamis.core.types.dictionary_arrays import plain_array
from tamis.errors import CorruptData
from tamis.storage.files.column_conversion import FieldIndex, Names, convert_array, missing_column
from tamis.storage.files.padded_values import padded_array

Arrays = Mapping[int, pa.Array]
"""A piece's columns by top-level column id."""


Apart = Callable[[list[int], list[int]], bool]


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns to read from one part, as fields of the reader's schema."""

    part: Schema
    output: Schema
    leaders: tuple[Field, ...]
    followers: tuple[Field, ...]
    """May include structs that are also leaders, with the remaining fields."""
    whole: tuple[Field, ...]
    """All columns, without duplicates."""

    def file_column_ids(self, wanted: Sequence[Field]) -> list[int]:
        """Return the file column ids needed to produce these fields."""
        return [i for f in wanted for i in _file_column_ids(f, self.part)]

    def convert_columns(self, wanted: Sequence[Field], batch: pa.RecordBatch) -> dict[int, pa.Array]:
        """Convert a piece's columns to the reader's types; missing ones get NULL or the initial default.

        CHAR values are padded to the reader's length: another writer may not have padded them. STRING columns keep
        the dictionary that a file gave them. Raises ``CorruptData`` naming a column with a value that does not fit.
        """
        names = Names(self.part)
        found = dict(zip(batch.schema.names, batch.columns, strict=True))
        return {
            f.id: _convert_column(found[str(f.id)], f, names) if str(f.id) in found else missing_column(f, len(batch))
            for f in wanted
        }

    def merge_followers(self, leaders: Arrays, followers: Arrays) -> dict[int, pa.Array]:
        """Merge both, zipping a struct whose fields are split between them."""
        both = {
            f.id: _zip_structs(f, leaders[f.id], followers[f.id])
            for f in self.whole
            if f.id in leaders and f.id in followers
        }
        return {**leaders, **followers, **both}

    def build_output(self, arrays: Arrays, schema: pa.Schema, length: int, *, dictionaries: bool) -> pa.RecordBatch:
        """Build the output batch, with leaders pruned to the selected fields.

        With ``dictionaries``, its columns keep theirs, and its schema says so.
        """
        if not self.output.fields:
            return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), length, [None]))
        held = {f.id: f for f in self.whole}
        names = Names(self.output)
        columns = [arrays[f.id] if held[f.id] == f else convert_array(arrays[f.id], f, names) for f in self.output]
        if dictionaries:
            fields = [f.with_type(column.type) for f, column in zip(schema, columns, strict=True)]
            return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, schema.metadata))
        return pa.RecordBatch.from_arrays([plain_array(column) for column in columns], schema=schema)


def split_columns(
    part: Schema, output: Schema, known: Mapping[int, Schema], conjuncts: Sequence[Expr], apart: Apart
) -> Columns:
    """Split the columns into leaders and followers.

    ``known`` are the table's schemas: they define filter columns that the output does not select. ``apart``
    tests whether the file reads two lists of column ids separately at the cost of reading them together.
    """
    paths: dict[int, list[Column]] = {}
    for conjunct in conjuncts:
        for node in conjunct.walk():
            if isinstance(node, Column):
                paths.setdefault(node.ids[0], []).append(node)
    selected = {f.id: f for f in output}
    needed = tuple(_leader(selected.get(top), _full_column(nodes[0], known), nodes) for top, nodes in paths.items())
    others = tuple(f for f in output if f.id not in paths)
    leaders: list[Field] = []
    beside: list[Field] = []
    for f in needed:
        first = _prune(f, {node.ids for node in paths[f.id]})
        rest = _remaining_fields(f, first)
        if rest is not None and apart(_file_column_ids(first, part), _file_column_ids(rest, part)):
            leaders.append(first)
            beside.append(rest)
        else:
            leaders.append(f)
    return Columns(part, output, tuple(leaders), (*beside, *others), (*needed, *others))


def _convert_column(array: pa.Array, field: Field, names: Names) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        if field.type == STRING:
            return array
        array = plain_array(array)
    try:
        return padded_array(convert_array(array, field, names), field.type)
    except pa.ArrowInvalid as error:
        raise CorruptData(
            f"Column {field.name!r} has a value that does not fit its type, {field.type}: {error}.",
            name=field.name,
            remedy="Read a version from before it had this type, or delete such rows by a filter on other columns.",
        ) from error


def _leader(selected: Field | None, full: Field, nodes: list[Column]) -> Field:
    """Return as much of a column as filter and output need."""
    needed = [node.ids for node in nodes if selected is None or not _contains_path(selected, node.ids)]
    if not full.type.children:
        return selected or replace(full, type=nodes[0].type)
    chosen = _prune(full, set(needed)) if needed else None
    if selected is None or chosen is None:
        return selected or chosen or full
    return _union_fields(selected, chosen)


def _full_column(node: Column, known: Mapping[int, Schema]) -> Field:
    """Return the top-level column from the newest schema that has it, else derived from the filter."""
    for schema_id in sorted(known, reverse=True):
        if known[schema_id].paths.get(node.ids[-1]) == node.ids:
            return known[schema_id].by_id[node.ids[0]]
    field = Field(node.name, node.type, node.nullable, node.ids[-1])
    for column_id in reversed(node.ids[:-1]):
        field = Field(node.name, Struct((field,)), True, column_id)
    return field


def _contains_path(field: Field, ids: tuple[int, ...]) -> bool:
    """Whether ``field`` contains the column at the end of this id path, whole."""
    if field.id != ids[0]:
        return False
    return len(ids) == 1 or any(_contains_path(child, ids[1:]) for child in field.type.children)


def _prune(field: Field, paths: set[tuple[int, ...]]) -> Field:
    """Reduce ``field`` to the struct fields on these paths."""
    below = {p[1:] for p in paths if p[0] == field.id}
    if () in below or not isinstance(field.type, Struct):
        return field
    kept = tuple(_prune(f, below) for f in field.type.fields if any(p[0] == f.id for p in below))
    return replace(field, type=Struct(kept))


def _union_fields(first: Field, second: Field) -> Field:
    """Return a field with the struct fields of both."""
    if not (isinstance(first.type, Struct) and isinstance(second.type, Struct)):
        return first
    others = {f.id: f for f in second.type.fields}
    merged = [_union_fields(f, others.pop(f.id)) if f.id in others else f for f in first.type.fields]
    return replace(first, type=Struct((*merged, *others.values())))


def _remaining_fields(field: Field, taken: Field) -> Field | None:
    """Return ``field`` without the leaves of ``taken``; None if nothing is left or it cannot be split."""
    if not (isinstance(field.type, Struct) and isinstance(taken.type, Struct)):
        return None
    others = {f.id: f for f in taken.type.fields}
    left = [f if f.id not in others else _remaining_fields(f, others[f.id]) for f in field.type.fields]
    kept = tuple(f for f in left if f is not None)
    return replace(field, type=Struct(kept)) if kept else None


def _zip_structs(field: Field, first: pa.Array, second: pa.Array) -> pa.Array:
    """Zip two row-aligned arrays of the struct ``field`` that have different fields each."""
    assert isinstance(field.type, Struct)
    children = []
    sides = [(array, FieldIndex(array.type)) for array in (first, second)]
    for f in field.type.fields:
        # A child is raw: it ignores its parent's NULLs, but is sliced like it.
        there = [array.field(at) for array, index in sides if (at := index.at_id(f.id)) is not None]
        children.append(there[0] if len(there) == 1 else _zip_structs(f, *there))
    mask = first.is_null() if first.null_count else None
    return pa.StructArray.from_arrays(children, fields=[to_arrow_field(f) for f in field.type.fields], mask=mask)


def _file_column_ids(field: Field, part: Schema) -> list[int]:
    if field.id not in part.by_id:
        return []
    if isinstance(field.type, Struct | Array):
        below = [i for child in field.type.children for i in _file_column_ids(child, part)]
        return below or [_some_leaf(part.by_id[field.id])]
    return [field.id]


def _some_leaf(field: Field) -> int:
    """Return a leaf below ``field`` that shows where ``field`` is NULL, if nothing else of it is needed."""
    children = field.type.children
    return field.id if not children or isinstance(field.type, Map) else _some_leaf(children[0])
