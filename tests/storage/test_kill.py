"""A writer killed at every step: what was committed is there, what was not is not, and nobody is kept from going on."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from tamis.errors import NotFound
from tamis.storage.commit_log import commit, create, history, load
from tamis.storage.commit_log.model import Operation
from tamis.storage.object_store import Store, open_store
from tamis.world import world
from tests.storage.making import HEAD, append, forget, manifest, new_table
from tests.storage.worker import CONTEXT, change, die_changing, die_creating, die_writing, run

KILLED = -signal.SIGKILL
LENGTH = 14
"""Versions before the deadly one, which completes a rollup."""


def grow(path: Path) -> None:
    store = open_store(path)
    snapshot = new_table(store)
    while snapshot.version < LENGTH:
        snapshot = append(store, snapshot, manifest(1, ids=[f"p{snapshot.version}"]))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table")
    grow(path)
    return path


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("what", ["append", "large append", "delete"])
def test_killed_at_every_step_of_a_commit(what: str, after: bool, table: Path, tmp_path: Path) -> None:
    before = [f"p{i}" for i in range(LENGTH)]
    new = [f"new{i}" for i in range(1_500)] if what == "large append" else ["new"]
    done = (before[2:] if what == "delete" else before) + new
    landed = []
    code, step = KILLED, 0
    while code == KILLED:
        path = tmp_path / str(step)
        shutil.copytree(table, path)
        code = run(die_changing, str(path), step, after, what)
        store = open_store(path)
        found = seen(store)
        assert found in (before, done)
        landed.append(found == done)
        forget()
        assert commit(store, change(LENGTH, what)).version == LENGTH + 1
        assert seen(store) == done
        assert len(history(store)) == LENGTH + 2
        step += 1
    assert code == 0
    assert step > (4 if what == "large append" else 3)  # (the manifest,) the commit, the hint, the rollup
    assert landed == sorted(landed)  # there is one moment at which it lands
    assert landed[0] is (after and what != "large append")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_every_step_of_a_creation(after: bool, tmp_path: Path) -> None:
    states = []
    code, step = KILLED, 0
    while code == KILLED:
        path = tmp_path / str(step)
        code = run(die_creating, str(path), step, after)
        store = open_store(path)
        states.append(seen(store))
        forget()
        create(store, HEAD, Operation("create"), add=[manifest(1, ids=["new"])], operation_id="mine")
        assert seen(store) == ["new"]
        step += 1
    assert code == 0
    assert states == [None if not after else ["new"], ["new"], ["new"]]


def seen(store: Store) -> list[str] | None:
    """The part ids that a new process sees; None where there is no table."""
    forget()
    try:
        return list(load(store).parts()["part_id"].to_pylist())
    except NotFound:
        return None


def test_killed_in_the_middle_of_a_write(tmp_path: Path) -> None:
    """Objects that are there are there whole, however a writer dies; what it left unfinished is not listed."""
    size = 3_000_000
    for attempt in range(8):
        process = CONTEXT.Process(target=die_writing, args=(str(tmp_path), f"a{attempt}", size))
        process.start()
        while not (tmp_path / f"a{attempt}").exists():
            world().sleep(0.001)
        world().sleep(0.004 * attempt)
        process.kill()
        process.join()
    store = open_store(tmp_path)
    found = store.list()
    assert {entry.size for entry in found} == {size}
    for entry in found:
        assert len(set(store.get(entry.path))) == 1
