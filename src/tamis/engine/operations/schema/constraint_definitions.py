"""Definitions of constraints: which expressions and columns they may have, and under which names.

Invariant: the expression of a CHECK is evaluated here exactly as Spark evaluates it, and has one value for a row
in every session and at every time, so that every writer decides alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tamis.core.expr import Expr, Moving, check_readable, column_paths, parse_predicate
from tamis.core.expr.column_renames import same_meaning
from tamis.core.schema.schema_edits import Path
from tamis.core.types import Map, Schema, Struct
from tamis.core.types.logical import Array
from tamis.errors import AlreadyExists, InvalidInput, NotFound, TamisError
from tamis.storage.commit_log import Constraint
from tamis.storage.commit_log.constraint_columns import WHAT, bind_check
from tamis.storage.commit_log.table_constraints import CHECK, KINDS, PRIMARY_KEY
from tamis.world import new_id, world

_OTHER_ZONE = "Asia/Kathmandu"
"""A time zone in which expressions that depend on the zone are bound differently from UTC: never whole hours off."""


@dataclass(frozen=True, slots=True)
class ConstraintRequest:
    """A constraint as a user asks for it, before its columns are resolved."""

    constraint: Constraint
    keys: tuple[Path, ...] = ()
    """The columns of a key, as paths of names."""


def request_check(name: str, expression: str, *, rely: bool = False) -> ConstraintRequest:
    """Request a CHECK. It is always enforced, because Spark has no other kind.

    Raises ``InvalidInput`` (``BAD_CONSTRAINT``) for what is no text.
    """
    _check_text(name, expression)
    return ConstraintRequest(Constraint(new_id(), name, CHECK, (), expression, True, rely))


def request_key(
    kind: str, name: str, keys: Sequence[Path], *, refers: tuple[str, tuple[str, ...]] = ("", ()), rely: bool = False
) -> ConstraintRequest:
    """Request a key (``kind`` of ``KINDS``). ``refers``: the table and the columns of a foreign key."""
    _check_text(name, *refers[:1], *refers[1])
    return ConstraintRequest(Constraint(new_id(), name, kind, (), "", False, rely, *refers), tuple(keys))


def repeat_request(one: Constraint, schema: Schema) -> ConstraintRequest:
    """Request the constraint ``one`` of a table with ``schema`` again, for new columns of the same names."""
    names = tuple(tuple(schema.by_id[i].name for i in ids) for ids in one.columns)
    return ConstraintRequest(replace(one, constraint_id=new_id(), columns=()), () if one.kind == CHECK else names)


def with_constraint(
    constraints: Sequence[Constraint], asked: ConstraintRequest, schema: Schema
) -> tuple[Constraint, ...]:
    """Return ``constraints`` with the requested one added.

    Raises ``AlreadyExists`` (``CONSTRAINT_EXISTS``), ``NotFound`` for a column, ``InvalidInput`` (``BAD_CONSTRAINT``)
    saying why it cannot be.
    """
    one = asked.constraint
    _check_name(constraints, one)
    if one.kind == CHECK:
        tree = _checked(one, schema)
        return (*constraints, replace(one, columns=column_paths(tree)))
    ids = tuple(_key_column(schema, path, one) for path in asked.keys)
    if not ids or len(set(ids)) < len(ids):
        raise _bad(one.name, "it names no column" if not ids else "it names a column twice", "Name each column once.")
    return (*constraints, replace(one, columns=ids))


def without_constraint(constraints: Sequence[Constraint], name: str, *, missing_ok: bool) -> tuple[Constraint, ...]:
    """Return ``constraints`` without the one called ``name``, ignoring case.

    Raises ``NotFound`` (``CONSTRAINT_NOT_FOUND``) listing the constraints.
    """
    left = tuple(one for one in constraints if one.name.lower() != name.lower())
    if len(left) == len(constraints) and not missing_ok:
        there = ", ".join(one.name for one in constraints) or "none"
        raise NotFound(
            f"There is no constraint {name!r}.",
            code="CONSTRAINT_NOT_FOUND",
            name=name,
            remedy=f"Constraints are: {there}.",
        )
    return left


def _check_text(*given: object) -> None:
    for value in given:
        if not isinstance(value, str):
            raise _bad(f"{given[0]}", f"{value!r} is no text", "Give names and expressions as text.")


def _check_name(constraints: Sequence[Constraint], one: Constraint) -> None:
    if not one.name.strip():
        raise _bad(one.name, "it has no name", "Give it a name, by which it can be dropped.")
    if any(other.name.lower() == one.name.lower() for other in constraints):
        raise AlreadyExists(
            f"There is a constraint {one.name!r} already.",
            code="CONSTRAINT_EXISTS",
            name=one.name,
            remedy="Choose another name, or drop that one first; names are case-insensitive.",
        )
    if one.kind == PRIMARY_KEY and (held := [other.name for other in constraints if other.kind == PRIMARY_KEY]):
        raise AlreadyExists(
            f"The table has a primary key already: {held[0]!r}.",
            code="CONSTRAINT_EXISTS",
            name=one.name,
            remedy=f"Drop {held[0]!r} first, or make this one UNIQUE.",
        )


def _checked(one: Constraint, schema: Schema) -> Expr:
    """Return the bound expression; raises if writers might decide differently."""
    if not one.expression.strip():
        raise _bad(one.name, "it has no expression", 'Give a predicate, such as "price >= 0".')
    if "--" in one.expression and not _stands_in_parentheses(one.expression, schema):
        raise _bad(one.name, "it ends in a comment", "Leave the comment out.")
    try:
        tree = bind_check(one, schema)
        check_readable((tree,), world().now_micros())
    except TamisError as error:
        raise type(error)(
            f"The constraint {one.name!r}: {error.message}", code=error.code, name=error.name, remedy=_remedy(error)
        ) from error
    if any(isinstance(node, Moving) for node in tree.walk()):
        raise _bad(
            one.name,
            "it must be deterministic",
            "Compare with a column or a constant, not with the current time.",
        )
    if not same_meaning(tree, parse_predicate(one.expression, schema, zone=_OTHER_ZONE, what=WHAT)):
        raise _bad(
            one.name,
            "its value depends on the session time zone",
            "Write instants with their offset (TIMESTAMP '2024-01-01 00:00:00+00:00'), or use TIMESTAMP_NTZ and DATE.",
        )
    return tree


def _stands_in_parentheses(expression: str, schema: Schema) -> bool:
    try:
        parse_predicate(f"({expression})", schema, what=WHAT)
    except TamisError as error:
        return error.code != "PARSE_ERROR"
    return True


def _remedy(error: TamisError) -> str:
    """Return the remedy of an error about a filter: there is no Spark to run a constraint through."""
    if error.code in {"UNKNOWN_FUNCTION", "BAD_ARGUMENTS", "NO_PLACE"}:
        return "Every writer must be able to test it: use functions that Tamis evaluates, or test it before you write."
    return error.remedy


def _key_column(schema: Schema, path: Path, one: Constraint) -> tuple[int, ...]:
    found = schema.find(path)
    if any(not isinstance(above.type, Struct) for above in found[:-1]) or isinstance(found[-1].type, Array | Map):
        raise _bad(
            one.name, f"{'.'.join(path)!r} is no plain column", "Name columns, or fields of structs, of a plain type."
        )
    return tuple(f.id for f in found)


def _bad(name: str, why: str, remedy: str) -> InvalidInput:
    return InvalidInput(
        f"The constraint {name!r} cannot be added: {why}.", code="BAD_CONSTRAINT", name=name, remedy=remedy
    )


__all__ = [
    "KINDS",
    "ConstraintRequest",
    "repeat_request",
    "request_check",
    "request_key",
    "with_constraint",
    "without_constraint",
]
