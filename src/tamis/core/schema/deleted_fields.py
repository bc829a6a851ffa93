"""What a table remembers of fields that it no longer has, so that no history of schemas has to be replayed.

Law: the latest schema and these are the migration type (seed 001, "Tracking deleted fields"): a field that is in neither was never there.
What lay inside a field that has gone is forgotten with it, because its ids cannot come back without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tamis.core.schema.migration_types import Record, from_fields
from tamis.core.types import Schema

TOP = 0
"""The parent of a column; ids count from 1."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A field that once was: its id, its last name, the id of what it was in, and the first schema without it."""

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
    """The fields of ``before`` that are not in ``after`` while what they were in still is."""
    now = after.by_id
    return tuple(
        Dropped(ids[-1], f.name, ids[-2] if len(ids) > 1 else TOP, after.schema_id)
        for ids, f in before.walk()
        if ids[-1] not in now and (len(ids) == 1 or ids[-2] in now)
    )


def dropped_in(schemas: Sequence[Schema]) -> tuple[Dropped, ...]:
    """The same for a whole history: what a head that was written without this memory is given instead."""
    found = (gone for before, after in pairwise(schemas) for gone in dropped_between(before, after))
    last = schemas[-1].by_id if schemas else {}
    return tuple(gone for gone in found if gone.parent == TOP or gone.parent in last)


def migration_type_of(schema: Schema, dropped: Iterable[Dropped], *, presented: bool = False) -> Record:
    """The migration type of a table. ``presented``: fields stand in the order that people see, not in that of their ids."""
    return from_fields(schema.fields, by_parent(dropped), presented=presented)


def by_parent(dropped: Iterable[Dropped]) -> Mapping[int, dict[int, str]]:
    """Ids and last names by the id of what they were in."""
    found: dict[int, dict[int, str]] = {}
    for gone in dropped:
        found.setdefault(gone.parent, {})[gone.id] = gone.name
    return found
