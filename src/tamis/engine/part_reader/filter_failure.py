"""The error for a row on which a filter raises: it names the conjunct and suggests a remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from tamis.core.expr import Call, Expr, Mode, filter_mask, to_sql
from tamis.core.expr.java_doubles import LEFT_TO_SPARK
from tamis.core.expr.malformed_texts import MALFORMED_TEXT
from tamis.errors import InvalidInput

_TRIES = {
    "add": "try_add",
    "subtract": "try_subtract",
    "multiply": "try_multiply",
    "divide": "try_divide",
    "remainder": "try_mod",
    "cast": "try_cast",
}
"""Functions that raise under ANSI, and their variants that return NULL instead."""

_SPARK_ONLY = (LEFT_TO_SPARK, MALFORMED_TEXT)

_SUSPECTS = {
    "[CAST_": {"cast"},
    "[NUMERIC_VALUE_OUT_OF_RANGE": set(_TRIES),
    "[DIVIDE_BY_ZERO": {"divide", "remainder"},
    "[ARITHMETIC_OVERFLOW": set(_TRIES) - {"cast"},
}
"""The functions that may raise an error, by the error's prefix."""


def failure_error(
    conjuncts: Sequence[Expr],
    arrays: Mapping[int, pa.Array],
    length: int,
    error: str | None,
    *,
    now_micros: int | None,
    where: str,
    written: Sequence[Expr] = (),
) -> InvalidInput:
    """Build ``FILTER_FAILED`` for the first conjunct that raises on these rows; ``error`` is its message.

    ``written`` holds the conjuncts as written, if ``conjuncts`` are rewritten ones.
    """
    at = next(
        n
        for n in range(1, len(conjuncts) + 1)
        if filter_mask(conjuncts[:n], arrays, length, now_micros=now_micros)[1].any()
    )
    conjunct = (written or conjuncts)[at - 1]
    return InvalidInput(
        f"The filter {to_sql(conjunct)} fails on a row{where}: {error}",
        code="FILTER_FAILED",
        name=to_sql(conjunct),
        remedy=_remedy(conjunct, error or ""),
    )


def is_left_to_spark(message: str) -> bool:
    """Whether the message of a ``FILTER_FAILED`` names a row that only Spark can test. Spark need not fail on it."""
    return any(text in message for text in _SPARK_ONLY)


def _remedy(conjunct: Expr, error: str) -> str:
    if error in _SPARK_ONLY:
        return "Run this filter through Spark, or exclude such rows by a condition before it."
    suspects: set[str] = next((names for start, names in _SUSPECTS.items() if error.startswith(start)), set())
    calls = {node.function for node in conjunct.walk() if isinstance(node, Call) and node.mode is Mode.ANSI}
    tries = sorted(_TRIES[name] for name in calls & suspects)
    use = f"Use {' or '.join(tries)}, for NULL instead, or exclude" if tries else "Exclude"
    return f"{use} such rows by a condition before it: AND stops at the first that is not true."
