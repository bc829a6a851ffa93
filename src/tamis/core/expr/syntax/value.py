"""Grammar of operators by precedence, and of the suffixes ``::``, ``:``, ``[…]`` and ``.``."""

from __future__ import annotations

from functools import partial
from itertools import chain

from tamis.core.expr.syntax.nodes import Binary, Cast, Collate, Dot, Name, Node, Path, Subscript, Unary
from tamis.core.expr.syntax.reader import Found, Reader, greedy_extensions
from tamis.core.expr.syntax.tokens import Kind, whole_number

_LEVELS = {
    **dict.fromkeys(("*", "/", "%", "DIV"), 7),
    **dict.fromkeys(("+", "-", "||"), 6),
    **dict.fromkeys(("<<", ">>", ">>>"), 5),
    "&": 4,
    "^": 3,
    "|": 2,
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "<=>"), 1),
}
"""A higher level binds more strongly; operators of one level, comparisons too, are left-associative."""
_PIPES = frozenset(
    [
        "AGGREGATE",
        "ANTI",
        "AS",
        "ASOF",
        "BIN",
        "CLUSTER",
        "CROSS",
        "DISTRIBUTE",
        "DROP",
        "EXCEPT",
        "EXTEND",
        "FULL",
        "INNER",
        "INTERSECT",
        "JOIN",
        "LATERAL",
        "LEFT",
        "LIMIT",
        "NATURAL",
        "OFFSET",
        "ORDER",
        "PIVOT",
        "RIGHT",
        "SELECT",
        "SEMI",
        "SET",
        "MINUS",
        "SORT",
        "TABLESAMPLE",
        "UNION",
        "UNPIVOT",
        "WHERE",
        "WINDOW",
    ]
)
"""Words before which ``|`` begins the next step of a query (Spark 4.3) and is not an operator."""
_SIGNED = 8
_SIGNS = frozenset({"-", "+", "~"})
_SUFFIXES = frozenset({"COLLATE", "::", ":", "[", "."})


class Value(Reader):
    """The rules between predicates and primaries."""

    def value(self, at: int, floor: int = 0) -> Found[Node]:
        return self.shared(
            "value", at, floor, lambda: greedy_extensions(self._operands(at), partial(self._operated, at, floor))
        )

    def _operands(self, at: int) -> Found[Node]:
        plain = greedy_extensions(self.primaries(at), partial(self._suffixed, at))
        return chain(plain, self._signed(at)) if self.word(at) in _SIGNS else plain

    def _signed(self, at: int) -> Found[Node]:
        for end, node in self.value(at + 1, _SIGNED):
            yield end, Unary(*self.span(at, end), self.word(at), node)

    def _operated(self, at: int, floor: int, end: int, left: Node) -> Found[Node] | None:
        word = self.word(end)
        level = -1 if word == "|" and self.word(end + 1) in _PIPES else _LEVELS.get(word, -1)
        if level < max(floor, 1):
            self.record_mismatch(end)
            return None
        rights = self.value(end + 1, level + 1)
        return ((e, Binary(*self.span(at, e), word, left, right)) for e, right in rights)

    def _suffixed(self, at: int, end: int, node: Node) -> Found[Node] | None:
        word = self.word(end)
        if word not in _SUFFIXES:
            self.record_mismatch(end)
            return None
        rule = {"COLLATE": self._collated, "::": self._cast, ":": self._path, "[": self._subscript, ".": self._dot}[
            word
        ]
        return rule(at, end + 1, node)

    def _collated(self, at: int, end: int, node: Node) -> Found[Node]:
        for after, names in self.dotted(end):
            yield after, Collate(*self.span(at, after), node, names)

    def _cast(self, at: int, end: int, node: Node) -> Found[Node]:
        for after, kind in self.data_type(end):
            yield after, Cast(*self.span(at, after), node, kind)

    def _subscript(self, at: int, end: int, node: Node) -> Found[Node]:
        for after, index in self.value(end):
            if self.has(after, "]"):
                yield after + 1, Subscript(*self.span(at, after + 1), node, index)

    def _dot(self, at: int, end: int, node: Node) -> Found[Node]:
        if self.is_name(end):
            span, name = self.span(at, end + 1), self.name(end)
            yield end + 1, Name(*span, (*node.parts, name)) if isinstance(node, Name) else Dot(*span, node, name)

    def dotted(self, at: int) -> Found[tuple[str, ...]]:
        """Yield ``a.b.c``, the longest first."""
        names: list[str] = []
        ends: list[int] = []
        while self.is_name(at):
            names.append(self.name(at))
            ends.append(at + 1)
            if not self.has(at + 1, "."):
                break
            at += 2
        for count in range(len(names), 0, -1):
            yield ends[count - 1], tuple(names[:count])

    def _path(self, at: int, end: int, node: Node) -> Found[Node]:
        """Yield steps into a VARIANT: a name or a bracket first, then ``.name`` and brackets."""
        steps: list[tuple[int, str | int | None]] = []
        while step := self._bracket(end) or self._key(end, first=not steps):
            steps.append(step)
            end = step[0]
        for count in range(len(steps), 0, -1):
            after = steps[count - 1][0]
            yield after, Path(*self.span(at, after), node, tuple(s for _, s in steps[:count]))

    def _bracket(self, at: int) -> tuple[int, str | int | None] | None:
        """Read ``['key']`` or ``[0]``; ``[name]`` gives None, as Spark's parser rejects it later."""
        inner = self.tokens[at + 1]
        if self.word(at) != "[" or self.word(at + 2) != "]":
            return None
        if inner.kind is Kind.TEXT:
            return at + 3, str(inner.value)
        if (index := whole_number(inner)) is not None:
            return at + 3, index
        return (at + 3, None) if self.is_name(at + 1) else None

    def _key(self, at: int, first: bool) -> tuple[int, str | int | None] | None:
        if not first and not self.has(at, "."):
            return None
        at += not first
        return (at + 1, self.name(at)) if self.is_name(at) else None
