"""Unquotes and unescapes strings of SQL text as Spark does (``escapedStringLiterals`` off)."""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|\\([01][0-7]{2})|\\(.)", re.DOTALL)
_MEANING = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def unquoted_text(token: str) -> str:
    """Return the string of a token with its quotes (or ``r`` and quotes)."""
    if token[0] in "rR":
        return token[2:-1]
    inner = token[1:-1].replace(token[0] * 2, token[0]) if "\\" not in token else _doubled(token)
    return _halves_joined(_ESCAPE.sub(_resolved, inner)) if "\\" in inner else inner


def _doubled(token: str) -> str:
    """Remove the quotes and undouble inner ones; an escaped quote is not half of a doubled one."""
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
    """Join escaped surrogate pairs; an unpaired surrogate becomes ``?``, as in Java."""
    if not _HALF.search(text):
        return text
    return _HALF.sub("?", text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass"))


_HALF = re.compile("[\ud800-\udfff]")
