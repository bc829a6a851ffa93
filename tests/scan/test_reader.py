"""Reading ahead: the same as one after another, whatever the threads do."""

import gc
import sys
import threading
from collections.abc import Callable, Generator, Iterable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.engine.scan.parallel_reader import in_order


def batch(value: int) -> pa.RecordBatch:
    return pa.record_batch({"v": [value]})


def work(values: Iterable[int], fail: Exception | None = None) -> Callable[[], Generator[pa.RecordBatch]]:
    def run() -> Generator[pa.RecordBatch]:
        for value in values:
            yield batch(value)
        if fail:
            raise fail

    return run


def values(batches: Iterable[pa.RecordBatch]) -> list[int]:
    return [b["v"][0].as_py() for b in batches]


@given(st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=12), st.integers(1, 5))
def test_the_order_is_that_of_the_pieces(pieces: list[list[int]], workers: int) -> None:
    assert values(in_order((work(p) for p in pieces), workers)) == [v for p in pieces for v in p]


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_comes_in_its_turn(workers: int) -> None:
    stream = in_order(iter([work([1, 2]), work([3], ValueError("second")), work([4], ValueError("third"))]), workers)
    assert values([next(stream) for _ in range(3)]) == [1, 2, 3]
    with pytest.raises(ValueError, match="second"):
        next(stream)


def test_a_consumer_that_stops_stops_the_readers_and_never_meets_a_later_error() -> None:
    begun = []

    def piece(i: int) -> Callable[[], Generator[pa.RecordBatch]]:
        def run() -> Generator[pa.RecordBatch]:
            begun.append(i)
            for _ in range(1000):
                yield batch(i)
            raise ValueError("never reached")

        return run

    before = threading.active_count()
    stream = in_order((piece(i) for i in range(100)), 3)
    assert values([next(stream) for _ in range(3)]) == [0, 0, 0]
    stream.close()
    assert len(begun) <= 3
    assert threading.active_count() == before


def test_readers_run_at_most_a_little_ahead() -> None:
    made = []

    def run() -> Generator[pa.RecordBatch]:
        for i in range(100):
            made.append(i)
            yield batch(i)

    stream = in_order(iter([run, work([1])]), 2)
    next(stream)
    threading.Event().wait(0.05)
    assert len(made) <= 5
    stream.close()


def test_a_dropped_stream_may_be_collected_in_a_thread_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    unraisable: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    dropped = threading.Event()
    threads = []

    def piece() -> Generator[pa.RecordBatch]:
        threads.append(threading.current_thread())
        yield batch(1)
        dropped.wait(10)
        gc.collect()
        yield batch(1)

    rows = in_order([piece], 2)
    next(rows)
    circle: list[object] = [rows]
    circle.append(circle)
    del rows, circle
    dropped.set()
    threads[0].join(10)
    assert not threads[0].is_alive()
    assert unraisable == []
