"""The streams of rows that are not finished, and what happens to them when the interpreter ends.

A script may end while it holds such a stream. Its readers wait for room that nobody makes any more, and the
interpreter would wait for them; and a thread of Arrow, Polars or DuckDB that still asks for rows crashes without an
interpreter. So at the end all streams are stopped: their readers are waited for, and whoever asks for more rows gets
an error, never a short answer.
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
"""Seconds in which threads of other libraries take the error, which happens after a stream has raised it."""
_STEP = 0.005


class OpenStream:
    """A stream of batches from its first to its last one. ``stop`` is called if the interpreter ends before."""

    def __init__(self) -> None:
        self.stopped = False
        self.reading = False
        """Whether a consumer waits for a batch."""
        self.stop: Callable[[], None] = _nothing
        """Makes readers end, and waits for them."""

    def watched(self, batches: Iterable[pa.RecordBatch]) -> Generator[pa.RecordBatch]:
        """Yield ``batches``. Raises ``RuntimeError`` if the interpreter is ending."""
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
        """Forget all streams, as of the process from which this one was forked: it has none of their threads."""
        self._streams: weakref.WeakSet[OpenStream] = weakref.WeakSet()
        self._lock = threading.RLock()  # the garbage collector may close a stream while this thread adds another

    def add(self, stream: OpenStream) -> None:
        with self._lock:
            self._streams.add(stream)

    def remove(self, stream: OpenStream) -> None:
        with self._lock:
            self._streams.discard(stream)

    def end_all(self) -> None:
        """Stop all streams, and wait until their consumers know it."""
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

    What is called at the interpreter's end may read still, in the main thread. Raises ``RuntimeError`` in another.
    """
    stream = OpenStream()
    _registry.add(stream)
    if _registry.ending and threading.current_thread() is not threading.main_thread():
        raise ending_error()
    return stream


def is_ending() -> bool:
    """Whether the interpreter is ending, so that no thread should be begun."""
    return _registry.ending


def ending_error() -> RuntimeError:
    return RuntimeError("The interpreter is ending.")


def _nothing() -> None:
    """Stop no reader."""
