"""Statistics that a thread collects while a block is encoded: the same, in order, and errors are raised by the writer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.core.stats import Collector
from tamis.core.types import LONG, STRING, Field, Schema
from tamis.engine.part_writer import WriteSpec, collecting_thread, write_parts
from tamis.engine.part_writer.collecting_thread import CollectingThread

SCHEMA = Schema((Field("n", LONG, id=1), Field("body", STRING, id=2)))
FACTS = ("part_id", "path", "checksum", "footer_checksum", "run_id")
"""What differs between two writes of the same rows."""


@pytest.fixture(autouse=True)
def _two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pa, "cpu_count", lambda: 2)
    monkeypatch.setattr(collecting_thread, "LEAST_BYTES", 1)


def block(start: int, rows: int = 50) -> pa.RecordBatch:
    numbers = np.arange(start, start + rows)
    return pa.record_batch([numbers, [f'{{"a": {n}, "b": "{n % 7}"}}' for n in numbers]], names=["n", "body"])


def written(folder: Path, blocks: int = 7) -> list[dict[str, Any]]:
    spec = WriteSpec(str(folder), SCHEMA, block_rows=50, part_bytes=1_500)
    parts = write_parts((block(50 * at) for at in range(blocks)), spec)
    return [{k: v for k, v in row.items() if k not in FACTS} for part in parts for row in part.to_pylist()]


def test_the_same_statistics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threaded = written(tmp_path / "threaded")
    monkeypatch.setattr(pa, "cpu_count", lambda: 1)
    assert threaded == written(tmp_path / "alone")
    assert len(threaded) > 1
    assert (threaded[0]["1|long|lo"], threaded[-1]["1|long|hi"]) == (0, 349)


def test_blocks_come_in_order_and_one_at_a_time() -> None:
    seen: list[tuple[int, str]] = []
    collecting = CollectingThread(lambda b: seen.append((b.column(0)[0].as_py(), threading.current_thread().name)))
    for start in range(0, 500, 50):
        collecting.add(block(start))
        assert len(seen) >= start // 50, "the block before was waited for"
    collecting.wait()
    collecting.close()
    assert [start for start, _ in seen] == list(range(0, 500, 50))
    assert {name.rpartition("_")[0] for _, name in seen} == {"tamis-statistics"}


@pytest.mark.parametrize(("processors", "least"), [(1, 1), (2, 2**20)])
def test_no_thread_for_one_processor_or_little_data(
    processors: int, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pa, "cpu_count", lambda: processors)
    monkeypatch.setattr(collecting_thread, "LEAST_BYTES", least)
    names: list[str] = []
    collecting = CollectingThread(lambda _: names.append(threading.current_thread().name))
    collecting.add(block(0))
    collecting.close()
    assert names == [threading.current_thread().name]


@pytest.mark.parametrize("failing", [0, 3, 6])
def test_an_error_fails_the_write(failing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one of the last block, which no other block comes after."""
    update = Collector.update

    def broken(self: Collector, batch: pa.RecordBatch) -> None:
        if batch.column(0)[0].as_py() == 50 * failing:
            raise RuntimeError("no statistics")
        update(self, batch)

    monkeypatch.setattr(Collector, "update", broken)
    with pytest.raises(RuntimeError, match="no statistics"):
        written(tmp_path)
    assert threads() == []


def test_a_source_may_reuse_its_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow reads an array of NumPy in place: the statistics are those of the rows that were written."""
    update = Collector.update

    def late(self: Collector, batch: pa.RecordBatch) -> None:
        threading.Event().wait(0.02)
        update(self, batch)

    def reused() -> Iterator[pa.RecordBatch]:
        memory = np.empty(50, np.int64)
        for value in range(4):
            memory[:] = value
            yield pa.record_batch([memory, ["text"] * 50], names=["n", "body"])
        memory[:] = 9

    monkeypatch.setattr(Collector, "update", late)
    (part,) = write_parts(reused(), WriteSpec(str(tmp_path), SCHEMA, block_rows=50))
    assert part["1|long|set"].to_pylist() == [[0, 1, 2, 3]]


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("tamis-statistics")]


def test_threads_end_with_their_part(tmp_path: Path) -> None:
    spec = WriteSpec(str(tmp_path), SCHEMA, block_rows=50, part_bytes=1_500)
    parts = write_parts((block(50 * at) for at in range(7)), spec)
    for _ in parts:
        assert threads() == []

    def stopped() -> Any:
        yield block(0)
        assert threads() != []
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        list(write_parts(stopped(), spec))
    assert threads() == []
