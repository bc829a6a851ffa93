"""Sorting by packed words gives Arrow's stable order, whatever the keys' ranges and ties are."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.engine.part_writer.clustering_order import arrow_order
from tamis.engine.part_writer.packed_sort import packed_order

LONGEST, LEAST = 2**63 - 1, -(2**63)
KINDS: dict[str, tuple[pa.DataType, list[int]]] = {
    "flags": (pa.int8(), [0, 1]),
    "bytes": (pa.int8(), [-128, 127, 0, 5]),
    "ids": (pa.int64(), [10**12, 10**12 + 1, 10**12 + 999]),
    "all longs": (pa.int64(), [LEAST, LONGEST, -1, 0, 1, LEAST + 1]),
    "half of the longs": (pa.int64(), [0, LONGEST, 7]),
    "dates": (pa.date32(), [-700_000, 0, 20_000]),
    "instants": (pa.timestamp("us", tz="UTC"), [1_790_000_000_000_000, 1_790_000_000_000_001, -5]),
    "local times": (pa.timestamp("us"), [LEAST + 1, LONGEST]),
}


@st.composite
def keys(draw: st.DrawFn) -> list[pa.Array]:
    rows = draw(st.integers(1, 40))
    found = []
    for _ in range(draw(st.integers(1, 3))):
        kind, values = KINDS[draw(st.sampled_from(sorted(KINDS)))]
        whole = pa.int32() if kind.bit_width == 32 else pa.int64() if pa.types.is_temporal(kind) else kind
        chosen = draw(st.lists(st.sampled_from([None, *values]), min_size=rows, max_size=rows))
        array = pa.array(chosen, whole).cast(kind) if kind == pa.date32() else pa.array(chosen, whole).view(kind)
        found += [array.is_valid().cast(pa.int8()), array] if array.null_count else [array]
    return found


@given(keys())
def test_the_order_is_that_of_arrow(given_keys: list[pa.Array]) -> None:
    for in_runs in (False, True):  # whether the rows really are in runs changes the time alone
        packed = packed_order(given_keys, in_runs=in_runs)
        if packed is not None:
            assert packed.to_pylist() == arrow_order(given_keys).to_pylist()


LARGE: dict[str, list[Any]] = {
    "one key and its row fit": [np.arange(50_000)[::-1] % 1_000],
    "two keys and their row fit": [np.arange(50_000) % 7, np.arange(50_000) * 31 % 1_009],
    "only the key fits, without ties": [np.random.default_rng(1).permutation(50_000).astype(np.int64) << 45],
    "only the key fits, with ties": [(np.random.default_rng(2).integers(0, 500, 50_000) << 54) - 2**62],
    "two keys of 64 bits together": [np.arange(50_000) % 2**10 << 21, np.arange(50_000) * 977 % 2**31],
    "one value": [np.full(50_000, 3)],
}


@pytest.mark.parametrize("name", LARGE)
def test_many_rows(name: str) -> None:
    given_keys = [pa.array(key.astype(np.int64)) for key in LARGE[name]]
    for in_runs in (False, True):
        packed = packed_order(given_keys, in_runs=in_runs)
        assert packed is not None
        assert packed.equals(arrow_order(given_keys))


def test_slices_are_read_from_their_offset() -> None:
    whole = pa.array([9, 3, None, 1, 2, 2, None, 0])
    sliced = [whole.slice(2).is_valid().cast(pa.int8()), whole.slice(2)]
    assert packed_order(sliced).to_pylist() == [0, 4, 5, 1, 2, 3]


@pytest.mark.parametrize(
    "unpacked",
    [
        [pa.array(["b", "a"])],
        [pa.array([1.5, 0.5])],
        [pa.array([LEAST, LONGEST]), pa.array([0, 1])],
        [pa.array([], pa.int64())],
        [pa.array([2, 1], pa.uint64())],
    ],
    ids=["text", "double", "too wide", "no rows", "unsigned"],
)
def test_other_keys_are_left_to_arrow(unpacked: list[pa.Array]) -> None:
    assert packed_order(unpacked) is None


def test_days_before_the_epoch_come_first() -> None:
    days = pa.array([dt.date(1970, 1, 2), dt.date(1969, 12, 31), dt.date(1, 1, 1), dt.date(9999, 12, 31)])
    assert packed_order([days]).to_pylist() == [2, 1, 0, 3]
