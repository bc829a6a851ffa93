"""The byte ranges of one file that were fetched last, so that no byte of them is fetched again.

A lazy reader asks for the leaders of some blocks first and for their followers afterwards. What both requests
touch (the gap between two nearby ranges, the rest of a checksummed chunk, a stripe's footer) would otherwise be
fetched twice, and lazy reading would read more bytes than eager reading. Not thread-safe.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterator, Sequence

from tamis.storage.object_store.pooled_memory import writable_memory

LIMIT = 32 * 2**20
"""Bytes that are kept of one open file; the oldest are dropped first."""

_FEW = 20
"""If fewer than one in this many spans is added or dropped, each is searched for; otherwise all are passed over."""

Range = tuple[int, int]
"""Offset and length."""


class RecentBytes:
    """Fetched spans that do not overlap, up to ``limit`` bytes."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit, self._size = limit, 0
        self._starts: list[int] = []
        """Offsets, ascending."""
        self._spans: dict[int, memoryview] = {}
        """The span of each offset."""
        self._order: deque[int] = deque()
        """Offsets in the order in which their spans were added."""
        self.changes = 0
        """How often spans were added: what was missing is still missing while this number is the same."""

    def missing(self, spans: Sequence[Range]) -> list[Range]:
        """Return what of these sorted spans is not kept, in order."""
        if not spans or self._ends_before(spans[0][0]):
            return [span for span in spans if span[1]]
        starts, kept = self._starts, self._spans
        out: list[Range] = []
        for span in spans:
            at, length = span
            end = at + length
            after = bisect_right(starts, at)
            before = starts[after - 1] if after else -1
            if (after == len(starts) or starts[after] >= end) and (not after or before + len(kept[before]) <= at):
                if length:
                    out.append(span)
                continue
            for start, stop in self._within(at, end):
                if start > at:
                    out.append((at, start - at))
                at = max(at, stop)
            if at < end:
                out.append((at, end - at))
        return out

    def _ends_before(self, offset: int) -> bool:
        """Whether nothing is kept from ``offset`` on, as where a file is read from its start to its end."""
        return not self._starts or self._starts[-1] + len(self._spans[self._starts[-1]]) <= offset

    def _within(self, offset: int, end: int) -> list[Range]:
        """Return start and end of the kept spans that overlap these bytes."""
        found = []
        for at in range(max(bisect_right(self._starts, offset) - 1, 0), len(self._starts)):
            start = self._starts[at]
            stop = start + len(self._spans[start])
            if start >= end:
                break
            if stop > offset:
                found.append((start, stop))
        return found

    def overlapping(self, spans: Sequence[Range]) -> RecentBytes:
        """Return what is kept of these spans, not copied and without a limit.

        A reader holds it while it fetches the rest, since other threads may drop spans from here meanwhile.
        """
        out = RecentBytes(sys.maxsize)
        if spans and not self._ends_before(spans[0][0]):
            out.add_all([piece for offset, length in spans for piece in self.pieces_within(offset, offset + length)])
        return out

    def joined(self, offset: int, length: int) -> memoryview:
        """Return one range, put together from the spans that are kept. Raises ``LookupError`` if a byte is not."""
        whole = self._view(offset, length)
        if whole is not None:
            return whole
        if self.missing([(offset, length)]):
            raise LookupError(f"{length} bytes from {offset} are not kept as a whole")
        data = writable_memory(length)
        for start, view in self.pieces_within(offset, offset + length):
            data[start - offset : start - offset + len(view)] = view
        return data.toreadonly()

    def pieces_within(self, offset: int, end: int) -> Iterator[tuple[int, memoryview]]:
        """Yield what is kept of these bytes, each piece with its start."""
        for start, stop in self._within(offset, end):
            low, high = max(start, offset), min(stop, end)
            view = self._view(low, high - low)
            assert view is not None
            yield low, view

    def __bool__(self) -> bool:
        return bool(self._starts)

    def _view(self, offset: int, length: int) -> memoryview | None:
        span = self._spans.get(offset)
        if span is not None and len(span) == length:
            return span
        at = bisect_right(self._starts, offset) - 1
        if at < 0:
            return None
        span = self._spans[self._starts[at]]
        start = offset - self._starts[at]
        return span[start : start + length] if start + length <= len(span) else None

    def add_all(self, spans: Sequence[tuple[int, memoryview]]) -> None:
        """Keep sorted spans of which nothing is kept yet, each with its offset."""
        held = {offset: data for offset, data in spans if 0 < len(data) <= self._limit}
        if not held:
            return
        self.changes += 1
        if not self._starts or next(iter(held)) > self._starts[-1]:
            self._starts += held
        elif len(held) * _FEW < len(self._starts):
            for start in held:
                insort(self._starts, start)
        else:
            self._starts += held
            self._starts.sort()  # merges two sorted runs
        self._spans.update(held)
        self._order += held
        self._size += sum(map(len, held.values()))
        if self._size > self._limit:
            self._shrink()

    def add(self, offset: int, data: memoryview) -> None:
        """Keep a span of which nothing is kept yet, as ``missing`` returns them."""
        self.add_all([(offset, data)])

    def _shrink(self) -> None:
        """Drop the spans that were added first."""
        gone = []
        while self._size > self._limit:
            gone.append(self._order.popleft())
            self._size -= len(self._spans.pop(gone[-1]))
        if len(gone) * _FEW < len(self._starts):
            for start in gone:
                del self._starts[bisect_left(self._starts, start)]
        else:
            self._starts = [start for start in self._starts if start in self._spans]
