"""Finds the least and greatest strings of JSON text by their first bytes, eight per word.

Invariant: strings are ordered by their UTF-8 bytes, as in Spark. None contains a zero byte, because JSON
escapes control characters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.json_codec.iso_times import NO_TIMES, looks_like_time, times_of_texts
from tamis.core.stats.json_paths.json_numbers import Data, Ints, Words, words_at
from tamis.core.stats.json_paths.path_rows import STRING, PathStatistics

_FIRST = np.array([2**64 - 2 ** (8 * (8 - count)) for count in range(9)], np.uint64)
"""By count: the mask of a word's first bytes, the first byte highest."""
_INSIDE = np.array([2 ** (8 * count) - 1 for count in range(9)], np.uint64)
"""By count: the mask of a word's first bytes, the first byte lowest."""
_BEHIND = np.array([0x0101010101010101 & ~(2 ** (8 * count) - 1) for count in range(9)], np.uint64)
"""By count: a one in every byte after them."""
_ONES, _TOPS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_PLAIN_WORDS = 4
_LOOKS = 3
"""Words that are compared before the remaining strings are compared whole."""


def lines_of_texts(data: Data, begins: Ints, ends: Ints) -> list[PathStatistics]:
    """Return the statistics of the strings of each line of positions, which ascend."""
    heads = _heads(data, begins, ends)
    best = {"min": heads.argmin(axis=1).tolist(), "max": heads.argmax(axis=1).tolist()}

    def extreme(line: int, which: str) -> str:
        head = heads[line, best[which][line]]
        if head & np.uint64(0xFF):  # the string may be longer
            return _extreme(data, begins[line], ends[line], heads[line], which)
        return int(head).to_bytes(8).rstrip(b"\0").decode()

    lines, count = range(len(heads)), heads.shape[1]
    return [
        _statistics(data, begins[line], ends[line], count, extreme(line, "min"), extreme(line, "max")) for line in lines
    ]


def lines_of_words(found: Words, lengths: Any) -> list[PathStatistics] | None:
    """Return the statistics of lines of strings of at most seven bytes each, the first byte lowest.

    None if some string is not ASCII, or has a zero byte, or if a line may have times. Bytes behind a string are
    ignored.
    """
    found &= _INSIDE[lengths]
    shown = found | _BEHIND[lengths]
    shown |= shown - _ONES
    if np.bitwise_or.reduce(shown, axis=None) & _TOPS:  # see ``are_plain``
        return None
    heads, out = found.byteswap(inplace=True), []
    for low, high in zip(heads.min(axis=1).tolist(), heads.max(axis=1).tolist(), strict=True):
        both = tuple(head.to_bytes(8).rstrip(b"\0").decode() for head in (low, high))
        if all(map(looks_like_time, both)):
            return None
        out.append(PathStatistics(STRING, heads.shape[1], 0, string=both))
    return out


def string_statistics(data: Data, begins: Ints, ends: Ints) -> PathStatistics:
    """Return the statistics of the strings between these positions, which ascend."""
    heads = _heads(data, begins, ends)
    low, high = (_extreme(data, begins, ends, heads, which) for which in ("min", "max"))
    return _statistics(data, begins, ends, len(begins), low, high)


def _statistics(data: Data, begins: Ints, ends: Ints, count: int, low: str, high: str) -> PathStatistics:
    times = NO_TIMES
    if looks_like_time(low) and looks_like_time(high):
        times = times_of_texts(_between(data, begins, ends).cast(pa.string()))
    return PathStatistics(STRING, count, 0, string=(low, high), times=times)


def are_plain(data: Data, begins: Ints, ends: Ints) -> bool:
    """Return whether the strings meet the preconditions of ``string_statistics``; reads every byte.

    They must be short, lie in order within ``data``, and be ASCII without zero bytes. Accepts lines of
    positions too.
    """
    if (begins[..., 1:] < ends[..., :-1]).any() or begins[..., 0].min() < 0 or ends[..., -1].max() > len(data) - 8:
        return False
    longest = int((ends - begins).max())
    if longest > 8 * _PLAIN_WORDS:
        return False
    seen = np.uint64(0)
    for word in range(0, longest, 8):
        found = words_at(data, np.minimum(begins + word, ends) if word else begins)
        here = np.clip(ends - begins - word, 0, 8)
        found &= _INSIDE[here]
        found |= _BEHIND[here]
        found |= found - _ONES
        seen |= np.bitwise_or.reduce(found, axis=None)  # a zero byte and one above 127 both set a highest bit
    return not bool(seen & _TOPS)


def _extreme(data: Data, begins: Ints, ends: Ints, heads: Words, which: str) -> str:
    for look in range(1, _LOOKS + 1):
        best = heads.min() if which == "min" else heads.max()
        left = np.flatnonzero(heads == best)
        if len(left) == 1 or not best & np.uint64(
            0xFF
        ):  # one is left, or the rest are equal because they end within this word
            return data[begins[left[0]] : ends[left[0]]].tobytes().decode()
        begins, ends = begins[left], ends[left]
        if look < _LOOKS:
            heads = _heads(data, begins + 8 * look, ends)
    return _compared(data, begins, ends, which)


def _heads(data: Data, at: Ints, ends: Ints) -> Words:
    """Return the next eight bytes of each string, the first one highest; zero after its end."""
    found = words_at(data, np.minimum(at, ends)).byteswap(inplace=True)
    found &= _FIRST[np.clip(ends - at, 0, 8)]
    return found


def _compared(data: Data, begins: Ints, ends: Ints, which: str) -> str:
    """Compare whole strings."""
    found: bytes = pc.min_max(_between(data, begins, ends))[which].as_py()
    return found.decode()


def _between(data: Data, begins: Ints, ends: Ints) -> pa.BinaryArray:
    """Return the strings between these positions; every second range between the positions is a string."""
    offsets = np.empty(2 * len(begins), np.int32)
    offsets[::2], offsets[1::2] = begins, ends
    stretches = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return stretches.take(pa.array(np.arange(0, len(offsets) - 1, 2)))
