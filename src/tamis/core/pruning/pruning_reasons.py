"""Explains why a conjunct did not skip a piece: where precision was lost between statistics and predicate.

Each reason is about the pieces that are left. The most specific cause wins: an expression that may be
anything or may fail, a column without statistics, or an expression that does not follow from bounds.
Otherwise the bounds really allow a match.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tamis.core.expr.arrow_values import Mask, has_value
from tamis.core.expr.to_sql import short_sql
from tamis.core.expr.tree import Call, Column, Expr, Literal
from tamis.core.pruning.interpreter import Interpreter
from tamis.core.pruning.value_spec import Abstract, Spec, Truth
from tamis.core.types import Array, Map

_SEES_THROUGH = frozenset(
    {
        "and",
        "or",
        "not",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "null_safe_eq",
        "in",
        "is_null",
        "is_not_null",
        "is_nan",
        "case",
        "starts_with",
    }
)
"""Functions that lose no precision themselves; any loss comes from their arguments."""


def kept_reason(run: Interpreter, conjunct: Expr, truth: Truth, left: Mask) -> str | None:
    """Explain why ``conjunct`` did not skip the pieces ``left``; None if none are left.

    ``truth`` is what ``run`` has just found for it.
    """
    if not left.any():
        return None
    if run.notes:
        return run.notes[0]
    if not bool((truth.true & left).any()):
        return "a conjunct before it may fail"
    notes, used = list(run.notes), list(run.used)
    try:
        return _unknown_columns(run, conjunct, left) or _lost(run, conjunct, left) or allowed_reason(conjunct, used)
    finally:
        run.notes, run.used = notes, used


def allowed_reason(conjunct: Expr, used: Sequence[str] = ()) -> str:
    """Return the reason for bounds that allow a match.

    ``used`` are the columns and paths whose statistics were read; without them, the columns in the conjunct
    are named.
    """
    names = used or list(dict.fromkeys(node.name for node in conjunct.walk() if isinstance(node, Column)))
    return f"the bounds of {', '.join(names)} allow it" if names else "it is a constant"


def _unknown_columns(run: Interpreter, conjunct: Expr, left: Mask) -> str | None:
    """Return a reason naming a column without any statistics in some pieces, or None."""
    for node in conjunct.walk():
        if not isinstance(node, Column) or isinstance(
            node.type, Array | Map
        ):  # their contents have statistics of their own
            continue
        spec = run.column(node)
        trimmed = run.trimmed(node)
        silent = np.broadcast_to(~_bounded(spec) & spec.value & (spec.null | trimmed), left.shape) & left
        if (count := int(silent.sum())) > 0:
            why = ": trimmed" if (silent & trimmed).any() else ""
            return (
                f"no statistics for {node.name}"
                + (f" in {count:,} of {int(left.sum()):,}" if count < int(left.sum()) else "")
                + why
            )
    return None


def _lost(run: Interpreter, node: Expr, left: Mask) -> str | None:
    """Return a reason naming the deepest unknown expression whose arguments are not all unknown, or None."""
    for child in node.children:
        if found := _lost(run, child, left):
            return found
    if not isinstance(node, Call) or node.function in _SEES_THROUGH or _has_prefix(node):
        return None
    if _says_nothing(run(node), left) and any(
        not isinstance(arg, Literal) and not _says_nothing(run(arg), left) for arg in node.args
    ):
        columns = dict.fromkeys(n.name for n in node.walk() if isinstance(n, Column))
        return f"{short_sql(node)} does not follow from the bounds of {', '.join(columns)}"
    return None


def _says_nothing(abstract: Abstract, left: Mask) -> bool:
    """Return whether any value is possible in all the pieces left."""
    open_ = abstract.true & abstract.false if isinstance(abstract, Truth) else ~_bounded(abstract) & abstract.value
    return bool((np.broadcast_to(open_, left.shape) | ~left).all())


def _bounded(spec: Spec) -> Mask:
    """Return where at least one bound is known."""
    return has_value(spec.lo) | has_value(spec.hi)


def _has_prefix(call: Call) -> bool:
    """Return whether the call is a LIKE that begins with plain text."""
    pattern = call.args[1] if call.function == "like" else None
    return isinstance(pattern, Literal) and isinstance(pattern.value, str) and pattern.value[:1] not in {"", "%", "_"}
