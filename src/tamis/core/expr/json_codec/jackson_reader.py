"""Reads JSON text like Spark (Jackson with Spark's options) and returns the text at a path.

Spark reads from the left and stops at the end of the document, so that trailing text does not matter; of
duplicate keys, the first one that has a value counts. Most documents have neither: they are parsed by
Python's parser, and what that rejects is parsed again as Jackson would.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, NoReturn

from tamis.core.expr.java_doubles import Unsure, unsure_doubles
from tamis.core.expr.json_codec.json_path import Steps

DEEPEST = 1000
LONGEST_NUMBER = 1000
LONGEST_NAME = 50_000
"""UTF-16 units of the longest key that Jackson reads."""
_NAMED_NUMBERS = (
    ("NaN", math.nan), ("Infinity", math.inf), ("-Infinity", -math.inf), ("+Infinity", math.inf),
    ("+INF", math.inf), ("-INF", -math.inf),
)  # fmt: skip
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_BLANKS = " \t\r\n"
_ESCAPED = re.compile(r'\\.|"', re.DOTALL)
_TEXT = re.compile(r'("(?:[^"\\]++|\\.)*+")([ \t\r\n]*+:)?', re.DOTALL)
"""A string and, behind a key, its colon: each string is passed over once, whatever quotes are escaped in it."""
_BRACKET = re.compile(r"[\[\]{}]")
_LONG_NUMBER = re.compile(rf"[0-9.eE+-]{{{LONGEST_NUMBER + 1},}}")


def _python_escape(found: re.Match[str]) -> str:
    """Return what Python's decoder takes: Jackson knows an escaped single quote, and a bare double one between them."""
    return {"\\'": "'", '"': '\\"'}.get(found[0], found[0])


def ends_word(follows: str) -> bool:
    """Return whether a word such as ``true`` ends before these characters, of which the first one counts."""
    first = follows[:1]
    if first < "0" or first in "]}":
        return True
    return not (first.isalnum() or unicodedata.category(first) in _IN_IDENTIFIERS)


_IN_IDENTIFIERS = frozenset({"Pc", "Sc", "Mn", "Mc", "Nl", "Cf"})
"""Categories of characters that Java has in identifiers, beside letters and digits."""


class Malformed(ValueError):
    """Not JSON, or beyond Jackson's limits."""


class Truncated(Malformed):
    """The text ends within the document, and is JSON until there."""


class _Twice(ValueError):
    """A duplicate key."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise _Twice
    return out


def _constant(name: str) -> NoReturn:
    raise Malformed(name)


STRICT = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)
"""A decoder of standard JSON without duplicate keys."""


def plain_document(text: str) -> Any:
    """Parse standard JSON without duplicate keys and within limits; else raise ``Malformed``."""
    try:
        value = STRICT.decode(text)
    except (ValueError, RecursionError):
        raise Malformed(text[:40]) from None
    if len(text) > LONGEST_NUMBER and beyond_limits(text):
        raise Malformed(text[:40])
    return value


def _is_long(number: str) -> bool:
    """Return whether a number has more digits than Jackson accepts; sign, point and ``e`` do not count."""
    return sum(map(str.isdigit, number)) > LONGEST_NUMBER


def beyond_limits(text: str) -> bool:
    """Return whether standard JSON exceeds Jackson's limits on nesting or on the length of numbers and keys."""
    if 2 * len(text) > LONGEST_NAME and has_long_name(text):
        return True
    deep = text.count("[") + text.count("{") > DEEPEST
    if not deep and not _LONG_NUMBER.search(text):
        return False
    bare = _TEXT.sub("", text)  # ignore brackets and digits in strings
    if any(_is_long(number) for number in _LONG_NUMBER.findall(bare)):
        return True
    depths = accumulate(1 if c in "[{" else -1 for c in _BRACKET.findall(bare))
    return deep and max(depths, default=0) > DEEPEST


def has_long_name(text: str) -> bool:
    """Return whether standard JSON has a key that is longer than Jackson reads."""
    return any(
        colon and 2 * len(key) > LONGEST_NAME and _exceeds_name(json.loads(key, strict=False))
        for key, colon in _TEXT.findall(text)
    )


