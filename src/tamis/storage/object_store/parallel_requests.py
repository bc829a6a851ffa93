"""Runs many small requests concurrently."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tamis.storage.object_store.store import Store

A = TypeVar("A")
B = TypeVar("B")

THREADS = 16
"""Number of concurrent requests.

Enough to hide an object store's latency, few enough to stay within its limits.
"""

LOCAL_THREADS = 4
"""Threads on local disk, where only decoding takes time and more threads only use memory."""

WORTH_IT_LOCALLY = 32
"""Items from which threads pay off on local disk, where a request takes less time than starting a thread."""


def gather_requests(store: Store, call: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """Return ``call`` of each item in the given order, concurrently if that pays off for ``store``.

    Raises the error of the first item that failed.
    """
    work = list(items)
    if len(work) < (2 if store.remote else WORTH_IT_LOCALLY):
        return [call(item) for item in work]
    with ThreadPoolExecutor(
        min(len(work), THREADS if store.remote else LOCAL_THREADS), thread_name_prefix="tamis-state"
    ) as pool:
        return list(pool.map(call, work))
