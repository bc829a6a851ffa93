"""Recognizes queries inside expressions without parsing them, since filters do not run queries."""

from __future__ import annotations

from collections.abc import Iterator

from tamis.core.expr.syntax.reader import NAMES, Reader
from tamis.core.expr.syntax.tokens import Kind

_CLAUSES = (
    "FROM WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET "
    "UNION INTERSECT EXCEPT MINUS LATERAL WINDOW QUALIFY"
)
_GO_ON = frozenset({")", "|>", *_CLAUSES.split()})
"""Words that can follow the columns of a SELECT."""
_AFTER_QUERY = _GO_ON - {"FROM", "WHERE", "GROUP", "HAVING", "LATERAL"}
_AFTER_TABLE = frozenset(
    {*_GO_ON, ",", "AS", "SELECT", "JOIN", "LEFT", "RIGHT", "INNER", "FULL", "CROSS", "NATURAL", "TABLESAMPLE", "PIVOT"}
)


class Queries(Reader):
    """The rule for queries in parentheses."""

    def query(self, at: int) -> Iterator[int]:
        if self._begins(at):
            close = self.closing(at)
            if self.has(close, ")"):
                yield close

    def closing(self, at: int) -> int:
        """Return the index of the token that closes the parenthesis around ``at``, or of the end."""
        depth = 0
        while self.tokens[at].kind is not Kind.END:
            word = self.word(at)
            if word == ")" and not depth:
                return at
            depth += (word == "(") - (word == ")")
            at += 1
        return at

    def _relation_ends(self, at: int) -> bool:
        """Return whether a table's name is followed by the rest of a query, with or without an alias."""
        if self.word(at) in _AFTER_TABLE:
            return True
        if self.peek(at).kind not in NAMES:
            return False
        return self.word(at + 1) in _AFTER_TABLE or (self.word(at + 1) == "(" and self._names_columns(at + 2))

    def _names_columns(self, at: int) -> bool:
        """Return whether a parenthesized list of names that begins here ends a relation."""
        close = self.closing(at)
        names = all(
            self.peek(place).kind in NAMES if (place - at) % 2 == 0 else self.word(place) == ","
            for place in range(at, close)
        )
        return names and (close - at) % 2 == 1 and self.word(close + 1) in _AFTER_TABLE

    def _begins(self, at: int) -> bool:
        word, after = self.word(at), self.peek(at + 1)
        match word:
            case "(":
                close = self.closing(at + 1)
                return (
                    self._begins(at + 1) and self.peek(close).word == ")" and self.peek(close + 1).word in _AFTER_QUERY
                )
            case "SELECT":
                first = at + 1 + (after.word in {"ALL", "DISTINCT"})
                return after.word == "/*+" or any(
                    self.word(end) in _GO_ON for start in {first, at + 1} for end, _ in self.listed(start, self.named)
                )
            case "VALUES":
                return any(self.word(end) in _AFTER_QUERY for end, _ in self.listed(at + 1, self.named))
            case "TABLE":
                return any(self.word(end) in _AFTER_QUERY for end, _ in self.dotted(at + 1))
            case "FROM":
                return after.word == "(" or any(self._relation_ends(end) for end, _ in self.dotted(at + 1))
            case "WITH":
                return after.kind in NAMES and self.peek(at + 2).word in {"AS", "("}
        return False
