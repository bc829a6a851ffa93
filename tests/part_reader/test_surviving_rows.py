"""What survives a filter is what a loop over the rows keeps, whichever way the values are taken."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.engine.part_reader.surviving_rows import Survivors
from tamis.storage.files import Piece

VALUES: dict[int, Any] = {
    1: pa.array([1, None, 3, 4, 5, None, 7, 8, 9]),
    2: pa.array(["a", "bb", None, "", "e", "f", "g", None, "i"]),
    3: pa.array([{"x": 1}, None, {"x": None}, {"x": 4}, {"x": 5}, {"x": 6}, {"x": 7}, {"x": 8}, {"x": 9}]),
    4: pa.array([[1], [], None, [4, 4], [5], [6], [None], [8], [9]]),
    5: pa.array([[("k", 1)], [], None, [("a", None)], [], [], [("z", 1)], [], []], pa.map_(pa.string(), pa.int64())),
    6: pa.array([True, None, False, True, True, False, None, False, True]),
}

NINE_ROWS = pa.record_batch([pa.nulls(9)], ["none"])


@given(st.lists(st.booleans(), min_size=9, max_size=9), st.integers(0, 4))
def test_survivors_are_the_rows_that_are_kept(keep: list[bool], cut: int) -> None:
    rows = [at for at in range(cut, 9) if keep[at]]
    some = Survivors(np.array(keep[cut:]))
    assert some.count == len(rows)
    chosen = np.arange(cut, 9)
    for held in (chosen, [(cut, 9)], [(cut, 9), (9, 9)]):
        assert some.positions(Piece(0, held, NINE_ROWS.slice(cut))).tolist() == rows
    found = some.filter_columns({i: a.slice(cut) for i, a in VALUES.items()})
    assert {i: a.to_pylist() for i, a in found.items()} == {
        i: [a[at].as_py() for at in rows] for i, a in VALUES.items()
    }


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=5), st.data())
def test_positions_of_rows_in_runs_are_those_of_the_rows(gaps: list[tuple[int, int]], data: st.DataObject) -> None:
    runs, at = [], 0
    for gap, length in gaps:
        runs.append((at + gap, at + gap + length))
        at += gap + length
    rows = [row for first, end in runs for row in range(first, end)]
    keep = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    piece = Piece(0, runs, pa.record_batch([pa.nulls(len(rows))], ["x"]))
    assert piece.positions.tolist() == rows
    assert Survivors(np.array(keep)).positions(piece).tolist() == [r for r, k in zip(rows, keep, strict=True) if k]


@pytest.mark.parametrize("count", [0, 1, 5, 8, 9])
def test_few_are_taken_by_index_and_many_by_mask(count: int) -> None:
    keep = np.arange(9) < count
    assert Survivors(keep).filter_columns(VALUES)[1].to_pylist() == VALUES[1].to_pylist()[:count]
    assert Survivors(keep).filter_columns({}) == {}
