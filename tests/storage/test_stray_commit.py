"""A commit that a writer leaves in the log of another table: its own was dropped between its look and its write, and it ended there."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.errors import CorruptData, StoreUnavailable, TamisError
from tamis.storage.commit_log import commit_landing
from tamis.storage.commit_log.commit_objects import HINT, LOG, commit_path
from tamis.storage.commit_log.newest_commit import write_hint
from tamis.storage.commit_log.table_removal import remove_table
from tamis.storage.commit_log.version_loading import load
from tamis.storage.object_store import Store, open_store
from tamis.world import world
from tests.storage.making import forget

_places = itertools.count()
BEFORE = 5
"""The version of the dropped table from which its writer started."""


@pytest.fixture(params=["memory", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"memory://stray-{next(_places)}" if request.param == "memory" else str(tmp_path / "t")


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def made(place: str, first: int, appends: int) -> tamis.Table:
    table = tamis.create(place, rows().schema)
    for at in range(appends):
        table.append(rows(first + at))
    return table


def ids(place: str) -> list[int]:
    return sorted(tamis.open(place).scan().to_arrow()["id"].to_pylist())


def clear(store: Store) -> None:
    for entry in list(store.list("")):
        store.delete(entry.path)


def stray(place: str, appends: int, *, warm: bool = False) -> tuple[Store, str]:
    """A table of ``appends`` rows from 100 on, in whose log is version ``BEFORE`` + 1 of a table that was there before.

    A warm process has read the version before that of the dropped table.
    """
    store = open_store(place)
    assert made(place, 0, BEFORE + 1).version == BEFORE + 1
    path = commit_path(BEFORE + 1)
    data = bytes(store.get(path))
    store.delete(path)
    write_hint(store, BEFORE)
    forget()
    if warm:
        assert len(load(open_store(place)).parts()) == BEFORE
    clear(store)
    made(place, 100, appends)
    assert store.put_if_absent(path, data)
    return store, path


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("appends", [BEFORE, BEFORE - 1])
@pytest.mark.push_cases(4)
def test_no_rows_of_the_dropped_table_are_read(place: str, appends: int, warm: bool) -> None:
    store, path = stray(place, appends, warm=warm)
    acts: list[Callable[[], Any]] = [
        lambda: load(open_store(place)).parts(),
        lambda: ids(place),
        lambda: tamis.open(place).append(rows(7)),
        lambda: tamis.open(place).vacuum(),
    ]
    for act in acts:
        with pytest.raises(CorruptData) as caught:
            act()
        assert (caught.value.code, caught.value.name) == ("WRONG_TABLE", store.name(path))
        assert "remove this file" in caught.value.remedy
    store.delete(path)
    assert ids(place) == [100 + at for at in range(appends)]
    tamis.open(place).append(rows(7))
    assert ids(place) == [7, *(100 + at for at in range(appends))]


@pytest.mark.parametrize("warm", [True, False])
def test_a_stray_version_cannot_be_read_by_number(place: str, warm: bool) -> None:
    store, path = stray(place, BEFORE, warm=warm)
    for _ in range(2):
        with pytest.raises(CorruptData) as caught:
            load(open_store(place), BEFORE + 1).parts()
        assert (caught.value.code, caught.value.name) == ("WRONG_TABLE", store.name(path))


@pytest.mark.parametrize("hint", [None, BEFORE, BEFORE + 1])
@pytest.mark.parametrize("appends", [1, BEFORE - 1, BEFORE])
@pytest.mark.push_cases(6)
def test_the_stray_commit_is_named_whatever_the_hint_says(place: str, hint: int | None, appends: int) -> None:
    store, path = stray(place, appends)
    if hint is None:
        store.delete(HINT)
    else:
        write_hint(store, hint)
    forget()
    with pytest.raises(CorruptData) as caught:
        tamis.open(place)
    assert (caught.value.code, caught.value.name) == ("WRONG_TABLE", store.name(path))


def test_what_is_left_of_a_dropped_table_can_be_removed(place: str) -> None:
    store, _ = stray(place, BEFORE)
    for version in range(BEFORE + 1):
        store.delete(commit_path(version))
    store.delete(HINT)
    forget()
    with pytest.raises(CorruptData, match="remove what is left") as caught:
        tamis.open(place)
    assert caught.value.code == "MISSING_COMMIT"


def test_a_removal_takes_the_new_table_and_leaves_the_commit_of_the_old_one(place: str) -> None:
    store, path = stray(place, BEFORE)
    remove_table(store)
    assert [entry.path for entry in store.list("")] == [path]


@pytest.mark.parametrize("appends", [15, 16])
def test_damage_before_the_newest_commit_is_left_to_whoever_needs_it(place: str, appends: int) -> None:
    """Also where a rollup covers it, so that nobody does."""
    table = made(place, 0, appends)
    assert table.version == appends
    open_store(place).put(commit_path(appends - 1), b"{}")
    forget()
    opened = tamis.open(place)
    assert opened.version == appends
    assert opened.verify().problems.num_rows > 0
    assert opened.append(rows(100)).version == appends + 1


def test_a_stray_commit_further_on_is_found_before_it_is_reached(place: str) -> None:
    store, path = stray(place, 1)
    table = tamis.open(place)

    def append_all() -> None:
        for at in range(BEFORE):
            table.append(rows(at))

    with pytest.raises(CorruptData) as caught:
        append_all()
    assert (caught.value.code, caught.value.name) == ("WRONG_TABLE", store.name(path))
    store.delete(path)
    table.refresh().append(rows(50))
    assert 50 in ids(place)


def test_a_reader_waits_for_a_writer_to_take_its_commit_back(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store, path = stray(place, BEFORE)
    monkeypatch.setattr(world(), "sleep", lambda _: store.delete(path))
    assert ids(place) == [100 + at for at in range(BEFORE)]


@pytest.mark.parametrize("at", range(1, BEFORE + 1))
def test_versions_before_a_stray_commit_can_be_read(place: str, at: int) -> None:
    stray(place, BEFORE)
    forget()
    assert tamis.open(place, version=at).scan().count() == at


@pytest.mark.parametrize(("unreachable", "code"), [(2, "CONFLICT_REPLACED"), (10**6, "COMMIT_UNKNOWN")])
def test_a_store_that_does_not_answer_confirms_no_commit(
    place: str, unreachable: int, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(place, 0, BEFORE)
    run, put, left = Store._run, Store.put_if_absent, [0]

    def refusing(self: Store, action: str, name: str, call: Callable[..., Any], *, create: bool = False) -> Any:
        if left[0] and action in ("read", "list") and name.endswith((commit_path(BEFORE), LOG)):
            left[0] -= 1
            raise StoreUnavailable("503", code="STORE_UNAVAILABLE", name=name, remedy="Try again.")
        return run(self, action, name, call, create=create)

    def replacing(self: Store, path: str, data: Any) -> bool:
        if path == commit_path(BEFORE + 1):
            monkeypatch.setattr(Store, "put_if_absent", put)
            clear(self)
            made(place, 100, BEFORE)
            done = put(self, path, data)
            left[0] = unreachable
            return done
        return put(self, path, data)

    monkeypatch.setattr(Store, "_run", refusing)
    monkeypatch.setattr(Store, "put_if_absent", replacing)
    with pytest.raises(TamisError) as caught:
        table.append(rows(999))
    assert caught.value.code == code


def test_a_damaged_answer_while_a_write_is_open_leaves_its_outcome_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write may land yet: whoever takes the commit for failed removes its files."""
    table = tamis.create(tmp_path / "t", "id BIGINT")

    def timed_out(*_: Any) -> bool:
        raise StoreUnavailable("No answer came.", code="TIMEOUT", name="x", remedy="Repeat it.")

    def damaged(*_: Any) -> Any:
        raise CorruptData("The answer was cut.", code="BAD_CHECKSUM", name="x", remedy="Restore it.")

    with monkeypatch.context() as broken:
        broken.setattr(commit_landing, "read_commit", damaged)
        broken.setattr(Store, "put_if_absent", timed_out)
        with pytest.raises(StoreUnavailable) as caught:
            table.append(pa.table({"id": [1]}))
        assert caught.value.code == "COMMIT_UNKNOWN"
        broken.setattr(Store, "put_if_absent", lambda *_: False)
        with pytest.raises(CorruptData):
            table.append(pa.table({"id": [1]}))
    assert tamis.open(table.path).version == 0
