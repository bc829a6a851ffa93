"""Texts of doubles as the Java release that runs Spark prints them.

Before Java 19 they are not always the shortest (JDK-4511638): 2E23 is ``1.9999999999999998E23``.

Invariant: if Spark re-evaluates rejected rows, such a text (or the decimal that Spark parses from it) is
computed only where all releases print the same. Any other row counts as failing, which leaves it to Spark.
Rows that no one evaluates after Tamis use the shortest text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from tamis.core.expr.arrow_values import Mask

LEAST, MOST = 1e-9, 1e15
"""All releases print the same between these limits.

Compared for millions of doubles and for the powers of two; from 2^53 on, up to half of them differ.
"""

LEFT_TO_SPARK = (
    "[LEFT_TO_SPARK] Only Spark can compute this row: the text of a double that differs between releases of Java, "
    "a time with the name of a region, a letter whose case depends on the release of Unicode, a document nested too "
    "deeply for Python or with half a character, a malformed one of which Spark may keep some fields, or a value in a "
    "VARIANT whose cast is not computed here."
)
_LAST_WORD: ContextVar[bool] = ContextVar("spark_decides", default=False)


class Unsure(Exception):  # never leaves a kernel
    """A text that Java releases print differently, or a document that only Spark can parse."""


@contextmanager
def spark_decides() -> Iterator[None]:
    """Mark that Spark re-evaluates the rows that fail in this context."""
    token = _LAST_WORD.set(True)
    try:
        yield
    finally:
        _LAST_WORD.reset(token)


def is_left_to_spark() -> bool:
    """Return whether Spark re-evaluates the rows that fail now."""
    return _LAST_WORD.get()


def unsure_doubles(values: Any, digits: int | None = None) -> Mask:
    """Return which doubles must be left to Spark; none outside ``spark_decides``. Arguments as ``has_stable_text``."""
    return ~has_stable_text(values, digits) if is_left_to_spark() else np.zeros(np.shape(values), bool)


def has_stable_text(values: Any, digits: int | None = None) -> Mask:
    """Return which doubles have the same text in all releases.

    With ``digits``, return which have a text that rounds to the same number of digits after the point.
    """
    with np.errstate(invalid="ignore"):
        size = np.abs(np.asarray(values, np.float64))
        least = 0.0 if digits is not None and digits <= 8 else LEAST  # smaller values round to zero
        return np.asarray((size == 0) | ((size >= least) & (size < MOST)) | ~np.isfinite(size))
