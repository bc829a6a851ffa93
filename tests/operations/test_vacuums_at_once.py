"""Laws of vacuums that run at once, and beside readers: each does its work, what is kept stays, and no alarm is raised."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

import tamis
from tamis.engine.operations.rows.change_feed import changes_of
from tamis.engine.operations.upkeep import vacuum
from tamis.errors import Conflict, CorruptData, NotFound
from tamis.storage.commit_log import load
from tamis.storage.commit_log.reachable_objects import reachable_paths
from tamis.storage.commit_log.vacuum_marker import oldest_readable
from tamis.storage.object_store import Store
from tamis.storage.object_store.checked_json import seal_json
from tamis.storage.object_store.object_cache import CACHE
from tamis.storage.object_store.store import Entry, open_store
from tamis.world import SeededWorld, use, world
from tests.bridges.store_requests import hooked_requests
from tests.operations.making import delete_rows, filled, held, rows

DAY, HOUR = timedelta(days=1), timedelta(hours=1)

_names = count()
Act = Callable[[tamis.Table], Any]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A clock that the tests move. The store's own times are those of its objects' ids, and all tables are files."""
    listing = Store.list

    def listed(self: Store, *args: Any, **named: Any) -> list[Entry]:
        return [Entry(e.path, e.size, 0) for e in listing(self, *args, **named)]

    monkeypatch.setattr(Store, "list", listed)
    monkeypatch.setattr("tamis.storage.object_store.metadata_files.store_rows.__kwdefaults__", {"limit": 0})
    with use(SeededWorld(1)):
        yield


def aged() -> tamis.Table:
    """A table of which a vacuum of a day lets go of some versions, and one of an hour of more."""
    of = filled(2, size=5)
    of.compact()
    world().sleep(2 * DAY.total_seconds())
    of.append(rows(100, 5))
    of.create_index("by_user", ["user"])
    of.append(rows(200, 5))
    delete_rows(of, 2)
    of.compact()
    of.repair_index()
    world().sleep(2 * HOUR.total_seconds())
    of.append(rows(300, 5))
    return of


def of_an_hour(of: tamis.Table) -> Any:
    return tamis.open(of.path).vacuum(HOUR, dry_run=False, below_retention=True)


def of_all(of: tamis.Table) -> Any:
    """Beside a writer, whose newest version alone is kept."""
    other = tamis.open(of.path)
    other.append(rows(400, 5))
    other.compact()
    other.overwrite(rows(500, 5))
    world().sleep(1)
    return other.vacuum("0s", dry_run=False, below_retention=True)


def copied(objects: dict[str, bytes]) -> tamis.Table:
    store = open_store(f"memory://at-once-{next(_names)}")
    for path, data in objects.items():
        store.put(path, data)
    return tamis.open(store.url)


def at_each_request(monkeypatch: pytest.MonkeyPatch, act: Act, other: Act) -> Iterator[tuple[tamis.Table, Any, Any]]:
    """Run ``act`` on copies of ``aged()``, and ``other`` before one more request each time: tables, results of both."""
    made = aged()
    objects = {entry.path: made.store.get(entry.path) for entry in made.store.list()}
    for at in count():
        CACHE.clear()
        of = copied(objects)
        seen: list[Any] = []

        def before(number: int, _action: str, _path: str) -> None:
            if number == at and not seen:  # noqa: B023  # called within this turn
                seen.append(None)  # noqa: B023
                seen.append(other(of))  # noqa: B023

        with hooked_requests(monkeypatch, before):
            result = act(of)
        if not seen:
            assert at > 10
            return
        yield of, result, seen[1]


@pytest.mark.slow
@pytest.mark.push_cases(1)
@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("other", [of_all, of_an_hour])
def test_two_at_once_both_finish(monkeypatch: pytest.MonkeyPatch, other: Act, dry_run: bool) -> None:
    def act(of: tamis.Table) -> Any:
        return tamis.open(of.path).vacuum(DAY, dry_run=dry_run, below_retention=True)

    before = aged()
    expected = {version: held(before, version=version) for version in range(9, before.version + 1)}
    for of, mine, theirs in at_each_request(monkeypatch, act, other):
        newest = load(of.store, afresh=True)
        oldest = max(theirs.oldest_version, 0 if dry_run else mine.oldest_version)
        assert theirs.oldest_version >= 9
        assert oldest_readable(of.store, newest.head.table_id) == oldest
        for version in {oldest, newest.version}:
            found = held(of, version=version)
            assert found == expected.get(version, found)
        assert of.verify(data=False).ok, of.verify().problems.to_pylist()


