"""Unfinished streams of rows, which are stopped when the interpreter ends.

A script may end while it holds such a stream. Its readers would wait forever for room in their queues, and the
interpreter would wait for the readers; a thread of Arrow, Polars or DuckDB that still requests rows would crash
without an interpreter. Therefore all streams are stopped at the end: their readers are joined, and a consumer that
requests more rows gets an error, never an incomplete result.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable, Generator, Iterable

import pyarrow as pa

_LONGEST_WAIT = 10.0
"""Seconds for which the interpreter's end waits for batches that are being read."""
_GRACE = 0.1
"""Seconds that threads of other libraries get to handle the error after a stream has raised it."""
_STEP = 0.005


class OpenStream:
    """A stream of batches that is not exhausted. ``stop`` is called if the interpreter ends before it is."""

    def __init__(self) -> None:
        self.stopped = False
        self.reading = False
        """Whether a consumer waits for a batch."""
        self.stop: Callable[[], None] = _nothing
        """Stops the readers and waits for them."""

    def track_batches(self, batches: Iterable[pa.RecordBatch]) -> Generator[pa.RecordBatch]:
        """Yield ``batches``, recording whether the consumer waits.

        Raises ``RuntimeError`` if the interpreter is ending.
        """
        try:
            self.reading = True
            for batch in batches:
                self.reading = False
                yield batch
                self.reading = True
                if self.stopped:
                    raise ending_error()
        finally:
            self.reading = False
            _registry.remove(self)

    def end(self) -> None:
        """Stop the stream."""
        self.stopped = True
        self.stop()


class _Registry:
    """The open streams of this process."""

    def __init__(self) -> None:
        self.ending = False
        self.clear()

    def clear(self) -> None:
        """Forget all streams; called after a fork, because their threads exist only in the parent process."""
        self._streams: weakref.WeakSet[OpenStream] = weakref.WeakSet()
        self._lock = threading.RLock()  # the garbage collector may close a stream while this thread adds another

    def add(self, stream: OpenStream) -> None:
        with self._lock:
            self._streams.add(stream)

    def remove(self, stream: OpenStream) -> None:
        with self._lock:
            self._streams.discard(stream)

    def end_all(self) -> None:
        """Stop all streams, and wait until no consumer waits for a batch."""
        self.ending = True
        with self._lock:
            streams = list(self._streams)
        for stream in streams:
            stream.end()
        pause = threading.Event()
        for _ in range(int(_LONGEST_WAIT / _STEP)):
            if not any(stream.reading for stream in streams):
                break
            pause.wait(_STEP)
        if streams:
            pause.wait(_GRACE)


_registry = _Registry()
atexit.register(_registry.end_all)
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_registry.clear)


def begin_stream() -> OpenStream:
    """Return a new stream, which is stopped if the interpreter ends before it does.

    Functions that run at the interpreter's end may still read in the main thread. Raises ``RuntimeError`` in others.
    """
    stream = OpenStream()
    _registry.add(stream)
    if _registry.ending and threading.current_thread() is not threading.main_thread():
        raise ending_error()
    return stream


def is_ending() -> bool:
    """Whether the interpreter is ending, so that no thread may be started."""
    return _registry.ending


def ending_error() -> RuntimeError:
    return RuntimeError("The interpreter is ending.")


def _nothing() -> None:
    """Do nothing: the default of ``OpenStream.stop``, for a stream without readers."""
