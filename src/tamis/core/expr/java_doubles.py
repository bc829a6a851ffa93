"""Texts of doubles are those of the Java that runs Spark: before release 19 they are not always the shortest (JDK-4511638), 2E23 is ``1.9999999999999998E23``.

Law: where Spark has the last word about a row, such a text (or the decimal that Spark reads from it) is computed only where all releases print the same; elsewhere the row
counts as failing, which leaves it to Spark. Rows about which nobody is asked after us have the shortest text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from tamis.core.expr.arrow_values import Mask

LEAST, MOST = 1e-9, 1e15
"""Between these all releases print the same: compared for millions of doubles and for the powers of two; from 2^53 on, up to every second one differs."""

LEFT_TO_SPARK = "[LEFT_TO_SPARK] The text of a double differs between releases of Java, or a document is nested too deeply for Python."
_LAST_WORD: ContextVar[bool] = ContextVar("spark_decides", default=False)


class Unsure(Exception):  # it never leaves a kernel
    """A text that releases of Java print differently, or a document that only Spark can parse."""


@contextmanager
def spark_decides() -> Iterator[None]:
    """Rows that fail in here are looked at again by Spark."""
    token = _LAST_WORD.set(True)
    try:
        yield
    finally:
        _LAST_WORD.reset(token)


def unsure(values: Any, digits: int | None = None) -> Mask:
    """Which of these doubles must be left to Spark; none where it is not asked. As ``alike``."""
    return ~alike(values, digits) if _LAST_WORD.get() else np.zeros(np.shape(values), bool)


def alike(values: Any, digits: int | None = None) -> Mask:
    """Which doubles have the same text in all releases; or one that rounds to the same ``digits`` behind the point."""
    with np.errstate(invalid="ignore"):
        size = np.abs(np.asarray(values, np.float64))
        least = 0.0 if digits is not None and digits <= 8 else LEAST  # what is so small is nothing but zeros
        return np.asarray((size == 0) | ((size >= least) & (size < MOST)) | ~np.isfinite(size))
