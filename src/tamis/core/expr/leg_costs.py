"""The costs per row of the legs of an AND or OR: guessed from their functions first, then observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tamis.core.expr.tree import Call, Expr
from tamis.core.types import BINARY, VARIANT, String
from tamis.cost_model import COSTS

_FORGET = 0.5
"""Weight of past batches relative to the newest."""
_UNKNOWN_SHARE = 0.5
"""Share of rows that an unobserved leg is assumed to leave undecided."""


@dataclass(slots=True)
class LegCost:
    """The cost of a leg, and how many undecided rows entered and left it."""

    guess: float = 0.0
    """Nanoseconds per row, used until it was observed."""
    rows: float = 0.0
    seconds: float = 0.0
    entered: float = 0.0
    left: float = 0.0

    @staticmethod
    def of(leg: Expr) -> LegCost:
        """Guess the cost of a leg."""
        return LegCost(sum(_guess(node) for node in leg.walk()))

    @property
    def nanos(self) -> float:
        """Nanoseconds per row."""
        return self.seconds / self.rows * 1e9 if self.rows else self.guess

    @property
    def rank(self) -> float:
        """Nanoseconds per decided row: sorting by it is optimal for independent legs."""
        left = self.left / max(self.entered, 1.0) if self.rows else _UNKNOWN_SHARE
        return self.nanos / max(1.0 - left, 1e-9)

    def add(self, rows: int, seconds: float, entered: int, left: int) -> None:
        """Record one evaluation over ``rows`` rows; the fixed cost of a call is left out."""
        seconds = max(seconds - COSTS.call_nanos / 1e9, seconds / 10)
        self.rows, self.seconds = self.rows * _FORGET + rows, self.seconds * _FORGET + seconds
        self.entered, self.left = self.entered * _FORGET + entered, self.left * _FORGET + left


def _guess(node: Expr) -> float:
    if not isinstance(node, Call) or node.function in {"and", "or", "not"}:
        return 0.0
    if any(arg.type == VARIANT for arg in node.args) or node.function in _DOCUMENT_FUNCTIONS:
        return COSTS.document_nanos
    compared = node.function in _COMPARISONS
    return COSTS.compare_nanos if compared or not any(map(_is_text, node.args)) else COSTS.text_nanos


_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "null_safe_eq", "is_null", "is_not_null", "in"})
_DOCUMENT_FUNCTIONS = frozenset({"get_json_object", "from_json", "parse_json"})


def _is_text(expr: Expr) -> bool:
    return expr.type == BINARY or isinstance(expr.type, String)


def gathering_nanos(array: Any) -> float:
    """Return the cost of gathering one row of a column."""
    if any(has_type(array.type) for has_type in (pa.types.is_primitive, pa.types.is_decimal, pa.types.is_dictionary)):
        return COSTS.gather_number_nanos
    return COSTS.gather_number_nanos + float(array.nbytes) / max(len(array), 1) * COSTS.gather_byte_nanos
