"""Long lists of constants in SQL text, taken out before the text is parsed: ``x IN (1, 2, …)`` of 100,000 values is one array, not 100,000 nodes.

Law: the text that is left means the same. Only lists of plain constants of one kind are taken (whole numbers, or texts without quotes or
backslashes in them), never from inside quotes or comments; everything else is left as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.expr.tree import Expr, Literal
from tamis.sizes import SIZES
from tamis.types import INTEGER, LONG, STRING, DataType

SHORTEST = SIZES.list_characters
"""Characters below which a list is left to the parser."""
_NUMBER, _TEXT = r"-?\d{1,18}", r"'[^'\\]*'"
_TOKEN = re.compile(
    r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|"
    rf"\bIN\s*\((?P<list>\s*(?:{_NUMBER}(?:\s*,\s*{_NUMBER})+|{_TEXT}(?:\s*,\s*{_TEXT})+)\s*)\)",
    re.IGNORECASE | re.DOTALL,
)
_RAW = re.compile(r"\br['\"]|/\*.*/\*|\$\$", re.IGNORECASE | re.DOTALL)
"""Quoting that the pattern above does not follow: raw texts, comments in comments."""
_TWO_TEXTS = re.compile(r"'\s*'")


@dataclass(frozen=True, slots=True)
class Constants:
    """A list as it stood in the text. ``kinds`` are the types that Spark gives to its members."""

    text: str
    array: Any
    kinds: frozenset[DataType]

    def literals(self) -> list[Expr]:
        """One by one, for those who must look at each."""
        if self.kinds == {STRING}:
            return [Literal(STRING, v) for v in self.array.to_pylist()]
        return [Literal(INTEGER if -(2**31) <= v < 2**31 else LONG, v) for v in self.array.to_pylist()]


def taken(text: str) -> tuple[str, dict[str, Constants]]:
    """``text`` with names in the place of its long lists, and the lists by name."""
    found: dict[str, Constants] = {}
    if len(text) < SHORTEST or _RAW.search(text):
        return text, found

    def replace(match: re.Match[str]) -> str:
        inner = match["list"]
        if inner is None or len(inner) < SHORTEST or (constants := _read(inner)) is None:
            return match[0]
        name = f"list {len(found)}"
        while f"`{name}`" in text:
            name += "'"
        found[name] = constants
        return f"{match[0][: match.start('list') - match.start()]}`{name}`)"

    return _TOKEN.sub(replace, text), found


def _read(inner: str) -> Constants | None:
    if inner.lstrip().startswith("'"):
        if _TWO_TEXTS.search(inner):  # an empty text, or two that Spark would join: the parser knows
            return None
        texts = re.findall(_TEXT, inner)
        return Constants(inner, pa.array([t[1:-1] for t in texts], pa.string()), frozenset({STRING}))
    numbers = np.fromstring(inner, np.int64, sep=",")
    narrow = (numbers >= -(2**31)) & (numbers < 2**31)
    kinds = frozenset(k for k, there in ((INTEGER, narrow.any()), (LONG, not narrow.all())) if there)
    return Constants(inner, pa.array(numbers), kinds)
