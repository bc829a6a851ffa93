"""Short stories for CI; ``make soak`` tells long ones.

The seed of a failing story repeats it: ``make soak SEED=… MINUTES=0``.
"""

from __future__ import annotations

import pytest

from tests.simulation.machine import Mishaps
from tests.simulation.story import tell


@pytest.mark.push_cases(1)
@pytest.mark.parametrize("seed", range(3))
def test_a_story_ends_well(seed: int) -> None:
    sim = tell(seed, 800)
    assert sim.calls >= 800
    assert len(sim.model.versions) > 5
    assert {actor.name.split()[0] for actor in sim.actors if actor.operations} >= {
        "writer",
        "compactor",
        "reader",
        "vacuum",
    }


@pytest.mark.slow
def test_the_same_seed_tells_the_same_story() -> None:
    first, second = (tell(11, 300) for _ in range(2))
    assert first.trace == second.trace
    assert first.model.versions == second.model.versions


def test_without_mishaps_nothing_is_given_up() -> None:
    sim = tell(5, 400, Mishaps(fault=0, death=0))
    assert not any("fine" not in line for line in sim.trace)
    assert sum(outcome is True for outcome in sim.model.done.values()) > 3
