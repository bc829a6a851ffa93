"""Arrow arrays whose values are numbers into a dictionary, which is how readers return texts that repeat."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

DICTIONARY_TEXT = pa.dictionary(pa.int32(), pa.string())
"""The Arrow type of texts that have a dictionary."""


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
