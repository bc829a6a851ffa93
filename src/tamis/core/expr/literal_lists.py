"""Reads long IN lists of constants at once: 100,000 values become one array, not 100,000 tokens.

Invariant: only lists of plain constants of one kind are accepted (integers, or texts without quotes or
backslashes), so that the array holds exactly what the tokens would; everything else is left to the parser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.expr.tree import Expr, Literal
from tamis.core.types import INTEGER, LONG, STRING, DataType
from tamis.sizes import SIZES

SHORTEST = SIZES.list_characters
"""Length in characters below which a list is left to the parser."""
_NUMBER, _TEXT = r"-?[0-9]{1,18}", r"'[^'\\]*'"
_LIST = re.compile(rf"\s*(?:{_NUMBER}(?:\s*,\s*{_NUMBER})+|{_TEXT}(?:\s*,\s*{_TEXT})+)\s*(?=\))")
_TWO_TEXTS = re.compile(r"'\s*'")


@dataclass(frozen=True, slots=True)
class Constants:
    """A list as written in the text; ``kinds`` are the types that Spark gives to its members."""

    text: str
    array: Any
    kinds: frozenset[DataType]

    def literals(self) -> list[Expr]:
        """Return the members as separate literals."""
        if self.kinds == {STRING}:
            return [Literal(STRING, v) for v in self.array.to_pylist()]
        return [Literal(INTEGER if -(2**31) <= v < 2**31 else LONG, v) for v in self.array.to_pylist()]


def long_list(text: str, at: int) -> tuple[Constants, int] | None:
    """Read the list of an IN that begins at character ``at``, and return it with its end.

    Returns None if the list is short or not plain.
    """
    close = text.find(")", at + SHORTEST)
    match = _LIST.match(text, at) if close >= 0 else None
    if match is None or len(match[0]) < SHORTEST or (constants := _read(match[0])) is None:
        return None
    return constants, match.end()


def _read(inner: str) -> Constants | None:
    if inner.lstrip().startswith("'"):
        if _TWO_TEXTS.search(inner):  # an empty text, or two that Spark joins: left to the parser
            return None
        texts = re.findall(_TEXT, inner)
        return Constants(inner, pa.array([t[1:-1] for t in texts], pa.string()), frozenset({STRING}))
    numbers = np.fromstring(inner, np.int64, sep=",")
    narrow = (numbers >= -(2**31)) & (numbers < 2**31)
    kinds = frozenset(k for k, there in ((INTEGER, narrow.any()), (LONG, not narrow.all())) if there)
    return Constants(inner, pa.array(numbers), kinds)
