"""Looks up sibling fields by id or name."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.core.types.logical import NO_ID, Field


class Siblings:
    """The fields of a schema, or of one struct, by id and by name; of duplicates, the first."""

    def __init__(self, fields: Sequence[Field] = ()) -> None:
        self._by_id = {f.id: f for f in reversed(fields)}
        self._by_name = {f.name: f for f in reversed(fields)}

    def find_field(self, asked: Field) -> Field | None:
        """Return the field with the id of ``asked`` or, if that has none, with its name."""
        return self._by_name.get(asked.name) if asked.id == NO_ID else self._by_id.get(asked.id)
