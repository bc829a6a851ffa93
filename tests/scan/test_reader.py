"""Reading ahead: the same as one after another, whatever the threads do."""

import gc
import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.engine.scan.parallel_reader import read_in_order


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
    assert values(read_in_order((work(p) for p in pieces), workers)) == [v for p in pieces for v in p]


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_comes_in_its_turn(workers: int) -> None:
    stream = read_in_order(
        iter([work([1, 2]), work([3], ValueError("second")), work([4], ValueError("third"))]), workers
    )
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
    stream = read_in_order((piece(i) for i in range(100)), 3)
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

    stream = read_in_order(iter([run, work([1])]), 2)
    next(stream)
    threading.Event().wait(0.05)
    assert len(made) <= 5
    stream.close()


def test_readers_behind_the_first_fill_what_may_be_read_ahead() -> None:
    """The second piece is read to its end while the consumer holds the first batch of the first one."""
    ended = threading.Event()

    def second() -> Generator[pa.RecordBatch]:
        yield from work(range(100, 120))()
        ended.set()

    stream = read_in_order(iter([work(range(50)), second]), 2, ahead_bytes=2**20)
    assert values([next(stream)]) == [0]
    assert ended.wait(10)
    assert values(stream) == [*range(1, 50), *range(100, 120)]


@pytest.mark.parametrize("batches", [0, 5, 12])
def test_bytes_bound_what_is_read_ahead(batches: int) -> None:
    """Of all pieces together, beside two batches of each and the one that each reader has in hand."""
    made: list[int] = []

    def piece(i: int) -> Callable[[], Generator[pa.RecordBatch]]:
        def run() -> Generator[pa.RecordBatch]:
            for value in range(100):
                made.append(i)
                yield batch(value)

        return run

    stream = read_in_order((piece(i) for i in range(3)), 3, ahead_bytes=batches * batch(0).nbytes)
    next(stream)
    threading.Event().wait(0.05)
    assert len(made) <= 1 + batches + 3 * (2 + 1)
    assert len(list(stream)) == 3 * 100 - 1, "and nobody waits for ever"


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=12), st.integers(2, 5), st.sampled_from([0, 1, 30, 999])
)
def test_the_order_is_that_of_the_pieces_however_far_ahead(pieces: list[list[int]], workers: int, ahead: int) -> None:
    found = read_in_order((work(p) for p in pieces), workers, ahead)
    assert values(found) == [v for p in pieces for v in p]


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

    rows = read_in_order([piece], 2)
    next(rows)
    circle: list[object] = [rows]
    circle.append(circle)
    del rows, circle
    dropped.set()
    threads[0].join(10)
    assert not threads[0].is_alive()
    assert unraisable == []


PIECES = """
import atexit
import threading

def read_on():
    try:
        print("read on:", sum(len(batch) for batch in rows), flush=True)
    except RuntimeError as error:
        print("read on:", error, flush=True)

if {reads_on}:
    atexit.register(lambda: read_on())  # runs last

import pyarrow as pa
import pyarrow.dataset as ds
from tamis.engine.scan.parallel_reader import read_in_order

ended = []

def piece():
    try:
        for value in range({batches}):
            yield pa.record_batch({{"v": [value] * 10_000}})
    finally:
        ended.append(1)

class Printer:
    def __del__(self):
        print("readers ended:", len(ended), flush=True)

printer = Printer()
rows = read_in_order([piece] * {pieces}, 3)
"""


def output_of(script: str, *, batches: int = 1000, pieces: int = 9, reads_on: bool = False) -> list[str]:
    """What a script prints that begins with the stream ``rows``; it must end by itself, and without an error."""
    text = PIECES.format(batches=batches, pieces=pieces, reads_on=reads_on) + script
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout.splitlines()


def test_the_interpreter_ends_although_a_stream_is_not_finished() -> None:
    """Readers are stopped in order, not killed in the middle of what they do."""
    assert output_of('print(next(rows)["v"][0].as_py(), flush=True)') == ["0", "readers ended: 3"]


@pytest.mark.parametrize("pieces", [1, 9])
def test_the_interpreter_ends_although_a_thread_of_arrow_reads(pieces: int) -> None:
    """One piece is read without threads of readers."""
    script = """
reader = ds.Scanner.from_batches(rows, schema=pa.schema({"v": pa.int64()})).to_reader()
print(reader.read_next_batch()["v"][0].as_py(), flush=True)
"""
    assert output_of(script, pieces=pieces)[0] == "0"


@pytest.mark.parametrize(("batches", "pieces"), [(1000, 9), (2, 12), (1000, 1)], ids=["open", "complete", "one"])
def test_whoever_reads_on_when_the_interpreter_ends_gets_an_error_and_no_short_answer(
    batches: int, pieces: int
) -> None:
    """Also where all that was read ahead is complete: nobody reads the next pieces."""
    script = "next(rows); threading.Event().wait(0.2)"
    found = output_of(script, batches=batches, pieces=pieces, reads_on=True)
    assert found[0] == "read on: The interpreter is ending."


def test_what_is_called_at_the_end_may_read_anew_in_the_main_thread_only() -> None:
    script = """
next(rows)
begin, done = threading.Event(), threading.Event()

def elsewhere():
    begin.wait()
    try:
        next(read_in_order([piece] * 3, 3))
    except RuntimeError as error:
        print(error, flush=True)
    done.set()

def anew():
    begin.set()
    done.wait(30)
    print(sum(len(batch) for batch in read_in_order([piece] * 3, 3)), flush=True)

threading.Thread(target=elsewhere, daemon=True).start()
read_on = anew
"""
    assert output_of(script, batches=5, reads_on=True)[:2] == ["The interpreter is ending.", "150000"]


def test_a_fork_ends_although_its_parent_reads() -> None:
    stream = read_in_order([work(range(100))] * 3, 3)
    assert values([next(stream)]) == [0]
    child = multiprocessing.get_context("fork").Process(target=sys.exit, args=(7,))
    child.start()
    child.join(30)
    assert child.exitcode == 7
    assert len(list(stream)) == 299


def test_a_fork_does_not_wait_for_the_streams_of_its_parent() -> None:
    script = """
import os
from tamis.engine.scan import open_streams
next(rows)
child = os.fork()
if not child:
    os._exit(len(open_streams._registry._streams))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(open_streams._registry._streams), flush=True)
"""
    assert output_of(script)[0] == "0 1"
