"""Which columns to collect statistics of, where a part's budget cannot hold those of all.

What is collected is trimmed to the budget (``statistics_budget``). Collecting what cannot fit costs time for
nothing, and makes trimming drop the bounds of all columns alike instead of keeping those of the first ones.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tamis.core.stats.json_paths.path_collector import collects_paths
from tamis.core.types import Field, Schema

_LEAST_ROOM = 16 * 2**10
"""Bytes below which a budget limits no collection, so that a small budget of a narrow table is trimmed as any other."""
_LEAF, _TEXT, _DOCUMENTS = 40, 64, 256
"""Bytes that statistics take at least: of a plain leaf, of a text, and besides of a column of documents."""
_PLACES = 1_024
"""Bytes of room for each column whose single positions or keys are collected: more than they take.

They double the statistics columns of an array, which cost a short load more time than its rows.
"""


@dataclass(slots=True)
class CollectionLimits:
    """The top-level columns to collect, and how many columns of documents and of places, besides those in ``named``."""

    fields: frozenset[int]
    named: frozenset[int]
    documents: int
    places: int

    def admits_places(self, identifier: int) -> bool:
        """Return whether to collect single positions or keys of another array or map column, and count it."""
        if identifier in self.named:
            return True
        self.places -= 1
        return self.places >= 0

    def may_admit_documents(self, identifier: int) -> bool:
        """Return whether another column's documents would be collected."""
        return identifier in self.named or self.documents > 0

    def admits_documents(self, identifier: int) -> bool:
        """Return whether to collect another column's documents, and count it."""
        if identifier in self.named:
            return True
        self.documents -= 1
        return self.documents >= 0


def limits_within(schema: Schema, room: int, named: Collection[int]) -> CollectionLimits:
    """Return the first columns whose statistics may fit into ``room`` bytes, and those with ids in ``named``."""
    room = left = max(room, _LEAST_ROOM)
    fields: set[int] = set()
    for field in schema.fields:
        if left > 0 or any(one.id in named for one in _all(field)):
            fields.add(field.id)
        left -= sum(_TEXT if collects_paths(one.type) else _LEAF for one in _all(field) if not one.type.children)
    return CollectionLimits(frozenset(fields), frozenset(named), room // _DOCUMENTS, room // _PLACES)


def _all(field: Field) -> list[Field]:
    """Return a field and all fields below it."""
    return [field, *(below for child in field.type.children for below in _all(child))]
