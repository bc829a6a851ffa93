"""Many small requests at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tamis.storage.object_store.store import Store

A = TypeVar("A")
B = TypeVar("B")

THREADS = 16
"""Requests under way at once: enough to hide an object store's latency, few enough for its limits."""

LOCAL_THREADS = 4
"""On local disk only decoding takes time; more threads only take memory."""

WORTH_IT_LOCALLY = 32
"""Items from which threads pay there, where a request takes less time than a thread to start."""


def gather(store: Store, call: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """``call`` of each item, concurrently where that pays for ``store``, in the order given. Raises what the first failing one raised."""
    work = list(items)
    if len(work) < (2 if store.remote else WORTH_IT_LOCALLY):
        return [call(item) for item in work]
    with ThreadPoolExecutor(min(len(work), THREADS if store.remote else LOCAL_THREADS), thread_name_prefix="tamis-state") as pool:
        return list(pool.map(call, work))
