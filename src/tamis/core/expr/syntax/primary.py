"""Grammar of primaries: constants, names, calls, lambdas, parentheses and keyword forms."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from tamis.core.expr.syntax.calls import Calls
from tamis.core.expr.syntax.forms import Forms
from tamis.core.expr.syntax.intervals import Intervals
from tamis.core.expr.syntax.nodes import (
    Constant,
    Function,
    Lambda,
    Name,
    Node,
    Number,
    Parameter,
    Query,
    Row,
    Star,
    Text,
    Typed,
)
from tamis.core.expr.syntax.reader import Found
from tamis.core.expr.syntax.tokens import Kind

_CONSTANTS = {"NULL": None, "TRUE": True, "FALSE": False}
Rule = Callable[[int], Found[Node]]


class Primary(Calls, Forms, Intervals):
    """The rules of primaries."""

    def primaries(self, at: int) -> Found[Node]:
        rules = self._rules(at)
        self.record_mismatch(at)
        return chain.from_iterable(rule(at) for rule in rules)

    def _rules(self, at: int) -> tuple[Rule, ...]:
        """Return the rules that can begin with this token, in the order of Spark's grammar."""
        token = self.tokens[at]
        names: tuple[Rule, ...] = (self._typed, self._qualified_star, self.call, self._lambda, self.name_alone)
        match token.kind:
            case Kind.WORD:
                early, late = self.forms(token.word)
                return (*early, self._constant, *names, *late)
            case Kind.QUOTED:
                return names
            case Kind.NUMBER:
                return (self._number,)
            case Kind.TEXT:
                return (self._text,)
        signs: dict[str, tuple[Rule, ...]] = {
            "(": (self._row, self._query, self._lambda_of_many, self._inner),
            "-": (self._negative,),
            "*": (self._star,),
            "?": (self._parameter,),
            ":": (self._parameter,),
        }
        return signs.get(token.word, ())

    def _number(self, at: int) -> Found[Node]:
        token = self.tokens[at]
        yield at + 1, Number(*self.span(at, at + 1), str(token.value), token.suffix)

    def _negative(self, at: int) -> Found[Node]:
        """Yield a signed number; the sign belongs to the number: ``-1::string`` is ``(-1)::string``."""
        token = self.tokens[at + 1]
        if token.kind is Kind.NUMBER:
            yield at + 2, Number(*self.span(at, at + 2), "-" + str(token.value), token.suffix)

    def _text(self, at: int) -> Found[Node]:
        for end, text in self.text_at(at):
            yield end, Text(*self.span(at, end), text, self.tokens[end - 1].kind is not Kind.TEXT)

    def _constant(self, at: int) -> Found[Node]:
        word = self.word(at)
        if word in _CONSTANTS:
            yield at + 1, Constant(*self.span(at, at + 1), _CONSTANTS[word])
        elif word == "INTERVAL":
            yield from self.interval(at)

    def _typed(self, at: int) -> Found[Node]:
        if self.tokens[at + 1].kind is Kind.TEXT:
            yield at + 2, Typed(*self.span(at, at + 2), self.name(at).upper(), str(self.tokens[at + 1].value))

    def _parameter(self, at: int) -> Found[Node]:
        if self.word(at) == "?":
            yield at + 1, Parameter(*self.span(at, at + 1))
        elif self.is_name(at + 1):
            yield at + 2, Parameter(*self.span(at, at + 2))

    def _star(self, at: int) -> Found[Node]:
        if self.word(at + 1) == "EXCEPT" and self.has(at + 2, "("):
            for end, _ in self.listed(at + 3, self.dotted):
                if self.has(end, ")"):
                    yield end + 1, Star(*self.span(at, end + 1))
        yield at + 1, Star(*self.span(at, at + 1))

    def _qualified_star(self, at: int) -> Found[Node]:
        for end, _ in self.dotted(at):
            if self.word(end) == "." and self.word(end + 1) == "*":
                for after, star in self._star(end + 1):
                    yield after, Star(self.tokens[at].start, star.end)

    def name_alone(self, at: int) -> Found[Node]:
        span, name = self.span(at, at + 1), self.name(at)
        yield at + 1, Function(*span, (name,), ()) if self.word(at) == "CURRENT_PATH" else Name(*span, (name,))

    def _lambda(self, at: int) -> Found[Node]:
        if self.word(at + 1) == "->":
            for end, body in self.expression(at + 2):
                yield end, Lambda(*self.span(at, end), (self.name(at),), body)

    def _lambda_of_many(self, at: int) -> Found[Node]:
        for close, names in self.listed(at + 1, self.one_name):
            if len(names) > 1 and self.word(close) == ")" and self.word(close + 1) == "->":
                for end, body in self.expression(close + 2):
                    yield end, Lambda(*self.span(at, end), names, body)

    def _row(self, at: int) -> Found[Node]:
        for end, items in self.listed(at + 1, self.named):
            if len(items) > 1 and self.has(end, ")"):
                yield end + 1, Row(*self.span(at, end + 1), items)

    def _query(self, at: int) -> Found[Node]:
        for close in self.query(at + 1):
            yield close + 1, Query(*self.span(at, close + 1))

    def _inner(self, at: int) -> Found[Node]:
        for end, node in self.expression(at + 1):
            if self.has(end, ")"):
                yield end + 1, node
