"""Column selection, in the order requested."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from tamis.core.types import Field, Schema, Struct
from tamis.errors import InvalidInput, NotFound

Tree = dict[int, "Tree | None"]
"""The chosen columns by id, in order: None for a whole column, else the chosen fields."""


def names_of(given: Any, argument: str) -> tuple[str, ...]:
    """Return the name or names in ``given``. Raises ``InvalidInput`` (``BAD_COLUMN``) for anything else."""
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable):
        raise InvalidInput(
            f"{argument} is a sequence of column names, not {given!r}.",
            code="BAD_COLUMN",
            name=argument,
            remedy="Give names as text.",
        )
    return tuple(given)


def select_columns(schema: Schema, names: Sequence[str] | str) -> Schema:
    """Project ``schema`` to ``names``, in their order, without duplicates.

    A name is ``*``, a column, or a dotted path to a struct field (``a.b`` gives the column ``a`` with only
    its field ``b``), resolved by ``Schema.named``. Raises ``NotFound`` (``COLUMN_NOT_FOUND``), and
    ``InvalidInput`` for an empty selection or an ambiguous name.
    """
    chosen: Tree = {}
    for name in [names] if isinstance(names, str) else names:
        if not isinstance(name, str):
            raise InvalidInput(
                f"{name!r} is not a column name.", code="BAD_COLUMN", name=repr(name), remedy="Give names as text."
            )
        if name == "*":
            for f in schema:
                chosen[f.id] = None
        else:
            _choose(chosen, [f.id for f in find_fields(schema, name)])
    if not chosen:
        raise InvalidInput(
            "No column is selected.", code="NO_COLUMNS", name="selected_fields", remedy="Name some, or use count()."
        )
    return replace(schema, fields=_prune(schema.fields, chosen))


def covering_schema(schema: Schema, selected: Schema, paths: Iterable[tuple[int, ...]]) -> Schema:
    """Project ``schema`` to the columns ``selected`` plus the filter columns ``paths`` (of ids)."""
    chosen: Tree = {}
    for f in selected:
        for path in _leaves(f, schema.by_id[f.id]):
            _choose(chosen, list(path))
    for path in paths:
        structs = 1
        while (
            structs < len(path)
            and path[structs - 1] in schema.by_id
            and isinstance(schema.by_id[path[structs - 1]].type, Struct)
        ):
            structs += 1
        if path[0] in schema.by_id:
            _choose(chosen, list(path[:structs]))
    return replace(schema, fields=_prune(schema.fields, chosen))


def _leaves(selected: Field, full: Field) -> Iterable[tuple[int, ...]]:
    """Return the id paths that ``selected`` takes from ``full``: columns, or fields of pruned structs."""
    if selected.type == full.type or not isinstance(full.type, Struct):
        return [(full.id,)]
    below = {f.id: f for f in full.type.fields}
    return [(full.id, *path) for f in selected.type.children for path in _leaves(f, below[f.id])]


def find_fields(schema: Schema, name: str) -> tuple[Field, ...]:
    """Return the fields from the top-level column down to ``name``, resolved by ``Schema.named``.

    Fields inside arrays and maps cannot be selected.
    """
    found = schema.resolve_name(name)
    for above in found[:-1]:
        if not isinstance(above.type, Struct):
            raise NotFound(
                f"Column {above.name!r} is {above.type}, which has no fields to select.",
                code="COLUMN_NOT_FOUND",
                name=name,
                remedy=f"Select {above.name!r} as a whole.",
            )
    return found


def _choose(chosen: Tree, ids: list[int]) -> None:
    for at, column in enumerate(ids):
        last = at == len(ids) - 1
        if column in chosen and chosen[column] is None:
            return  # the whole column is already chosen
        if last:
            chosen[column] = None
            return
        below = chosen.setdefault(column, {})
        assert below is not None
        chosen = below


def _prune(fields: Iterable[Field], chosen: Tree) -> tuple[Field, ...]:
    by_id = {f.id: f for f in fields}
    return tuple(
        by_id[i] if below is None else replace(by_id[i], type=Struct(_prune(by_id[i].type.children, below)))
        for i, below in chosen.items()
    )
