"""What this process remembers of immutable objects: commits, footers, columns of manifests and rollups.

Law: a key names content that never changes. It therefore holds the table's id beside the path, because a path can be
dropped and made anew. Bounded by bytes; the least recently used goes first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any


class Cache:
    """A thread-safe mapping that never holds more than ``limit`` bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.bytes = 0
        self._items: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Any | None:
        """What is kept under ``key``, or None."""
        with self._lock:
            found = self._items.get(key)
            if found is None:
                return None
            self._items.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Keeps ``value``, which takes about ``size`` bytes; nothing larger than a quarter of the limit."""
        if size > self.limit // 4:
            return
        with self._lock:
            _, before = self._items.pop(key, (None, 0))
            self._items[key] = (value, size)
            self.bytes += size - before
            while self.bytes > self.limit:
                _, (_, gone) = self._items.popitem(last=False)
                self.bytes -= gone

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._items.clear()
            self.bytes = 0


CACHE = Cache(64 * 2**20)
"""The process's cache."""
