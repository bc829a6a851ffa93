"""A schema: ordered fields with column ids, found by id, by name or by dotted path."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tamis.core.types.identifiers import backquote, backquote_path, split_path
from tamis.core.types.logical import NO_ID, DataType, Field, Struct, field_from_json, with_children
from tamis.errors import InvalidInput, NotFound


@dataclass(frozen=True)
class Schema:
    """The columns of a table at one time.

    ``schema_id`` is the schema's position in the table's sequence of schemas.
    """

    fields: tuple[Field, ...]
    schema_id: int = 0

    def __str__(self) -> str:
        return "\n".join(str(f) for f in self.fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    @cached_property
    def by_id(self) -> dict[int, Field]:
        """Every field at any depth, by column id."""
        return {f.id: f for _, f in self.walk()}

    @cached_property
    def paths(self) -> dict[int, tuple[int, ...]]:
        """The ids from the top-level column down to each field, by column id."""
        return {ids[-1]: ids for ids, _ in self.walk()}

    def path_text(self, field: Field) -> str:
        """Return the names from the top-level column down to ``field``, joined by dots, for messages."""
        return ".".join(self.by_id[i].name for i in self.paths[field.id])

    def walk(self) -> Iterator[tuple[tuple[int, ...], Field]]:
        """Yield every field at any depth, parents first, with the path of ids that leads to it."""
        yield from _walk((), self.fields)

    def find(self, path: tuple[str, ...] | str, *, case_sensitive: bool = False) -> tuple[Field, ...]:
        """Return the fields from the top-level column down to the one that ``path`` names.

        ``path`` is one name (dots in it are part of the name) or a tuple of names for a nested field. Names
        match case-insensitively by default, as in Spark. Raises ``NotFound`` (code ``COLUMN_NOT_FOUND``)
        naming the existing columns, and ``InvalidInput`` if two of them differ only by case.
        """
        parts = (path,) if isinstance(path, str) else path
        fields = self.fields
        found: list[Field] = []
        for depth, part in enumerate(parts):
            match = _match(fields, part, case_sensitive)
            if match is None:
                raise NotFound(
                    f"There is no column {'.'.join(parts[: depth + 1])!r}.",
                    code="COLUMN_NOT_FOUND",
                    name=".".join(parts),
                    remedy=_choice(found[-1] if found else None, fields, part),
                )
            found.append(match)
            fields = match.type.children
        return tuple(found)

    def resolve_name(self, text: str) -> tuple[Field, ...]:
        """Return the fields from the top-level column down to the one that a user names as ``text``.

        As in a filter, dots lead into structs and backquotes protect them. A column whose name contains a dot
        is also found without backquotes, unless a field has that path. Raises as ``find`` does, and
        ``InvalidInput`` (``AMBIGUOUS_COLUMN``) if both exist.
        """
        path = split_path(text)
        plain = self._known((text,)) if path != (text,) else None
        field = self._known(path)
        if plain is not None and field is not None:
            raise InvalidInput(
                f"{text!r} is a field, and the name of a column.",
                code="AMBIGUOUS_COLUMN",
                name=text,
                remedy=f"Write {backquote_path(path)} for the field, {backquote(text)} in backquotes for the column.",
            )
        return plain or field or self.find(path)

    def _known(self, path: tuple[str, ...]) -> tuple[Field, ...] | None:
        try:
            return self.find(path)
        except NotFound:
            return None

    def select(self, names: tuple[str, ...]) -> Schema:
        """Return the schema of the top-level columns ``names``, in that order, under the same schema id."""
        return replace(self, fields=tuple(self.find(n)[0] for n in names))

    def highest_id(self) -> int:
        """Return the largest column id in use, or 0."""
        return max((f.id for _, f in self.walk()), default=0)

    def assign_ids(self, above: int) -> Schema:
        """Return the schema with new ids for fields that have none, from ``above`` + 1, parents first."""
        counter = iter(range(above + 1, 2**31))
        return replace(self, fields=tuple(_assign(f, counter) for f in self.fields))

    def to_json(self) -> dict[str, Any]:
        return {"schema_id": self.schema_id, "fields": [f.to_json() for f in self.fields]}

    @staticmethod
    def from_json(value: dict[str, Any]) -> Schema:
        return Schema(tuple(field_from_json(f) for f in value["fields"]), value["schema_id"])

    def as_struct(self) -> Struct:
        return Struct(self.fields)


def _walk(above: tuple[int, ...], fields: tuple[Field, ...]) -> Iterator[tuple[tuple[int, ...], Field]]:
    for f in fields:
        ids = (*above, f.id)
        yield ids, f
        yield from _walk(ids, f.type.children)


_LISTED = 30
"""Number of names that a message lists; of more, those most similar to the missing one come first."""


def listed_names(names: Sequence[str], wanted: str = "") -> str:
    """Join the names for a message, shortened if there are very many."""
    if len(names) <= _LISTED:
        return ", ".join(names)
    alike = difflib.get_close_matches(wanted, names, n=5) if wanted else []
    first = [*alike, *(name for name in names if name not in alike)][:_LISTED]
    return f"{', '.join(first)} and {len(names) - _LISTED:,} more"


def _choice(above: Field | None, fields: tuple[Field, ...], name: str) -> str:
    """Suggest what a name could have been, in ``above`` or at the top level."""
    if fields:
        return f"Columns are: {listed_names([f.name for f in fields], name)}."
    return (
        "The table has no columns yet: the first append brings them."
        if above is None
        else f"Column {above.name!r} is {above.type}, which has no fields."
    )


def _match(fields: tuple[Field, ...], name: str, case_sensitive: bool) -> Field | None:
    for f in fields:
        if f.name == name:
            return f
    if case_sensitive:
        return None
    folded = [f for f in fields if f.name.lower() == name.lower()]
    if len(folded) > 1:
        raise InvalidInput(
            f"Column {name!r} is ambiguous.", code="AMBIGUOUS_COLUMN", name=name, remedy="Write it in its exact case."
        )
    return folded[0] if folded else None


def _assign(f: Field, counter: Iterator[int]) -> Field:
    new_id = next(counter) if f.id == NO_ID else f.id
    children = tuple(_assign(child, counter) for child in f.type.children)
    data_type: DataType = with_children(f.type, children) if children else f.type
    return replace(f, id=new_id, type=data_type)
