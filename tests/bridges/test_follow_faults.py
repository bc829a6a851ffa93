"""Synchronizations that run at once, are killed or fail leave a version of the source with all its rows."""

from __future__ import annotations

import contextlib
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tamis
from tamis.bridges.adoption.source_sync import Synchronization
from tamis.errors import StoreUnavailable
from tests.bridges.foreign_tables import sorted_rows
from tests.bridges.source_histories import DELTA, delta_rows, followed_delta
from tests.bridges.store_requests import failing_between, failing_from_write, hooked_requests


def test_two_synchronizations_at_once(tmp_path: Path) -> None:
    source, table = followed_delta(tmp_path)
    for name in ("append", "delete", "update", "append"):
        DELTA[name](source)

    def one(_: int) -> Synchronization:
        return tamis.open(tmp_path / "t").sync()

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(one, range(4)))
    assert {d.source_version for d in done} == {"5"}
    assert table.refresh().version == 4
    assert sorted_rows(table.scan().to_arrow()) == delta_rows(source)
    syncs = [r for r in table.history().to_pylist() if r["operation"] == "sync"]
    assert len(syncs) == 4


class Killed(BaseException):
    """The process is gone."""


def test_killed_at_any_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, _ = followed_delta(tmp_path)
    for name in ("append", "delete", "add a column"):
        DELTA[name](source)
    expected, outlived, at = delta_rows(source), False, 0
    while not outlived:
        place = tmp_path / f"t{at}"
        shutil.copytree(tmp_path / "t", place)
        with hooked_requests(monkeypatch, failing_from_write(at, lambda _: Killed())), contextlib.suppress(Killed):
            tamis.open(place).sync()
            outlived = True
        table = tamis.open(place)
        assert sorted_rows(table.scan().to_arrow()) == delta_rows(source, table.version + 1), at
        table.sync()
        assert sorted_rows(tamis.open(place).scan().to_arrow()) == expected, at
        at += 1
    assert at > 4


def test_a_failed_request_leaves_nothing_half_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, _ = followed_delta(tmp_path)
    for name in ("append", "delete"):
        DELTA[name](source)
    expected, outlived, at = delta_rows(source), False, 0
    while not outlived:
        place = tmp_path / f"t{at}"
        shutil.copytree(tmp_path / "t", place)
        table = tamis.open(place)
        # more often than anything is repeated
        with (
            hooked_requests(monkeypatch, failing_between(at, at + 5, _lost)) as count,
            contextlib.suppress(StoreUnavailable),
        ):
            table.sync()
            outlived = count[0] <= at
        table = tamis.open(place)
        assert sorted_rows(table.scan().to_arrow()) == delta_rows(source, table.version + 1), at
        table.sync()
        assert sorted_rows(tamis.open(place).scan().to_arrow()) == expected, at
        at += 3
    assert at > 12


def _lost(path: str) -> StoreUnavailable:
    return StoreUnavailable("The store is gone.", name=path, remedy="Wait.")
