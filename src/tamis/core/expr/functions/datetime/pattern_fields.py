"""The fields and texts of a pattern of dates and times, and what their order says.

A pattern *sorts* if its texts sort like the times: four-digit years, then ever smaller fields of fixed width,
each after all larger ones.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from tamis.core.expr.functions.datetime.clock_columns import HOUR, MINUTE
from tamis.core.expr.time_zones import DAY, SECOND

Token = tuple[str, str]
"""A field as written (``MM``) and its kind, or a text and ``""``."""

_FIELDS = {
    "yyyy": "year", "yy": "short year", "y": "year", "MM": "month", "M": "month", "MMM": "month name",
    "MMMM": "month name", "dd": "day", "d": "day", "DDD": "dayofyear", "D": "dayofyear", "HH": "hour", "H": "hour",
    "mm": "minute", "m": "minute", "ss": "second", "s": "second", "E": "weekday name", "EE": "weekday name",
    "EEE": "weekday name", "EEEE": "weekday name", "q": "quarter", "Q": "quarter", "a": "half", "hh": "hour of half",
    "h": "hour of half",
    **{"S" * n: "fraction" for n in range(1, 10)},
}  # fmt: skip
_SORTING = ["yyyy", "MM", "dd", "HH", "mm", "ss", "S"]
_LONGEST = {"year": 366 * DAY, "month": 31 * DAY, "day": DAY, "hour": HOUR, "minute": MINUTE, "second": SECOND}
_PIECE = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z'\[\]{}#]+)|(.)")


@lru_cache(maxsize=256)
def pattern_tokens(pattern: str) -> tuple[Token, ...] | None:
    """Split a pattern into fields and texts; None if a part is not supported."""
    out: list[Token] = []
    for m in _PIECE.finditer(pattern):
        if m[1] is not None:
            out.append((m[1].replace("''", "'") or "'", ""))
        elif m[2]:
            if m[0] not in _FIELDS:
                return None
            out.append((m[0], _FIELDS[m[0]]))
        elif m[3]:
            out.append((m[3], ""))
        else:
            return None
    return tuple(out) if any(kind for _, kind in out) else None


def pattern_sorts(pattern: str) -> bool:
    """Return whether the texts sort like the times."""
    found = pattern_tokens(pattern) or ()
    names = [text[0] if kind == "fraction" else text for text, kind in found if kind]
    return bool(names) and names == _SORTING[: len(names)]


def larger_field(pattern: str) -> int | None:
    """Return how many larger fields a sorting pattern omits (``HH:mm``: 3); None for other patterns.

    Within one value of the last of them, the pattern sorts too.
    """
    found = pattern_tokens(pattern) or ()
    names = [text[0] if kind == "fraction" else text for text, kind in found if kind]
    first = _SORTING.index(names[0]) if names and names[0] in _SORTING else None
    return first if first is not None and names == _SORTING[first : first + len(names)] else None


class SortedPrefix(NamedTuple):
    """The beginning of a pattern whose texts sort, up to a letter that texts may have in either case."""

    pattern: str
    length: int
    """Characters of the texts that it reads."""
    micros: int
    """Microseconds after the prefix's time at which no text begins with it any more."""


@lru_cache(maxsize=256)
def sorted_prefix(pattern: str) -> SortedPrefix | None:
    """Return the prefix before the first letter between fields; None without one, or if the pattern does not sort."""
    found = pattern_tokens(pattern) or ()
    last = max((at for at, (_, kind) in enumerate(found) if kind), default=0)
    cut = next((at for at, (text, kind) in enumerate(found[:last]) if not kind and has_letters(text)), 0)
    fields = [kind for _, kind in found[:cut] if kind]
    if not fields or not pattern_sorts(pattern) or found[0][1] != "year":
        return None
    texts = [text if kind else "'" + text.replace("'", "''") + "'" for text, kind in found[:cut]]
    return SortedPrefix("".join(texts), sum(len(text) for text, _ in found[:cut]), _LONGEST[fields[-1]])


def has_letters(text: str) -> bool:
    return text.lower() != text.upper()
