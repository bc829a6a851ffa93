"""Reads from the headers of pages how many values they hold."""

from __future__ import annotations

from typing import Any

import numpy as np

Ordinals = np.ndarray[Any, np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]

HEADER_BYTES = 32
"""Bytes of a page, from its beginning, in which the number of its values ends."""
_NUMBER = 0x15
"""The header of the next field in Thrift's compact protocol, if it is a 32-bit number."""
_KINDS = {0: (0x2C, 0x1C), 6: (0x5C, 0x4C)}
"""By the kind of a page, the header of the struct that holds the number: without a checksum before it, with one."""
_LONGEST = 5
"""Bytes of a 32-bit number."""


def values_per_page(heads: Bytes) -> Ordinals:
    """Return how many values, with NULLs, each page says that it holds; -1 if it does not begin as a data page does.

    ``heads`` has a row of ``HEADER_BYTES`` for each page.
    """
    reader = _Heads(heads)
    kind = reader.read_number()
    reader.read_number()
    reader.read_number()
    checked = reader.next_byte() == _NUMBER
    reader.read_number(checked)
    struct, known = reader.next_byte(), np.zeros(len(heads), np.bool_)
    for code, (unchecked_struct, checked_struct) in _KINDS.items():
        known |= (kind == code) & (struct == np.where(checked, checked_struct, unchecked_struct))
    reader.at += 1
    values = reader.read_number()
    found: Ordinals = np.where(known & reader.valid, values >> 1, -1)
    return found


class _Heads:
    """Reads numbers from all headers at once, each from where it is."""

    def __init__(self, heads: Bytes) -> None:
        self._heads, self._all = heads, np.arange(len(heads))
        self.at = np.zeros(len(heads), np.int64)
        self.valid = np.ones(len(heads), np.bool_)

    def next_byte(self) -> Bytes:
        found: Bytes = self._heads[self._all, self.at]
        return found

    def read_number(self, present: np.ndarray[Any, np.dtype[np.bool_]] | None = None) -> Ordinals:
        """Read the field of a 32-bit number, of those pages where it is ``present``; the others do not advance.

        Where the header is not ``valid``, what is returned means nothing.
        """
        here = np.ones(len(self.at), np.bool_) if present is None else present
        self.valid &= ~here | (self.next_byte() == _NUMBER)
        self.at += here
        value, more = np.zeros(len(self.at), np.int64), here.copy()
        for place in range(_LONGEST):
            byte = self.next_byte().astype(np.int64)
            value |= np.where(more, byte & 0x7F, 0) << (7 * place)
            self.at += more
            more &= byte >= 0x80
        self.valid &= ~more
        return value
