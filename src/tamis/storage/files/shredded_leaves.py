"""Leaves: the values at chosen paths of a document column, kept beside it, so that a filter about them need not read whole documents.

Law: a leaf holds what its path gives, of any kind: of a VARIANT the very value, as a VARIANT of its own (NULL where the path leads nowhere), of text what ``get_json_object``
gives. So every function of the path gives the same over the leaf, values and errors. A part says itself which leaves it has; a note that cannot be understood says
that there are none. Leaves have ids that no schema has: who does not know of them passes them over.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tamis.core.expr.json_codec.json_path import steps_of
from tamis.core.types import STRING, VARIANT, Field, Schema, String

LEAVES = "tamis.leaves"
"""The note in which a part says which it has."""
FIRST = 2**30
"""Id of a part's first leaf; the others count up. Columns of tables never have so large ones, and paths of indexes larger ones."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One path of one document column, as ``text_of`` writes it, and the field that holds its values."""

    column: int
    path: str
    field: Field


def leaves_for(schema: Schema, places: Sequence[tuple[int, str]]) -> tuple[Leaf, ...]:
    """Leaves for these paths (column id, path) of top-level columns that hold documents; other places are passed over: they may fit a later schema."""
    taken = {f.name for f in schema}
    found: list[Leaf] = []
    for column, path in dict.fromkeys(places):
        document = next((f for f in schema if f.id == column), None)
        if document is None or not steps_of(path) or not (document.type == VARIANT or is_plain_text(document)):
            continue
        at = FIRST + len(found)
        name = f"_tamis_leaf_{at - FIRST}"
        while name in taken:
            name += "_"
        found.append(Leaf(column, path, Field(name, VARIANT if document.type == VARIANT else STRING, True, at)))
    return tuple(found)


def is_plain_text(field: Field) -> bool:
    """Whether a column holds text that ``get_json_object`` takes as it is."""
    return isinstance(field.type, String) and field.type == STRING


def extended(schema: Schema, leaves: tuple[Leaf, ...]) -> Schema:
    """``schema`` with the leaves behind its columns; for the same leaves the very same object, by which readers know it again."""
    return _extended(schema, leaves) if leaves else schema


@lru_cache(maxsize=256)
def _extended(schema: Schema, leaves: tuple[Leaf, ...]) -> Schema:
    return Schema((*schema.fields, *(leaf.field for leaf in leaves)), schema.schema_id)


def note_of(leaves: Sequence[Leaf]) -> str:
    """The leaves as ``leaves_in`` reads them."""
    return json.dumps([[leaf.column, leaf.path, leaf.field.id, leaf.field.name, leaf.field.type.to_json()] for leaf in leaves])


@lru_cache(maxsize=1024)
def leaves_in(note: str) -> tuple[Leaf, ...]:
    """The leaves of a part with this note; none where it says something else."""
    kinds = {"variant": VARIANT, "string": STRING}
    try:
        said = [
            Leaf(int(column), str(path), Field(str(name), kinds[kind], True, int(at))) for column, path, at, name, kind in json.loads(note)
        ]
    except (ValueError, TypeError, KeyError):
        return ()
    return tuple(leaf for leaf in said if leaf.field.id >= FIRST and steps_of(leaf.path))
