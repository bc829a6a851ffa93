"""Parses text by Spark's grammar: expressions, types and lists of columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tamis.core.expr.syntax.check import check_syntax
from tamis.core.expr.syntax.nodes import Node, Type, TypeField
from tamis.core.expr.syntax.primary import Primary
from tamis.core.expr.syntax.problem import SyntaxProblem
from tamis.core.expr.syntax.queries import Queries
from tamis.core.expr.syntax.reader import Found
from tamis.core.expr.syntax.tokens import Kind
from tamis.core.expr.syntax.types import Types

T = TypeVar("T")


class Parser(Types, Primary, Queries):
    """All rules together."""


def parse_expression(text: str) -> Node:
    """Parse the one expression in ``text``; an ``Alias`` if a name follows. Raises ``SyntaxProblem``."""
    found = _whole(text, Parser.named)
    check_syntax(found, text)
    return found


def data_type(text: str) -> Type:
    """Parse the type that ``text`` names. Raises ``SyntaxProblem``."""
    return _whole(text, Parser.data_type)


def parse_column_list(text: str) -> tuple[TypeField, ...]:
    """Parse a list of columns or fields such as ``a INT, b STRING``. Raises ``SyntaxProblem``."""
    return _whole(text, Parser.columns)


def parse_fields(text: str) -> tuple[TypeField, ...]:
    """Parse the fields between the brackets of a STRUCT. Raises ``SyntaxProblem``."""
    return _whole(f"STRUCT<{text}>", Parser.data_type).fields


def _whole(text: str, rule: Callable[[Parser, int], Found[T]]) -> T:
    """Return the first parse of all of ``text``."""
    try:
        parser = Parser(text)
        if parser.tokens[0].kind is Kind.END:
            raise SyntaxProblem("It is empty")
        for end, found in rule(parser, 0):
            if parser.tokens[end].kind is Kind.END:
                return found
            parser.record_mismatch(end)
    except RecursionError:
        raise SyntaxProblem("It is nested too deeply") from None
    raise _unread(parser)


def _unread(parser: Parser) -> SyntaxProblem:
    token = parser.tokens[parser.furthest]
    if token.kind is Kind.END:
        return SyntaxProblem("Something is missing at its end", token.start)
    if token.word == ";":
        return SyntaxProblem("It holds more than one", token.start)
    return SyntaxProblem(f"It cannot be read from {parser.text[token.start : token.end]!r} on", token.start)
