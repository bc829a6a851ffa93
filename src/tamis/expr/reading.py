"""Spark SQL text, read: what sqlglot makes of it, bound by ``bind.Binder``.

sqlglot reads the text; what the words mean is the catalogue's alone: the dialect below knows no function, so every function comes out
under the name as written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import SqlglotError, TokenError

from tamis.errors import InvalidInput
from tamis.expr.bind import Binder
from tamis.expr.lists import taken
from tamis.expr.tree import Expr, Literal, Mode, Opaque
from tamis.types import BOOLEAN, NULL, Schema


class SparkWords(Databricks):
    """Spark's grammar without a single function of its own: functions come out under the name as written. A doubled quote is a quote, as since Spark 4."""

    class Tokenizer(Databricks.Tokenizer):  # noqa: D106
        STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012

    class Parser(Databricks.Parser):  # type: ignore[misc,valid-type]  # noqa: D106
        FUNCTIONS: dict[str, Callable[..., Any]] = {}  # noqa: RUF012
        ARRAY_CONSTRUCTORS: dict[str, Any] = {}  # noqa: RUF012  # array(1, 2)[0] is an element


DEEPEST = 150
"""Levels of a filter: what walks trees by recursion must stay well below Python's limit."""

_HALF = re.compile("[\ud800-\udfff]")
_MISSING = re.compile(r"Required keyword: '\w+' missing for <class '[^']*'>")
_NO_EXPRESSION = (exp.Select, exp.DDL, exp.DML, exp.Drop, exp.Command, exp.Set, exp.Star)


def read(text: str, schema: Schema, zone: str, ansi: bool, what: str) -> Expr:
    """See ``tamis.expr.parse``."""
    out = _bound(text, schema, zone, ansi, what, "predicate")
    if isinstance(out, Opaque) and out.type == NULL:
        out = replace(out, type=BOOLEAN)
    if isinstance(out, Literal) and out.value is None:
        out = Literal(BOOLEAN, None)
    if out.type != BOOLEAN:
        raise _wrong(text, what, f"Its type is {out.type}, not boolean", "predicate")
    return out


def read_value(text: str, schema: Schema, zone: str, ansi: bool, what: str) -> Expr:
    """See ``tamis.expr.parse_value``."""
    return _bound(text, schema, zone, ansi, what, "expression")


def _bound(text: str, schema: Schema, zone: str, ansi: bool, what: str, kind: str) -> Expr:
    if _HALF.search(text):
        raise _wrong(repr(text)[1:-1], what, "It holds half a character", kind)
    try:
        short, lists = taken(text)
        statements = sqlglot.parse(short, dialect=SparkWords)
    except (SqlglotError, RecursionError, ValueError) as error:
        raise _wrong(text, what, _said(error), kind) from error
    parsed = statements[0] if len(statements) == 1 else None
    if parsed is None:
        raise _wrong(text, what, "It holds more than one" if any(statements) else "It is empty", kind)
    if isinstance(parsed, exp.Alias):
        raise _wrong(text, what, f"Nothing joins {parsed.alias!r} to what stands before it", kind)
    if isinstance(parsed, _NO_EXPRESSION):
        raise _wrong(text, what, f"It is a statement or a part of one ({type(parsed).__name__.upper()})", kind)
    try:
        out = Binder(schema, zone, Mode.ANSI if ansi else Mode.LEGACY, lists=lists).bind(parsed)
    except RecursionError as error:
        raise _wrong(text, what, "It is nested too deeply", kind) from error
    if _depth(out) > DEEPEST:
        raise _wrong(text, what, "It is nested too deeply", kind)
    return out


def _said(error: Exception) -> str:
    """What sqlglot says, for people. Where it cannot even tell the words apart, its message is the text once more and the cause says what."""
    if isinstance(error, TokenError):
        cause = str(error.__cause__)
        return cause if cause.startswith(("Missing", "Numeric")) else "A quote or a comment in it does not end"
    message = re.sub(r"\x1b\[\d*m", "", str(error)).split("\n")[0]
    return _MISSING.sub("Something is missing", message)


def _depth(tree: Expr) -> int:
    """Levels of ``tree``, found without recursion."""
    depth, level = 0, [tree]
    while level:
        depth, level = depth + 1, [child for node in level for child in node.children]
    return depth


def _wrong(text: str, what: str, message: str, kind: str) -> InvalidInput:
    shown = text if len(text) < 200 else text[:200] + "…"
    quoted = "" if kind == "predicate" else "; text stands in quotes: 'text'"
    return InvalidInput(
        f"{shown!r} is not {what}: {message.rstrip('.')}.", code="PARSE_ERROR", name=shown, remedy=f"Write one Spark SQL {kind}{quoted}."
    )
