"""Which columns are leaders and which are followers, what to ask the file for, and how its arrays become the reader's.

A column that the filter names is a leader with everything that is asked of it, so that it is read once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tamis.expr import Column, Expr
from tamis.files.convert import Names, convert, missing
from tamis.types import Array, Field, Map, Schema, Struct

Arrays = Mapping[int, pa.Array]
"""Columns of a piece by top-level column id."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The reader's columns of one part, as fields of the reader's schema."""

    part: Schema
    output: Schema
    leaders: tuple[Field, ...]
    followers: tuple[Field, ...]

    def ask(self, wanted: Sequence[Field]) -> list[int]:
        """The ids to ask the file for, so that these fields can be made."""
        return [i for f in wanted for i in _ask(f, self.part)]

    def typed(self, wanted: Sequence[Field], batch: pa.RecordBatch) -> dict[int, pa.Array]:
        """The columns of a piece of the file as the reader's; what the part does not have is NULL or its initial default."""
        names = Names(self.part)
        found = dict(zip(batch.schema.names, batch.columns, strict=True))
        return {f.id: convert(found[str(f.id)], f, names) if str(f.id) in found else missing(f, len(batch)) for f in wanted}

    def shaped(self, arrays: Arrays, schema: pa.Schema, length: int) -> pa.RecordBatch:
        """The output's batch, leaders cut down to what was selected of them."""
        if not self.output.fields:
            return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), length, [None]))
        leading = {f.id: f for f in self.leaders}
        names = Names(self.output)
        columns = [arrays[f.id] if leading.get(f.id, f) == f else convert(arrays[f.id], f, names) for f in self.output]
        return pa.RecordBatch.from_arrays(columns, schema=schema)


def split(part: Schema, output: Schema, known: Mapping[int, Schema], conjuncts: Sequence[Expr]) -> Columns:
    """Leaders and followers. ``known`` are the table's schemas: they say what a filter's column is where the output does not select it."""
    paths: dict[int, list[Column]] = {}
    for conjunct in conjuncts:
        for node in conjunct.walk():
            if isinstance(node, Column):
                paths.setdefault(node.ids[0], []).append(node)
    selected = {f.id: f for f in output}
    leaders = tuple(_leader(selected.get(top), _full(nodes[0], known), nodes) for top, nodes in paths.items())
    return Columns(part, output, leaders, tuple(f for f in output if f.id not in paths))


def _leader(selected: Field | None, full: Field, nodes: list[Column]) -> Field:
    """Enough of a column for the filter and for the output."""
    needed = [node.ids for node in nodes if selected is None or not _has(selected, node.ids)]
    if not full.type.children:
        return selected or replace(full, type=nodes[0].type)
    chosen = _prune(full, set(needed)) if needed else None
    if selected is None or chosen is None:
        return selected or chosen or full
    return _both(selected, chosen)


def _full(node: Column, known: Mapping[int, Schema]) -> Field:
    """The whole top-level column as the newest schema has it; made from the filter where no schema knows it."""
    for schema_id in sorted(known, reverse=True):
        if known[schema_id].paths.get(node.ids[-1]) == node.ids:
            return known[schema_id].by_id[node.ids[0]]
    field = Field(node.name, node.type, node.nullable, node.ids[-1])
    for column_id in reversed(node.ids[:-1]):
        field = Field(node.name, Struct((field,)), True, column_id)
    return field


def _has(field: Field, ids: tuple[int, ...]) -> bool:
    """Whether ``field`` holds the column at the end of this path, whole."""
    if field.id != ids[0]:
        return False
    return len(ids) == 1 or any(_has(child, ids[1:]) for child in field.type.children)


def _prune(field: Field, paths: set[tuple[int, ...]]) -> Field:
    """``field`` with only the struct fields on these paths."""
    below = {p[1:] for p in paths if p[0] == field.id}
    if () in below or not isinstance(field.type, Struct):
        return field
    kept = tuple(_prune(f, below) for f in field.type.fields if any(p[0] == f.id for p in below))
    return replace(field, type=Struct(kept))


def _both(first: Field, second: Field) -> Field:
    """A field with the struct fields of both."""
    if not (isinstance(first.type, Struct) and isinstance(second.type, Struct)):
        return first
    others = {f.id: f for f in second.type.fields}
    merged = [_both(f, others.pop(f.id)) if f.id in others else f for f in first.type.fields]
    return replace(first, type=Struct((*merged, *others.values())))


def _ask(field: Field, part: Schema) -> list[int]:
    if field.id not in part.by_id:
        return []
    if isinstance(field.type, Struct | Array):
        below = [i for child in field.type.children for i in _ask(child, part)]
        return below or [_some_leaf(part.by_id[field.id])]
    return [field.id]


def _some_leaf(field: Field) -> int:
    """A column below ``field`` that says where ``field`` is NULL, when nothing else of it is wanted."""
    children = field.type.children
    return field.id if not children or isinstance(field.type, Map) else _some_leaf(children[0])
