"""Strings of SQL text without their quotes, their escapes resolved as Spark resolves them (``escapedStringLiterals`` off)."""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|\\([01][0-7]{2})|\\(.)", re.DOTALL)
_MEANING = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def unquoted(token: str) -> str:
    """The string that a token with its quotes (or ``r`` and quotes) stands for."""
    if token[0] in "rR":
        return token[2:-1]
    inner = token[1:-1].replace(token[0] * 2, token[0]) if "\\" not in token else _doubled(token)
    return _halves_joined(_ESCAPE.sub(_resolved, inner)) if "\\" in inner else inner


def _doubled(token: str) -> str:
    """``token`` without its quotes and with doubled quotes as one, where an escaped quote does not count as half of two."""
    quote = token[0]
    return re.sub(rf"\\.|{quote}{quote}", lambda m: quote if m[0][0] == quote else m[0], token[1:-1], flags=re.DOTALL)


def _resolved(match: re.Match[str]) -> str:
    short, long, octal, other = match.groups()
    if short or octal:
        return chr(int(short, 16) if short else int(octal, 8))
    if long:
        return chr(min(int(long, 16), 0x10FFFF))
    return _MEANING.get(other, other)


def _halves_joined(text: str) -> str:
    """Two escaped halves of a character as the character; a half alone has no UTF-8 form and becomes ``?``, as in Java."""
    if not _HALF.search(text):
        return text
    return _HALF.sub("?", text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass"))


_HALF = re.compile("[\ud800-\udfff]")
