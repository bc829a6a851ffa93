"""Attribution of read costs to counters: footers, leaders, filter, followers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tamis.engine.part_reader.read_spec import ReadCounters
from tamis.storage.files import PartFile
from tamis.world import world


class Meter:
    """Updates ``counters`` as the read proceeds, so that they are correct if the reader is dropped midway."""

    def __init__(self, counters: ReadCounters) -> None:
        self._counters = counters

    @contextmanager
    def opening(self, *, filtered: bool) -> Iterator[Callable[[PartFile], PartFile]]:
        start, c = world().monotonic(), self._counters

        def opened(part: PartFile) -> PartFile:
            io = part.io
            c.bytes_footer += io.bytes
            c.requests += io.requests
            if filtered:
                c.bytes_leader += io.bytes
            else:
                c.bytes_follower += io.bytes
            return part

        try:
            yield opened
        finally:
            c.seconds_open += world().monotonic() - start

    @contextmanager
    def reading(self, part: PartFile, *, leaders: bool, share: float | None) -> Iterator[None]:
        """Meter one read; ``share`` is the leaders' share of bytes when read together with followers."""
        start, before, c = world().monotonic(), part.io, self._counters
        try:
            yield
        finally:
            after, seconds = part.io, world().monotonic() - start
            size = after.bytes - before.bytes
            leading = int(size * share) if share is not None else size if leaders else 0
            c.bytes_leader += leading
            c.bytes_follower += size - leading
            c.requests += after.requests - before.requests
            if leaders:
                c.seconds_leader += seconds
            else:
                c.seconds_follower += seconds

    @contextmanager
    def filtering(self, rows: int) -> Iterator[None]:
        start = world().monotonic()
        try:
            yield
        finally:
            self._counters.rows_leader += rows
            self._counters.seconds_filter += world().monotonic() - start

    def record_plan(self, blocks: int, skipped: int, by_index: int = 0) -> None:
        self._counters.blocks_total += blocks
        self._counters.blocks_skipped_stats += skipped
        self._counters.blocks_skipped_index += by_index

    def record_blocks(self, *, read: int, lazy: int = 0, eager: int = 0, skipped_filter: int = 0) -> None:
        self._counters.blocks_read += read
        self._counters.blocks_lazy += lazy
        self._counters.blocks_eager += eager
        self._counters.blocks_skipped_filter += skipped_filter

    def record_matches(self, rows: int) -> None:
        self._counters.rows_matched += rows
