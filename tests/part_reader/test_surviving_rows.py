"""What survives a filter is what a loop over the rows keeps, whichever way the values are taken."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.engine.part_reader.surviving_rows import Survivors

VALUES: dict[int, Any] = {
    1: pa.array([1, None, 3, 4, 5, None, 7, 8, 9]),
    2: pa.array(["a", "bb", None, "", "e", "f", "g", None, "i"]),
    3: pa.array([{"x": 1}, None, {"x": None}, {"x": 4}, {"x": 5}, {"x": 6}, {"x": 7}, {"x": 8}, {"x": 9}]),
    4: pa.array([[1], [], None, [4, 4], [5], [6], [None], [8], [9]]),
    5: pa.array([[("k", 1)], [], None, [("a", None)], [], [], [("z", 1)], [], []], pa.map_(pa.string(), pa.int64())),
    6: pa.array([True, None, False, True, True, False, None, False, True]),
}


@given(st.lists(st.booleans(), min_size=9, max_size=9), st.integers(0, 4))
def test_survivors_are_the_rows_that_are_kept(keep: list[bool], cut: int) -> None:
    rows = [at for at in range(cut, 9) if keep[at]]
    some = Survivors(np.array(keep[cut:]))
    assert some.count == len(rows)
    assert some.of_numbers(np.arange(cut, 9)).tolist() == rows
    found = some.of_columns({i: a.slice(cut) for i, a in VALUES.items()})
    assert {i: a.to_pylist() for i, a in found.items()} == {
        i: [a[at].as_py() for at in rows] for i, a in VALUES.items()
    }


@pytest.mark.parametrize("count", [0, 1, 5, 8, 9])
def test_few_are_taken_by_index_and_many_by_mask(count: int) -> None:
    keep = np.arange(9) < count
    assert Survivors(keep).of_columns(VALUES)[1].to_pylist() == VALUES[1].to_pylist()[:count]
    assert Survivors(keep).of_columns({}) == {}
