"""Checks that Spark's parser makes after its grammar: invalid literals, empty lists, unknown units."""

from __future__ import annotations

from collections.abc import Callable

from tamis.core.expr.syntax.nodes import Function, Node, Path, Predicate, Text, Typed, walk_nodes
from tamis.core.expr.syntax.problem import SyntaxProblem

_LITERALS = frozenset({"DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "INTERVAL", "X"})


def check_syntax(tree: Node, text: str) -> None:
    """Raise ``SyntaxProblem`` for the first node in ``tree`` that Spark's parser rejects."""
    for node in walk_nodes(tree):
        rule = _RULES.get(type(node))
        if rule is not None and (why := rule(node)):
            raise SyntaxProblem(f"{text[node.start : node.end]!r} {why}", node.start)


def _predicate(node: Predicate) -> str:
    if node.bang:
        return "has ! where Spark asks for NOT"
    if node.quantifier and not node.others:
        return "has no pattern between its parentheses"
    if node.kind == "IN" and not node.others:
        return "has no member between its parentheses"
    if node.escape is not None and len(node.escape) != 1:
        return "has an escape that is not one character"
    return ""


def _text(node: Text) -> str:
    return "has a parameter among its parts" if node.filled else ""


def _typed(node: Typed) -> str:
    return "" if node.kind in _LITERALS else f"is no literal: there is none of type {node.kind}"


def _path(node: Path) -> str:
    return "has a name in brackets where a text or a position stands" if None in node.steps else ""


def _function(node: Function) -> str:
    return "begins with a text where a unit stands without quotes" if node.unit == "?" else ""


_RULES: dict[type[Node], Callable[..., str]] = {
    Predicate: _predicate,
    Text: _text,
    Path: _path,
    Typed: _typed,
    Function: _function,
}
