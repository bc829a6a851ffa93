"""Decides which schema may follow a table's schemas, and which readers it fences.

These are pure functions; ``tamis.engine.operations.schema.evolve`` commits.

Invariant: a table's schemas are an ordered sequence to which only valid migrations of all of them are
appended, and from which nothing is ever removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tamis.core.schema.deleted_fields import Dropped, dropped_between, migration_type_of
from tamis.core.schema.difference import schema_changes
from tamis.core.schema.history_checks import fence_reader, refuse_migration
from tamis.core.schema.migration_rules import migration_violations
from tamis.core.schema.migration_types import from_fields
from tamis.core.types import NO_ID, Field, Schema, Struct
from tamis.core.types.logical import with_children
from tamis.core.types.sibling_fields import Siblings
from tamis.errors import IncompatibleSchema, InvalidInput, SchemaFenced

Memory = tuple[Dropped, ...]
_SHOWN = 4
"""Number of changes shown in one line of text."""


@dataclass(frozen=True, slots=True)
class Fence:
    """The readers that an evolution would fence: those that read ``column`` as in ``schema_ids``."""

    column: str
    why: str
    schema_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Evolution:
    """The outcome of an evolution, or of its dry run.

    It has the schema id in force afterwards, the differences in words, and the readers fenced.
    """

    schema_id: int
    schema: Schema
    changes: tuple[str, ...]
    fences: tuple[Fence, ...]
    version: int | None = None
    """The version it made, or the current one if nothing changed; None for a dry run."""

    def as_dict(self) -> dict[str, object]:
        fences = [{"column": f.column, "why": f.why, "schema_ids": list(f.schema_ids)} for f in self.fences]
        return {"schema_id": self.schema_id, "version": self.version, "changes": list(self.changes), "fences": fences}

    def __repr__(self) -> str:
        """Return one short line; ``as_dict`` is complete."""
        what = "; ".join(self.changes[:_SHOWN]) + (
            f"; {len(self.changes) - _SHOWN} more" if len(self.changes) > _SHOWN else ""
        )
        fenced = f"; fences readers of {', '.join(f.column for f in self.fences[:_SHOWN])}" if self.fences else ""
        at = "dry run" if self.version is None else f"version {self.version}"
        return f"Evolution({at}, schema {self.schema_id}: {what or 'no change of columns'}{fenced})"


def check_next(current: Schema, dropped: Memory, new: Schema, *, widen: bool, presented: bool) -> None:
    """Check that ``new`` (ids given) may follow. Raises ``IncompatibleSchema`` with rule and field path.

    With ``presented``, a change of order is a violation.
    """
    refuse_migration(
        migration_type_of(current, dropped, presented=presented),
        from_fields(new.fields, presented=presented),
        widen=widen,
    )


def check_forward(current: Schema, dropped: Memory, new: Schema) -> None:
    """Check the policy ``forward``.

    Raises ``IncompatibleSchema`` (``FORWARD_ONLY``) if a reader of the current schema would be fenced.
    """
    try:
        fence_reader(new, (*dropped, *dropped_between(current, new)), current)
    except SchemaFenced as error:
        raise IncompatibleSchema(
            "The table's policy is 'forward', "
            f"and this would fence readers of its schema {current.schema_id}: {error.message}",
            code="FORWARD_ONLY",
            name=error.name,
            remedy="Keep the column as it is, or set the property tamis.schema.policy to 'any'.",
        ) from None


def fences(schemas: Sequence[Schema], dropped: Memory, new: Schema) -> tuple[Fence, ...]:
    """Return which current readers ``new`` would fence.

    Each result names a column and the schemas that have it in a form that can no longer be read.
    """
    current = schemas[-1]
    after = migration_type_of(new, (*dropped, *dropped_between(current, new)))
    found = []
    for violation in migration_violations(after, from_fields(current.fields)):
        column = current.by_id[_as_id(violation.key)]
        same = tuple(
            s.schema_id for s in schemas if (then := s.by_id.get(column.id)) is not None and _alike(then, column)
        )
        why = _WHY.get(violation.rule, violation.said)
        found.append(Fence(current.path_text(column), why, same))
    return tuple(found)


def append_outcome(schemas: Sequence[Schema], dropped: Memory, new: Schema) -> Evolution:
    """Return the outcome of appending ``new`` to ``schemas``."""
    before = schemas[-1] if schemas else None
    return Evolution(new.schema_id, new, schema_changes(before, new), fences(schemas, dropped, new) if schemas else ())


def is_identical(asked: Schema, known: Schema) -> bool:
    """Return whether ``asked`` equals ``known`` in names, order, types, nullability, and ids where given."""
    return len(asked) == len(known) and all(_identical(a, b) for a, b in zip(asked, known, strict=True))


def resolve_ids(asked: Schema, current: Schema | None, dropped: Memory, highest_id: int) -> Schema:
    """Return ``asked`` with an id for each field.

    The id is the one given, else that of the current field with its name in the same place, else a new one.
    Raises ``IncompatibleSchema`` (``MIGRATION_READD_DELETED``) for the name of a deleted field without an id,
    and ``InvalidInput`` (``UNKNOWN_COLUMN_ID``) for an id that the table does not have in this place.
    """
    names: dict[int, dict[str, int]] = {}
    for gone in dropped:
        names.setdefault(gone.parent, {})[gone.name] = gone.id
    before = Siblings(current.fields if current else ())
    fields = tuple(_resolve(f, before, names, 0, (f.name,)) for f in asked)
    return replace(asked, fields=fields).assign_ids(highest_id)


def _resolve(f: Field, before: Siblings, gone: dict[int, dict[str, int]], parent: int, path: tuple[str, ...]) -> Field:
    old = before.find_field(f)
    deleted = gone.get(parent, {})
    dotted = ".".join(path)
    if old is None and (f.id in deleted.values() if f.id != NO_ID else f.name in deleted):
        raise IncompatibleSchema(
            f"Field {dotted!r} was deleted and cannot come back as the same field.",
            code="MIGRATION_READD_DELETED",
            name=dotted,
            remedy=(
                "Choose another name, or use ALTER TABLE or table.alter(), which add a new column under the old name."
            ),
        )
    if old is None and f.id != NO_ID:
        raise InvalidInput(
            f"Field {dotted!r} has the id {f.id}, which no field here has.",
            code="UNKNOWN_COLUMN_ID",
            name=dotted,
            remedy="Leave ids out of new fields: the table gives them.",
        )
    children = f.type.children
    if not children:
        return f if old is None else _kept(f, old)
    below = old.type.children if old is not None and type(old.type) is type(f.type) else ()
    if isinstance(f.type, Struct):
        known = Siblings(below)
        inner = tuple(_resolve(c, known, gone, old.id if old else NO_ID, (*path, c.name)) for c in children)
    else:
        pairs = zip(children, below or (None,) * len(children), strict=True)
        inner = tuple(
            _resolve(replace(c, id=o.id if o else NO_ID), Siblings((o,) if o else ()), gone, NO_ID, (*path, c.name))
            for c, o in pairs
        )
    made = replace(f, type=with_children(f.type, inner))
    return made if old is None else _kept(made, old)


def _kept(f: Field, old: Field) -> Field:
    """Keep the properties of a field that an Arrow schema does not carry."""
    return replace(old, name=f.name, type=f.type, nullable=f.nullable)


def _identical(asked: Field, known: Field) -> bool:
    same = asked.name == known.name and asked.nullable == known.nullable and asked.id in (NO_ID, known.id)
    inner, others = asked.type.children, known.type.children
    if not same or type(asked.type) is not type(known.type) or len(inner) != len(others):
        return False
    return all(_identical(a, b) for a, b in zip(inner, others, strict=True)) if inner else asked.type == known.type


def _alike(then: Field, now: Field) -> bool:
    return then.nullable == now.nullable and (bool(now.type.children) or then.type == now.type)


def _as_id(key: object) -> int:
    assert isinstance(key, int)
    return key


_WHY = {"readd_deleted": "is dropped", "tighten": "may be NULL", "type_change": "has another type"}
