"""Rows with texts that are not UTF-8: functions of characters are not computed for them.

Spark checks no text. It counts and compares characters of such bytes in ways of its own, which differ from function to
function, while Arrow, RE2 and Python have other ways, or raise. So these rows fail: a scan through Spark keeps them for
Spark to test, and any other evaluation says so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tamis.core.expr.arrow_values import Datum, Mask
from tamis.core.expr.tree import Call
from tamis.core.types import BINARY, String
from tamis.core.types.utf8_texts import is_malformed, malformed_flags

MALFORMED_TEXT = "[MALFORMED_TEXT] The text is not UTF-8, so only Spark knows the result."
BYTEWISE = frozenset(
    [
        *("eq", "ne", "lt", "le", "gt", "ge", "null_safe_eq", "in", "is_null", "is_not_null", "greatest", "least"),
        *("starts_with", "ends_with", "contains", "concat", "hex", "octet_length", "bit_length"),
        *("md5", "sha1", "sha2", "crc32", "raised"),
    ]
)
"""Functions whose kernels take texts as bytes, as Spark does."""


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


def null_in_rows(array: Datum, rows: Mask) -> Datum:
    """Return an argument of texts with NULL in ``rows``; others as they are."""
    if not isinstance(array, pa.Array) or not _is_text(array.type):
        return array
    return array.take(pa.array(np.arange(len(array)), mask=rows))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
