"""Parse Spark SQL text and bind it to a schema: ``tamis.core.expr.syntax`` reads it, ``Binder`` binds it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tamis.core.expr.tree import Expr, Literal, Mode, Opaque
from tamis.core.types import BOOLEAN, NULL, Schema
from tamis.errors import InvalidInput
from tamis.lazy_imports import lazy_module

if TYPE_CHECKING:
    from tamis.core.expr import syntax
    from tamis.core.expr.binding import binder
    from tamis.core.expr.syntax import nodes
else:  # a scan without a filter text does not need the parser, a tenth of the import of tamis.table
    syntax = lazy_module("tamis.core.expr.syntax")
    binder = lazy_module("tamis.core.expr.binding.binder")
    nodes = lazy_module("tamis.core.expr.syntax.nodes")

DEEPEST = 150
"""Maximum depth of a filter: recursive functions over trees must stay well below Python's limit."""

_HALF = re.compile("[\ud800-\udfff]")


def parse_predicate(text: str, schema: Schema, *, zone: str = "UTC", ansi: bool = True, what: str = "a filter") -> Expr:
    """Parse a Spark SQL predicate over the columns of ``schema``, coerced as Spark's analyzer does.

    ``zone`` is the session time zone, ``what`` names the text in errors. Raises ``NotFound``
    (``COLUMN_NOT_FOUND``), and ``InvalidInput`` (``PARSE_ERROR``) for text that does not parse or is no predicate.
    A function that is not in the catalogue becomes ``Opaque``.
    """
    out = _bound(text, schema, zone, ansi, what, "predicate")
    if isinstance(out, Opaque) and out.type == NULL:
        out = replace(out, type=BOOLEAN)
    if isinstance(out, Literal) and out.value is None:
        out = Literal(BOOLEAN, None)
    if out.type != BOOLEAN:
        raise _wrong(text, what, f"Its type is {out.type}, not boolean", "predicate")
    return out


def parse_value(text: str, schema: Schema, *, zone: str = "UTC", ansi: bool = True, what: str = "a value") -> Expr:
    """Parse a Spark SQL expression of any type; otherwise as ``parse_predicate``."""
    return _bound(text, schema, zone, ansi, what, "expression")


def _bound(text: str, schema: Schema, zone: str, ansi: bool, what: str, kind: str) -> Expr:
    if _HALF.search(text):
        raise _wrong(repr(text)[1:-1], what, "It holds half a character", kind)
    try:
        parsed = syntax.parse_expression(text)
        if isinstance(parsed, nodes.Alias):
            raise syntax.SyntaxProblem(f"Nothing joins {', '.join(parsed.names)!r} to what stands before it")
        if isinstance(parsed, nodes.Star):
            raise syntax.SyntaxProblem("It stands for all columns")
        out = binder.Binder(schema, zone, Mode.ANSI if ansi else Mode.LEGACY, text).bind(parsed)
    except syntax.SyntaxProblem as problem:
        raise _wrong(text, what, problem.message_for(text), kind) from None
    except RecursionError as error:
        raise _wrong(text, what, "It is nested too deeply", kind) from error
    if _depth(out) > DEEPEST:
        raise _wrong(text, what, "It is nested too deeply", kind)
    return out


def _depth(tree: Expr) -> int:
    """Return the depth of ``tree`` without recursion."""
    depth, level = 0, [tree]
    while level:
        depth, level = depth + 1, [child for node in level for child in node.children]
    return depth


def _wrong(text: str, what: str, message: str, kind: str) -> InvalidInput:
    shown = text if len(text) < 200 else text[:200] + "…"
    quoted = "" if kind == "predicate" else "; string literals need quotes: 'text'"
    return InvalidInput(
        f"{shown!r} is not {what}: {message.rstrip('.')}.",
        code="PARSE_ERROR",
        name=shown,
        remedy=f"Write one Spark SQL {kind}{quoted}.",
    )