def _exceeds_name(key: str) -> bool:
    return len(key) + sum(c > "\uffff" for c in key) > LONGEST_NAME


def get_json_text(text: str, steps: Steps) -> str | None:
    """Return the result of ``get_json_object``: text without quotes, any other value as compact JSON.

    Returns None for null, a missing value, or invalid JSON.
    """
    try:
        value = plain_document(text)
    except Malformed:
        try:
            return _Reader(text).get(steps)
        except Malformed:
            return None
    for index, step in enumerate(steps):
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
            if value is None:
                return None
        else:
            if not isinstance(value, list) or step >= len(value):
                return None
            value = value[step]
            if value is None and index + 1 < len(steps):
                return None
    return _whole(value) if isinstance(value, str) else compact_json(value)


def _whole(text: str) -> str | None:
    """Return the text, or None if it has an unpaired surrogate, which Jackson cannot write."""
    return text if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text) else None


def loose_document(text: str) -> Any:
    """Parse a document as FROM_JSON does; objects are ``Pairs`` unless it is standard JSON.

    Keys may be duplicate, NaN and infinities are numbers, and control characters are invalid in strings.
    """
    try:
        return plain_document(text)
    except Malformed:
        pass
    return _Reader(text, named_numbers=True).document()


def compact_json(value: Any) -> str:
    """Format a value as Jackson does."""
    match value:
        case str():
            return quoted_json(value)
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return java_double(value)
        case None:
            return "null"
        case list():
            return "[" + ",".join(compact_json(item) for item in value) + "]"
        case Pairs():
            return "{" + ",".join(f"{quoted_json(key)}:{compact_json(item)}" for key, item in value.pairs) + "}"
        case dict():
            return "{" + ",".join(f"{quoted_json(key)}:{compact_json(item)}" for key, item in value.items()) + "}"
    raise Malformed(str(value))


_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quoted_json(text: str) -> str:
    """Format a string as Jackson does: characters above the basic plane are escaped surrogate pairs."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_escaped(c) for c in text) + '"'


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    point = ord(character)
    if point < 0x20:
        return f"\\u{point:04X}"
    if point > 0xFFFF:
        point -= 0x10000
        return f"\\u{0xD800 + (point >> 10):04X}\\u{0xDC00 + (point & 0x3FF):04X}"
    return f"\\u{point:04X}" if 0xD800 <= point <= 0xDFFF else character


def java_double(value: float) -> str:
    """Return the shortest text of a double in Java's form; infinities are quoted, as Jackson does.

    Raises ``Unsure`` if the value is left to Spark.
    """
    if unsure_doubles(value):
        raise Unsure
    if math.isinf(value) or math.isnan(value):
        return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    value = abs(value)
    if value == 0:
        return sign + "0.0"
    if value == 5e-324:  # Java prints two digits at least
        return sign + "4.9E-324"
    digits, _, power = repr(value).partition("e")
    whole, _, fraction = digits.partition(".")
    number = (whole + fraction).strip("0")
    shift = int(power or 0)
    scale = shift + (len(whole) - 1 if whole != "0" else len(fraction.lstrip("0")) - len(fraction) - 1)
    if 1e-3 <= value < 1e7:
        if scale < 0:
            return f"{sign}0.{'0' * (-scale - 1)}{number}"
        number = number.ljust(scale + 1, "0")
        return f"{sign}{number[: scale + 1]}.{number[scale + 1 :] or '0'}"
    return f"{sign}{number[0]}.{number[1:] or '0'}E{scale}"


class Pairs:
    """An object with its keys in order, possibly with duplicates."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        self.pairs = pairs


def values_of(value: dict[str, Any] | Pairs, key: str) -> list[Any]:
    """Return the values of a key in an object, the last one first."""
    if isinstance(value, dict):
        return [value[key]] if key in value else []
    return [one for name, one in reversed(value.pairs) if name == key]


