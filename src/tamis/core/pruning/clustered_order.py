"""What the order of a sorted part says about a filter on several of its clustering columns.

Law: all rows of a part lie between its first and its last clustering tuple. The rows that the conjuncts so far let through lie in a box: between
bounds of each column. If the box's greatest corner lies before the first tuple, or its least one behind the last tuple, no row is let through.
So ``a = 5 AND b = 7`` skips a part that begins at (5, 9), although 5 and 7 lie within the bounds of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tamis.core.expr.arrow_values import Datum, Mask, Numbers
from tamis.core.expr.functions.logic.comparisons import compare
from tamis.core.expr.tree import Column, Expr
from tamis.core.pruning.value_spec import Spec, below, known
from tamis.core.types import BOOLEAN

if TYPE_CHECKING:
    from tamis.core.pruning.interpreter import Interpreter


class Ends(Protocol):
    """A column's place in the clustering order of N pieces (``rank``, -1: none known), and its values in the first and last tuple.

    A value is NULL where it is unknown, or where the flag beside it says that it is NULL; ``exact`` where it is the very value.
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
    """The columns of the filter that are clustering columns of some piece, with their ends; two at least, else bounds say as much."""
    ends_of = getattr(evidence, "edges", None)
    if ends_of is None:
        return {}
    named = dict.fromkeys(node for c in conjuncts for node in c.walk() if isinstance(node, Column) and node.type != BOOLEAN)
    found = {column: ends for column in named if (ends := ends_of(column.ids)) is not None}
    return found if len(found) > 1 else {}


def outside(run: Interpreter, keys: dict[Column, Ends]) -> Mask:
    """Pieces whose tuples leave no room for the box of what ``run`` has narrowed."""
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
    """Where every value of the box lies before the first tuple's, and where none lies behind it. What was cut lies before its value."""
    only_null = ~spec.value & ~spec.nan
    first_is_value = ~ends.first_null & np.asarray(ends.first.is_valid())
    equal = known(compare("eq", spec.hi, ends.first))
    past = (below(spec.hi, ends.first) | (equal & ~ends.first_exact) | only_null) & first_is_value & ~spec.nan
    return past, (equal & ends.first_exact & ~spec.nan) | (only_null & ends.first_null)


def _above(spec: Spec, ends: Ends) -> tuple[Mask, Mask]:
    """Where every value of the box lies behind the last tuple's, and where none lies before it. What was cut lies behind its value."""
    never_null = ~spec.null
    equal = known(compare("eq", spec.lo, ends.last))
    past = never_null & (below(ends.last, spec.lo) | (equal & ~ends.last_exact) | ends.last_null)
    return past & spec.value, (never_null & equal & ends.last_exact) | (ends.last_null & spec.null)
