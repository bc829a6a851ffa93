"""Decides whether Tamis can evaluate an expression on rows, and explains why not and what to do instead."""

from __future__ import annotations

import re

from tamis.core.expr import registry
from tamis.core.expr.to_sql import short_sql
from tamis.core.expr.tree import Call, Cause, Expr, Literal, Opaque
from tamis.errors import InvalidInput

_THROUGH_SPARK = "run this through Spark"
_PATTERN = re.compile(r"\b(rlike|regexp\w*)\b", re.IGNORECASE)
"""Matches functions that take a regular expression as their second argument."""
_NO_PLACE: dict[Cause, tuple[str, str]] = {
    Cause.AGGREGATE: (
        "is an aggregate, which has no place beside single rows",
        f"Use scan.aggregate(), or {_THROUGH_SPARK}.",
    ),
    Cause.WINDOW: (
        "is a window function, which has no place beside single rows",
        f"Leave it out, or {_THROUGH_SPARK}.",
    ),
    Cause.SUBQUERY: ("holds a query, which is not run here", f"Write its values as constants, or {_THROUGH_SPARK}."),
    Cause.PARAMETER: ("is a parameter, which nothing fills in here", "Write the value itself into the text."),
    Cause.PYTHON: ("is a Python function, which only Spark runs", "Run this through Spark."),
    Cause.STAR: ("stands for all columns, which has no place here", "Name one column."),
}


def is_approximate(node: Expr) -> bool:
    """Return whether Spark may compute different last digits for the node."""
    return isinstance(node, Call) and registry.function_entry(node.function).approximate


def is_supported(expr: Expr) -> bool:
    """Return whether rows can be evaluated here: no part is opaque or approximate."""
    return not any(_stands_in_the_way(node) for node in expr.walk())


def can_fail(expr: Expr) -> bool:
    """Return whether evaluating the expression can raise an error for some row."""
    return any(_can_fail_by_itself(node) for node in expr.walk())


def _can_fail_by_itself(node: Expr) -> bool:
    if isinstance(node, Call):
        return registry.can_raise(node)
    return isinstance(node, Opaque) and not node.total


def check_supported(expr: Expr) -> None:
    """Raise ``InvalidInput`` as ``refusal_error`` describes if rows cannot be evaluated here."""
    if not is_supported(expr):
        raise refusal_error(expr)


def refusal_error(expr: Expr) -> InvalidInput:
    """Return the error for the first innermost part of ``expr`` that cannot be computed here.

    Its code is ``UNKNOWN_FUNCTION``, ``BAD_ARGUMENTS``, ``BAD_TYPE`` or ``NO_PLACE``.
    """
    part = _innermost(expr) or expr
    if not isinstance(part, Opaque):
        text = short_sql(part)
        why = f"{text!r} may differ here from Spark's result in the last digits."
        return InvalidInput(why, code="UNKNOWN_FUNCTION", name=text, remedy=f"Leave it out, or {_THROUGH_SPARK}.")
    text = part.text
    match part.cause:
        case Cause.FUNCTION:
            return InvalidInput(
                f"The function in {text!r} is unknown here.",
                code="UNKNOWN_FUNCTION",
                name=text,
                remedy=f"Leave it out, or {_THROUGH_SPARK}; a filter with it can be explained.",
            )
        case Cause.ARGUMENTS if _PATTERN.search(text) and len(part.args) > 1 and isinstance(part.args[1], Literal):
            pattern = short_sql(part.args[1], 40)
            return InvalidInput(
                f"The pattern {pattern} is not a regular expression that can be evaluated here.",
                code="BAD_ARGUMENTS",
                name=text,
                remedy=(
                    "Look at its brackets, and write it with plain classes, groups and repetitions; "
                    f"where Java's own syntax is meant, {_THROUGH_SPARK}."
                ),
            )
        case Cause.ARGUMENTS:
            kinds = ", ".join(f"{short_sql(arg, 40)} is {arg.type}" for arg in part.args) or "it takes arguments"
            return InvalidInput(
                f"{text!r} is not defined here: {kinds}.",
                code="BAD_ARGUMENTS",
                name=text,
                remedy=(
                    "Give it other arguments, or these under other types by CAST; "
                    f"where Spark takes them as they are, {_THROUGH_SPARK}."
                ),
            )
        case Cause.TYPE:
            return InvalidInput(
                f"{text!r} names a type that is unknown here.",
                code="BAD_TYPE",
                name=text,
                remedy="Write a type of Spark's, such as BIGINT, DOUBLE, DATE, TIMESTAMP or STRING.",
            )
    why, remedy = _NO_PLACE[part.cause]
    return InvalidInput(f"{text!r} {why}.", code="NO_PLACE", name=text, remedy=remedy)


def _stands_in_the_way(node: Expr) -> bool:
    return isinstance(node, Opaque) or is_approximate(node)


def _innermost(node: Expr) -> Expr | None:
    found = next((part for child in node.children if (part := _innermost(child)) is not None), None)
    return found or (node if _stands_in_the_way(node) else None)
