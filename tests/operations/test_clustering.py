"""Depth and overlap, from bounds alone, against counting by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.pruning import ColumnEvidence
from tamis.core.types import LONG
from tamis.engine.operations.layout.clustering_quality import clustering_figures, overlap_depth, part_intervals
from tests.operations.making import filled


def evidence(spans: list[tuple[int, int] | None]) -> ColumnEvidence:
    """None: only NULLs."""
    lo = pa.array([s and s[0] for s in spans], pa.int64())
    hi = pa.array([s and s[1] for s in spans], pa.int64())
    ten = pa.array([10] * len(spans), pa.int64())
    nulls = pa.array([10 if s is None else 0 for s in spans], pa.int64())
    exact = pa.array([True] * len(spans))
    return ColumnEvidence(LONG, ten, lo, hi, exact, exact, nulls, pa.array([0] * len(spans), pa.int64()))


@pytest.mark.parametrize(
    ("spans", "runs", "deepest"),
    [
        ([(0, 9), (10, 19), (20, 29)], [0, 0, 0], 1),
        ([(0, 9), (9, 19), (19, 29)], [0, 0, 0], 1),  # neighbours of one run share a value
        ([(0, 9), (9, 19), (19, 29)], [0, 1, 2], 2),  # runs of their own do overlap there
        ([(5, 5), (5, 5), (5, 5)], [0, 0, 0], 1),
        ([(0, 100)] * 4, [0, 1, 2, 3], 4),
        ([(0, 12), (10, 20)], [7, 7], 1),  # bounds cut short, of rows that are disjoint
        ([None, (0, 9)], [0, 1], 1),
        ([], [], 0),
    ],
)
def test_depth(spans: list[tuple[int, int] | None], runs: list[int], deepest: int) -> None:
    found = clustering_figures("c", part_intervals(evidence(spans), np.array(runs, dtype=np.int64)))
    assert found.max_depth == deepest


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda s: (min(s), max(s))), min_size=1, max_size=12)
)
def test_figures_agree_with_counting(spans: list[tuple[int, int]]) -> None:
    """Each part a run of its own: overlap and depth as one would count them."""
    found = clustering_figures("c", part_intervals(evidence(list(spans)), np.arange(len(spans))))
    over = [sum(a[0] <= b[1] and b[0] <= a[1] for b in spans) - 1 for a in spans]
    at = {v: sum(a[0] <= v <= a[1] for a in spans) for v in range(21)}
    deepest = [max(at[v] for v in range(a[0], a[1] + 1)) for a in spans]
    assert found.average_overlap == pytest.approx(np.mean(over))
    assert found.average_depth == pytest.approx(np.mean(deepest))
    assert found.max_depth == max(at.values())
    assert len(found.picture()) == len(found.depths) <= 64


def test_unknown_bounds_lie_over_everything() -> None:
    known = part_intervals(evidence([(0, 1), (5, 6)]), np.arange(2))
    assert overlap_depth(known).max() == 1
    assert overlap_depth(part_intervals(None, np.arange(3))).max() == 3


def test_detail_shows_them(small_blocks: None) -> None:
    of = filled(5, ("user",), size=1_000)
    before = of.detail()["clustering"][0].as_py()[0]
    assert (before["column"], before["max_depth"], before["average_overlap"]) == ("user", 5, 4.0)
    of.compact()
    after = of.refresh().detail()["clustering"][0].as_py()[0]
    assert (after["max_depth"], after["average_overlap"]) == (1, 0.0)
    assert set(after["picture"]) == {"█"}
