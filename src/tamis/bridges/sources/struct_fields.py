"""Fields of a struct array by name; flattened once, since each ``struct_field`` takes time linear in all fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import pyarrow as pa


class StructFields:
    """A node of nested structs; a field is NULL where one of the structs above it is."""

    def __init__(self, array: pa.Array) -> None:
        self._array = array

    @cached_property
    def _below(self) -> dict[str, StructFields]:
        """The fields whose name no other one has."""
        if not pa.types.is_struct(self._array.type):
            return {}
        names = [f.name for f in self._array.type]
        times = Counter(names)
        return {
            name: StructFields(column)
            for name, column in zip(names, self._array.flatten(), strict=True)
            if times[name] == 1
        }

    def leaf(self, path: Sequence[str]) -> pa.Array | None:
        """Return the values at the end of ``path``; None if there are none, or if they are nested."""
        found: StructFields | None = self
        for name in path:
            found = None if found is None else found._below.get(name)
        return None if found is None or pa.types.is_nested(found._array.type) else found._array
