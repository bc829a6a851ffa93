"""A cache of recently used files' metadata, so that a process opens a file once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """A thread-safe LRU mapping of at most ``limit`` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit, self._used = limit, 0
        self._entries: OrderedDict[Any, tuple[T, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Any) -> T | None:
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def put(self, key: Any, value: T, size: int) -> None:
        with self._lock:
            if key not in self._entries:
                self._entries[key] = value, size
                self._used += size
            while self._used > self._limit and self._entries:
                self._used -= self._entries.popitem(last=False)[1][1]
