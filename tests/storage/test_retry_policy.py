"""Retries: what runs again, how often, and how long it waits."""

from typing import NoReturn

import pytest

from tamis.errors import Conflict, StoreUnavailable
from tamis.storage.commit_log import retry_policy
from tamis.storage.commit_log.retry_policy import COMMIT_RACES, HEAD_CHANGES, RESTORES, ROW_CHANGES, RetryPolicy
from tamis.world import SeededWorld, use


def test_runs_until_one_succeeds_and_waits_longer_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    longest: list[float] = []

    def longest_wait(_low: float, high: float) -> float:
        longest.append(high)
        return high

    def third_succeeds(before: int) -> int:
        if before < 3:
            raise KeyError(before)
        return before

    with use(SeededWorld(1)) as world:
        monkeypatch.setattr(world, "uniform", longest_wait)
        policy = RetryPolicy(5, lambda error: isinstance(error, KeyError), 0.1, 0.3)
        assert policy.run(third_succeeds) == 3
    assert longest == pytest.approx([0.1, 0.2, 0.3])


def test_the_last_error_is_raised() -> None:
    runs: list[int] = []

    def failing(before: int) -> NoReturn:
        runs.append(before)
        raise KeyError(before)

    with use(SeededWorld(1)), pytest.raises(KeyError, match="2"):
        RetryPolicy(3, lambda error: True).run(failing)
    assert runs == [0, 1, 2]


def test_other_errors_end_it() -> None:
    runs: list[int] = []

    def failing(before: int) -> NoReturn:
        runs.append(before)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        RetryPolicy(3, lambda error: isinstance(error, KeyError)).run(failing)
    assert runs == [0]


@pytest.mark.parametrize("policy", [ROW_CHANGES, RESTORES, HEAD_CHANGES, COMMIT_RACES])
@pytest.mark.parametrize("code", ["CONFLICT_REPLACED", "CONFLICT_VACUUMED"])
def test_what_is_gone_is_not_asked_again(policy: RetryPolicy, code: str) -> None:
    assert not policy.retryable(Conflict("", code=code))
    assert not policy.retryable(StoreUnavailable(""))


def test_a_wait_after_many_runs_is_a_number() -> None:
    with use(SeededWorld(1)):
        assert retry_policy.COMMIT_RACES.run(lambda before: before if before == 999 else _lose()) == 999


def _lose() -> NoReturn:
    raise retry_policy.LostRace
