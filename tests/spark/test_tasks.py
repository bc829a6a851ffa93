"""Parts are cut into partitions in order, as large as Spark allows, and small enough that all cores have work."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tamis.spark.tasks import Sizes, grouped, local_url

MB = 2**20
SIZES = Sizes(128 * MB, 4 * MB, 2)


def weights(*sizes: int) -> np.ndarray:
    return np.array(sizes, dtype=np.int64)


def test_no_parts_make_no_tasks() -> None:
    assert grouped(weights(), SIZES) == []


def test_a_few_small_parts_are_spread_over_all_cores() -> None:
    assert len(grouped(weights(*[1_000] * 20), SIZES)) == 2


def test_many_small_parts_share_tasks() -> None:
    groups = grouped(weights(*[10_000] * 1_000), SIZES)
    assert 30 <= len(groups) <= 40  # 1,000 × 4 MB of opening over 128 MB


def test_large_parts_stand_alone() -> None:
    assert len(grouped(weights(*[200 * MB] * 3), SIZES)) == 3


@given(st.lists(st.integers(0, 300 * MB), max_size=50), st.integers(1, 64), st.integers(1, 256 * MB))
def test_every_part_is_in_one_task_in_order(sizes: list[int], parallelism: int, largest: int) -> None:
    groups = grouped(weights(*sizes), Sizes(largest, 4 * MB, parallelism))
    assert [i for start, end in groups for i in range(start, end)] == list(range(len(sizes)))
    assert all(end > start for start, end in groups)
    assert all(end - start == 1 or sum(sizes[start:end]) <= 2 * largest + 8 * MB for start, end in groups)


def test_urls_of_strange_folders_are_quoted() -> None:
    assert local_url("/a b/ü%/t")("data/1.parquet") == "file:///a%20b/%C3%BC%25/t/data/1.parquet"
