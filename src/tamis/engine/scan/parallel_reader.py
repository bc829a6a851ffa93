"""Parallel reading of a plan's parts: in order, in bounded memory, and stopped when the consumer stops.

Invariant: the output equals reading the parts one after another, errors included: a part's error is raised
in its turn, after all rows before it, and never if the consumer stops earlier.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice

import pyarrow as pa

_DEPTH = 2
"""Batches that a part may be ahead of its consumer."""


def threads() -> int:
    """The number of parts read at once: the processors, plus two to hide the store's latency."""
    return min(8, (os.cpu_count() or 2) + 2)


class Channel:
    """A bounded queue between one part's reader and the consumer; either side can close it."""

    def __init__(self) -> None:
        self._items: deque[pa.RecordBatch] = deque()
        self._state = threading.Condition()
        self._done = False
        self._error: BaseException | None = None

    def put(self, item: pa.RecordBatch) -> bool:
        """Wait for room and add ``item``; return False if the consumer has gone."""
        with self._state:
            self._state.wait_for(lambda: self._done or len(self._items) < _DEPTH)
            if self._done:
                return False
            self._items.append(item)
            self._state.notify_all()
            return True

    def close(self, error: BaseException | None = None) -> None:
        """Mark the end; ``error`` is raised to the consumer after the queued items."""
        with self._state:
            self._done, self._error = True, error or self._error
            self._state.notify_all()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while True:
            with self._state:
                self._state.wait_for(lambda: self._done or bool(self._items))
                if not self._items:
                    if self._error is not None:
                        raise self._error
                    return
                item = self._items.popleft()
                self._state.notify_all()
            yield item


Work = Callable[[], Generator[pa.RecordBatch]]


def in_order(work: Iterable[Work], workers: int) -> Generator[pa.RecordBatch]:
    """Yield the batches of each piece of work in order, with at most ``workers`` pieces in progress."""
    pieces = iter(work)
    if workers <= 1:
        for piece in pieces:
            yield from piece()
        return
    open_channels: deque[Channel] = deque()
    readers: set[int] = set()
    pool = ThreadPoolExecutor(
        workers, thread_name_prefix="tamis-read", initializer=lambda: readers.add(threading.get_ident())
    )

    def begin(piece: Work) -> None:
        channel = Channel()
        open_channels.append(channel)
        pool.submit(_produce, piece, channel)

    try:
        for piece in islice(pieces, workers):
            begin(piece)
        while open_channels:
            yield from open_channels[0]
            open_channels.popleft()
            for piece in islice(pieces, 1):
                begin(piece)
    finally:
        for channel in open_channels:
            channel.close()
        # The garbage collector may close a dropped stream in one of these threads, which cannot wait for itself.
        pool.shutdown(wait=threading.get_ident() not in readers, cancel_futures=True)


def _produce(piece: Work, channel: Channel) -> None:
    try:
        with closing(piece()) as batches:
            for batch in batches:
                if not channel.put(batch):
                    break
        channel.close()
    except BaseException as error:  # noqa: BLE001  # passed to the consumer, which raises it in turn
        channel.close(error)
