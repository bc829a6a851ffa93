"""The garbage collector may close a scan at any allocation, in a thread that holds a lock of ours: nothing hangs."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.engine.scan import parallel_reader
from tamis.engine.scan.report import report_hooks, scan_report
from tamis.storage.object_store.lru_cache import LruCache


class Collected:
    """Garbage in a cycle that closes an unfinished scan when it is collected."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self.batches, self.itself = batches, self
        next(batches)


def finishes(call: Callable[[], object]) -> bool:
    """Whether ``call`` ends soon, in a thread of its own."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(20)
    return not thread.is_alive()


@pytest.fixture
def table(tmp_path: Path) -> tamis.Table:
    made = tamis.create(tmp_path / "t", "id BIGINT")
    for first in range(0, 40, 10):
        made.append(pa.table({"id": range(first, first + 10)}))
    return made


def test_a_cache_may_be_asked_within_its_own_calls() -> None:
    """Here by the comparison of a key, as by the collector at any allocation."""
    cache = LruCache[str](1_000)

    class Key:
        def __eq__(self, other: object) -> bool:
            cache.put(("more", len(cache._items)), "x", 10)
            cache.get(("k", 1))
            return isinstance(other, Key)

        def __hash__(self) -> int:
            return 1

    for number in range(5):
        cache.put(("k", number), "x", 10)
    cache.put((Key(),), "x", 10)

    def nested() -> None:
        cache.forget(Key())
        cache.put((Key(),), "y", 10)

    assert finishes(nested)
    assert cache.get((Key(),)) == "y"
    assert cache.bytes == sum(size for _, size in cache._items.values())


def test_a_scan_that_is_collected_while_reports_are_registered(table: tamis.Table) -> None:
    Collected(iter(table.scan().to_batches()))

    def collect() -> None:
        with scan_report._reports_lock, report_hooks._lock:
            gc.collect()

    assert finishes(collect)
    assert tamis.reports(1)


def test_a_reader_that_waits_for_the_collecting_thread_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that closes the scan holds what a reader needs to end."""
    monkeypatch.setattr(parallel_reader, "LONGEST_JOIN", 0.05)
    needed, started = threading.Lock(), threading.Event()

    def free() -> Generator[pa.RecordBatch]:
        yield pa.record_batch({"a": [1]})

    def waiting() -> Generator[pa.RecordBatch]:
        started.set()
        with needed:
            yield pa.record_batch({"a": [2]})

    def close_with_lock() -> None:
        with needed:
            rows = parallel_reader.read_in_order([free, waiting], workers=2)
            next(rows)
            assert started.wait(10)
            rows.close()

    assert finishes(close_with_lock)
