"""CHAR values are padded wherever they come from: defaults, files of other writers, partition values; bounds follow."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.types import BINARY, Array, Field, Map, String, Struct
from tamis.core.types.arrow import to_arrow_type
from tamis.core.types.char_values import has_char, padded_high
from tamis.core.types.defaults import initial_scalar
from tamis.engine.part_writer.column_defaults import default_scalar
from tamis.errors import InvalidInput
from tamis.storage.files.padded_values import padded_array

CHAR = String("char", 3)
NESTED = Struct(
    (
        Field("c", CHAR, id=2),
        Field("a", Array(Field("element", CHAR, id=4)), id=3),
        Field("m", Map(Field("key", CHAR, nullable=False, id=6), Field("value", BINARY, id=7)), id=5),
        Field("v", String("varchar", 3), id=8),
    )
)
VALUES: list[Any] = [
    {"c": "q", "a": ["x", None], "m": [("k", b"z")], "v": "v"},
    None,
    {"c": None, "a": None, "m": None, "v": None},
    {"c": "long", "a": [], "m": [], "v": "abc"},
    {"c": "ü", "a": ["\U0001f600"], "m": [("", None)], "v": ""},
]
PADDED: list[Any] = [
    {"c": "q  ", "a": ["x  ", None], "m": [("k  ", b"z")], "v": "v"},
    None,
    {"c": None, "a": None, "m": None, "v": None},
    {"c": "long", "a": [], "m": [], "v": "abc"},
    {"c": "ü  ", "a": ["\U0001f600  "], "m": [("   ", None)], "v": ""},
]


def test_values_are_padded_at_any_depth() -> None:
    array = pa.array(VALUES, to_arrow_type(NESTED))
    for start, length in ((0, 5), (1, 3), (4, 1), (2, 0)):
        found = padded_array(array.slice(start, length), NESTED)
        found.validate(full=True)
        assert found.to_pylist() == PADDED[start : start + length]
        assert found.type == array.type
    assert has_char(NESTED)
    assert not has_char(NESTED.fields[3].type)


@given(st.text("a \x01\x1f~ü", max_size=4), st.text("a \x01\x1f~ü", max_size=4), st.integers(1, 6))
def test_padded_bounds_hold_for_padded_values(value: str, more: str, length: int) -> None:
    """Of any two values, the greater is an upper bound of both; so is any bound that was cut and raised."""
    high = max(value, more)
    for bound in (high, high[:1] + "~"):
        if bound < value:
            continue
        held = padded_high(pa.array([bound, None]), length).to_pylist()
        assert held[0] is None or value.ljust(length).encode() <= held[0].encode()
        assert held[1] is None
    assert padded_high(pa.array(["ab"]), 5).to_pylist() == ["ab   "]


def test_defaults_are_padded_and_fitted() -> None:
    assert default_scalar("'ab'", CHAR, "c").as_py() == "ab "
    assert default_scalar("'a     '", CHAR, "c").as_py() == "a  "
    assert default_scalar("'a     '", String("varchar", 2), "c").as_py() == "a "
    assert default_scalar("NULL", CHAR, "c").as_py() is None
    for kind in (CHAR, String("varchar", 3)):
        with pytest.raises(InvalidInput, match="it is too long"):
            default_scalar("'abcd'", kind, "c")
    assert initial_scalar(Field("c", CHAR, initial_default="q")).as_py() == "q  "
    default = {"c": "q", "a": ["x"], "m": [["k", None]], "v": "v"}
    held = initial_scalar(Field("s", NESTED, initial_default=default)).as_py()
    assert held == {"c": "q  ", "a": ["x  "], "m": [("k  ", None)], "v": "v"}


def test_padding_leaves_other_types_alone() -> None:
    array = pa.array(["a"])
    assert padded_array(array, String()) is array
    assert pc.all(pc.equal(padded_array(array, CHAR), pa.array(["a  "]))).as_py()
