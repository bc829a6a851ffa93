"""sqlglot's nodes, looked at before they are bound: what of them is understood, how they are shown, and why one of them is not understood."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from tamis.expr.catalogue import TOTAL
from tamis.expr.tree import Cause

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


def says_more(node: Any) -> bool:
    """Whether sqlglot said something with this node that no handler asks about."""
    also = _ALSO_ASKED.get(type(node), ())
    return any(value not in _NOTHING and key not in _ASKED and key not in also for key, value in node.args.items())


def cause_of(node: Any) -> Cause:
    """Why nothing is known of this node."""
    if isinstance(node, exp.Placeholder | exp.Parameter | exp.SessionParameter):
        return Cause.PARAMETER
    if isinstance(node, exp.Star):
        return Cause.STAR
    if isinstance(node, exp.Query) or isinstance(node.this, exp.Query) or isinstance(node.args.get("query"), exp.Query):
        return Cause.SUBQUERY
    if isinstance(node, exp.Window):
        return Cause.WINDOW
    function = node.this if isinstance(node, exp.Filter) else node
    return Cause.AGGREGATE if isinstance(function, exp.Anonymous) and str(function.this).lower() in _AGGREGATES else Cause.FUNCTION


def shown(node: Any) -> str:
    """The node as people wrote it, or nearly."""
    if isinstance(node, exp.Placeholder) and node.args.get("widget"):
        return "{" + (shown(node.this) if isinstance(node.this, exp.Placeholder) else node.name) + "}"
    if isinstance(node, exp.Cast):  # the dialect would write another type's name for one that Spark has not
        return f"{'TRY_CAST' if isinstance(node, exp.TryCast) else 'CAST'}({shown(node.this)} AS {node.to.sql()})"
    return str(node.sql(dialect="databricks", normalize_functions=False))


def never_fails(node: exp.Expression) -> bool:
    """Whether it fails only where one of its ``operands`` does."""
    return type(node) in _TOTAL or (isinstance(node, exp.Anonymous) and str(node.this).lower() in TOTAL)


def dotted(node: Any) -> list[str] | None:
    """The names of ``a.b.c``; None where something is no name, as in ``m['a'].b`` and ``f(x).b``: that is no field of a column."""
    if isinstance(node, exp.Dot):
        below = dotted(node.this) if isinstance(node.expression, exp.Identifier) else None
        return below and [*below, node.expression.name]
    if isinstance(node, exp.Paren):
        return dotted(node.this)
    return [p.name for p in node.parts] if isinstance(node, exp.Column) else [node.name] if isinstance(node, exp.Identifier) else None


def no_word(node: exp.Expression) -> bool:
    """Whether a cast is written as ``5L`` or ``x::type``: a sign before it belongs to the number."""
    return "safe" not in node.args


def operands(node: Any) -> list[Any]:
    """What a function that never fails itself is applied to."""
    return (
        list(node.expressions)
        if isinstance(node, exp.Anonymous)
        else [n for n in (node.this, node.args.get("expression")) if n is not None]
    )


_TOTAL = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot)
_NOTHING: tuple[object, ...] = (None, False, [])
_ASKED = frozenset({"this", "expression", "expressions"})
_ALSO_ASKED: dict[type, frozenset[str]] = {
    exp.Column: frozenset({"table", "db", "catalog"}),
    exp.Literal: frozenset({"is_string"}),
    exp.Identifier: frozenset({"quoted"}),
    exp.Bracket: frozenset({"offset", "safe", "returns_list_for_maps"}),
    exp.Cast: frozenset({"to", "_type"}),
    exp.TryCast: frozenset({"to", "safe"}),
    exp.Div: frozenset({"typed", "safe"}),  # how other dialects divide; Spark's way is the catalogue's
    exp.In: frozenset({"query", "unnest"}),
    exp.Between: frozenset({"low", "high"}),
    exp.Like: frozenset({"negate"}),
    exp.ILike: frozenset({"negate"}),
    exp.Case: frozenset({"ifs", "default"}),
    exp.If: frozenset({"true", "false"}),
    exp.Interval: frozenset({"unit"}),
    exp.Trim: frozenset({"position"}),
    exp.Substring: frozenset({"start", "length"}),
    exp.Overlay: frozenset({"from_", "for_"}),
    exp.StrPosition: frozenset({"substr"}),
    exp.Floor: frozenset({"decimals", "to"}),
    exp.Ceil: frozenset({"decimals", "to"}),
    exp.Concat: frozenset({"safe", "coalesce"}),
    exp.DPipe: frozenset({"safe"}),
    exp.JSONExtract: frozenset({"variant_extract", "requires_json"}),
}
"""What of sqlglot's nodes is understood. Law: whatever else a node carries (a later release may move a NOT into one) makes it unknown."""
