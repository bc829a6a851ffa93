"""The byte ranges of one file that were fetched last, so that no byte of them is fetched again.

A lazy reader asks for the leaders of some blocks first and for their followers afterwards. What both requests
touch (the gap between two nearby ranges, the rest of a checksummed chunk, a stripe's footer) would otherwise be
fetched twice, and lazy reading would read more bytes than eager reading. Not thread-safe.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence

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

    def missing(self, spans: Sequence[Range]) -> list[Range]:
        """Return what of these sorted spans is not kept, in order."""
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

    def joined(self, offset: int, length: int, fetched: RecentBytes) -> memoryview:
        """Return one range, put together from what is kept here and what was ``fetched``."""
        whole = fetched._view(offset, length) or self._view(offset, length)
        if whole is not None:
            return whole
        data = bytearray(length)
        for source in (self, fetched):
            for start, stop in source._within(offset, offset + length):
                low, high = max(start, offset), min(stop, offset + length)
                found = source._view(low, high - low)
                assert found is not None
                data[low - offset : high - offset] = found
        return memoryview(data)

    def _view(self, offset: int, length: int) -> memoryview | None:
        at = bisect_right(self._starts, offset) - 1
        if at < 0:
            return None
        start = offset - self._starts[at]
        return self._spans[at][start : start + length] if start + length <= len(self._spans[at]) else None

    def add(self, offset: int, data: memoryview) -> None:
        """Keep a span that ``missing`` named."""
        if not len(data) or len(data) > self._limit:
            return
        at = bisect_right(self._starts, offset)
        self._starts.insert(at, offset)
        self._spans.insert(at, data)
        self._order.append(offset)
        self._size += len(data)
        while self._size > self._limit:
            self._drop(self._order.popleft())

    def _drop(self, offset: int) -> None:
        at = bisect_right(self._starts, offset) - 1
        self._size -= len(self._spans[at])
        del self._starts[at], self._spans[at]

    def clear(self) -> None:
        """Drop everything, so that a read that found wrong bytes asks the store again."""
        self._starts, self._spans, self._size = [], [], 0
        self._order.clear()
