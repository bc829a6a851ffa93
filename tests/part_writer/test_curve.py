"""Laws of the curves: every cell has one key, Hilbert's never jumps, and what has no value has its place."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tamis.engine.part_writer import curve_keys


@pytest.mark.parametrize(("dimensions", "bits"), [(2, 4), (3, 3), (4, 2)])
def test_hilbert_visits_every_cell_and_never_jumps(dimensions: int, bits: int) -> None:
    side = 2**bits
    cells = np.indices((side,) * dimensions).reshape(dimensions, -1).astype(np.uint64)
    keys = curve_keys._hilbert(list(cells), bits)
    assert sorted(keys.tolist()) == list(range(side**dimensions))
    path = cells[:, np.argsort(keys)].astype(np.int64)
    assert set(np.abs(np.diff(path, axis=1)).sum(axis=0).tolist()) == {1}


def test_z_order_interleaves_bits() -> None:
    x, y = np.array([0, 1, 0, 1, 2], np.uint64), np.array([0, 0, 1, 1, 3], np.uint64)
    assert curve_keys._interleaved([x, y], 2).tolist() == [0b0000, 0b0010, 0b0001, 0b0011, 0b1101]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([5, 1, None, 9, 1, 7]),
        pa.array(["b", "a", None, "zz", "", "q"]),
        pa.array([0.5, -0.0, None, float("nan"), float("inf"), -3.0]),
        pa.array([True, False, None, True, False, True]),
        pa.array([1, 2, None, 3, 4, 5], pa.duration("us")),
        pa.array([None] * 6, pa.date32()),
    ],
)
def test_coordinates_keep_the_order(values: pa.Array) -> None:
    cuts = curve_keys.curve_boundaries(values, 4)
    found = curve_keys.coordinates(values, cuts)
    assert found[~values.is_valid().to_numpy(zero_copy_only=False)].max(initial=0) == 0
    known = [(v, c) for v, c in zip(values.to_pylist(), found.tolist(), strict=True) if v is not None and v == v]
    assert all(a[1] <= b[1] for a, b in zip(sorted(known), sorted(known)[1:], strict=False))
    if pa.types.is_floating(values.type):
        assert found[3] == found.max()


def test_skew_is_evened_out() -> None:
    values = pa.array(
        np.concatenate([np.zeros(10), np.arange(1_000), np.arange(1_000_000, 1_001_000)]).astype(np.int64)
    )
    found = curve_keys.coordinates(values, curve_keys.curve_boundaries(values, 5))
    assert np.bincount(found.astype(np.int64)).max() < len(values) / 16
