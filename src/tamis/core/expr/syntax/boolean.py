"""Grammar of AND, OR, NOT, postfix predicates and aliases."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tamis.core.expr.syntax.nodes import Alias, Binary, Node, Predicate, Query, Unary, Values
from tamis.core.expr.syntax.reader import Found, Reader, greedy_extensions
from tamis.core.expr.syntax.tokens import Kind

_LEVELS = {"AND": 2, "OR": 1}
_NOT = 5
"""Binding strength of NOT, above AND and OR."""
_NEGATIONS = frozenset({"NOT", "!"})
_TRUTHS = frozenset({"TRUE", "FALSE", "UNKNOWN", "NULL"})


class Boolean(Reader):
    """The rules above values."""

    def named(self, at: int) -> Found[Node]:
        for end, node in self.expression(at):
            for first in (end + 1, end) if self.has(end, "AS") else (end,):
                for after, names in self._alias(first):
                    yield after, Alias(*self.span(at, after), node, names)
            yield end, node

    def _alias(self, at: int) -> Found[tuple[str, ...]]:
        if self.is_name(at):
            yield at + 1, (self.name(at),)
        if self.has(at, "("):
            for end, names in self.listed(at + 1, self.one_name):
                if self.has(end, ")"):
                    yield end + 1, names

    def one_name(self, at: int) -> Found[str]:
        if self.is_name(at):
            yield at + 1, self.name(at)

    def expression(self, at: int) -> Found[Node]:
        return self._boolean(at, 0)

    def _boolean(self, at: int, floor: int) -> Found[Node]:
        return self.shared(
            "boolean", at, floor, lambda: greedy_extensions(self._tests(at), partial(self._joined, at, floor))
        )

    def _joined(self, at: int, floor: int, end: int, left: Node) -> Found[Node] | None:
        word = self.word(end)
        level = _LEVELS.get(word, -1)
        if level < max(floor, 1):
            self.record_mismatch(end)
            return None
        rights = self._boolean(end + 1, level + 1)
        return ((e, Binary(*self.span(at, e), word, left, right)) for e, right in rights)

    def _tests(self, at: int) -> Found[Node]:
        word = self.word(at)
        if word in _NEGATIONS:
            for end, node in self._boolean(at + 1, _NOT):
                yield end, Unary(*self.span(at, end), "NOT", node)
        if word == "EXISTS" and self.has(at + 1, "("):
            for close in self.query(at + 2):
                yield close + 1, Query(*self.span(at, close + 1), exists=True)
        for end, node in self.value(at):
            for after, kind, negated, others, more in self._predicates(end):
                bang = "!" in {self.word(end), self.word(end + 1) if self.word(end) == "IS" else ""}
                yield after, Predicate(*self.span(at, after), kind, negated, node, others, *more, bang)
            yield end, node

    def _predicates(self, at: int) -> Iterator[tuple[int, str, bool, tuple[Node, ...], tuple[str, str | None]]]:
        """Yield the predicates that can follow a value that ends before ``at``."""
        if self.word(at) == "IS":
            yield from self._is(at + 1)
            return
        negated = self.word(at) in _NEGATIONS
        word = self.word(at + negated)
        rule = {"BETWEEN": self._between, "IN": self._in, "RLIKE": self._rlike, "REGEXP": self._rlike}.get(word)
        if rule is not None:
            for end, others in rule(at + negated + 1):
                yield end, "RLIKE" if word == "REGEXP" else word, negated, others, ("", None)
        elif word in {"LIKE", "ILIKE"}:
            for end, others, quantifier, escape in self._like(at + negated + 1):
                yield end, word, negated, others, (quantifier, escape)
        else:
            self.record_mismatch(at + negated)

    def _is(self, at: int) -> Iterator[tuple[int, str, bool, tuple[Node, ...], tuple[str, str | None]]]:
        negated = self.word(at) in _NEGATIONS
        word = self.word(at + negated)
        if word in _TRUTHS:
            yield at + negated + 1, word, negated, (), ("", None)
        elif word == "DISTINCT" and self.has(at + negated + 1, "FROM"):
            for end, other in self.value(at + negated + 2):
                yield end, word, negated, (other,), ("", None)
        self.record_mismatch(at + negated)

    def _between(self, at: int) -> Found[tuple[Node, ...]]:
        for middle, low in self.value(at):
            if self.has(middle, "AND"):
                for end, high in self.value(middle + 1):
                    yield end, (low, high)

    def _in(self, at: int) -> Found[tuple[Node, ...]]:
        if not self.has(at, "("):
            return
        if self.tokens[at + 1].kind is Kind.LIST:
            if self.has(at + 2, ")"):
                yield at + 3, (Values(*self.span(at + 1, at + 2), self.tokens[at + 1].value),)
            return
        yield from self._many(at)
        for close in self.query(at + 1):
            yield close + 1, (Query(*self.span(at, close + 1)),)

    def _many(self, at: int) -> Found[tuple[Node, ...]]:
        """Yield the expressions in parentheses, possibly none."""
        if self.has(at + 1, ")"):
            yield at + 2, ()
        for end, items in self.listed(at + 1, self.expression):
            if self.has(end, ")"):
                yield end + 1, items

    def _rlike(self, at: int) -> Found[tuple[Node, ...]]:
        for end, pattern in self.value(at):
            yield end, (pattern,)

    def _like(self, at: int) -> Iterator[tuple[int, tuple[Node, ...], str, str | None]]:
        word = self.word(at)
        if word in {"ANY", "SOME", "ALL"} and self.has(at + 1, "("):
            for end, patterns in self._many(at + 1):
                yield end, patterns, word, None
        for end, pattern in self.value(at):
            if self.has(end, "ESCAPE"):
                for after, text in self.text_at(end + 1):
                    yield after, (pattern,), "", text
            yield end, (pattern,), "", None

    def text_at(self, at: int) -> Found[str]:
        """Yield adjacent strings as one.

        Parameters may stand between them, but not first, and read as nothing.
        """
        ends = []
        end = at
        while self.tokens[end].kind is Kind.TEXT or (end > at and self.word(end) in {"?", ":"}):
            if self.word(end) == ":":
                end += 1
                if not self.is_name(end):
                    break
            end += 1
            ends.append(end)
        if not ends:
            self.record_mismatch(at)
        for last in reversed(ends):
            yield last, "".join(str(token.value) for token in self.tokens[at:last] if token.kind is Kind.TEXT)
