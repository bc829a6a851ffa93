"""Paths into a JSON document: ``$.user.ids[0]['a key']``.

A path is a sequence of steps: a key (text) or the position of an element (int). Only what Spark's two
grammars (``get_json_object``, ``variant_get``) read alike is accepted, and ``["a key"]``, which only
``variant_get`` reads. Wildcards, and other forms that they read differently (blanks beside separators), have no
steps: unknown.
"""

from __future__ import annotations

import re
from functools import lru_cache

Step = str | int
Steps = tuple[Step, ...]

ELEMENT = -1
"""The step to any element of a list, in statistics."""
POSITIONS, PLACED = 8, 2
"""Elements of a list with statistics of their own, and how often on one path.

Both are part of the table format: readers take a position without a row for absent.
"""

_STEP = re.compile(
    r"""\.(?P<name>[^\s.\[\]'"*?][^.\[\]'"*?]*)
      | \['(?P<single>[^\s'"*?][^'*?]*)'\]
      | \["(?P<double>[^\s'"*?][^"*?]*)"\]
      | \[(?P<index>[0-9]{1,9})\]""",
    re.VERBOSE,
)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASKED = re.compile(r"[^\s'\"*?][^'\"*?]*")


@lru_cache(maxsize=4096)
def steps_of(text: str, double_quotes: bool = True) -> Steps | None:
    """Parse a path into steps; None if it is not supported.

    ``double_quotes`` accepts ``["a key"]``. For ``get_json_object`` such a path is invalid, and the result NULL.
    """
    if not text.startswith("$"):
        return None
    at, steps = 1, list[Step]()
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None or (match["double"] is not None and not double_quotes):
            return None
        index = match["index"]
        steps.append(int(index) if index is not None else match["name"] or match["single"] or match["double"])
        at = match.end()
    return tuple(steps)


def text_of(steps: Steps) -> str | None:
    """Format ``steps`` as a path that ``steps_of`` and Spark read; None if a key cannot be expressed."""
    out = "$"
    for step in steps:
        if isinstance(step, int):
            out += f"[{step}]"
        elif _PLAIN.fullmatch(step):
            out += f".{step}"
        elif _ASKED.fullmatch(step):
            out += f"['{step}']"
        else:
            return None
    return out


@lru_cache(maxsize=1024)  # every block of documents asks for the same paths
def stored_path(steps: Steps) -> str:
    """Return the text by which the most specific statistics are found (see ``placed_steps``)."""
    return "$" + "".join(map(stored_step, placed_steps(steps)))


def placed_steps(steps: Steps, placed: int = PLACED) -> Steps:
    """Return ``steps`` with at most ``placed`` positions that have statistics; the other positions are ``ELEMENT``.

    After an ``ELEMENT`` no position is distinguished.
    """
    out = list[Step]()
    for step in steps:
        if not isinstance(step, int):
            out.append(step)
        elif placed and 0 <= step < POSITIONS:
            out.append(step)
            placed -= 1
        else:
            out.append(ELEMENT)
            placed = 0
    return tuple(out)


def stored_step(step: Step) -> str:
    """Return the text of one step in a stored path."""
    if isinstance(step, int):
        return "[*]" if step == ELEMENT else f"[{step}]"
    if _PLAIN.fullmatch(step):
        return f".{step}"
    return "['" + step.replace("\\", "\\\\").replace("'", "\\'") + "']"
