"""Parts are cut into partitions in order, as large as Spark allows, and small enough that all cores have work."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.engine.part_writer import write_part
from tamis.spark.executors.partitions import Cut, Sizes, equal_cuts, group_files, local_url, pack_files, task_bytes

MB = 2**20
SIZES = Sizes(128 * MB, 4 * MB, 2)


def weights(*sizes: int) -> np.ndarray:
    return np.array(sizes, dtype=np.int64)


def test_no_parts_make_no_tasks() -> None:
    assert group_files(weights(), SIZES) == []


def test_a_few_small_parts_are_spread_over_all_cores() -> None:
    assert len(group_files(weights(*[1_000] * 20), SIZES)) == 2


@pytest.mark.parametrize(
    ("text", "size"),
    [("134217728b", 128 * MB), ("128MB", 128 * MB), ("128m", 128 * MB), ("1g", 1024 * MB), (" 7k", 7_168), ("0", 1)],
)
def test_sizes_are_read_as_spark_reads_them(text: str, size: int) -> None:
    settings = {
        "spark.sql.files.maxPartitionBytes": text,
        "spark.sql.files.openCostInBytes": text.upper(),
        "parallelism": "2",
    }
    assert Sizes.of(settings) == Sizes(size, size, 2)


def test_many_small_parts_share_tasks() -> None:
    groups = group_files(weights(*[10_000] * 1_000), SIZES)
    assert 30 <= len(groups) <= 40  # 1,000 × 4 MB of opening over 128 MB


def test_large_parts_stand_alone() -> None:
    assert len(group_files(weights(*[200 * MB] * 3), SIZES)) == 3


@given(st.lists(st.integers(0, 300 * MB), max_size=50), st.integers(1, 64), st.integers(1, 256 * MB))
def test_every_part_is_in_one_task_in_order(sizes: list[int], parallelism: int, largest: int) -> None:
    groups = group_files(weights(*sizes), Sizes(largest, 4 * MB, parallelism))
    assert [i for start, end in groups for i in range(start, end)] == list(range(len(sizes)))
    assert all(end > start for start, end in groups)
    assert all(end - start == 1 or sum(sizes[start:end]) <= 2 * largest + 8 * MB for start, end in groups)


def test_urls_of_strange_folders_are_quoted() -> None:
    assert local_url("/a b/ü%/t")("data/1.parquet") == "file:///a%20b/%C3%BC%25/t/data/1.parquet"


@given(
    st.lists(st.integers(0, 300 * MB), max_size=50), st.integers(1, 64), st.integers(1, 256 * MB), st.integers(1, 2_000)
)
def test_the_line_of_files_is_cut_evenly(sizes: list[int], parallelism: int, largest: int, most: int) -> None:
    wanted = Sizes(largest, 4 * MB, parallelism)
    cuts = equal_cuts(weights(*sizes), wanted, most).tolist()
    assert cuts == sorted(cuts)
    assert not cuts or 0 < cuts[0] <= cuts[-1] < len(sizes)
    ends = np.cumsum([0, *(s + 4 * MB for s in sizes)])
    held = np.diff(np.interp([0, *cuts, len(sizes)], range(len(ends)), ends))
    assert held.max() - held.min() <= 1_000
    assert len(held) <= most
    assert len(held) in {1, most} or held.max() <= 2 * task_bytes(weights(*sizes), wanted)


def ranges(packed: bytes) -> list[list[tuple[str, int, int, int]]]:
    """What ``Partitions.files`` reads: of each task its files, their sizes, first bytes and numbers of bytes."""
    source = io.BytesIO(packed)
    integer = lambda width: int.from_bytes(source.read(width), "big")  # noqa: E731
    return [
        [(source.read(integer(4)).decode(), integer(8), integer(8), integer(8)) for _ in range(integer(4))]
        for _ in range(integer(4))
    ]


@pytest.mark.parametrize(
    "wanted", [Sizes(2**14, 1, 2), Sizes(2**16, 1, 2), Sizes(2**30, 1, 5), Sizes(2**30, 1, 3), SIZES]
)
def test_each_byte_of_each_file_is_of_one_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: Sizes) -> None:
    """Of parts of many row groups several tasks read; a part of one goes to one as a whole. Tasks and their files are in the order of the parts."""
    noise = np.random.default_rng(3)
    table = tamis.create(tmp_path / "t", pa.schema({"id": pa.int64(), "x": pa.float64()}))
    monkeypatch.setattr(write_part, "block_rows_for", lambda *_: 1_024)
    for rows in (9_000, 700, 20_000, 500):
        table.append(pa.table({"id": np.arange(rows), "x": noise.random(rows)}))
    plan = table.scan().plan()
    cut = Cut(plan, wanted, anywhere=True)
    tasks = ranges(pack_files(cut.tasks(), lambda path: path))
    assert len(tasks) == len(cut)
    order = [ref.path for ref in plan.parts]
    pieces = [piece for task in tasks for piece in task]
    assert [path for at, (path, *_) in enumerate(pieces) if not at or pieces[at - 1][0] != path] == order
    for ref in plan.parts:
        mine = [(start, length) for path, size, start, length in pieces if path == ref.path and size == ref.bytes]
        assert [start for start, _ in mine] == [0, *np.cumsum([length for _, length in mine])[:-1].tolist()]
        assert sum(length for _, length in mine) == ref.bytes
        assert len(ref.blocks) > 1 or len(mine) == 1
    assert all(task for task in tasks)
    assert (len(pieces) > len(order)) == (wanted is not SIZES)
