"""Prunes sorted parts by a filter on several of their clustering columns.

Invariant: all rows of a part lie between its first and its last clustering tuple. The rows accepted by the
conjuncts so far lie in a box, between bounds of each column. If the greatest corner of the box is before the
first tuple, or its least corner after the last tuple, the part has no matching row. For example, ``a = 5 AND
b = 7`` skips a part that begins at (5, 9), although 5 and 7 lie within the bounds of both columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tamis.core.expr.arrow_values import Datum, Mask, Numbers
from tamis.core.expr.functions.logic.comparisons import compare_values
from tamis.core.expr.tree import Column, Expr
from tamis.core.pruning.value_spec import Spec, surely_below, surely_true
from tamis.core.types import BOOLEAN

if TYPE_CHECKING:
    from tamis.core.pruning.interpreter import Interpreter


class Ends(Protocol):
    """A column's rank in the clustering order of N pieces and its values in their first and last tuple.

    ``rank`` is -1 if none is known. A value is NULL if it is unknown, or if the flag beside it says that it
    is NULL; ``exact`` marks values that are not truncated.
    """

    @property
    def rank(self) -> Numbers: ...
    @property
    def first(self) -> Datum: ...
    @property
    def last(self) -> Datum: ...
    @property
    def first_exact(self) -> Mask: ...
    @property
    def last_exact(self) -> Mask: ...
    @property
    def first_null(self) -> Mask: ...
    @property
    def last_null(self) -> Mask: ...


def key_columns(conjuncts: Sequence[Expr], evidence: Any) -> dict[Column, Ends]:
    """Return the filter's columns that are clustering columns of some piece, with their ends.

    With fewer than two such columns the result is empty, because bounds prune as much.
    """
    ends_of = getattr(evidence, "edges", None)
    if ends_of is None:
        return {}
    named = dict.fromkeys(
        node for c in conjuncts for node in c.walk() if isinstance(node, Column) and node.type != BOOLEAN
    )
    found = {column: ends for column in named if (ends := ends_of(column.ids)) is not None}
    return found if len(found) > 1 else {}


def excluded_by_order(run: Interpreter, keys: dict[Column, Ends]) -> Mask:
    """Return the pieces without a match: their clustering tuples exclude the box of the narrowed columns of ``run``."""
    length = len(run.evidence)
    specs = {column: run.column(column) for column in keys}
    out = np.zeros(length, bool)
    for upper in (False, True):
        tied = np.ones(length, bool)
        for rank in range(len(keys)):
            past, same = np.zeros(length, bool), np.zeros(length, bool)
            for column, ends in keys.items():
                here = ends.rank == rank
                if here.any():
                    beyond, equal = (_above if upper else _under)(specs[column], ends)
                    past, same = past | (here & beyond), same | (here & equal)
            out |= tied & past
            tied &= same
            if not tied.any():
                break
    return out


def _under(spec: Spec, ends: Ends) -> tuple[Mask, Mask]:
    """Return where the whole box is before the first tuple's value, and where none of it is after.

    A truncated first value is less than the real one.
    """
    only_null = ~spec.value & ~spec.nan
    first_is_value = ~ends.first_null & np.asarray(ends.first.is_valid())
    equal = surely_true(compare_values("eq", spec.hi, ends.first))
    past = (surely_below(spec.hi, ends.first) | (equal & ~ends.first_exact) | only_null) & first_is_value & ~spec.nan
    return past, (equal & ends.first_exact & ~spec.nan) | (only_null & ends.first_null)


def _above(spec: Spec, ends: Ends) -> tuple[Mask, Mask]:
    """Return where the whole box is after the last tuple's value, and where none of it is before.

    A truncated last value is greater than the real one.
    """
    never_null = ~spec.null
    equal = surely_true(compare_values("eq", spec.lo, ends.last))
    past = never_null & (surely_below(ends.last, spec.lo) | (equal & ~ends.last_exact) | ends.last_null)
    return past & spec.value, (never_null & equal & ends.last_exact) | (ends.last_null & spec.null)
