"""Grammar of keyword forms: CASE, CAST, EXTRACT, and functions with words between their arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tamis.core.expr.syntax.nodes import Case, Cast, Extract, Function, Node, Text, Trim
from tamis.core.expr.syntax.reader import Found, Reader, greedy_extensions
from tamis.core.expr.syntax.tokens import Kind

UNITS = frozenset(
    ["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFYEAR", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"]
)
_WITH_UNIT = frozenset(["TIMESTAMPADD", "DATEADD", "DATE_ADD", "TIMESTAMPDIFF", "DATEDIFF", "DATE_DIFF", "TIMEDIFF"])
_OF_ROWS = frozenset({"FIRST", "LAST", "ANY_VALUE"})
_NO_PARENTHESES = frozenset(
    [
        "CURRENT_DATE",
        "CURRENT_PATH",
        "CURRENT_TIME",
        "CURRENT_TIMESTAMP",
        "CURRENT_USER",
        "LOCALTIME",
        "SESSION_USER",
        "USER",
    ]
)
Branches = tuple[tuple[Node, Node], ...]
Rules = tuple[Callable[[int], Found[Node]], ...]


class Forms(Reader):
    """The rules of keyword forms."""

    def forms(self, word: str) -> tuple[Rules, Rules]:
        """Return the rules for forms that begin with this word.

        The first are tried before constants, calls and names, the second after.
        """
        if word in _WITH_UNIT:
            return (self._with_unit,), ()
        if word in _OF_ROWS:
            return (self._of_rows,), ()
        if word in _NO_PARENTHESES:
            return (self.name_alone,), ()
        early: dict[str, Rules] = {
            "CASE": (self._searched, self._case),
            "CAST": (self._cast_as,),
            "TRY_CAST": (self._cast_as,),
            "STRUCT": (self._struct,),
            "POSITION": (self._position,),
        }
        late: dict[str, Rules] = {
            "EXTRACT": (self._extract,),
            "SUBSTRING": (self._substring,),
            "SUBSTR": (self._substring,),
            "TRIM": (self._trim,),
            "OVERLAY": (self._overlay,),
        }
        return early.get(word, ()), late.get(word, ())

    def _with_unit(self, at: int) -> Found[Node]:
        """Yield ``date_add(DAY, 1, ts)``: with a unit, or a text in its place, which is rejected later."""
        first = self.tokens[at + 2] if self.has(at + 1, "(") else self.tokens[-1]
        if not (first.word in UNITS or first.kind is Kind.TEXT) or not self.has(at + 3, ","):
            return
        for comma, amount in self.value(at + 4):
            for close, source in self.value(comma + 1) if self.has(comma, ",") else ():
                if self.has(close, ")"):
                    args: tuple[Node, ...] = (amount, source)
                    if first.kind is Kind.TEXT:
                        args = (Text(first.start, first.end, str(first.value)), *args)
                    yield close + 1, Function(*self.span(at, close + 1), (self.name(at),), args, (), first.word or "?")

    def _of_rows(self, at: int) -> Found[Node]:
        if not self.has(at + 1, "("):
            return
        for end, node in self.expression(at + 2):
            nulls = self.word(end) == "IGNORE" and self.word(end + 1) == "NULLS"
            close = end + 2 * nulls
            if self.has(close, ")"):
                beside = ("IGNORE NULLS",) if nulls else ()
                yield close + 1, Function(*self.span(at, close + 1), (self.name(at),), (node,), beside)

    def _searched(self, at: int) -> Found[Node]:
        for end, branches, default in self._branches(at + 1):
            yield end, Case(*self.span(at, end), None, branches, default)

    def _case(self, at: int) -> Found[Node]:
        for first, subject in self.expression(at + 1):
            for end, branches, default in self._branches(first):
                yield end, Case(*self.span(at, end), subject, branches, default)

    def _branches(self, at: int) -> Iterator[tuple[int, Branches, Node | None]]:
        """Yield branches and the default, up to END."""
        start: Found[Branches] = ((end, (pair,)) for end, pair in self._branch(at))
        more = lambda end, pairs: ((e, (*pairs, p)) for e, p in self._branch(end)) if self.has(end, "WHEN") else None  # noqa: E731
        for end, branches in greedy_extensions(start, more):
            if self.word(end) == "ELSE":
                for last, default in self.expression(end + 1):
                    if self.has(last, "END"):
                        yield last + 1, branches, default
            if self.has(end, "END"):
                yield end + 1, branches, None

    def _branch(self, at: int) -> Found[tuple[Node, Node]]:
        for then, condition in self.expression(at + 1) if self.has(at, "WHEN") else ():
            for end, result in self.expression(then + 1) if self.has(then, "THEN") else ():
                yield end, (condition, result)

    def _cast_as(self, at: int) -> Found[Node]:
        if not self.has(at + 1, "("):
            return
        for end, node in self.expression(at + 2):
            for close, kind in self.data_type(end + 1) if self.has(end, "AS") else ():
                if self.has(close, ")"):
                    yield close + 1, Cast(*self.span(at, close + 1), node, kind, self.word(at) == "TRY_CAST")

    def _struct(self, at: int) -> Found[Node]:
        if not self.has(at + 1, "("):
            return
        if self.has(at + 2, ")"):
            yield at + 3, Function(*self.span(at, at + 3), (self.name(at),), ())
        for end, items in self.listed(at + 2, self.named):
            if self.has(end, ")"):
                yield end + 1, Function(*self.span(at, end + 1), (self.name(at),), items)

    def _position(self, at: int) -> Found[Node]:
        for end, part in self.value(at + 2) if self.has(at + 1, "(") else ():
            for close, text in self.value(end + 1) if self.has(end, "IN") else ():
                if self.has(close, ")"):
                    yield close + 1, Function(*self.span(at, close + 1), ("instr",), (text, part))

    def _extract(self, at: int) -> Found[Node]:
        if self.has(at + 1, "(") and self.is_name(at + 2) and self.has(at + 3, "FROM"):
            for end, source in self.value(at + 4):
                if self.has(end, ")"):
                    yield end + 1, Extract(*self.span(at, end + 1), self.name(at + 2), source)

    def _substring(self, at: int) -> Found[Node]:
        for end, args in self._worded(at + 2, (("FROM", ","), ("FOR", ","))) if self.has(at + 1, "(") else ():
            if len(args) > 1:
                yield end, Function(*self.span(at, end), ("substring",), args)

    def _overlay(self, at: int) -> Found[Node]:
        for end, args in self._worded(at + 2, (("PLACING",), ("FROM",), ("FOR",))) if self.has(at + 1, "(") else ():
            if len(args) > 2:
                yield end, Function(*self.span(at, end), ("overlay",), args)

    def _worded(self, at: int, words: tuple[tuple[str, ...], ...]) -> Found[tuple[Node, ...]]:
        """Yield values separated by the given words, up to the closing parenthesis."""
        for end, first in self.value(at):
            if self.has(end, ")"):
                yield end + 1, (first,)
            if words and self.word(end) in words[0]:
                for after, rest in self._worded(end + 1, words[1:]):
                    yield after, (first, *rest)

    def _trim(self, at: int) -> Found[Node]:
        if not self.has(at + 1, "("):
            return
        sides = [self.word(at + 2)] if self.word(at + 2) in {"BOTH", "LEADING", "TRAILING"} else []
        for side in (*sides, ""):
            first = at + 2 + bool(side)
            for end, characters in self._trimmed(first):
                for close, source in self.value(end + 1):
                    if self.has(close, ")"):
                        yield close + 1, Trim(*self.span(at, close + 1), side, characters, source)

    def _trimmed(self, at: int) -> Found[Node | None]:
        """Yield the characters before FROM, if any."""
        for end, node in self.value(at):
            if self.has(end, "FROM"):
                yield end, node
        if self.has(at, "FROM"):
            yield at, None
