"""Texts that are not UTF-8, and how Spark counts their characters.

Spark checks no text: a Latin-1 line that it reads is a STRING of the same bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
_HIGH_BITS = np.uint64(0x8080808080808080)


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


def malformed_flags(texts: pa.Array) -> Mask:
    """Return the texts that are not UTF-8: those with a byte that must not follow the bytes before it."""
    plain = texts.cast(pa.large_string(), safe=False) if texts.type != pa.large_string() else texts
    _, offsets, data = plain.buffers()
    ends = np.frombuffer(offsets, np.int64)[plain.offset : plain.offset + len(plain) + 1]
    found = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
    ends = ends - ends[0]
    bad = np.concatenate([[0], np.cumsum(_unexpected(found, ends[:-1]))])
    rows: Mask = bad[ends[1:]] > bad[ends[:-1]]
    return rows & np.asarray(texts.is_valid()) if texts.null_count else rows


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


def padded_texts(texts: pa.Array, length: int) -> pa.Array:
    """Return texts with blanks up to ``length`` characters as Spark counts them; longer ones as they are."""
    if not is_malformed(texts):
        return pc.utf8_rpad(texts, width=length, padding=" ")
    malformed = malformed_flags(texts)
    sound = pc.utf8_rpad(pc.if_else(pa.array(malformed), pa.scalar(None, texts.type), texts), width=length, padding=" ")
    raw = texts.filter(pa.array(malformed)).cast(pa.binary(), safe=False).to_pylist()
    grown = pa.array([text + b" " * max(length - spark_length(text), 0) for text in raw], pa.binary())
    return pc.replace_with_mask(sound, pa.array(malformed), grown.cast(texts.type, safe=False))


def spark_lengths(texts: pa.Array) -> pa.Array:
    """Return the numbers of characters as Spark counts them."""
    if not is_malformed(texts):
        return pc.utf8_length(texts)
    raw = texts.cast(pa.binary(), safe=False).to_pylist()
    return pa.array([None if text is None else spark_length(text) for text in raw], pa.int32())


def spark_length(text: bytes) -> int:
    """Return the number of characters that Spark counts: each begins a first byte, which says how many bytes it has."""
    at = count = 0
    while at < len(text):
        at += max(int(_LENGTHS[text[at]]), 1)
        count += 1
    return count
