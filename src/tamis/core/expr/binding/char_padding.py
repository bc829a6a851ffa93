"""Pads CHAR columns and the constants compared with them, as Spark does.

All are padded to the longest of them. This applies to columns as they stand, not to struct fields, casts or lambda
variables, and not to the bounds of BETWEEN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tamis.core.expr.evaluate import constant_value
from tamis.core.expr.syntax.nodes import Function, Node, Trim, walk_nodes
from tamis.core.expr.tree import Column, Expr, Literal
from tamis.core.types import INTEGER, STRING, String

_FOLDED = {
    *("array", "char", "coalesce", "concat", "format_string", "greatest", "if", "least", "lower", "lpad", "ltrim"),
    *("named_struct", "reverse", "rpad", "rtrim", "struct", "substr", "substring", "substring_index", "trim", "upper"),
}
"""Functions whose constant results Spark pads. It does not pad those of functions that its optimizer replaces."""


def unsure_padding(node: Node, bound: Expr) -> bool:
    """Return whether ``node``, bound as ``bound``, is a constant that Spark may or may not pad."""
    if not isinstance(bound, Literal) and constant_value(bound) is None:
        return False
    return any(
        (isinstance(inner, Function) and inner.name[-1].lower() not in _FOLDED)
        or (isinstance(inner, Trim) and inner.characters is not None)
        for inner in walk_nodes(node)
    )


def padded_sides(sides: list[Expr], rpad: Callable[[Expr, Expr, Expr], Expr]) -> list[Expr]:
    """Pad ``sides`` to one length with blanks by ``rpad``, which cuts longer values of other writers.

    They stay as they are if none is a CHAR column, or one has an unknown length.
    """
    if not any(is_char(s) for s in sides):
        return sides
    sides = [side if is_char(side) or isinstance(side, Literal) else constant_value(side) or side for side in sides]
    lengths = [_length(s) for s in sides]
    if any(n is None for n in lengths):
        return sides
    longest = max(n for n in lengths if n is not None)
    return [s if n == longest else _grown(s, longest, rpad) for s, n in zip(sides, lengths, strict=True)]


def _grown(side: Expr, length: int, rpad: Callable[[Expr, Expr, Expr], Expr]) -> Expr:
    if isinstance(side, Literal):
        return side if side.value is None else replace(side, value=side.value.ljust(length))
    return rpad(side, Literal(INTEGER, length), Literal(STRING, " "))


def is_char(side: Expr) -> bool:
    return (
        isinstance(side, Column) and len(side.ids) == 1 and isinstance(side.type, String) and side.type.kind == "char"
    )


def _length(side: Expr) -> int | None:
    """Return the length of a CHAR column or a constant text (NULL: 0), else None, which prevents padding."""
    if is_char(side):
        assert isinstance(side.type, String)
        return side.type.length
    if isinstance(side, Literal) and isinstance(side.type, String):  # a NULL without a type prevents padding
        return len(side.value) if isinstance(side.value, str) else 0
    return None
