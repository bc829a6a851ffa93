"""Comparisons of texts with numbers that documents hold: ``get_json_object(body, '$.id') = '7'``.

The text of a whole number is its digits. A text equals it only if it reads as a number between the bounds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.arrow_values import Mask
from tamis.core.expr.tree import Call, Expr
from tamis.core.pruning import json_rules
from tamis.core.pruning.evidence import DocumentEvidence
from tamis.core.pruning.value_spec import NO, Spec, Truth, join_truth
from tamis.core.types import STRING

_WHOLE = re.compile(r"-?\d{1,19}")
_REAL = re.compile(r"-?[\d.eE+-]+")
_DIGITS = 19
_INT64 = range(-(2**63), 2**63)


def equal_to_text(
    run: Any, arg: Expr, texts: Sequence[str], rest: Callable[[Spec], Truth], *, null_listed: bool = False
) -> Truth | None:
    """Bound "``arg`` is one of ``texts``", or return None if ``arg`` is not a text of a document.

    ``rest`` bounds the same predicate for all values that are not numbers. With ``null_listed``, the list
    also has NULL, so that a value that is none of the texts gives NULL.
    """
    wanted = sorted(int(text) for text in texts if _WHOLE.fullmatch(text) and int(text) in _INT64)

    def whole(e: DocumentEvidence) -> Mask:
        values = np.array(wanted, np.int64)
        lo, hi = _ends(e)
        below = np.searchsorted(values, lo, "left")
        return np.asarray(below < np.searchsorted(values, hi, "right"))

    real = any(_REAL.fullmatch(text) for text in texts)
    return _by_kind(run, arg, rest, whole, real=real, null_listed=null_listed)


def begins_with_text(run: Any, arg: Expr, prefix: str, rest: Callable[[Spec], Truth]) -> Truth | None:
    """Bound "``arg`` begins with ``prefix``" in the same way."""
    if not prefix:
        return None
    sign = -1 if prefix.startswith("-") else 1
    digits = prefix.lstrip("-") if sign < 0 else prefix

    def whole(e: DocumentEvidence) -> Mask:
        lo, hi = _ends(e)
        if prefix == "-":
            return np.asarray(lo < 0)
        if not digits.isdecimal() or not digits.isascii() or len(digits) > _DIGITS or prefix.startswith("--"):
            return NO
        farthest = 2**63 - (sign > 0)
        may: Mask = np.zeros(len(lo), bool)
        for more in range(_DIGITS - len(digits) + 1):
            first, last = int(digits) * 10**more, (int(digits) + 1) * 10**more - 1
            ends = sorted((sign * min(first, farthest), sign * min(last, farthest)))
            may |= (lo <= ends[1]) & (hi >= ends[0])
        return may

    return _by_kind(run, arg, rest, whole, real=bool(_REAL.fullmatch(prefix)))


def _by_kind(
    run: Any,
    arg: Expr,
    rest: Callable[[Spec], Truth],
    whole: Callable[[DocumentEvidence], Mask],
    *,
    real: bool,
    null_listed: bool = False,
) -> Truth | None:
    if not isinstance(arg, Call) or arg.function not in {"get_json_object", "variant_get"} or arg.type != STRING:
        return None
    found = json_rules.evidence_at(run, arg)
    if found is None or not (found[0].long | found[0].real).any():
        return None
    e, fails = found
    others = replace(e, long=e.long & NO, real=e.real & NO)
    numbers = e.known & (e.long | e.real)
    true = e.known & ((e.long & whole(e)) | (e.real & np.asarray(real)))
    false, null = (NO, numbers) if null_listed else (numbers, NO)
    return join_truth(rest(json_rules.text_at(arg, others, fails)), Truth(true, false, null, NO))


def _ends(e: DocumentEvidence) -> tuple[Any, Any]:
    """Return the bounds of whole numbers, with unknown ones replaced by the type's limits."""
    lo, hi = (
        np.asarray(pc.fill_null(bound, pa.scalar(limit, pa.int64())))
        for bound, limit in ((e.long_lo, _INT64[0]), (e.long_hi, _INT64[-1]))
    )
    return lo, hi
