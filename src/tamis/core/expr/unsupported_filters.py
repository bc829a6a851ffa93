"""Rejects filters that cannot be read here for any rows: unsupported functions and failing constants.

While planning, Spark computes every part of a filter that has no column, and raises if it fails, before
reading a row and even if no row would reach it. Only the branches of CASE, IF and COALESCE wait for their
row. A scan does the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from tamis.core.expr.evaluate import evaluate
from tamis.core.expr.to_sql import to_sql
from tamis.core.expr.tree import Call, Column, Element, Expr, Literal, Literals
from tamis.core.expr.unsupported_rows import check_supported
from tamis.errors import InvalidInput

_BRANCHES = frozenset({"case", "coalesce"})


def check_readable(conjuncts: Sequence[Expr], now_micros: int) -> None:
    """Raise ``InvalidInput`` as ``check_supported`` does, or ``FILTER_FAILED`` for a failing constant."""
    for conjunct in conjuncts:
        check_supported(conjunct)
    _check_conjuncts(conjuncts, now_micros)


def _check_conjuncts(conjuncts: Sequence[Expr], now_micros: int) -> None:
    """Check the constants of all conjuncts.

    Leading constant conjuncts form one AND, in which the first that is not true stops the others.
    """
    stopped = False
    for at, conjunct in enumerate(conjuncts):
        leading = all(_constant(c) for c in conjuncts[: at + 1])
        if not (leading and stopped):
            _check_constants(conjunct, now_micros)
        if leading and not stopped:
            stopped = evaluate(conjunct, {}, 1, now_micros=now_micros).values[0].as_py() is not True


def _constant(tree: Expr) -> bool:
    return not any(isinstance(node, Column | Element) for node in tree.walk())


def _check_constants(tree: Expr, now_micros: int) -> None:
    """Check each maximal part without a column as a whole; what its own AND or OR skips does not count."""
    if isinstance(tree, Literal | Literals | Column | Element):
        return
    if _constant(tree):
        out = evaluate(tree, {}, 1, now_micros=now_micros)
        if out.failed is not None and out.failed.any():
            raise InvalidInput(
                f"{to_sql(tree)} fails whatever the rows are: {out.error}",
                code="FILTER_FAILED",
                name=to_sql(tree),
                remedy="Correct the constant; try_cast, try_divide and their like give NULL instead.",
            )
    elif not (isinstance(tree, Call) and tree.function in _BRANCHES):
        for child in tree.children:
            _check_constants(child, now_micros)
