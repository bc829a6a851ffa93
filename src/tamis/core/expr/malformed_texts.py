"""Texts that are not UTF-8, which Spark never checks: rows of which no function of characters is computed here.

Spark counts and compares characters of such bytes in ways of its own, and differently from function to function, while
Arrow, RE2 and Python do it in theirs, or raise. So these rows fail: a scan through Spark keeps them for Spark to test,
and any other evaluation says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.expr.arrow_values import Datum, Mask, null_mask
from tamis.core.expr.tree import Call
from tamis.core.types import BINARY, String

MALFORMED_TEXT = "[MALFORMED_TEXT] The text is not UTF-8, so only Spark knows the result."
BYTEWISE = frozenset(
    [
        *("eq", "ne", "lt", "le", "gt", "ge", "null_safe_eq", "in", "is_null", "is_not_null", "greatest", "least"),
        *("starts_with", "ends_with", "contains", "concat", "hex", "octet_length", "bit_length"),
        *("md5", "sha1", "sha2", "crc32", "raised"),
    ]
)
"""Functions whose kernels take texts as bytes, as Spark does."""
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
_HIGH_BITS = np.uint64(0x8080808080808080)


def malformed_rows(call: Call, values: Sequence[Datum]) -> Mask | None:
    """Return the rows that have a text which is not UTF-8 among arguments that are taken as characters, or None."""
    if call.function in BYTEWISE or (
        call.function == "cast" and (call.type == BINARY or isinstance(call.type, String))
    ):
        return None
    found: Mask | None = None
    for array in values:
        if isinstance(array, pa.Array) and _is_text(array.type) and is_malformed(array):
            rows = malformed_flags(array)
            found = rows if found is None else found | rows
    return found


def is_malformed(texts: pa.Array) -> bool:
    """Return whether any text is not UTF-8."""
    if _is_ascii(texts):
        return False
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return True
    return False


def _is_ascii(texts: pa.Array) -> bool:
    """Return whether all bytes are ASCII, which takes a third of the time of checking the array."""
    _, offsets, data = texts.buffers() if not pa.types.is_string_view(texts.type) else (None, None, None)
    if offsets is None or data is None:
        return not len(texts)
    places = np.frombuffer(offsets, np.int32 if pa.types.is_string(texts.type) else np.int64)
    found = np.frombuffer(data, np.uint8)[places[texts.offset] : places[texts.offset + len(texts)]]
    words = found[: len(found) // 8 * 8].view(np.uint64)
    return not np.bitwise_or.reduce(words) & _HIGH_BITS and not (found[words.nbytes :] >> 7).any()


def null_in_rows(array: Datum, rows: Mask) -> Datum:
    """Return an argument of texts with NULL in ``rows``; others as they are."""
    if not isinstance(array, pa.Array) or not _is_text(array.type):
        return array
    return array.take(pa.array(np.arange(len(array)), mask=rows))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def malformed_flags(texts: pa.Array) -> Mask:
    """Return the texts that are not UTF-8: those with a byte that must not follow the bytes before it."""
    plain = texts.cast(pa.large_string(), safe=False) if texts.type != pa.large_string() else texts
    _, offsets, data = plain.buffers()
    ends = np.frombuffer(offsets, np.int64)[plain.offset : plain.offset + len(plain) + 1]
    found = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
    ends = ends - ends[0]
    bad = np.concatenate([[0], np.cumsum(_unexpected(found, ends[:-1]))])
    rows: Mask = bad[ends[1:]] > bad[ends[:-1]]
    null = null_mask(texts)
    return rows if null is None else rows & ~null


def _unexpected(data: Bytes, starts: np.ndarray[Any, np.dtype[np.int64]]) -> Mask:
    """Return the bytes at which a sequence of UTF-8 is wrong or ends too early; texts begin at ``starts``."""
    size = len(data)
    begins = np.zeros(size + 3, bool)
    begins[starts[starts < size]] = True
    begins[size:] = True
    length = _LENGTHS[data]  # of the character that begins with the byte; 0: none does
    wanted, bad = np.zeros(size + 3, bool), np.zeros(size, bool)
    open_ = np.ones(size, bool)
    for step in (1, 2, 3):  # a character's later bytes belong to the same text
        open_ &= ~begins[step : step + size]
        longer = length > step
        wanted[step : step + size] |= longer & open_
        bad |= longer & ~open_
    follows = (data & 0xC0) == 0x80
    bad |= (follows != wanted[:size]) | ((length == 0) & ~follows)
    for lead, low, high in _SECOND_BYTES:  # else too long a form, a surrogate, or beyond the last character
        second = np.flatnonzero(data[:-1] == lead) + 1
        bad[second] |= (data[second] < low) | (data[second] > high)
    return bad


def _lengths() -> np.ndarray[Any, np.dtype[np.int8]]:
    found = np.zeros(256, np.int8)
    for first, end, length in ((0x00, 0x80, 1), (0xC2, 0xE0, 2), (0xE0, 0xF0, 3), (0xF0, 0xF5, 4)):
        found[first:end] = length
    return found


_LENGTHS = _lengths()
_SECOND_BYTES = ((0xE0, 0xA0, 0xBF), (0xED, 0x80, 0x9F), (0xF0, 0x90, 0xBF), (0xF4, 0x80, 0x8F))
"""First bytes after which the second one has narrower limits."""
