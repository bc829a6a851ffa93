"""Texts that are not UTF-8, which Spark never checks: rows of which no function of characters is computed here.

Spark counts and compares characters of such bytes in ways of its own, and differently from function to function, while
Arrow, RE2 and Python do it in theirs, or raise. So these rows fail: a scan through Spark keeps them for Spark to test,
and any other evaluation says so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tamis.core.expr.arrow_values import Datum, Mask
from tamis.core.expr.tree import Call
from tamis.core.types import BINARY, String

MESSAGE = "[MALFORMED_TEXT] The text is not UTF-8, so only Spark can tell what it computes of it."
BYTEWISE = frozenset(
    [
        *("eq", "ne", "lt", "le", "gt", "ge", "null_safe_eq", "in", "is_null", "is_not_null", "greatest", "least"),
        *("starts_with", "ends_with", "contains", "concat", "hex", "octet_length", "bit_length"),
        *("md5", "sha1", "sha2", "crc32", "raised"),
    ]
)
"""Functions whose kernels take texts as bytes, as Spark does."""
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
            rows = _malformed(array)
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


def without_rows(array: Datum, rows: Mask) -> Datum:
    """Return an argument of texts with NULL in ``rows``; others as they are."""
    if not isinstance(array, pa.Array) or not _is_text(array.type):
        return array
    return array.take(pa.array(np.arange(len(array)), mask=rows))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _malformed(texts: pa.Array) -> Mask:
    """Find the malformed texts by halves, as there are usually few."""
    found, spans = np.zeros(len(texts), bool), [(0, len(texts))]
    while spans:
        start, end = spans.pop()
        if not is_malformed(texts.slice(start, end - start)):
            continue
        if end - start == 1:
            found[start] = True
        else:
            middle = (start + end) // 2
            spans += [(start, middle), (middle, end)]
    return found
