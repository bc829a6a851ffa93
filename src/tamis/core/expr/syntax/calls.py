"""Grammar of function calls, with the SQL clauses inside and after them."""

from __future__ import annotations

from collections.abc import Iterator

from tamis.core.expr.syntax.boolean import Boolean
from tamis.core.expr.syntax.nodes import Function, Named, Node
from tamis.core.expr.syntax.reader import Found
from tamis.core.expr.syntax.value import Value

Beside = tuple[tuple[str, ...], tuple[Node, ...]]
"""The names of the clauses after the arguments, and the nodes in them."""


class Calls(Boolean, Value):
    """The rule for calls."""

    def call(self, at: int) -> Found[Node]:
        for end, name in self.dotted(at):
            if self.word(end) == "(":
                for close, args, distinct in self._arguments(end + 1):
                    for after, (beside, others) in self._beside(close):
                        yield after, Function(*self.span(at, after), name, args, distinct + beside, "", others)

    def _arguments(self, at: int) -> Iterator[tuple[int, tuple[Node, ...], tuple[str, ...]]]:
        """Yield the arguments up to the closing parenthesis, and DISTINCT."""
        word = self.word(at)
        if word in {"DISTINCT", "ALL"}:
            for end, args in self.listed(at + 1, self._argument):
                if self.has(end, ")"):
                    yield end + 1, args, ("DISTINCT",) if word == "DISTINCT" else ()
        if word == ")":
            yield at + 1, (), ()
            return
        for end, args in self.listed(at, self._argument):
            if self.has(end, ")"):
                yield end + 1, args, ()

    def _argument(self, at: int) -> Found[Node]:
        if self.tokens[at + 1].word == "=>" and self.is_name(at):
            for end, node in self.expression(at + 2):
                yield end, Named(*self.span(at, end), self.name(at), node)
        else:
            yield from self.expression(at)

    def _beside(self, at: int) -> Found[Beside]:
        """Return the clauses after the parenthesis, each at most once and in this order, the most first."""
        found: list[tuple[int, Beside]] = [(at, ((), ()))]
        if self.has(at, "WITHIN", "GROUP", "("):
            found.append((self.closing(at + 3) + 1, (("WITHIN GROUP",), ())))
        end, (names, nodes) = found[-1]
        if self.has(end, "FILTER", "(", "WHERE"):
            for close, test in self.expression(end + 3):
                if self.has(close, ")"):
                    found.append((close + 1, ((*names, "FILTER"), (*nodes, test))))
                    break
        end, (names, nodes) = found[-1]
        if self.word(end) in {"IGNORE", "RESPECT"} and self.word(end + 1) == "NULLS":
            found.append((end + 2, ((*names, f"{self.word(end)} NULLS"), nodes)))
        end, (names, nodes) = found[-1]
        if self.word(end) == "OVER":
            if self.word(end + 1) == "(":
                found.append((self.closing(end + 2) + 1, ((*names, "OVER"), nodes)))
            elif self.is_name(end + 1):
                found.append((end + 2, ((*names, "OVER"), nodes)))
        return reversed([f for f in found if f[0] < len(self.tokens)])
