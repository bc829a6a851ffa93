"""Splits a text of several SQL statements at its semicolons."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""
      (?P<quoted>'(?:\\(?:.|\Z)|[^'\\])*(?:'|\Z) | "(?:\\(?:.|\Z)|[^"\\])*(?:"|\Z) | `[^`]*(?:`|\Z))
    | (?P<comment>--[^\n]*)
    | (?P<opened>/\*)
    | (?P<end>;)
    """,
    re.VERBOSE | re.DOTALL,
)
_BRACKET = re.compile(r"/\*|\*/")


def split_at_semicolons(text: str) -> list[str]:
    """Return the pieces of ``text`` between semicolons outside of quotes and comments, without those that say nothing.

    Quotes, ``--`` comments and nested ``/* */`` comments are those of Spark's grammar. One without an end reaches to
    the end of ``text``, and its piece is kept. Spark's own function has another name or class in each release, and
    takes a backslash in a quoted name for an escape.
    """
    pieces: list[str] = []
    start = position = 0
    kept = False
    while found := _TOKEN.search(text, position):
        kept = kept or found.lastgroup == "quoted" or bool(text[position : found.start()].strip())
        position = found.end()
        if found.lastgroup == "opened":
            position, closed = _after_comment(text, position)
            kept = kept or not closed
        elif found.lastgroup == "end":
            if kept:
                pieces.append(text[start : found.start()])
            start, kept = position, False
    if kept or text[position:].strip():
        pieces.append(text[start:])
    return pieces


def _after_comment(text: str, position: int) -> tuple[int, bool]:
    """Return where the bracketed comment ends that is open at ``position``, and whether it has an end."""
    depth = 1
    while depth:
        found = _BRACKET.search(text, position)
        if found is None:
            return len(text), False
        depth += 1 if found.group() == "/*" else -1
        position = found.end()
    return position, True
