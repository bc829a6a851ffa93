"""The deleted fields that a table remembers, so that the history of schemas need not be replayed.

Invariant: the latest schema and the deleted fields together are the migration type: a field in neither never
existed. The contents of a deleted field are forgotten with it, because their ids cannot come back without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tamis.core.schema.migration_types import Record, from_fields
from tamis.core.types import Schema

TOP = 0
"""The parent of a top-level column; ids count from 1."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A deleted field: its id, its last name, the id of its parent, and the first schema without it."""

    id: int
    name: str
    parent: int
    schema_id: int

    def to_json(self) -> list[int | str]:
        return [self.id, self.name, self.parent, self.schema_id]

    @staticmethod
    def from_json(value: Sequence[int | str]) -> Dropped:
        column_id, name, parent, schema_id = value
        return Dropped(int(column_id), str(name), int(parent), int(schema_id))


def dropped_between(before: Schema, after: Schema) -> tuple[Dropped, ...]:
    """Return the fields of ``before`` that are missing in ``after`` although their parent is still there."""
    now = after.by_id
    return tuple(
        Dropped(ids[-1], f.name, ids[-2] if len(ids) > 1 else TOP, after.schema_id)
        for ids, f in before.walk()
        if ids[-1] not in now and (len(ids) == 1 or ids[-2] in now)
    )


def dropped_in(schemas: Sequence[Schema]) -> tuple[Dropped, ...]:
    """Return the deleted fields of a whole history, for heads that do not store them."""
    found = (gone for before, after in pairwise(schemas) for gone in dropped_between(before, after))
    last = schemas[-1].by_id if schemas else {}
    return tuple(gone for gone in found if gone.parent == TOP or gone.parent in last)


def migration_type_of(schema: Schema, dropped: Iterable[Dropped], *, presented: bool = False) -> Record:
    """Return the migration type of a table.

    With ``presented``, fields are in presentation order, not in the order of their ids.
    """
    return from_fields(schema.fields, by_parent(dropped), presented=presented)


def by_parent(dropped: Iterable[Dropped]) -> Mapping[int, dict[int, str]]:
    """Return ids and last names of deleted fields, by the id of their parent."""
    found: dict[int, dict[int, str]] = {}
    for gone in dropped:
        found.setdefault(gone.parent, {})[gone.id] = gone.name
    return found
