"""Fields of structs are what Arrow gives for each by itself, NULL where a struct above is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from tamis.bridges.sources.struct_fields import StructFields

INNER = st.none() | st.fixed_dictionaries({"x": st.none() | st.integers(0, 9), "y": st.none() | st.text(max_size=2)})
ROWS = st.lists(
    st.none() | st.fixed_dictionaries({"a": INNER, "b": st.none() | st.integers(0, 9), "l": st.none() | st.just([1])}),
    max_size=6,
)
TYPE = pa.struct(
    {
        "a": pa.struct({"x": pa.int64(), "y": pa.string()}),
        "b": pa.int64(),
        "l": pa.list_(pa.int64()),
    }
)
PATHS = (("a", "x"), ("a", "y"), ("b",), ("l",), ("a",), ("c",), ("b", "x"), ("a", "z"), ())


def field_by_field(array: pa.Array, path: Sequence[str]) -> pa.Array | None:
    for name in path:
        if not pa.types.is_struct(array.type) or array.type.get_field_index(name) < 0:
            return None
        array = pc.struct_field(array, name)
    return None if pa.types.is_nested(array.type) else array


@given(ROWS, st.integers(0, 6))
def test_leaves_are_those_of_a_walk_for_each(rows: list[Any], start: int) -> None:
    array = pa.array(rows, TYPE).slice(min(start, len(rows)))
    fields = StructFields(array)
    for path in PATHS:
        expected, found = field_by_field(array, path), fields.leaf(path)
        assert (found is None) == (expected is None), path
        assert found is None or found.equals(expected), path


def test_a_name_that_two_fields_have_is_no_field() -> None:
    array = pa.StructArray.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "a", "b"])
    assert StructFields(array).leaf(["a"]) is None
    assert StructFields(array).leaf(["b"]).to_pylist() == [3]
