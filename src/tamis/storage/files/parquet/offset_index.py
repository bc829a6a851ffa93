"""Finds where pages begin in the offset indexes that writers of Parquet leave before the footer.

The indexes are Thrift's compact protocol, one after the other, behind the column indexes. All their varints are
decoded at once; a walk over the column chunks then picks those that locate pages.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tamis.storage.files.parquet.compact_thrift import thrift_varint

Ordinals = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

_LIST, _STRUCTS, _NUMBERS, _OFFSET, _SIZE, _STOP = 0x19, 0x0C, 0x06, 0x16, 0x15, 0
"""Bytes of the protocol: a list in the next field, its elements' types, the fields of a page's offset and size.

The field of a page's first row has the header of its offset.
"""
_LONG_LIST = 0xF0
"""The header of a list of 15 elements or more, whose number follows."""
_CANDIDATES = 4
"""Places that are tried as the beginning of the first index. It is the last one in a sound file."""
_TOKENS = 7
"""Varints of a page's location: three fields, each a header and a number, and the end."""


class PageLocations(NamedTuple):
    """The data pages of a file, in the order of its column chunks."""

    starts: Ordinals
    """Their offsets in the file, ascending."""
    sizes: Ordinals
    """Their bytes, with their headers."""
    rows: Ordinals
    """For each, its first row within its row group."""
    chunks: Ordinals
    """For each column chunk, the number of its first page; the number of all pages at the end."""

    def even_starts(self, page_rows: int) -> Ordinals:
        """Return the offsets of pages in chunks whose pages all begin at multiples of ``page_rows``.

        The library ends a page early where a chunk's dictionary becomes too large, and where a page does.
        """
        counts = np.diff(self.chunks)
        number = np.arange(len(self.starts)) - np.repeat(self.chunks[:-1], counts)
        even = np.logical_and.reduceat(self.rows == number * page_rows, self.chunks[:-1])
        found: Ordinals = self.starts[np.repeat(even, counts)]
        return found


def page_locations(index: bytes, first: int, chunks: int) -> PageLocations | None:
    """Return where the data pages are.

    ``index`` ends with the offset indexes of as many column ``chunks``. ``first`` is the offset of the first page.
    Returns None if ``index`` has another form. It is searched from the end, because the column indexes before hold
    values of the table, which may look like anything.
    """
    begins = bytes([_OFFSET]) + thrift_varint(first << 1) + bytes([_SIZE])
    at = index.rfind(begins)
    for _ in range(_CANDIDATES):
        if at < 0:
            return None
        for header in (2, 3, 4, 5):  # bytes: the field, the list's type, and the number of pages if it is large
            if at >= header and index[at - header] == _LIST:
                found = _locations(np.frombuffer(index, np.uint8)[at - header :], chunks)
                if found is not None and found.starts[0] == first:
                    return found
        at = index.rfind(begins, 0, at + len(begins) - 1)
    return None


def _locations(data: np.ndarray[Any, np.dtype[np.uint8]], chunks: int) -> PageLocations | None:
    """Return the locations in ``data``, or None unless it consists of as many offset indexes, in ascending order."""
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
    offsets, counts = np.concatenate(places), np.array([len(p) for p in places])
    starts, sizes, rows = (values[offsets + field] >> 1 for field in (0, 2, 4))
    if not bool((np.diff(starts) > 0).all()):
        return None
    return PageLocations(starts, sizes, rows, np.concatenate([[0], np.cumsum(counts)]))


def _places(values: Ordinals, single: Flags, chunks: int) -> list[Ordinals] | None:
    """Return, for each chunk, which of the varints are offsets of pages; ``single``: which have one byte."""
    found: list[Ordinals] = []
    at, count = 0, len(values)
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
    return found if at == count and found and _are_locations(values, np.concatenate(found)) else None


def _are_locations(values: Ordinals, places: Ordinals) -> bool:
    """Whether the offsets at ``places`` stand in the fields of a location, in the order in which writers store them."""
    headers = values[places - 1]  # that of the first may be one varint with the header of the list
    shape = ((1, _SIZE), (3, _OFFSET), (5, _STOP))
    return bool(((headers == _OFFSET) | (headers >> 7 == _OFFSET)).all()) and all(
        bool((values[places + at] == header).all()) for at, header in shape
    )


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
