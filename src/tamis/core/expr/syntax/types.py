"""Grammar of type names and of column lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from tamis.core.expr.syntax.nodes import Type, TypeField
from tamis.core.expr.syntax.reader import Found, Reader
from tamis.core.expr.syntax.tokens import Kind, whole_number

_ZONES = {
    "TIMESTAMP": (("WITH", "LOCAL", "TIME", "ZONE"), ("WITHOUT", "TIME", "ZONE")),
    "TIME": (("WITHOUT", "TIME", "ZONE"),),
}
_TEXTS = frozenset({"STRING", "CHAR", "CHARACTER", "VARCHAR"})
_SPANS = {
    **dict.fromkeys(("YEAR", "MONTH"), frozenset({"MONTH"})),
    **dict.fromkeys(("DAY", "HOUR", "MINUTE", "SECOND"), frozenset({"HOUR", "MINUTE", "SECOND"})),
}


class Types(Reader):
    """The rules for types."""

    def data_type(self, at: int) -> Found[Type]:
        word = self.word(at)
        inside = {"ARRAY": self._array, "MAP": self._map, "STRUCT": self._struct_of, "INTERVAL": self._interval_of}.get(
            word
        )
        if inside is not None:
            yield from inside(at)
        if self.is_name(at):
            yield from self._plain(at, word or self.name(at))

    def columns(self, at: int) -> Found[tuple[TypeField, ...]]:
        """Yield ``name type, name type``.

        NULL after a type, which Spark's schemas do not allow, is accepted without effect.
        """
        return self.listed(at, lambda first: self._field(first, colon=False))

    def _array(self, at: int) -> Found[Type]:
        for end, inner in self.data_type(at + 2) if self.has(at + 1, "<") else ():
            if self.has(end, ">"):
                yield end + 1, Type(*self.span(at, end + 1), "ARRAY", inner=(inner,))

    def _map(self, at: int) -> Found[Type]:
        for comma, key in self.data_type(at + 2) if self.has(at + 1, "<") else ():
            for end, value in self.data_type(comma + 1) if self.has(comma, ",") else ():
                if self.has(end, ">"):
                    yield end + 1, Type(*self.span(at, end + 1), "MAP", inner=(key, value))

    def _struct_of(self, at: int) -> Found[Type]:
        if self.word(at + 1) == "<>":
            yield at + 2, Type(*self.span(at, at + 2), "STRUCT", words=("<>",))
        elif self.has(at + 1, "<"):
            if self.has(at + 2, ">"):
                yield at + 3, Type(*self.span(at, at + 3), "STRUCT", words=("<>",))
            for end, fields in self.listed(at + 2, lambda first: self._field(first, colon=True)):
                if self.has(end, ">"):
                    yield end + 1, Type(*self.span(at, end + 1), "STRUCT", fields=fields)

    def _field(self, at: int, colon: bool) -> Found[TypeField]:
        if not self.is_name(at):
            return
        for end, kind in self.data_type(at + 1 + (colon and self.word(at + 1) == ":")):
            required = self.word(end) == "NOT" and self.word(end + 1) == "NULL"
            after = end + 2 * required + (not colon and self.word(end) == "NULL")
            if self.word(after) == "COMMENT" and self.tokens[after + 1].kind is Kind.TEXT:
                yield after + 2, TypeField(self.name(at), kind, not required, str(self.tokens[after + 1].value))
            yield after, TypeField(self.name(at), kind, not required)
            if not colon:
                yield from self._identity(after, TypeField(self.name(at), kind, not required))
            if not colon and self.word(after) == "GENERATED" and self.has(after + 1, "ALWAYS", "AS", "("):
                for closing, _ in self.expression(after + 4):
                    if self.has(closing, ")"):
                        first, last = self.span(after + 4, closing)
                        text = self.text[first:last]
                        yield closing + 1, TypeField(self.name(at), kind, not required, generated=text)

    def _identity(self, at: int, made: TypeField) -> Found[TypeField]:
        """Yield the column with ``GENERATED { ALWAYS | BY DEFAULT } AS IDENTITY [(START WITH a INCREMENT BY b)]``."""
        for words, always in ((("ALWAYS",), True), (("BY", "DEFAULT"), False)):
            end = at + 1 + len(words) + 2
            if not (self.word(at) == "GENERATED" and self.has(at + 1, *words, "AS", "IDENTITY")):
                continue
            if self.word(end) == "(":
                numbers, place = {"START": 1, "INCREMENT": 1}, end + 1
                for name, second in (("START", "WITH"), ("INCREMENT", "BY")):
                    if self.word(place) == name and self.has(place + 1, second):
                        sign = -1 if self.word(place + 2) == "-" else 1
                        place += 2 + (sign < 0)
                        for after, size in self._size(place):
                            numbers[name], place = sign * size, after
                if self.has(place, ")"):
                    yield place + 1, replace(made, identity=(always, numbers["START"], numbers["INCREMENT"]))
            yield end, replace(made, identity=(always, 1, 1))

    def _interval_of(self, at: int) -> Found[Type]:
        first = self.word(at + 1)
        if first not in _SPANS:
            self.record_mismatch(at + 1)
            return
        if self.word(at + 2) == "TO" and self.word(at + 3) in _SPANS[first]:
            yield at + 4, Type(*self.span(at, at + 4), "INTERVAL", words=(first, self.word(at + 3)))
        yield at + 2, Type(*self.span(at, at + 2), "INTERVAL", words=(first,))

    def _plain(self, at: int, name: str) -> Found[Type]:
        for end, sizes in chain(self._sizes(at + 1), [(at + 1, ())]):
            for after, words in self._words(name, end):
                yield after, Type(*self.span(at, after), name.upper(), sizes, words=words)

    def _sizes(self, at: int) -> Found[tuple[int, ...]]:
        for end, sizes in self.listed(at + 1, self._size) if self.has(at, "(") else ():
            if self.has(end, ")"):
                yield end + 1, sizes

    def _size(self, at: int) -> Found[int]:
        size = whole_number(self.tokens[at])
        if size is not None:
            yield at + 1, size
        else:
            self.record_mismatch(at)

    def _words(self, name: str, at: int) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yield the words that belong to a type: its collation or its time zone."""
        for words in _ZONES.get(name, ()):
            if self.has(at, *words):
                yield at + len(words), words
        if name in _TEXTS and self.word(at) == "COLLATE" and self.is_name(at + 1):
            yield at + 2, ("COLLATE", self.name(at + 1))
        yield at, ()
