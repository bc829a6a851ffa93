"""The null checks that Spark infers from the rest of a filter, and which decide nothing."""

from __future__ import annotations

from collections.abc import Iterator

from tamis.core.expr import Call, Column, Expr, Literal, Literals, column_paths
from tamis.core.pruning.value_cases import is_presence_check

_NEVER_TRUE_OF_NULL = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "in", "contains", "starts_with", "ends_with"})
"""Functions of a value and literals that are NULL where the value is NULL, and never fail."""


def without_inferred_checks(conjuncts: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return ``conjuncts`` without each ``column IS NOT NULL`` whose column another conjunct compares with a literal.

    The comparison is not true of NULL either, so the same rows match. Spark adds such a check for each compared
    column, and each conjunct costs planning as much as another.
    """
    compared = {ids for conjunct in conjuncts for ids in _compared(conjunct)}
    return tuple(c for c in conjuncts if not (is_presence_check(c) and compared.issuperset(column_paths(c))))


def _compared(conjunct: Expr) -> Iterator[tuple[int, ...]]:
    """Yield the ids of the column that ``conjunct`` compares with literals, possibly under NOT."""
    if isinstance(conjunct, Call) and conjunct.function == "not":
        (conjunct,) = conjunct.args
    if not isinstance(conjunct, Call) or conjunct.function not in _NEVER_TRUE_OF_NULL:
        return
    found = [arg for arg in conjunct.args if isinstance(arg, Column)]
    if len(found) == 1 and all(isinstance(arg, Column | Literal | Literals) for arg in conjunct.args):
        yield found[0].ids
