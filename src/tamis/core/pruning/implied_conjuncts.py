"""Conjuncts on generated columns that follow from a filter, for secondary indexes on them.

Each is true of every row for which the filter's conjuncts up to its origin are. It drops rows that cannot match and
never replaces a conjunct.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from tamis.core.expr.arrow_values import plain_value
from tamis.core.expr.calls import make_call
from tamis.core.expr.generated_columns import (
    LAST_NUMBER,
    GeneratedColumn,
    canonical_expression,
    generated_columns,
)
from tamis.core.expr.tree import Call, Column, Expr, Literal
from tamis.core.pruning.implied_facts import narrow_specs
from tamis.core.pruning.interpreter import Interpreter
from tamis.core.pruning.value_spec import spec_of
from tamis.core.types import BOOLEAN, Schema


@dataclass(frozen=True, slots=True)
class ImpliedConjunct:
    """A conjunct, with the position of the last conjunct of the filter from which it follows."""

    conjunct: Expr
    origin: int


class _AnyRows:
    """Evidence about one piece of which nothing is known."""

    def __len__(self) -> int:
        return 1

    def rows(self) -> pa.Int64Array:
        return pa.nulls(1, pa.int64())

    def column(self, ids: tuple[int, ...]) -> None:  # noqa: ARG002  # the protocol's signature
        return None


def implied_conjuncts(
    conjuncts: Sequence[Expr], schema: Schema | None, now: tuple[int, int]
) -> tuple[ImpliedConjunct, ...]:
    """Return what follows from ``conjuncts`` for the generated columns of ``schema``. Never raises."""
    try:
        columns = () if schema is None else tuple(g for g in generated_columns(schema) if g.certain)
        return tuple(_found(conjuncts, columns, now)) if columns else ()
    except Exception:  # noqa: BLE001  # what cannot be derived is not known
        return ()


def _found(
    conjuncts: Sequence[Expr], columns: Sequence[GeneratedColumn], now: tuple[int, int]
) -> Iterator[ImpliedConjunct]:
    run = Interpreter(_AnyRows(), now)
    stored = {canonical_expression(g.value): g.column for g in columns if isinstance(g.value, Call) and g.portable}
    texts = {canonical_expression(g.value): g.column for g in columns if g.portable_but_numbers}
    for at, conjunct in enumerate(conjuncts):
        rewritten = _rewritten(conjunct, stored | texts if _is_about_no_numbers(conjunct, texts) else stored)
        if rewritten is not conjunct:
            yield ImpliedConjunct(rewritten, at)
        narrow_specs(run, conjunct)
        run.begin_conjunct()
        named = {node.ids for node in conjunct.walk() if isinstance(node, Column)}
        for generated in columns:
            if any(source.ids in named for source in generated.sources):
                yield from (ImpliedConjunct(implied, at) for implied in _within(run, generated))


def _is_about_no_numbers(conjunct: Expr, texts: Mapping[Expr, Column]) -> bool:
    """Return whether a conjunct compares one of ``texts`` with constants that are no numbers."""
    if not isinstance(conjunct, Call) or conjunct.function not in {"eq", "in"}:
        return False
    value, *constants = conjunct.children
    return canonical_expression(value) in texts and all(
        isinstance(one, Literal) and isinstance(one.value, str) and one.value > LAST_NUMBER for one in constants
    )


def _rewritten(expr: Expr, stored: dict[Expr, Column]) -> Expr:
    """Return ``expr`` with columns instead of the calls that they hold."""
    if isinstance(expr, Call) and (column := stored.get(canonical_expression(expr))) is not None:
        return column
    args = tuple(_rewritten(arg, stored) for arg in expr.children)
    if all(new is old for new, old in zip(args, expr.children, strict=True)):
        return expr
    changed: dict[str, Any] = {"args": args}
    return replace(expr, **changed)


def _within(run: Interpreter, generated: GeneratedColumn) -> Iterator[Expr]:
    """Yield the bounds of the values that the column may have, if it cannot be NULL or NaN."""
    column = generated.column
    possible = spec_of(run(generated.value))
    if column.type == BOOLEAN or bool(possible.null) or bool(possible.nan):
        return
    low, high = (_literal(bound, column) for bound in (possible.lo, possible.hi))
    if low is not None and low == high:
        yield make_call("eq", column, low, type=BOOLEAN)
        return
    if low is not None:
        yield make_call("ge", column, low, type=BOOLEAN)
    if high is not None:
        yield make_call("le", column, high, type=BOOLEAN)


def _literal(bound: Any, column: Column) -> Literal | None:
    value = bound if isinstance(bound, pa.Scalar) else bound[0]
    return Literal(column.type, plain_value(value)) if value.is_valid else None
