"""Shredded leaves: values at chosen paths of a document column, stored as separate columns.

With them, a filter on such a path need not read whole documents.

Invariant: a leaf holds the value at its path, of any kind. For a VARIANT column it is that value as a VARIANT
(NULL if the path does not exist); for text it is the result of ``get_json_object``. Every function of the
path therefore returns the same values and errors over the leaf. A part declares its leaves in a note; a note
that cannot be parsed means that it has none. Leaves have ids that no schema uses, so readers unaware of them
skip them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tamis.core.expr.json_codec.json_path import steps_of
from tamis.core.types import STRING, VARIANT, Field, Schema, String

LEAVES = "tamis.leaves"
"""Key of the note that declares a part's leaves."""
_KINDS = {"variant": VARIANT, "get_json_object": STRING}
"""Types of leaves, by their names in the note.

Those of JSON text had the name ``string`` when documents with an escaped single quote were NULL: they are ignored.
"""
FIRST = 2**30
"""Id of a part's first leaf; further leaves count up.

Column ids of tables never get this large, and path ids of indexes are larger.
"""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One path of a document column, as ``text_of`` writes it, and the field that holds its values."""

    column: int
    path: str
    field: Field


def leaves_for(schema: Schema, places: Sequence[tuple[int, str]]) -> tuple[Leaf, ...]:
    """Return the leaves for (column id, path) pairs of top-level document columns.

    Other pairs are ignored: they may fit a later schema.
    """
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
    """Whether a column holds text that ``get_json_object`` accepts unconverted."""
    return isinstance(field.type, String) and field.type == STRING


def with_leaves(schema: Schema, leaves: tuple[Leaf, ...]) -> Schema:
    """Append the fields of ``leaves`` to ``schema``.

    Equal leaves return the identical object, which readers use as a cache key.
    """
    return _extended(schema, leaves) if leaves else schema


@lru_cache(maxsize=256)
def _extended(schema: Schema, leaves: tuple[Leaf, ...]) -> Schema:
    return Schema((*schema.fields, *(leaf.field for leaf in leaves)), schema.schema_id)


def encode_leaves(leaves: Sequence[Leaf]) -> str:
    """Encode the leaves in the form that ``decode_leaves`` reads."""
    names = {kind: name for name, kind in _KINDS.items()}
    return json.dumps(
        [[leaf.column, leaf.path, leaf.field.id, leaf.field.name, names[leaf.field.type]] for leaf in leaves]
    )


@lru_cache(maxsize=1024)
def decode_leaves(note: str) -> tuple[Leaf, ...]:
    """Decode the leaves from a part's note; none if the note is not valid."""
    try:
        said = [
            Leaf(int(column), str(path), Field(str(name), _KINDS[kind], True, int(at)))
            for column, path, at, name, kind in json.loads(note)
            if kind != "string"
        ]
    except (ValueError, TypeError, KeyError):
        return ()
    return tuple(leaf for leaf in said if leaf.field.id >= FIRST and steps_of(leaf.path))
