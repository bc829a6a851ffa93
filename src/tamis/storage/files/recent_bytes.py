"""The byte ranges of one file that were fetched last, so that no byte of them is fetched again.

A lazy reader asks for the leaders of some blocks first and for their followers afterwards. What both requests
touch (the gap between two nearby ranges, the rest of a checksummed chunk, a stripe's footer) would otherwise be
fetched twice, and lazy reading would read more bytes than eager reading. Not thread-safe.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence

from tamis.storage.object_store.pooled_memory import writable_memory

LIMIT = 32 * 2**20
"""Bytes that are kept of one open file; the oldest are dropped first."""

Range = tuple[int, int]
"""Offset and length."""


class RecentBytes:
    """Fetched spans that do not overlap, up to ``limit`` bytes."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit, self._size = limit, 0
        self._starts: list[int] = []
        self._spans: list[memoryview] = []
        self._order: deque[int] = deque()
        self.changes = 0
        """How often spans were added: what was missing is still missing while this number is the same."""

    def missing(self, spans: Sequence[Range]) -> list[Range]:
        """Return what of these sorted spans is not kept, in order."""
        if not spans or self._ends_before(spans[0][0]):
            return [span for span in spans if span[1]]
        out: list[Range] = []
        for offset, length in spans:
            at, end = offset, offset + length
            for start, stop in self._within(offset, end):
                if start > at:
                    out.append((at, start - at))
                at = max(at, stop)
            if at < end:
                out.append((at, end - at))
        return out

    def _ends_before(self, offset: int) -> bool:
        """Whether nothing is kept from ``offset`` on, as where a file is read from its start to its end."""
        return not self._starts or self._starts[-1] + len(self._spans[-1]) <= offset

    def _within(self, offset: int, end: int) -> list[Range]:
        """Return start and end of the kept spans that overlap these bytes."""
        found = []
        for at in range(max(bisect_right(self._starts, offset) - 1, 0), len(self._starts)):
            start, stop = self._starts[at], self._starts[at] + len(self._spans[at])
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
        if not spans or self._ends_before(spans[0][0]):
            return out
        for offset, length in spans:
            for start, view in self.pieces_within(offset, offset + length):
                out.add(start, view)
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
        at = bisect_right(self._starts, offset) - 1
        if at < 0:
            return None
        start, span = offset - self._starts[at], self._spans[at]
        if start == 0 and len(span) == length:
            return span
        return span[start : start + length] if start + length <= len(span) else None

    def add_all(self, spans: Sequence[tuple[int, memoryview]]) -> None:
        """Keep sorted spans of which nothing is kept yet, each with its offset."""
        self.changes += 1
        if not spans or not self._ends_before(spans[0][0]):
            for offset, data in spans:
                self.add(offset, data)
            return
        held = [(offset, data) for offset, data in spans if 0 < len(data) <= self._limit]
        self._starts += [offset for offset, _ in held]
        self._spans += [data for _, data in held]
        self._order += [offset for offset, _ in held]
        self._size += sum(len(data) for _, data in held)
        self._shrink()

    def add(self, offset: int, data: memoryview) -> None:
        """Keep a span of which nothing is kept yet, as ``missing`` returns them."""
        self.changes += 1
        if not len(data) or len(data) > self._limit:
            return
        at = bisect_right(self._starts, offset)
        self._starts.insert(at, offset)
        self._spans.insert(at, data)
        self._order.append(offset)
        self._size += len(data)
        self._shrink()

    def _shrink(self) -> None:
        while self._size > self._limit:
            self._drop(self._order.popleft())

    def _drop(self, offset: int) -> None:
        at = bisect_right(self._starts, offset) - 1
        self._size -= len(self._spans[at])
        del self._starts[at], self._spans[at]
