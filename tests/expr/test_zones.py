"""Zones over many values at once: in order, out of order and one by one they say the same."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.core.expr.time_zones import DAY, zone


@pytest.mark.parametrize(
    "name",
    ["Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Africa/Casablanca", "America/Sao_Paulo", "UTC", "+05:30"],
)
@pytest.mark.parametrize("days", [20, 400, 40_000, 300_000])
def test_many_values_are_as_each_alone(name: str, days: int) -> None:
    rng, z = np.random.default_rng(days), zone(name)
    middle = 1_300_000_000_000_000
    rising = np.sort(middle + rng.integers(-days * DAY // 2, days * DAY // 2, 3_000))
    shifts = z.to_local.starts[np.abs(z.to_local.starts - middle) < days * DAY // 2]
    rising = np.sort(np.concatenate([rising, shifts, shifts - 1, shifts + 1]))
    order = rng.permutation(len(rising))
    few = rng.choice(len(rising), 400)
    for ask in (z.local, z.local_low, z.local_high, z.instants, z.instants_low, z.instants_high, z.offset):
        found = np.broadcast_to(ask(rising), rising.shape)
        assert (np.broadcast_to(ask(rising[order]), rising.shape) == found[order]).all()
        assert (np.broadcast_to(ask(rising[few]), few.shape) == found[few]).all()
