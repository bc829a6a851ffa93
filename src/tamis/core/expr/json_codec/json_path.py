"""Paths into a JSON document: ``$.user.ids[0]['a key']``.

A path is a sequence of steps: a key (text) or the position of an element (int). Only what Spark's two
grammars (``get_json_object``, ``variant_get``) read alike is accepted. Wildcards, and forms that they read
differently (blanks beside separators), have no steps: unknown.
"""

from __future__ import annotations

import re
from functools import lru_cache

Step = str | int
Steps = tuple[Step, ...]

ELEMENT = -1
"""The step to any element of a list in statistics, which do not distinguish positions."""

_STEP = re.compile(
    r"""\.(?P<name>[^\s.\[\]'"*?][^.\[\]'"*?]*)
      | \['(?P<single>[^\s'"*?][^'*?]*)'\]
      | \["(?P<double>[^\s'"*?][^"*?]*)"\]
      | \[(?P<index>\d{1,9})\]""",
    re.VERBOSE,
)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASKED = re.compile(r"[^\s'\"*?][^'\"*?]*")


@lru_cache(maxsize=4096)
def steps_of(text: str) -> Steps | None:
    """Parse a path into steps; None if it is not supported."""
    if not text.startswith("$"):
        return None
    at, steps = 1, list[Step]()
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
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


def stored(steps: Steps) -> str:
    """Return the text by which statistics are found: unique for each path, with positions as ``[*]``."""
    return "$" + "".join(map(stored_step, steps))


def stored_step(step: Step) -> str:
    """Return the text of one step in a stored path."""
    if isinstance(step, int):
        return "[*]"
    if _PLAIN.fullmatch(step):
        return f".{step}"
    return "['" + step.replace("\\", "\\\\").replace("'", "\\'") + "']"
