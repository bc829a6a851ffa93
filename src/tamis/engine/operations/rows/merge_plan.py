"""Analysis of a merge: split the condition into keys and the rest, and bind the clauses to both sides.

Text is bound in one scope with ``target.x`` and ``source.x``. Bound target columns have the table's ids, and
source columns get ids above all of these, so that arrays of both sides fit in one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from tamis.core.expr import (
    Call,
    Column,
    Element,
    Expr,
    conjuncts_of,
    equal_as_arrow,
    parse_predicate,
    parse_value,
    to_sql,
)
from tamis.core.types import DOUBLE, FLOAT, NO_ID, Field, Schema, String, Struct
from tamis.core.types.arrow import from_arrow_schema
from tamis.core.types.identifiers import backquote
from tamis.core.types.logical import with_children
from tamis.engine.operations.rows.store_assignment import assignable_column, assigned_value, check_assigned, check_known
from tamis.engine.part_writer.column_defaults import default_cast
from tamis.engine.scan import Options
from tamis.errors import InvalidInput, NotFound, SchemaMismatch

_SCOPE = 1 << 30
"""Ids of the two scopes during binding."""

MATCHED, NOT_MATCHED, BY_SOURCE = "matched", "not matched", "not matched by source"


@dataclass(frozen=True, slots=True)
class MergeClause:
    """A clause as the user wrote it.

    ``values`` is SQL text by column; None means all columns of the source (of an update or insert).
    """

    kind: str
    action: str
    condition: str | None = None
    values: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Clause:
    """A bound clause; ``values`` is keyed by target column id.

    Columns that an update does not name are kept; columns that an insert does not name get NULL or the
    default.
    """

    kind: str
    action: str
    conditions: tuple[Expr, ...]
    values: Mapping[int, Expr]


@dataclass(frozen=True, slots=True)
class MergePlan:
    """A bound merge.

    ``keys`` are pairs (target, source) that must be equal. ``narrowing`` are the condition's conjuncts over
    the target alone, ``rest`` the others.
    """

    target: Schema
    source: Schema
    keys: tuple[tuple[Expr, Expr], ...]
    narrowing: tuple[Expr, ...]
    rest: tuple[Expr, ...]
    clauses: tuple[Clause, ...]

    def clauses_of(self, kind: str) -> tuple[Clause, ...]:
        return tuple(c for c in self.clauses if c.kind == kind)

    @property
    def checks(self) -> tuple[Expr, ...]:
        """The conjuncts to test on rows with equal keys.

        Includes ``narrowing`` if target rows outside it are read too, as candidates for BY SOURCE clauses.
        """
        return (*self.narrowing, *self.rest) if self.clauses_of(BY_SOURCE) else self.rest

    @property
    def named_paths(self) -> frozenset[tuple[int, ...]]:
        """Id paths of the columns and fields, of both sides, that keys, checks, conditions and values name."""
        trees = (
            *(side for pair in self.keys for side in pair),
            *self.checks,
            *(c for clause in self.clauses for c in (*clause.conditions, *clause.values.values())),
        )
        return frozenset(node.ids for tree in trees for node in tree.walk() if isinstance(node, Column))

    @property
    def named(self) -> frozenset[int]:
        """Ids of the columns that are named, or of which a field is."""
        return frozenset(ids[0] for ids in self.named_paths)

    @property
    def unique(self) -> bool:
        """Whether a target row may match only one source row.

        False if the only possible outcome is an unconditional delete.
        """
        matched = self.clauses_of(MATCHED)
        return bool(matched) and not (len(matched) == 1 and matched[0].action == "delete" and not matched[0].conditions)


def merge_plan(
    target: Schema, source: pa.Schema, on: str, clauses: Sequence[MergeClause], highest_id: int, options: Options
) -> MergePlan:
    """Bind a merge.

    Raises ``InvalidInput`` (``PARSE_ERROR``, ``MERGE_WITHOUT_KEY``, ``UNKNOWN_FUNCTION``), ``NotFound``,
    ``SchemaMismatch``.
    """
    given = from_arrow_schema(source)
    known = Schema(tuple(_without_ids(f) for f in given)).assign_ids(max(highest_id, target.highest_id()))
    scope = Schema(
        (Field("target", Struct(target.fields), True, _SCOPE), Field("source", Struct(known.fields), True, _SCOPE + 1))
    )
    binder = _Binder(scope, target, known, options)
    keys: list[tuple[Expr, Expr]] = []
    narrowing: list[Expr] = []
    rest: list[Expr] = []
    for part in conjuncts_of(binder.predicate(on)):
        if (key := binder.key(part)) is not None:
            keys.append(key)
        elif binder.sides(part) == {"target"}:
            narrowing.append(part)
        else:
            rest.append(part)
    if not keys:
        raise InvalidInput(
            f"The condition {on!r} has no equality between the target and the source.",
            code="MERGE_WITHOUT_KEY",
            name=on,
            remedy="Add one, such as target.id = source.id, or run the MERGE through Spark.",
        )
    return MergePlan(
        target, known, tuple(keys), tuple(narrowing), tuple(rest), tuple(binder.clause(c) for c in clauses)
    )


@dataclass(frozen=True, slots=True)
class _Binder:
    scope: Schema
    target: Schema
    source: Schema
    options: Options

    def predicate(self, text: str) -> Expr:
        return self._bound(parse_predicate, text, "a condition of a merge")

    def _bound(self, read: Callable[..., Expr], text: str, what: str) -> Expr:
        """Parse and bind text.

        Raises ``InvalidInput``, or ``NotFound`` explaining how a merge names columns.
        """
        try:
            return check_known(
                _settled(read(text, self.scope, zone=self.options.timezone, ansi=self.options.ansi, what=what))
            )
        except NotFound as error:
            raise NotFound(
                f"{text!r} names a column that neither side of the merge has: {error.message}",
                code=error.code,
                name=error.name,
                remedy=(
                    "Name columns target.x and source.x, not by other aliases, and put text in quotes; "
                    "to match by equal keys alone, upsert(data, on=[…]) takes their plain names."
                ),
            ) from error

    def sides(self, tree: Expr) -> set[str]:
        return {
            "target" if node.ids[0] in self.target.by_id else "source"
            for node in tree.walk()
            if isinstance(node, Column)
        }

    def key(self, tree: Expr) -> tuple[Expr, Expr] | None:
        if not (isinstance(tree, Call) and tree.function == "eq"):
            return None
        left, right = tree.args
        both = (left.type, right.type)
        same = all(isinstance(kind, String) for kind in both) or left.type == right.type
        if not (same and all(kind in FLOATS or equal_as_arrow(kind) for kind in both)):
            return None
        if self.sides(left) == {"target"} and self.sides(right) == {"source"}:
            return left, right
        return (right, left) if self.sides(left) == {"source"} and self.sides(right) == {"target"} else None

    def clause(self, asked: MergeClause) -> Clause:
        conditions = () if asked.condition is None else conjuncts_of(self.predicate(asked.condition))
        visible = {MATCHED: {"target", "source"}, NOT_MATCHED: {"source"}, BY_SOURCE: {"target"}}[asked.kind]
        values = {} if asked.action == "delete" else self.values(asked)
        for tree in (*conditions, *values.values()):
            if hidden := self.sides(tree) - visible:
                raise InvalidInput(
                    f"WHEN {asked.kind.upper()} cannot see the {min(hidden)} in {to_sql(tree)!r}.",
                    code="BAD_MERGE",
                    name=to_sql(tree),
                    remedy=f"Use columns of the {' and the '.join(sorted(visible))} only.",
                )
        return Clause(asked.kind, asked.action, conditions, values)

    def values(self, asked: MergeClause) -> dict[int, Expr]:
        if asked.values is None:
            given = (f for f in self.target if not f.computed or self._has(f.name))
            texts = {f.name: "source." + backquote(self.of_source(f.name, asked).name) for f in given}
        else:
            texts = dict(asked.values)
        out = dict[int, Expr]()
        for name, text in texts.items():
            column = assignable_column(self.target, self._own_name(name))
            check_assigned(column)
            if column.id in out:
                raise InvalidInput(
                    f"Duplicate column {column.name!r}.",
                    code="DUPLICATE_COLUMN",
                    name=column.name,
                    remedy="Give every column once.",
                )
            out[column.id] = check_known(self.assigned(str(text), column))
        if asked.action == "insert":
            out |= {f.id: self.default_value(f) for f in self.target if f.write_default and f.id not in out}
        return out

    def default_value(self, column: Field) -> Expr:
        """Return a column's default as a value to insert; it is cast where it is of another type, as in an append."""
        assert column.write_default is not None
        try:
            return check_known(self.assigned(column.write_default, column))
        except SchemaMismatch:
            return check_known(self.assigned(default_cast(column), column))

    def _own_name(self, name: str) -> str:
        """Return the name of a column to assign; ``target.`` before it is left out, unless a column has that name."""
        whole = any(f.name.lower() == name.lower() for f in self.target)
        return name if whole else name.removeprefix("target.")

    def assigned(self, text: str, column: Field) -> Expr:
        value = self._bound(parse_value, text, f"a value for {column.name!r}")
        try:
            return assigned_value(value, column, self.options.timezone, text)
        except SchemaMismatch as error:
            if not (isinstance(value, Column) and self.sides(value) == {"source"}):
                raise
            remedy = f"Cast column {value.name!r} of the data to {column.type}."
            raise SchemaMismatch(error.message, code=error.code, name=error.name, remedy=remedy) from None

    def _has(self, name: str) -> bool:
        return any(f.name.lower() == name.lower() for f in self.source)

    def of_source(self, name: str, asked: MergeClause) -> Field:
        """Return the source column for a target column of a clause without values. Raises ``NotFound``."""
        try:
            return self.source.find(name)[0]
        except NotFound as error:
            raise NotFound(
                f"The source has no column {name!r}, and WHEN {asked.kind.upper()} … {asked.action.upper()} "
                "without values takes every column from it.",
                code=error.code,
                name=name,
                remedy=(
                    "Name the columns and their values, or add it to the source, "
                    f"whose columns are: {', '.join(self.source.names)}."
                ),
            ) from None


def _settled(tree: Expr) -> Expr:
    """Strip the scopes, so that column paths start at their own table."""
    if isinstance(tree, Column) and tree.ids[0] >= _SCOPE:
        if len(tree.ids) == 1:
            raise InvalidInput(
                f"{tree.name} is a whole row.", code="BAD_MERGE", name=tree.name, remedy="Name a column of it."
            )
        return replace(tree, ids=tree.ids[1:], name=tree.name.partition(".")[2])
    if isinstance(tree, Element) and tree.ids[0] >= _SCOPE:
        return replace(tree, ids=tree.ids[1:])
    changed: dict[str, Any] = {"args": tuple(_settled(a) for a in tree.children)} if tree.children else {}
    return replace(tree, **changed) if changed else tree


def _without_ids(f: Field) -> Field:
    children = tuple(_without_ids(c) for c in f.type.children)
    return replace(f, id=NO_ID, type=with_children(f.type, children) if children else f.type)


FLOATS = frozenset({FLOAT, DOUBLE})
