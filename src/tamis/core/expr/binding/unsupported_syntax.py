"""Syntax that is not computed here: the reason, and whether it can fail."""

from __future__ import annotations

from tamis.core.expr.registry import TOTAL
from tamis.core.expr.syntax.nodes import (
    Alias,
    Function,
    Lambda,
    Name,
    Named,
    Node,
    Parameter,
    Predicate,
    Query,
    Row,
    Star,
    walk_nodes,
)
from tamis.core.expr.tree import Cause
from tamis.core.types import NULL, DataType

_AGGREGATES = frozenset(
    [
        "any",
        "any_value",
        "approx_count_distinct",
        "approx_percentile",
        "array_agg",
        "avg",
        "bit_and",
        "bit_or",
        "bit_xor",
        "bool_and",
        "bool_or",
        "collect_list",
        "collect_set",
        "corr",
        "count",
        "count_if",
        "covar_pop",
        "covar_samp",
        "every",
        "first",
        "first_value",
        "grouping",
        "histogram_numeric",
        "kurtosis",
        "last",
        "last_value",
        "listagg",
        "max",
        "max_by",
        "mean",
        "median",
        "min",
        "min_by",
        "mode",
        "percentile",
        "percentile_approx",
        "percentile_cont",
        "percentile_disc",
        "skewness",
        "some",
        "std",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "string_agg",
        "sum",
        "try_avg",
        "try_sum",
        "var_pop",
        "var_samp",
        "variance",
    ]
)
"""Spark's aggregates, by name."""


def cause_of(node: Node) -> Cause:
    """Return why this node is opaque."""
    match node:
        case Parameter():
            return Cause.PARAMETER
        case Star():
            return Cause.STAR
        case Query() | Predicate(others=(Query(), *_)):
            return Cause.SUBQUERY
        case Function(beside=beside) if "OVER" in beside:
            return Cause.WINDOW
        case Function(name=(name,)) if name.lower() in _AGGREGATES:
            return Cause.AGGREGATE
    return Cause.FUNCTION


def names_in(node: Node) -> list[Name]:
    """Return the columns named in ``node``, except lambda variables; none for a query, which has its own."""
    if isinstance(node, Query):
        return []
    nodes = list(walk_nodes(node))
    local = {name.lower() for n in nodes if isinstance(n, Lambda) for name in n.names}
    return [n for n in nodes if isinstance(n, Name) and n.parts[0].lower() not in local]


def known_type(node: Node) -> DataType:
    """Return the type of a call of a function that never fails; NULL if it is not known."""
    return TOTAL.get(node.name[-1].lower(), NULL) if isinstance(node, Function) else NULL


def infallible_operands(node: Node) -> tuple[Node, ...] | None:
    """Return the operands of a construct that never fails itself; None for one that may fail."""
    match node:
        case Function(name=(name,), args=args, beside=()) if name.lower() in TOTAL and not any(
            isinstance(a, _NO_VALUES) for a in args
        ):
            return args
    return None


_NO_VALUES = (Alias, Lambda, Named, Query, Row, Star)
