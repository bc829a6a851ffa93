"""Threads that read ahead for one scan, and that never keep the interpreter from ending.

A script may end while it holds an unfinished stream, whose readers wait for room that nobody makes any more. The
interpreter waits for threads before it calls what is registered to be called at its end, except for daemons. So
these are daemons, and are stopped and waited for at its end.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

_GRACE_SECONDS = 0.1

Call = tuple[Callable[..., None], tuple[Any, ...]]


class ReaderThreads:
    """Up to ``most`` threads, which make the submitted calls in order. The calls must not raise.

    ``stop`` makes running calls return soon. It is called if the interpreter ends before ``shutdown``.
    """

    def __init__(self, most: int, stop: Callable[[], None]) -> None:
        self._most, self._stop, self._process = most, stop, os.getpid()
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        _unfinished.add(self)

    def submit(self, function: Callable[..., None], *args: Any) -> None:
        """Have a thread call ``function``."""
        self._calls.put((function, args))
        if len(self._threads) < self._most:
            name = f"tamis-read_{len(self._threads)}"
            thread = threading.Thread(target=_serve, args=(self._calls,), name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def shutdown(self) -> None:
        """Wait until the threads have ended; one that calls this itself ends afterwards."""
        _unfinished.discard(self)
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def abandon(self) -> None:
        """Stop the calls and wait for the threads. A fork of the process has none."""
        if self._process == os.getpid():
            self._stop()
            self.shutdown()


def _serve(calls: SimpleQueue[Call | None]) -> None:
    while (call := calls.get()) is not None:
        function, args = call
        function(*args)
        del function, args, call  # what they hold must not live until the next call


_unfinished: weakref.WeakSet[ReaderThreads] = weakref.WeakSet()


def _abandon_all() -> None:
    unfinished = list(_unfinished)
    for threads in unfinished:
        threads.abandon()
    if unfinished:  # consumers in threads of Arrow take the error, and crash without an interpreter
        threading.Event().wait(_GRACE_SECONDS)


atexit.register(_abandon_all)
