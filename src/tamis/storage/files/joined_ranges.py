"""Memory for long ranges of which some bytes are kept, so that the rest is read beside them and not copied.

A decoder that needs a range as a whole often asks for one whose first checksummed chunk is kept, because the range
before it ended there. Putting it together from the kept chunk and the fetched rest would copy all of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from tamis.storage.files.recent_bytes import Range, RecentBytes
from tamis.storage.object_store.pooled_memory import POOLED, writable_memory


@dataclass(frozen=True, slots=True)
class JoinedRanges:
    """The ranges that are put together in memory of their own."""

    wholes: dict[Range, memoryview] = field(default_factory=dict)
    """Memory by range; the kept bytes are in it."""
    targets: dict[Range, memoryview] = field(default_factory=dict)
    """The memory of each missing piece in it, for the store to read into."""


def join_in_place(ranges: Sequence[Range], missing: Sequence[Range], kept: RecentBytes) -> JoinedRanges:
    """Return memory for the long ones of ``ranges`` that are partly ``kept``; ``missing`` is sorted.

    A range that ends within a missing piece, or shares one with another range, is left to ``RecentBytes.joined``.
    """
    out = JoinedRanges()
    for offset, length in ranges if kept else ():
        inside = missing[bisect_left(missing, (offset, 0)) : bisect_left(missing, (offset + length, 0))]
        if length < POOLED or not inside or any(piece in out.targets for piece in inside):
            continue
        pieces = list(kept.pieces_within(offset, offset + length))
        if not pieces or sum(n for _, n in inside) + sum(len(view) for _, view in pieces) != length:
            continue
        whole = writable_memory(length)
        for start, view in pieces:
            whole[start - offset : start - offset + len(view)] = view
        out.wholes[offset, length] = whole
        out.targets.update({(start, n): whole[start - offset : start - offset + n] for start, n in inside})
    return out
