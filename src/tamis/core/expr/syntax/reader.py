"""The base of the grammar: tokens, and reading with alternatives.

In Spark's default mode every keyword can be a name (``case = 1``, ``not IN (1)``), so one token rarely tells
which construct it begins. Spark's parser takes the first alternative of each rule with which the whole text
can be parsed. This parser does the same: a rule at a token lazily yields every place where it can end, each
with its node, in the order of the rule's alternatives, and the caller takes the first one with which it can
continue. Results of a rule are cached (``shared``), so that no text takes more than polynomial time; on plain
text the first alternative always succeeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from tamis.core.expr.syntax.nodes import Node, Type
from tamis.core.expr.syntax.tokens import Kind, Token, tokenize_sql

T = TypeVar("T")
Found = Iterator[tuple[int, T]]
"""One pair per parse: the index of the token after it, and its result."""
NAMES = frozenset({Kind.WORD, Kind.QUOTED})


class Reader:
    """The tokens of a text, and the rules that the parts of the grammar share."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize_sql(text)
        self.furthest = 0
        """The last token at which another was expected.

        It is the position to report if the text cannot be parsed.
        """
        self._known: dict[tuple[str, int, int], tuple[list[Any], Iterator[Any]]] = {}

    def expression(self, at: int) -> Found[Node]:
        """Yield any expression."""
        raise NotImplementedError

    def named(self, at: int) -> Found[Node]:
        """Yield an expression that may have an alias."""
        raise NotImplementedError

    def value(self, at: int, floor: int = 0) -> Found[Node]:
        """Yield an expression without AND, OR, NOT and predicates.

        Its operators are of level ``floor`` or above.
        """
        raise NotImplementedError

    def primaries(self, at: int) -> Found[Node]:
        """Yield what begins with the token ``at`` and is not an operator."""
        raise NotImplementedError

    def name_alone(self, at: int) -> Found[Node]:
        """Yield one name as a column."""
        raise NotImplementedError

    def dotted(self, at: int) -> Found[tuple[str, ...]]:
        """Yield ``a.b.c``, the longest first."""
        raise NotImplementedError

    def data_type(self, at: int) -> Found[Type]:
        """Yield the name of a type."""
        raise NotImplementedError

    def closing(self, at: int) -> int:
        """Return the index of the token that closes the parenthesis around ``at``, or of the end."""
        raise NotImplementedError

    def query(self, at: int) -> Iterator[int]:
        """Yield the index of the closing parenthesis after a query."""
        raise NotImplementedError

    def word(self, at: int) -> str:
        """Return the token's word in capitals, or its operator."""
        return self.tokens[at].word

    def has(self, at: int, *words: str) -> bool:
        """Return whether these words follow one another from ``at``."""
        for offset, word in enumerate(words):
            if self.tokens[at + offset].word != word:
                self.record_mismatch(at + offset)
                return False
        return True

    def record_mismatch(self, at: int) -> None:
        """Record that the token is not the expected one."""
        self.furthest = max(self.furthest, at)

    def is_name(self, at: int) -> bool:
        """Return whether the token can be a name."""
        if self.tokens[at].kind in NAMES:
            return True
        self.record_mismatch(at)
        return False

    def name(self, at: int) -> str:
        """Return the token as a name."""
        return str(self.tokens[at].value)

    def peek(self, at: int) -> Token:
        """Return the token, or END beyond the last."""
        return self.tokens[min(at, len(self.tokens) - 1)]

    def span(self, at: int, end: int) -> tuple[int, int]:
        """Return the range of characters from the token ``at`` to the one before ``end``."""
        return self.tokens[at].start, self.tokens[end - 1].end

    def shared(self, rule: str, at: int, floor: int, read: Callable[[], Iterator[T]]) -> Iterator[T]:
        """Yield the results of ``read``, computed once for all users of this rule at this token."""
        key = (rule, at, floor)
        if key not in self._known:
            self._known[key] = ([], read())
        done, source = self._known[key]
        number = 0
        while True:
            if number == len(done):
                found = next(source, None)
                if found is None:
                    return
                done.append(found)
            yield done[number]
            number += 1

    def listed(self, at: int, item: Callable[[int], Found[T]]) -> Found[tuple[T, ...]]:
        """Yield ``item, item, …``, the longest list first."""

        def more(end: int, items: _Chain[T]) -> Found[_Chain[T]] | None:
            return ((e, (items, found)) for e, found in item(end + 1)) if self.has(end, ",") else None

        start: Found[_Chain[T]] = ((e, (None, found)) for e, found in item(at))
        return ((end, _unchained(items)) for end, items in greedy_extensions(start, more))


_Chain = tuple[Any, T]
"""All items but the last, and the last."""


def _unchained(chain: _Chain[T] | None) -> tuple[T, ...]:
    out: list[T] = []
    while chain is not None:
        chain, last = chain
        out.append(last)
    return tuple(reversed(out))


def greedy_extensions(starts: Found[T], more: Callable[[int, T], Found[T] | None]) -> Found[T]:
    """Extend each start by ``more`` repeatedly, the longest first: ``a``, ``a + b``, ``a + b + c``.

    A position is tried only once, because what follows does not depend on how it was reached. Long chains
    need no recursion.
    """
    seen: set[int] = set()
    waiting: list[tuple[Found[T], tuple[int, T] | None]] = [(starts, None)]
    while waiting:
        source, shorter = waiting[-1]
        found = next(source, None)
        if found is None:
            waiting.pop()
            if shorter is not None:
                yield shorter
        elif found[0] not in seen:
            seen.add(found[0])
            longer = more(*found)
            if longer is None:
                yield found
            else:
                waiting.append((longer, found))
