"""Backquotes around identifiers, as in Spark SQL: the only place that adds or removes them.

Within backquotes a backquote is doubled, and a dot is part of the name. Each part of a dotted path is quoted by
itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

BACKQUOTED = r"`(?:[^`]|``)*`"
"""Regular expression for an identifier in backquotes."""
_PART = re.compile(rf"({BACKQUOTED})|([^.`]+)")


def backquote(name: str) -> str:
    """Return ``name`` in backquotes."""
    return "`" + name.replace("`", "``") + "`"


def backquote_path(names: Iterable[str]) -> str:
    """Return the dotted path with every part in backquotes."""
    return ".".join(backquote(name) for name in names)


def dotted_path(names: Iterable[str], marks: str = ".`") -> str:
    """Return the dotted path with backquotes only around parts that contain one of ``marks``: a dot or a backquote."""
    return ".".join(name if set(name).isdisjoint(marks) else backquote(name) for name in names)


def remove_backquotes(text: str) -> str:
    """Return the name that ``text`` denotes; text that is not in backquotes is returned unchanged."""
    return text[1:-1].replace("``", "`") if len(text) > 1 and text[0] == text[-1] == "`" else text


def parse_path(text: str) -> tuple[str, ...] | None:
    """Return the parts of a dotted path; None if ``text`` is not one."""
    parts, at = [], 0
    while (found := _PART.match(text, at)) and found[0] != "``":
        parts.append(remove_backquotes(found[0]))
        at = found.end()
        if at == len(text):
            return tuple(parts)
        if text[at] != ".":
            return None
        at += 1
    return None


def split_path(text: str) -> tuple[str, ...]:
    """Return the parts of a dotted path as a user writes it; unlike ``parse_path``, takes any text."""
    if (found := parse_path(text)) is not None:
        return found
    parts, quoted = [""], False
    for mark in text:
        if mark == "`":
            quoted = not quoted
        elif mark == "." and not quoted:
            parts.append("")
        else:
            parts[-1] += mark
    return tuple(parts)


def split_list(text: str) -> list[str]:
    """Return the items of a list as a user writes it: split at commas outside backquotes, trimmed, without empty ones.

    Items keep their backquotes.
    """
    items, quoted = [""], False
    for mark in text:
        if mark == "`":
            quoted = not quoted
        if mark == "," and not quoted:
            items.append("")
        else:
            items[-1] += mark
    return [item.strip() for item in items if item.strip()]
