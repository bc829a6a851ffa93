"""The garbage collector may close a scan at any allocation, in a thread that holds a lock of ours: nothing hangs."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.engine.scan import parallel_reader, reader_threads
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


LOCKS: dict[str, Callable[[], Any]] = {
    "reports": lambda: scan_report._reports_lock,
    "hooks": lambda: report_hooks._lock,
    "cache": lambda: LruCache[int](100)._lock,
}


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_is_taken_again_by_the_thread_that_has_it(name: str) -> None:
    lock = LOCKS[name]()

    def twice() -> None:
        with lock, lock:
            pass

    assert finishes(twice)


def test_a_scan_that_is_collected_while_reports_are_registered(table: tamis.Table) -> None:
    Collected(iter(table.scan().to_batches()))

    def collect() -> None:
        with scan_report._reports_lock, report_hooks._lock:
            gc.collect()

    assert finishes(collect)
    assert tamis.reports(1)


def test_a_reader_that_waits_for_the_collecting_thread_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that closes the scan holds what a reader needs to end."""
    monkeypatch.setattr(reader_threads, "LONGEST_JOIN", 0.05)
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
