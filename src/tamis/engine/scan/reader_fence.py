"""Checks that a reader of an older schema may still read what it reads.

Invariant: a reader is fenced by exactly the columns whose values it uses. A test of a struct, an array or a map for
NULL uses none of the values inside, so no change of these fences it: the column is read in its newest type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tamis.core.expr import Call, Column, Expr
from tamis.core.schema import fence_reader
from tamis.core.types import Field, Schema
from tamis.core.types.logical import with_children
from tamis.engine.scan.column_selection import covering_schema
from tamis.storage.commit_log import Snapshot

_NULL_TESTS = frozenset({"is_null", "is_not_null"})


def check_fence(snapshot: Snapshot, held: Schema, selected: Schema, filters: Sequence[Expr]) -> None:
    """Raise ``SchemaFenced`` if a reader under ``held`` can no longer read what it selects and filters by.

    ``filters`` are those of ``retype_null_tests``.
    """
    head = snapshot.head
    if head.schema is None or head.schema.fields == held.fields:
        return
    fence_reader(
        head.schema, head.dropped, covering_schema(held, selected, (path for c in filters for path in _used(c)))
    )
    for column in _tested(filters):
        outside = replace(held, fields=tuple(_typed_as(f, column) for f in held))
        fence_reader(head.schema, head.dropped, covering_schema(outside, Schema(()), [column.ids]))


def retype_null_tests(filters: Sequence[Expr], current: Schema) -> tuple[Expr, ...]:
    """Return filters in which nested columns that are only tested for NULL have their type in ``current``."""
    return tuple(_retype(one, current) for one in filters)


def _retype(expr: Expr, current: Schema) -> Expr:
    if not isinstance(expr, Call):
        return expr
    if _is_null_test(expr):
        (column,) = expr.args
        assert isinstance(column, Column)
        now = current.by_id.get(column.ids[-1])
        fits = now is not None and type(now.type) is type(column.type) and now.type != column.type
        return replace(expr, args=(replace(column, type=now.type),)) if now is not None and fits else expr
    args = tuple(_retype(arg, current) for arg in expr.args)
    return expr if all(a is b for a, b in zip(args, expr.args, strict=True)) else replace(expr, args=args)


def _is_null_test(expr: Expr) -> bool:
    """Return whether the expression tests a struct, an array or a map for NULL."""
    match expr:
        case Call(function=function, args=(Column(type=tested),)) if function in _NULL_TESTS:
            return bool(tested.children)
    return False


def _used(expr: Expr) -> Iterator[tuple[int, ...]]:
    """Yield the id paths of the columns whose values an expression uses."""
    if isinstance(expr, Column):
        yield expr.ids
    elif not _is_null_test(expr):
        for child in expr.children:
            yield from _used(child)


def _tested(filters: Sequence[Expr]) -> list[Column]:
    """Return the nested columns that are tested for NULL."""
    tests = (node for one in filters for node in one.walk() if _is_null_test(node))
    return list(dict.fromkeys(column for test in tests for column in test.children if isinstance(column, Column)))


def _typed_as(field: Field, column: Column) -> Field:
    """Return ``field`` with the type of ``column`` in place of that column, if it is the field or lies below it."""
    if field.id == column.ids[-1]:
        return replace(field, type=column.type)
    if field.id not in column.ids:
        return field
    return replace(field, type=with_children(field.type, tuple(_typed_as(f, column) for f in field.type.children)))
