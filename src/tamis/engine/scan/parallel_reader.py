"""Parallel reading of a plan's parts: in order, in bounded memory, and stopped when the consumer stops.

Invariant: the output equals reading the parts one after another, errors included: a part's error is raised
in its turn, after all rows before it, and never if the consumer stops earlier.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from itertools import islice

import pyarrow as pa

from tamis.engine.scan.open_streams import OpenStream, begin_stream, ending_error, is_ending
from tamis.engine.scan.reader_threads import LONGEST_JOIN, ReaderThreads
from tamis.sizes import SIZES
from tamis.storage.object_store.location import locate_store

AHEAD_BYTES = SIZES.ahead_bytes
"""Bytes of batches, over all pieces together, that readers may be ahead of the consumer."""
_DEPTH = 2
"""Batches that a piece may be ahead of its consumer, whatever their bytes."""


def reader_threads(url: str) -> int:
    """The number of parts of the table at ``url`` that are read at once.

    The processors, plus two to hide a store's latency, or one for that of a disk: more threads than processors cost
    up to a third of the time where all of them have something to do.
    """
    return min(8, (os.cpu_count() or 2) + (2 if locate_store(url).remote else 1))


class ReadAhead:
    """The bytes that all channels of one scan hold, at most ``most`` beside ``_DEPTH`` batches of each."""

    def __init__(self, most: int) -> None:
        self.state = threading.Condition()
        self._left = most

    def take(self, size: int) -> None:
        self._left -= size

    def give(self, size: int) -> None:
        self._left += size

    def has_room(self) -> bool:
        return self._left > 0


class Channel:
    """A bounded queue between one piece's reader and the consumer; either side can close it.

    Only the first of the open channels is drained. If each held a few batches only, the readers of all others would
    wait for it, and one processor would do the work.
    """

    def __init__(self, ahead: ReadAhead) -> None:
        self._items: deque[tuple[pa.RecordBatch, int]] = deque()
        self._ahead, self._state = ahead, ahead.state
        self._done = False
        self._error: BaseException | None = None

    def put(self, item: pa.RecordBatch) -> bool:
        """Wait for room and add ``item``; return False if the consumer has gone."""
        size = item.nbytes
        with self._state:
            self._state.wait_for(lambda: self._done or len(self._items) < _DEPTH or self._ahead.has_room())
            if self._done:
                return False
            self._items.append((item, size))
            self._ahead.take(size)
            self._state.notify_all()
            return True

    @property
    def closed(self) -> bool:
        """Whether either side has ended it."""
        return self._done

    def close(self, error: BaseException | None = None) -> None:
        """Mark the end, if it is open; ``error`` is raised to the consumer after the queued items."""
        with self._state:
            if not self._done:
                self._done, self._error = True, error
                self._state.notify_all()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while True:
            with self._state:
                self._state.wait_for(lambda: self._done or bool(self._items))
                if not self._items:
                    if self._error is not None:
                        raise self._error
                    return
                item, size = self._items.popleft()
                self._ahead.give(size)
                self._state.notify_all()
            yield item


Work = Callable[[], Generator[pa.RecordBatch]]


def read_in_order(work: Iterable[Work], workers: int, ahead_bytes: int = 0) -> Generator[pa.RecordBatch]:
    """Yield the batches of each piece of work in order, with at most ``workers`` pieces in progress.

    Readers may be two batches of each piece, and ``ahead_bytes`` in all, ahead of the consumer. Raises
    ``RuntimeError`` if the interpreter is ending.
    """
    stream = begin_stream()
    one_by_one = workers <= 1 or is_ending()
    rows = _one_by_one(work) if one_by_one else _in_parallel(work, workers, ahead_bytes, stream)
    with closing(rows):
        yield from stream.track_batches(rows)


def _one_by_one(work: Iterable[Work]) -> Generator[pa.RecordBatch]:
    for piece in work:
        yield from piece()


def _in_parallel(work: Iterable[Work], workers: int, ahead_bytes: int, stream: OpenStream) -> Generator[pa.RecordBatch]:
    pieces = iter(work)
    open_channels: deque[Channel] = deque()
    ahead = ReadAhead(ahead_bytes)
    readers = ReaderThreads(workers)

    def begin(piece: Work) -> None:
        channel = Channel(ahead)
        open_channels.append(channel)
        readers.submit(_produce, piece, channel)
        if stream.stopped:  # after its channels were closed
            channel.close(ending_error())

    def stop() -> None:
        _close_all(open_channels, ending_error())
        readers.shutdown()

    stream.stop = stop
    try:
        for piece in islice(pieces, workers):
            begin(piece)
        while open_channels:
            yield from open_channels[0]
            open_channels.popleft()
            for piece in islice(pieces, 1):
                begin(piece)
    finally:
        _close_all(open_channels)
        readers.shutdown(LONGEST_JOIN)


def _close_all(channels: Iterable[Channel], error: BaseException | None = None) -> None:
    for channel in list(channels):
        channel.close(error)


def _produce(piece: Work, channel: Channel) -> None:
    if channel.closed:  # before its turn came
        return
    try:
        with closing(piece()) as batches:
            for batch in batches:
                if not channel.put(batch):
                    break
        channel.close()
    except BaseException as error:  # noqa: BLE001  # passed to the consumer, which raises it in turn
        channel.close(error)