@pytest.mark.parametrize("call", range(3))
def test_what_was_read_beside_another_is_not_believed(monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    """A list that the other removes looks like a damaged one, which names nothing."""
    of, calls = filled(2, size=5), count()
    of.compact()
    world().sleep(2 * DAY.total_seconds())
    of.append(rows(100, 5))
    of.delete("ts >= 100")
    world().sleep(2 * HOUR.total_seconds())

    def reachable(*arguments: Any) -> set[str]:
        if next(calls) != call:
            return reachable_paths(*arguments)
        of_an_hour(of)
        return set()

    monkeypatch.setattr(vacuum, "reachable_paths", reachable)
    of.vacuum(DAY, dry_run=False, below_retention=True)
    assert next(calls) > call + 1
    assert len(held(of)) == 10
    assert of.verify().ok, of.verify().problems.to_pylist()


@pytest.mark.parametrize("beside", [False, True])
def test_a_manifest_that_is_lost_is_still_reported(monkeypatch: pytest.MonkeyPatch, beside: bool) -> None:
    of = aged()
    lost = of.store.list("_tamis/manifest")[-1].path
    of.store.delete(lost)
    there = {entry.path for entry in of.store.list()}

    def announced(number: int, _action: str, _path: str) -> None:
        if number == 5 and beside:
            latest = load(of.store)
            vacuum._announce(of.store, latest, 9, 0, HOUR)

    with hooked_requests(monkeypatch, announced), pytest.raises(CorruptData) as caught:
        of.vacuum(DAY, dry_run=False, below_retention=True)
    assert (caught.value.code, caught.value.name) == ("MISSING_OBJECT", of.store.name(lost))
    assert there <= {entry.path for entry in of.store.list()}
    assert of.verify(data=False).problems["code"].to_pylist() == ["MISSING_OBJECT"]


def planned(of: tamis.Table) -> int:
    return len(of.scan(version=4).plan().parts)


def changed(of: tamis.Table) -> int:
    return len(list(changes_of(of.store, 4, load(of.store, 10))))


def restored(of: tamis.Table) -> int:
    return of.restore(4).rows_inserted


@pytest.mark.slow
@pytest.mark.parametrize("act", [planned, changed, restored])
def test_a_reader_of_a_version_that_goes_is_told_so(monkeypatch: pytest.MonkeyPatch, act: Act) -> None:
    told = []

    def ask(of: tamis.Table) -> int | None:
        try:
            return act(tamis.open(of.path))
        except (NotFound, Conflict) as error:
            told.append(error.code)
            return None

    expected = act(aged())
    for _, result, _ in at_each_request(monkeypatch, ask, of_an_hour):
        assert result in (None, expected)
    assert set(told) <= {"VERSION_NOT_FOUND", "CONFLICT_VACUUMED"}
    assert len(told) > 5


@pytest.mark.slow
def test_verify_raises_no_alarm_beside_a_vacuum(monkeypatch: pytest.MonkeyPatch) -> None:
    for _, found, _ in at_each_request(monkeypatch, lambda of: tamis.open(of.path).verify(), of_all):
        assert found.ok, found.problems.to_pylist()


def test_a_marker_that_went_back_does_no_harm() -> None:
    """An older release could write the marker of the earlier one of two vacuums last."""
    of = aged()
    of_an_hour(of)
    of.store.delete("_tamis/vacuumed")
    record = seal_json("vacuumed", {"table_id": of.snapshot.head.table_id, "oldest_version": 3})
    of.store.put("_tamis/vacuumed", record)
    assert of.verify().ok, of.verify().problems.to_pylist()
    with pytest.raises(NotFound, match="removed by vacuum"):
        held(of, version=4)
    world().sleep(HOUR.total_seconds())
    of.overwrite(rows(500, 5))
    of.vacuum(DAY, below_retention=True)
    assert of.vacuum("0s", dry_run=False, below_retention=True).oldest_version == of.refresh().version - 1
