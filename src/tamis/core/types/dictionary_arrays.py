"""Arrow arrays whose values are numbers into a dictionary, which is how readers return texts that repeat."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

DICTIONARY_TEXT = pa.dictionary(pa.int32(), pa.string())
"""The Arrow type of texts that have a dictionary."""


LARGEST_ARRAY = 2**31 - 1
"""Bytes of texts that one array holds, as its offsets have 32 bits."""
_ROUGHLY = 2**20
"""Bytes up to which a rough bound will do."""


def plain_array(array: pa.Array) -> pa.Array:
    """Return the values of ``array`` without a dictionary."""
    return array.dictionary.take(array.indices) if pa.types.is_dictionary(array.type) else array


def joined_arrays(arrays: Sequence[pa.Array]) -> pa.Array:
    """Concatenate at least one array of the same values; the result has a dictionary if all of them have one."""
    if len(arrays) == 1:
        return arrays[0]
    if all(pa.types.is_dictionary(a.type) for a in arrays):
        return pa.concat_arrays(arrays)
    return pa.concat_arrays([plain_array(a) for a in arrays])


def written_bytes(array: pa.Array) -> int:
    """Return the most bytes that the values of ``array`` take without a dictionary."""
    if not pa.types.is_dictionary(array.type):
        return int(array.nbytes)
    dictionary = array.dictionary
    bound = len(array) * int(dictionary.nbytes)
    if bound <= _ROUGHLY or not (pa.types.is_string(dictionary.type) or pa.types.is_binary(dictionary.type)):
        return bound
    longest = pc.max(pc.binary_length(dictionary)).as_py() or 0
    return len(array) * (longest + 4)  # and an offset
