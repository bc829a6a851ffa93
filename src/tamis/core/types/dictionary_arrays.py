"""Arrow arrays whose values are numbers into a dictionary, which is how readers return texts that repeat."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

DICTIONARY_TEXT = pa.dictionary(pa.int32(), pa.string())
"""The Arrow type of texts that have a dictionary."""

LARGEST_ARRAY = 2**31 - 1
"""Maximum bytes of text in one array, whose offsets have 32 bits."""


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


def longest_value(dictionary: pa.Array) -> int:
    """Return the most bytes of a value of a dictionary, with its offset."""
    if pa.types.is_string(dictionary.type) or pa.types.is_binary(dictionary.type):
        return (pc.max(pc.binary_length(dictionary)).as_py() or 0) + 4
    return int(dictionary.nbytes)


def bytes_without_dictionary(array: pa.Array, enough: int) -> int:
    """Return an upper bound of the bytes that the values take as a plain array.

    A dictionary whose rough bound is at most ``enough`` is not looked into.
    """
    kind = array.type
    if pa.types.is_dictionary(kind):
        bound = len(array) * int(array.dictionary.nbytes)
        return bound if bound <= enough else len(array) * longest_value(array.dictionary)
    if pa.types.is_struct(kind) and _has_dictionary(kind):
        return sum(bytes_without_dictionary(child, enough) for child in array.flatten())
    if pa.types.is_list(kind) and _has_dictionary(kind):
        return bytes_without_dictionary(array.flatten(), enough) + 4 * len(array)
    return int(array.nbytes)


def _has_dictionary(kind: pa.DataType) -> bool:
    inner = [kind.field(at).type for at in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    return pa.types.is_dictionary(kind) or any(map(_has_dictionary, inner))
