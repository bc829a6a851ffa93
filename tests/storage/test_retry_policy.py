"""Retries: what runs again, how often, and how long it waits."""

import pytest

from tamis.errors import Conflict, StoreUnavailable
from tamis.storage.commit_log import retry_policy
from tamis.storage.commit_log.retry_policy import COMMIT_RACES, HEAD_CHANGES, RESTORES, ROW_CHANGES, RetryPolicy
from tamis.world import SeededWorld, use


def test_runs_until_one_succeeds_and_waits_longer_each_time(monkeypatch):
    longest = []
    with use(SeededWorld(1)) as world:
        monkeypatch.setattr(world, "uniform", lambda low, high: longest.append(high) or high)
        policy = RetryPolicy(5, lambda error: isinstance(error, KeyError), 0.1, 0.3)
        assert policy.run(lambda before: before if before == 3 else {}[before]) == 3
    assert longest == pytest.approx([0.1, 0.2, 0.3])


def test_the_last_error_is_raised():
    runs = []
    with use(SeededWorld(1)), pytest.raises(KeyError, match="2"):
        RetryPolicy(3, lambda error: True).run(lambda before: runs.append(before) or {}[before])
    assert runs == [0, 1, 2]


def test_other_errors_end_it():
    runs = []
    with pytest.raises(ValueError, match="no"):
        RetryPolicy(3, lambda error: isinstance(error, KeyError)).run(lambda before: runs.append(before) or int("no"))
    assert runs == [0]


@pytest.mark.parametrize("policy", [ROW_CHANGES, RESTORES, HEAD_CHANGES, COMMIT_RACES])
@pytest.mark.parametrize("code", ["CONFLICT_REPLACED", "CONFLICT_VACUUMED"])
def test_what_is_gone_is_not_asked_again(policy, code):
    assert not policy.retryable(Conflict("", code=code))
    assert not policy.retryable(StoreUnavailable(""))


def test_a_wait_after_many_runs_is_a_number():
    with use(SeededWorld(1)):
        assert retry_policy.COMMIT_RACES.run(lambda before: before if before == 999 else _lose()) == 999


def _lose():
    raise retry_policy.LostRace
