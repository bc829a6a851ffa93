"""CHAR columns and constants that are compared, as Spark pads them: to the longest of them (columns only, not fields of structs)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tamis.core.expr.tree import Column, Expr, Literal
from tamis.core.types import STRING, String


def padded(sides: list[Expr], concat: Callable[[Expr, Expr], Expr]) -> list[Expr]:
    """``sides`` of one length, blanks appended by ``concat``; as they are where none is a CHAR column, or one is of no known length."""
    lengths = [_length(s) for s in sides]
    if not any(is_char(s) for s in sides) or any(n is None for n in lengths):
        return sides
    longest = max(n for n in lengths if n is not None)
    return [_grown(s, longest - (n or 0), concat) for s, n in zip(sides, lengths, strict=True)]


def _grown(side: Expr, missing: int, concat: Callable[[Expr, Expr], Expr]) -> Expr:
    if missing <= 0 or (isinstance(side, Literal) and side.value is None):
        return side
    blanks = " " * missing
    return replace(side, value=side.value + blanks) if isinstance(side, Literal) else concat(side, Literal(STRING, blanks))


def is_char(side: Expr) -> bool:
    return isinstance(side, Column) and len(side.ids) == 1 and isinstance(side.type, String) and side.type.kind == "char"


def _length(side: Expr) -> int | None:
    """Of a CHAR column or a constant text (NULL: 0); None for anything else, beside which nothing is padded."""
    if is_char(side):
        assert isinstance(side.type, String)
        return side.type.length
    if isinstance(side, Literal):
        return len(side.value) if isinstance(side.value, str) else 0 if side.value is None else None
    return None
