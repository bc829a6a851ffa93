"""The bounds of an array: its least and greatest value in Spark's order, truncated if long.

Invariant: every value that is neither NULL nor NaN lies within the bounds, before and after truncation.
Arrow's order agrees with Spark's once NaN is removed. −0.0 and 0.0 are one value to Spark, so a bound of zero
is the wider of the two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.functions.text.text_order import next_text
from tamis.core.types.arrow import orderable_array

LIMIT = 64
"""Bounds of strings are truncated to this many characters, of binaries to this many bytes."""


def count_nans(array: pa.Array) -> int:
    if not pa.types.is_floating(array.type):
        return 0
    if array.null_count:
        return pc.sum(pc.is_nan(array)).as_py() or 0
    return int(np.count_nonzero(np.isnan(array.to_numpy())))


def array_extremes(array: pa.Array, nans: int) -> tuple[pa.Scalar, pa.Scalar]:
    """Return the least and greatest value of ``array``, which holds ``nans`` NaNs; null if it has none."""
    if nans:  # Arrow skips NaN too, but does not document it
        array = array.filter(pc.invert(pc.is_nan(array)))
    elif pa.types.is_floating(array.type) and len(array) and not array.null_count:
        values = array.to_numpy()  # Arrow takes ten times as long
        return pa.scalar(values.min(), array.type), pa.scalar(values.max(), array.type)
    both = pc.min_max(orderable_array(array))
    low, high = both["min"], both["max"]
    if pa.types.is_duration(array.type):
        low, high = low.cast(array.type), high.cast(array.type)
    return low, high


def cut_low(value: pa.Scalar) -> tuple[pa.Scalar, bool]:
    """Return a lower bound of at most ``LIMIT`` characters or bytes, and whether it is ``value`` itself.

    The bound of a zero is −0.0.
    """
    return _cut(value, upper=False)


def cut_high(value: pa.Scalar) -> tuple[pa.Scalar, bool]:
    """Return an upper bound of at most ``LIMIT`` characters or bytes, and whether it is ``value`` itself.

    The bound is null if there is none, and 0.0 for a zero.
    """
    return _cut(value, upper=True)


def cut_text(text: str, *, upper: bool) -> str | None:
    """Return a bound of at most ``LIMIT`` characters; None if there is no such upper bound."""
    return text if len(text) <= LIMIT else _bound_of_prefix(text, upper=upper)


def _bound_of_prefix(text: str, *, upper: bool) -> str | None:
    """Return a bound of all texts that begin like ``text``, up to ``LIMIT`` characters."""
    return next_text(text[:LIMIT]) if upper else text[:LIMIT]


def shortened_bound(bound: Any, length: int, *, upper: bool) -> Any:
    """Return a bound of at most ``length`` characters or bytes that admits what ``bound`` does, as a Python value.

    Returns ``bound`` itself, a scalar or Python value, if it is no longer than that; None if there is no such upper
    bound.
    """
    plain = bound.as_py() if isinstance(bound, pa.BinaryScalar) else bound  # texts are binary scalars, too
    if not isinstance(plain, str | bytes) or len(plain) <= length:
        return bound
    short = plain[:length]
    if not upper:
        return short
    return next_text(short) if isinstance(short, str) else next_bytes(short)


def _cut(value: pa.Scalar, *, upper: bool) -> tuple[pa.Scalar, bool]:
    if not value.is_valid:
        return value, False
    kind = value.type
    if pa.types.is_floating(kind) and value.as_py() == 0:
        return pa.scalar(0.0 if upper else -0.0, kind), False
    if pa.types.is_string(kind):
        text, whole = _text(value.as_buffer().to_pybytes())
        if whole and len(text) <= LIMIT:
            return value, True
        return pa.scalar(_bound_of_prefix(text, upper=upper), kind), False
    if pa.types.is_binary(kind):
        data = value.as_py()
        if len(data) <= LIMIT:
            return value, True
        return pa.scalar(next_bytes(data[:LIMIT]) if upper else data[:LIMIT], kind), False
    return value, True


def _text(data: bytes) -> tuple[str, bool]:
    """Decode ``data`` up to the first byte that is not UTF-8, and return whether that is all of it.

    Spark allows such strings.
    """
    try:
        return data.decode(), True
    except UnicodeDecodeError as error:
        return data[: error.start].decode(), False


def next_bytes(prefix: bytes) -> bytes | None:
    """Return the least bytes above all that begin with ``prefix``; None if they are all 0xFF."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
