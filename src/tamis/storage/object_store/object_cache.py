"""The process-wide cache of immutable objects: commits, footers, columns of manifests and rollups.

Invariant: a key names content that never changes. Keys therefore include the table's id as well as its path,
because a table can be dropped and created again at the same path. Stored bytes can still be damaged, so
opening a table explicitly first evicts the entries of its path and then finds the damage. The cache is
bounded by bytes and evicts the least recently used entries.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any


class Cache:
    """A thread-safe LRU mapping that never holds more than ``limit`` bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.bytes = 0
        self._items: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Any | None:
        """Return the value cached under ``key``, or None."""
        with self._lock:
            found = self._items.get(key)
            if found is None:
                return None
            self._items.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Cache ``value``, which takes about ``size`` bytes, unless that exceeds a quarter of the limit."""
        if size > self.limit // 4:
            return
        with self._lock:
            _, before = self._items.pop(key, (None, 0))
            self._items[key] = (value, size)
            self.bytes += size - before
            while self.bytes > self.limit:
                _, (_, gone) = self._items.popitem(last=False)
                self.bytes -= gone

    def forget(self, url: str) -> None:
        """Evict the entries of the table at ``url``: those whose keys begin with it."""
        with self._lock:
            for key in [key for key in self._items if isinstance(key, tuple) and key[0] == url]:
                self.bytes -= self._items.pop(key)[1]

    def clear(self) -> None:
        """Evict everything."""
        with self._lock:
            self._items.clear()
            self.bytes = 0


CACHE = Cache(64 * 2**20)
"""The cache of this process."""
