"""Which columns a table can be clustered by, as id paths."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.core.types import VARIANT, Array, Field, Map, Schema, Struct
from tamis.errors import InvalidInput


def clustering_keys(schema: Schema, paths: Sequence[tuple[str, ...]]) -> tuple[tuple[int, ...], ...]:
    """Return the id paths of the clustering columns named by ``paths``.

    Raises ``NotFound`` for an unknown column, and ``InvalidInput`` for a type without an order or a column
    that is named twice.
    """
    keys = dict[tuple[int, ...], None]()
    for path in paths:
        key = clustering_key(schema.find(path), ".".join(path))
        if key in keys:
            raise named_twice(".".join(path))
        keys[key] = None
    return tuple(keys)


def clustering_key(found: Sequence[Field], name: str) -> tuple[int, ...]:
    """Return the id path of the clustering column ``name``, given its fields from the top down.

    Raises ``InvalidInput`` for a type without an order.
    """
    nested = next((f.type for f in found if isinstance(f.type, Array | Map)), None)
    kind = nested or found[-1].type
    if nested is not None or isinstance(kind, Struct) or kind == VARIANT:
        raise InvalidInput(
            f"Column {name!r} is {kind}, by which rows cannot be clustered.",
            code="BAD_CLUSTERING",
            name=name,
            remedy="Choose a column of a plain type.",
        )
    return tuple(f.id for f in found)


def named_twice(name: str) -> InvalidInput:
    return InvalidInput(
        f"cluster_by names {name!r} twice.", code="BAD_CLUSTERING", name=name, remedy="Name each column once."
    )
