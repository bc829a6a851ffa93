"""Finds where pages begin in the offset indexes that the library writes before the footer.

The indexes are Thrift's compact protocol, one after the other, behind the column indexes. All their varints are
decoded at once; a walk over the column chunks then picks those that are offsets.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.storage.files.parquet.compact_thrift import thrift_varint

Ordinals = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

_LIST, _STRUCTS, _NUMBERS, _OFFSET, _SIZE, _STOP = 0x19, 0x0C, 0x06, 0x16, 0x15, 0
"""Bytes of the protocol: a list in the next field, its elements' types, the fields of a page's offset and size."""
_LONG_LIST = 0xF0
"""The header of a list of 15 elements or more, whose number follows."""
_TOKENS = 7
"""Varints of a page's location: three fields, each a header and a number, and the end."""


def page_starts(index: bytes, first: int, chunks: int) -> Ordinals | None:
    """Return the offset of each data page, ascending.

    ``index`` ends with the offset indexes of as many column ``chunks``. ``first`` is the offset of the first page.
    Returns None if ``index`` has another form. It is searched from the end, because the column indexes before hold
    values of the table, which may look like anything.
    """
    begins = bytes([_OFFSET]) + thrift_varint(first << 1) + bytes([_SIZE])
    at = index.rfind(begins)
    while at >= 0:
        for header in (2, 3, 4):  # bytes: the field, the list's type, and the number of pages if it is large
            if at >= header and index[at - header] == _LIST:
                starts = _starts(np.frombuffer(index, np.uint8)[at - header :], chunks)
                if starts is not None and starts[0] == first:
                    return starts
        at = index.rfind(begins, 0, at + len(begins) - 1)
    return None


def _starts(data: np.ndarray[Any, np.dtype[np.uint8]], chunks: int) -> Ordinals | None:
    """Return the offsets in ``data``, or None unless it consists of as many offset indexes, in ascending order."""
    ends = np.flatnonzero(data < 0x80)
    begins = np.concatenate([[0], ends[:-1] + 1])
    if not len(ends) or ends[-1] != len(data) - 1 or int((ends - begins).max()) > 8:
        return None
    values = np.zeros(len(ends), np.int64)
    for place in range(int((ends - begins).max()) + 1):
        there = begins + place <= ends
        values[there] |= (data[begins[there] + place].astype(np.int64) & 0x7F) << (7 * place)
    places = _places(values, ends == begins, chunks)
    if places is None:
        return None
    starts: Ordinals = values[places] >> 1
    return starts if bool((np.diff(starts) > 0).all()) else None


def _places(values: Ordinals, single: Flags, chunks: int) -> Ordinals | None:
    """Return which of the varints are offsets of pages; ``single``: which have one byte."""
    found, at, count = [], 0, len(values)
    for _ in range(chunks):
        if at + 1 >= count or values[at] != _LIST:
            return None
        pages, at = _list(values, single, at + 1, _STRUCTS)
        if pages < 1 or at + _TOKENS * pages >= count:
            return None
        found.append(np.arange(at + 1, at + _TOKENS * pages, _TOKENS))
        at += _TOKENS * pages
        if values[at] == _LIST and at + 1 < count:  # the bytes of each page's texts
            sizes, at = _list(values, single, at + 1, _NUMBERS)
            at += sizes
        if at >= count or values[at] != _STOP:
            return None
        at += 1
    return np.concatenate(found) if at == count and found else None


def _list(values: Ordinals, single: Flags, at: int, kind: int) -> tuple[int, int]:
    """Return how many elements the list with the header at ``at`` has, and where they begin; -1 for another type.

    Of 8 or more elements, the header has the bit of a varint that goes on. It is then one with what follows: from 15
    on the number of elements, else the beginning of the first element, which is therefore said to be at ``at``.
    """
    value = int(values[at])
    low = value & 0x7F
    if low & 0x0F != kind:
        return -1, at
    if single[at]:
        return low >> 4, at + 1
    if low | 0x80 == _LONG_LIST | kind:
        return value >> 7, at + 1
    return low >> 4 | 8, at
