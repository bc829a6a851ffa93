"""Constraints of a head through changes of its schema.

Invariant: a constraint means the same before and after. A renamed column is renamed in it; a change that would
take a column away, or might change the expression's value for a row, is refused by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from tamis.core.expr import Expr, parse_predicate
from tamis.core.types import Schema
from tamis.errors import InvalidInput, TamisError
from tamis.lazy_imports import lazy_module
from tamis.storage.commit_log.features import CHECK_CONSTRAINTS
from tamis.storage.commit_log.model import Head
from tamis.storage.commit_log.table_constraints import CHECK, Constraint, enforced_constraints

if TYPE_CHECKING:
    from tamis.core.expr import column_renames
else:
    column_renames = lazy_module("tamis.core.expr.column_renames")

WHAT = "a CHECK"
"""What errors call the text of an expression."""


def bind_check(constraint: Constraint, schema: Schema) -> Expr:
    """Return the bound expression of a CHECK: ANSI rules, and no session time zone that matters."""
    return parse_predicate(constraint.expression, schema, what=WHAT)


def with_constraints(head: Head, constraints: Sequence[Constraint]) -> Head:
    """Return ``head`` with these constraints, and the writer feature that they need."""
    features = tuple(name for name in head.writer_features if name != CHECK_CONSTRAINTS)
    needed = (CHECK_CONSTRAINTS,) if enforced_constraints(constraints) else ()
    ordered = sorted(constraints, key=lambda one: not (one.kind == CHECK and one.enforced))  # as a stored head has them
    return replace(head, constraints=tuple(ordered), writer_features=(*features, *needed))


def renamed_constraints(constraints: Sequence[Constraint], before: Schema, after: Schema) -> tuple[Constraint, ...]:
    """Return the constraints under the names of ``after``.

    Raises ``InvalidInput`` (``CONSTRAINED_COLUMN``) naming the column and the constraint that need each other.
    """
    if not constraints or before.fields == after.fields:
        return tuple(constraints)
    return tuple(_followed(one, before, after) for one in constraints)


def _followed(constraint: Constraint, before: Schema, after: Schema) -> Constraint:
    for ids in constraint.columns:
        if after.paths.get(ids[-1]) != ids:
            raise _needed(constraint, before, ids, "cannot be dropped")
    if constraint.kind != CHECK:
        return constraint
    old = bind_check(constraint, before)
    # as it is, if no column that it names was renamed
    for rewrite in (lambda text, *_: text, column_renames.rename_columns):
        with suppress(TamisError):
            text = rewrite(constraint.expression, before, after)
            new = parse_predicate(text, after, what=WHAT)
            if column_renames.same_meaning(old, new) or column_renames.same_when_widened(old, new):
                return replace(constraint, expression=text)
    raise _changed(constraint, before, after)


def _changed(constraint: Constraint, before: Schema, after: Schema) -> InvalidInput:
    """Return the error for an expression that might mean something else, naming the column that changes."""
    for ids in constraint.columns:
        if [before.by_id[i].name for i in ids] != [after.by_id[i].name for i in ids]:
            return _needed(constraint, before, ids, "cannot be renamed in it")
    changed = [ids for ids in constraint.columns if before.by_id[ids[-1]].type != after.by_id[ids[-1]].type]
    return _needed(constraint, before, (changed or list(constraint.columns) or [()])[0], "cannot change its type")


def _needed(constraint: Constraint, schema: Schema, ids: tuple[int, ...], what: str) -> InvalidInput:
    column = ".".join(schema.by_id[i].name for i in ids)
    again = "" if "dropped" in what else "; it can be added again after the change"
    return InvalidInput(
        f"The constraint {constraint.name!r}, {constraint.definition(schema)}, uses column {column!r}, which {what}.",
        code="CONSTRAINED_COLUMN",
        name=constraint.name,
        remedy=f"Drop the constraint {constraint.name!r} first{again}.",
    )
