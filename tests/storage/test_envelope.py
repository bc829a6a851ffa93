"""The envelope: whole, or an error that names the object."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import CorruptData, InvalidInput
from tamis.storage.object_store.checked_json import seal_json, unseal_json

BODY = {"text": "ü \ud800 \"'", "numbers": [1, -2, 3.5], "nested": {"none": None, "yes": True}}
WHOLE = seal_json("commit", BODY)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_what_is_sealed_comes_back(body: dict[str, object]) -> None:
    assert unseal_json("commit", seal_json("commit", body), "x") == body


def test_the_bytes_are_one_json_object_with_the_checksum_first() -> None:
    assert seal_json("latest", {"version": 7}) == b'{"crc32":"276a3db5","latest":{"version":7}}'


@pytest.mark.parametrize("length", range(len(WHOLE)))
def test_no_prefix_is_believed(length: int) -> None:
    with pytest.raises(CorruptData) as caught:
        unseal_json("commit", WHOLE[:length], "the/object")
    assert (caught.value.code, caught.value.name) == ("BAD_CHECKSUM", "the/object")


@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_no_changed_byte_is_believed(at: int, change: int) -> None:
    garbled = bytearray(WHOLE)
    garbled[at] ^= change
    with pytest.raises(CorruptData):
        unseal_json("commit", bytes(garbled), "x")


@given(st.binary(max_size=200))
def test_random_bytes_are_not_believed(data: bytes) -> None:
    with pytest.raises(CorruptData):
        unseal_json("commit", data, "x")


def test_nor_are_other_kinds_and_additions() -> None:
    for data in (seal_json("rollup", BODY), WHOLE + b"\n", b" " + WHOLE, WHOLE + WHOLE):
        with pytest.raises(CorruptData):
            unseal_json("commit", data, "x")


@pytest.mark.parametrize("body", [{"a": math.nan}, {"a": math.inf}, {"a": object()}, {"a": b"bytes"}])
def test_what_json_cannot_hold_is_refused(body: dict[str, object]) -> None:
    with pytest.raises(InvalidInput) as caught:
        seal_json("commit", body)
    assert caught.value.code == "NOT_JSON"
