"""Bounds of one array: the smallest and largest value in Spark's order, and how long ones are cut.

Law: every value that is neither NULL nor NaN lies within the bounds, before and after cutting. Arrow's own order agrees with
Spark's once NaN is out of the way; −0.0 and 0.0 are one value to Spark, so a bound of zero is the wider of the two.
"""

from __future__ import annotations

import sys

import pyarrow as pa
import pyarrow.compute as pc

LIMIT = 64
"""Bounds of strings are cut to this many characters, of binaries to this many bytes."""


def comparable(array: pa.Array) -> pa.Array:
    """The same values under a type that Arrow can order."""
    return array.view(pa.int64()) if pa.types.is_duration(array.type) else array


def count_nans(array: pa.Array) -> int:
    if not pa.types.is_floating(array.type):
        return 0
    return pc.sum(pc.is_nan(array)).as_py() or 0


def extremes(array: pa.Array, nans: int) -> tuple[pa.Scalar, pa.Scalar]:
    """The smallest and the largest value of ``array``, which holds ``nans`` NaNs; null where it has no value that counts."""
    if nans:  # Arrow passes over NaN too, but promises it nowhere
        array = array.filter(pc.invert(pc.is_nan(array)))
    both = pc.min_max(comparable(array))
    low, high = both["min"], both["max"]
    if pa.types.is_duration(array.type):
        low, high = low.cast(array.type), high.cast(array.type)
    return low, high


def cut_low(value: pa.Scalar) -> tuple[pa.Scalar, bool]:
    """A lower bound of at most ``LIMIT`` characters or bytes, or −0.0 for a zero; and whether it is ``value`` itself."""
    return _cut(value, upper=False)


def cut_high(value: pa.Scalar) -> tuple[pa.Scalar, bool]:
    """An upper bound of at most ``LIMIT`` characters or bytes (null: there is none), or 0.0 for a zero; and whether it is ``value`` itself."""
    return _cut(value, upper=True)


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
        return pa.scalar(next_text(text[:LIMIT]) if upper else text[:LIMIT], kind), False
    if pa.types.is_binary(kind):
        data = value.as_py()
        if len(data) <= LIMIT:
            return value, True
        return pa.scalar(next_bytes(data[:LIMIT]) if upper else data[:LIMIT], kind), False
    return value, True


def _text(data: bytes) -> tuple[str, bool]:
    """``data`` as text up to the first byte that is no UTF-8 (Spark allows such strings), and whether that is all of it."""
    try:
        return data.decode(), True
    except UnicodeDecodeError as error:
        return data[: error.start].decode(), False


def next_text(prefix: str) -> str | None:
    """The smallest text, in the order of UTF-8 bytes, above all that begin with ``prefix``; None if there is none.

    The last character that has a successor is raised and the rest dropped; U+D7FF is followed by U+E000, as surrogates are no text.
    """
    for at in range(len(prefix) - 1, -1, -1):
        point = ord(prefix[at])
        if point < sys.maxunicode:
            return prefix[:at] + chr(0xE000 if point == 0xD7FF else point + 1)
    return None


def next_bytes(prefix: bytes) -> bytes | None:
    """The smallest bytes above all that begin with ``prefix``; None if they are all 0xFF."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
