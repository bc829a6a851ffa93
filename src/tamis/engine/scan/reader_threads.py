"""A few threads that read ahead for one scan. They are daemons, for which the interpreter does not wait by itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from tamis.world import world

LONGEST_JOIN = 10.0
"""Seconds to wait for the threads of a scan that is closed.

The garbage collector may close a scan in a thread that holds a lock for which a reader waits: neither could go on.
"""

Call = tuple[Callable[..., None], tuple[Any, ...]]


class ReaderThreads:
    """Up to ``most`` threads, which make the submitted calls in order. The calls must not raise."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def submit(self, function: Callable[..., None], *args: Any) -> None:
        """Have a thread call ``function``."""
        self._calls.put((function, args))
        if len(self._threads) < self._most:
            name = f"tamis-read_{len(self._threads)}"
            thread = threading.Thread(target=_serve, args=(self._calls,), name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def shutdown(self, longest: float | None = None) -> None:
        """Wait at most ``longest`` seconds until the threads have ended; one that calls this itself ends afterwards."""
        for _ in self._threads:
            self._calls.put(None)
        end = None if longest is None else world().monotonic() + longest
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(None if end is None else max(0.0, end - world().monotonic()))


def _serve(calls: SimpleQueue[Call | None]) -> None:
    while (call := calls.get()) is not None:
        function, args = call
        function(*args)
        del function, args, call  # what they hold must not live until the next call
