"""The bounded mapping of all caches of this process; the least recently used entries go first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")


class LruCache(Generic[T]):
    """A thread-safe LRU mapping that holds at most ``limit`` bytes, or one entry.

    ``largest_share``: the share of the limit that one entry may take, which may be more than 1. Larger ones are not
    kept.
    """

    def __init__(self, limit: int, largest_share: float = 1.0) -> None:
        self.limit = limit
        self.bytes = 0
        self._largest = int(limit * largest_share)
        self._items: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._lock = threading.RLock()  # the garbage collector may close a scan, which asks a cache, within a call

    def get(self, key: Hashable) -> T | None:
        """Return the value cached under ``key``, or None."""
        with self._lock:
            found = self._items.get(key)
            if found is None:
                return None
            with suppress(KeyError):
                self._items.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: T, size: int) -> None:
        """Cache ``value``, which takes about ``size`` bytes, in place of what was cached under ``key``."""
        entry = value, size
        with self._lock:
            self._drop(key)
            if size > self._largest:
                return
            self._items[key] = entry
            self.bytes += size
            while self.bytes > self.limit and len(self._items) > 1:
                _, (_, evicted) = self._items.popitem(last=False)
                self.bytes -= evicted

    def forget(self, *prefix: Hashable) -> None:
        """Evict the entries whose keys begin with ``prefix``: the URL of a table, and perhaps more."""
        with self._lock:
            for key in list(self._items):
                if isinstance(key, tuple) and key[: len(prefix)] == prefix:
                    self._drop(key)

    def _drop(self, key: Hashable) -> None:
        """Evict ``key``, if it is there."""
        known = self._items.pop(key, None)
        if known is not None:
            self.bytes -= known[1]

    def clear(self) -> None:
        """Evict everything."""
        with self._lock:
            self._items.clear()
            self.bytes = 0
