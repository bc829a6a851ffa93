"""Memory for the bytes of a file, from Arrow's pool where it is large.

The pool keeps memory that was freed. A bytes object of this size is mapped and unmapped each time, and the system
clears its pages before they are written, which takes several times as long as copying into them.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

POOLED = 128 * 2**10
"""Bytes from which memory is mapped for each object."""


def writable_memory(length: int) -> memoryview:
    """Return this many bytes of memory; their content is undefined."""
    return memoryview(bytearray(length)) if length < POOLED else memoryview(pa.allocate_buffer(length)).cast("B")


def joined_memory(pieces: Sequence[bytes | memoryview]) -> bytes | memoryview:
    """Return the bytes of all pieces, one after the other."""
    length = sum(len(piece) for piece in pieces)
    if length < POOLED:
        return b"".join(pieces)
    data, at = writable_memory(length), 0
    for piece in pieces:
        data[at : at + len(piece)] = piece
        at += len(piece)
    return data.toreadonly()