class _Reader:
    """A parser that follows Jackson.

    It accepts single quotes and control characters in strings, and ignores text after the document.
    """

    def __init__(self, text: str, *, named_numbers: bool = False) -> None:
        self._text = text
        self._at = 0
        self._named = named_numbers  # the options of FROM_JSON instead of GET_JSON_OBJECT

    def document(self) -> Any:
        """Return the whole value, with objects as ``Pairs``."""
        return self._value(0)

    def get(self, steps: Steps) -> str | None:
        found, value = self._walk(steps, 0)
        if not found:
            return None
        return _whole(value) if isinstance(value, str) else compact_json(value)

    def _walk(self, steps: Steps, depth: int) -> tuple[bool, Any]:
        """Return whether ``steps`` lead to a value, and the value; always consumes the current value."""
        if not steps:
            return True, self._value(depth)
        head, here = steps[0], self._peek()
        if isinstance(head, str) and here == "{":
            found: tuple[bool, Any] = (False, None)
            for key in self._members():
                if found[0] or key != head or self._peek() == "n":
                    self._value(depth + 1)
                else:
                    found = self._walk(steps[1:], depth + 1)
            return found
        if isinstance(head, int) and here == "[":
            found = (False, None)
            for index in self._elements():
                if index == head:
                    found = self._walk(steps[1:], depth + 1)
                else:
                    self._value(depth + 1)
            return found
        self._value(depth)
        return False, None

    def _value(self, depth: int) -> Any:
        here = self._peek()
        if depth >= DEEPEST:
            raise Malformed("depth")
        if here == "{":
            return Pairs([(key, self._value(depth + 1)) for key in self._members()])
        if here == "[":
            return [self._value(depth + 1) for _ in self._elements()]
        if here in "\"'":
            return self._string()
        for word, value in (("true", True), ("false", False), ("null", None)):
            if self._text.startswith(word, self._at):
                self._at += len(word)
                if not ends_word(self._text[self._at : self._at + 1]):
                    raise Malformed(word)
                return value
        for word, number in _NAMED_NUMBERS if self._named else ():
            if self._text.startswith(word, self._at):
                self._at += len(word)
                return number
        return self._number(root=depth == 0)

    def _members(self) -> Iterator[str]:
        self._at += 1
        if self._peek() == "}":
            self._at += 1
            return
        while True:
            if self._peek() not in "\"'":
                raise Malformed("key")
            key = self._string()
            if len(key) * 2 > LONGEST_NAME and _exceeds_name(key):
                raise Malformed("key")
            self._expect(":")
            yield key
            if self._comma("}"):
                return

    def _elements(self) -> Iterator[int]:
        self._at += 1
        if self._peek() == "]":
            self._at += 1
            return
        index = 0
        while True:
            yield index
            index += 1
            if self._comma("]"):
                return

    def _comma(self, end: str) -> bool:
        here = self._peek()
        self._at += 1
        if here not in {",", end}:
            raise Malformed(here)
        return here == end

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise Malformed(character)
        self._at += 1

    def _peek(self) -> str:
        text = self._text
        while self._at < len(text) and text[self._at] in _BLANKS:
            self._at += 1
        if self._at >= len(text):
            raise Truncated("end")
        return text[self._at]

    def _string(self) -> str:
        quote = self._text[self._at]
        at = self._at + 1
        while True:
            end = self._text.find(quote, at)
            if end < 0:
                rest = self._text[self._at :]
                raise (Truncated if rest.isprintable() and "\\" not in rest else Malformed)("string")
            before = self._text[self._at + 1 : end]
            if (len(before) - len(before.rstrip("\\"))) % 2 == 0:
                break
            at = end + 1
        self._at = end + 1
        if self._named and any(c < " " for c in before):
            raise Malformed("control character")
        if "\\" not in before:
            return before
        inner = _ESCAPED.sub(_python_escape, before)
        try:
            return str(json.JSONDecoder(strict=False).decode(f'"{inner}"'))
        except ValueError:
            raise Malformed("escape") from None

    def _number(self, *, root: bool) -> int | float:
        """Return a number; at the ``root``, only blanks end it."""
        match = _NUMBER.match(self._text, self._at)
        if match is None or _is_long(match[0]):
            raise Malformed("number")
        self._at = match.end()
        follows = self._text[self._at : self._at + 1]
        if follows and follows not in _BLANKS + ("" if root else ",]}"):
            raise Malformed("number")
        return int(match[0]) if match[2] is None and match[3] is None else float(match[0])
