"""RENAME and DROP beside writers, and interrupted: no acknowledged row is lost, and no reader sees an earlier version."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.storage.making import forget

import tamis
from tamis.errors import InvalidInput, StoreUnavailable, TamisError
from tamis.spark.catalog.warehouse_paths import Warehouse
from tamis.storage.commit_log.renaming import newest_record
from tamis.storage.object_store import Store, open_store

SCHEMA = pa.schema([("id", pa.int64())])
_places = itertools.count()
OLD, NEW = ("db", "a"), ("db", "b")


class Killed(BaseException):
    """The process ends here."""


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.fixture(params=["memory", "file"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"memory://rename-{next(_places)}" if request.param == "memory" else str(tmp_path / "lake")


@pytest.fixture
def remote() -> str:
    return f"memory://rename-{next(_places)}"


def grown(root: str) -> Warehouse:
    """A warehouse with the table db.a: three appends, an index, and a deleted row."""
    warehouse = Warehouse(open_store(root))
    table = tamis.create(f"{root}/db/a", SCHEMA)
    for first in (0, 10, 20):
        table.append(rows(*range(first, first + 10)))
    table.create_index("by_id", ["id"])
    table.delete("id = 3")
    return warehouse


ALL = [i for i in range(30) if i != 3]


def ids(root: str, name: str) -> list[int]:
    forget()
    return sorted(tamis.open(f"{root}/db/{name}").scan().to_arrow()["id"].to_pylist())


@contextlib.contextmanager
def before_request(monkeypatch: pytest.MonkeyPatch, act: Callable[[int, str, str], None]) -> Iterator[list[int]]:
    """Call ``act`` with number, action and path ahead of each write or deletion of a store."""
    plain, count = Store._run, [0]

    def run(store: Store, action: str, path: str, call: Any, *, create: bool = False) -> Any:
        if action in {"write", "delete"}:
            count[0] += 1
            act(count[0] - 1, action, f"{store.url}/{path}")
        return plain(store, action, path, call, create=create)

    with monkeypatch.context() as patched:
        patched.setattr(Store, "_run", run)
        yield count


def test_a_table_moves_with_all_that_it_has(root: str) -> None:
    warehouse = grown(root)
    warehouse.rename(OLD, NEW)
    assert ids(root, "b") == ALL
    assert not warehouse.is_table(OLD)
    assert warehouse.root.list("db/a") == []
    moved = tamis.open(f"{root}/db/b")
    operations = moved.history()["operation"].to_pylist()
    assert (operations[0], operations[-1], "begin rename" in operations) == ("delete", "create", False)
    moved.append(rows(30))
    assert ids(root, "b") == [*ALL, 30]
    assert tamis.open(f"{root}/db/b").verify().ok
    warehouse.rename(NEW, OLD)
    assert ids(root, "a") == [*ALL, 30]


def test_a_writer_beside_a_rename_fails_or_comes_along(remote: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An append is tried ahead of each request of a rename."""
    at = 0
    outcomes = set()
    while True:
        place = f"{remote}{at}"
        warehouse = grown(place)
        writer = tamis.open(f"{place}/db/a")
        landed: list[bool] = []

        def append(number: int, _: str, __: str) -> None:
            if number != at or landed:  # noqa: B023  # called before they change
                return
            landed.append(False)  # noqa: B023
            with contextlib.suppress(TamisError):
                writer.append(rows(100))  # noqa: B023
                landed[0] = True  # noqa: B023

        with before_request(monkeypatch, append) as count:
            warehouse.rename(OLD, NEW)
        assert ids(place, "b") == ([*ALL, 100] if landed == [True] else ALL), at
        assert not warehouse.is_table(OLD), at
        outcomes.add(tuple(landed))
        if count[0] <= at:
            break
        at += 1
    assert outcomes == {(True,), (False,), ()}


def rename(warehouse: Warehouse) -> None:
    """What the catalog does."""
    assert warehouse.is_table(OLD)
    assert warehouse.may_rename(OLD, NEW)
    warehouse.rename(OLD, NEW)


def test_a_rename_that_is_killed_goes_on(remote: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at = 0
    seen = set()
    while True:
        place = f"{remote}-{at}"
        warehouse = grown(place)

        def kill(number: int, _: str, __: str) -> None:
            if number >= at:  # noqa: B023
                raise Killed

        with before_request(monkeypatch, kill) as count, contextlib.suppress(Killed):
            rename(warehouse)
        forget()
        for name in ("a", "b"):
            with contextlib.suppress(TamisError):
                assert ids(place, name) == ALL, (at, name)
                seen.add(name)
        if count[0] <= at:
            break
        if newest_record(warehouse.store(OLD)) is not None:
            with pytest.raises(TamisError, match=r"CONFLICT_RENAME|MISSING_COMMIT"):
                warehouse.rename(OLD, ("db", "c"))
            if "a" in seen and not tamis_error(lambda: ids(place, "a")):  # noqa: B023
                with pytest.raises(InvalidInput, match="TABLE_RENAMING"):
                    tamis.open(f"{place}/db/a").append(rows(7))
        complete = not tamis_error(lambda: ids(place, "b"))  # noqa: B023
        if complete:  # others may write to it before the rename is run again
            tamis.open(f"{place}/db/b").append(rows(100))
        if newest_record(warehouse.store(OLD)) is not None or not complete:
            rename(warehouse)
        elif warehouse.is_table(OLD):  # its commits are gone
            warehouse.drop_table(OLD)
        forget()
        assert ids(place, "b") == ([*ALL, 100] if complete else ALL), at
        tamis.open(f"{place}/db/b").append(rows(101))
        assert tamis.open(f"{place}/db/b").verify().ok
        assert warehouse.root.list("db/a") == [], at
        at += 1
    assert seen == {"a", "b"}


@pytest.mark.parametrize("fails", [False, True])
def test_two_runs_of_one_rename(remote: str, monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    """A second run begins ahead of any request of the first one, which is not dead. ``fails``: and fails on its way."""
    at = 0
    ends = Counter[str]()
    while True:
        place = f"{remote}-{at}-{fails}"
        warehouse = grown(place)
        inside: list[int] = []

        def second(number: int, action: str, path: str) -> None:
            if inside and inside[-1] >= 0:  # noqa: B023  # requests of the second run
                inside[-1] += 1  # noqa: B023
                if fails and inside[-1] == 1 + at % 17:  # noqa: B023
                    raise StoreUnavailable(f"planned: {action} {path}")
                return
            if number == at and not inside:  # noqa: B023
                inside.append(0)  # noqa: B023
                with contextlib.suppress(TamisError):
                    warehouse.rename(OLD, NEW)  # noqa: B023
                inside[-1] = -1  # noqa: B023

        with before_request(monkeypatch, second):
            try:
                rename(warehouse)
                end = "renamed"
            except TamisError as error:
                end = error.code
        ends[end] += 1
        forget()
        if tamis_error(lambda: ids(place, "b")):  # noqa: B023
            assert fails
            rename(warehouse)
        elif warehouse.is_table(OLD) and newest_record(warehouse.store(OLD)) is not None:
            rename(warehouse)
        assert ids(place, "b") == ALL, (at, end)
        tamis.open(f"{place}/db/b").append(rows(100))
        assert tamis.open(f"{place}/db/b").verify().ok
        if not inside:
            break
        at += 1
    assert at > 15
    assert ends["renamed"] > 3


@pytest.mark.parametrize("where", ["source", "target"])
def test_a_table_that_is_made_beside_a_rename_or_a_drop_stays(
    remote: str, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Another table is created and filled ahead of any request: where the old one is being removed, or at the target."""
    at = 0
    made: Counter[str] = Counter()
    for verb in ("rename", "drop") if where == "source" else ("rename",):
        at = 0
        while True:
            place = f"{remote}-{verb}-{at}"
            warehouse = grown(place)
            name = "a" if where == "source" else "b"
            tried: list[bool] = []

            def create(number: int, _: str, __: str) -> None:
                if number == at and not tried:  # noqa: B023
                    tried.append(False)  # noqa: B023
                    with contextlib.suppress(TamisError):
                        tamis.create(f"{place}/db/{name}", SCHEMA).append(rows(77))  # noqa: B023
                        tried[0] = True  # noqa: B023

            with before_request(monkeypatch, create):
                try:
                    warehouse.rename(OLD, NEW) if verb == "rename" else warehouse.drop_table(OLD)
                    end = "done"
                except TamisError as error:
                    end = error.code
            forget()
            if tried == [True]:
                made[f"{verb} {end}"] += 1
                assert ids(place, name) == [77], (verb, at, end)
                tamis.open(f"{place}/db/{name}").append(rows(78))
                assert tamis.open(f"{place}/db/{name}").verify().ok
            if verb == "rename" and (where == "source" or end == "done"):
                assert ids(place, "b") == ALL, (at, end)
            elif verb == "rename":
                assert ids(place, "a") == ALL, (at, end)
                tamis.open(f"{place}/db/a").append(rows(100))
            if not tried:
                break
            at += 1
    assert made == (
        {"rename done": made["rename done"], "drop done": made["drop done"]}
        if where == "source"
        else {"rename TABLE_EXISTS": made["rename TABLE_EXISTS"]}
    )
    assert min(made.values()) > 2


def test_a_commit_that_cannot_be_taken_back_is_unknown(remote: str, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = grown(remote)
    writer = tamis.open(f"{remote}/db/a")
    done: list[str] = []

    def replace(_: int, action: str, path: str) -> None:
        if action == "delete" and done and "dropped" in done:
            raise StoreUnavailable("planned", code="ACCESS_DENIED")
        if action == "write" and "/_tamis/log/" in path and not done:
            done.append(path)
            warehouse.drop_table(OLD)
            tamis.create(f"{remote}/db/a", SCHEMA)
            done.append("dropped")

    with before_request(monkeypatch, replace), pytest.raises(StoreUnavailable, match="COMMIT_UNKNOWN"):
        writer.append(rows(100))


def tamis_error(call: Callable[[], Any]) -> bool:
    try:
        call()
    except TamisError:
        return True
    return False


def test_a_rename_that_fails_lets_writers_commit_or_can_be_run_again(
    remote: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = 0
    ends: Counter[str] = Counter()
    while True:
        place = f"{remote}-{at}"
        warehouse = grown(place)

        def fail(number: int, action: str, path: str) -> None:
            if number == at:  # noqa: B023
                raise StoreUnavailable(f"planned: {action} {path}")

        notes: list[str] = []
        with before_request(monkeypatch, fail) as count:
            try:
                rename(warehouse)
                end = "renamed"
            except StoreUnavailable as error:
                end, notes = "failed", getattr(error, "__notes__", [])
        forget()
        wanted = ALL
        if end == "failed" and newest_record(warehouse.store(OLD)) is None and not warehouse.is_table(NEW):
            tamis.open(f"{place}/db/a").append(rows(100))
            wanted, end = [*ALL, 100], "failed, and writable"
            assert not notes
        if end != "renamed" and warehouse.is_table(OLD) and warehouse.may_rename(OLD, NEW):
            rename(warehouse)
        assert ids(place, "b") == wanted, (at, end)
        ends[end] += 1
        if count[0] <= at:
            break
        at += 1
    assert ends["failed, and writable"] > 3
    assert ends["failed"] > 2


@pytest.mark.parametrize("next_drop", ["table", "namespace"])
def test_what_an_interrupted_drop_left_goes_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, next_drop: str
) -> None:
    warehouse = grown(str(tmp_path))

    def killed(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched, contextlib.suppress(Killed):
        patched.setattr("shutil.rmtree", killed)
        warehouse.drop_table(OLD)
    assert not warehouse.is_table(OLD)
    assert len(list((tmp_path / "db").iterdir())) == 1
    if next_drop == "table":
        grown(str(tmp_path)).drop_table(OLD)
        assert list((tmp_path / "db").iterdir()) == []
    else:
        warehouse.drop_namespace(OLD[:1])
        assert not (tmp_path / "db").exists()


def test_other_objects_are_in_the_way(remote: str) -> None:
    warehouse = grown(remote)
    warehouse.root.put("db/b/notes.txt", b"mine")
    with pytest.raises(InvalidInput, match="PATH_NOT_EMPTY"):
        warehouse.rename(OLD, NEW)
    assert ids(remote, "a") == ALL
    tamis.open(f"{remote}/db/a").append(rows(30))
    assert warehouse.root.get("db/b/notes.txt") == b"mine"


@pytest.mark.parametrize("again", ["nothing", "empty", "longer"])
def test_a_writer_beside_a_drop_fails(root: str, monkeypatch: pytest.MonkeyPatch, again: str) -> None:
    """The table is dropped, and perhaps made anew, between a writer's look at the log and its commit."""
    warehouse = grown(root)
    done: list[str] = []

    def drop(_: int, action: str, path: str) -> None:
        if action != "write" or "/_tamis/log/" not in path or done:
            return
        done.append(path)
        warehouse.drop_table(OLD)
        if again != "nothing":
            made = tamis.create(f"{root}/db/a", SCHEMA)
            for _ in range(7 if again == "longer" else 0):
                made.append(rows(1))

    writer = tamis.open(f"{root}/db/a")
    with before_request(monkeypatch, drop), pytest.raises(TamisError) as caught:
        writer.append(rows(100))
    assert caught.value.code == ("TABLE_NOT_FOUND" if again == "nothing" else "CONFLICT_REPLACED")
    assert done
    forget()
    if again == "nothing":
        assert not warehouse.is_table(OLD)
        assert tamis_error(lambda: tamis.open(f"{root}/db/a"))
        tamis.create(f"{root}/db/a", SCHEMA)
        assert ids(root, "a") == []
    else:
        assert ids(root, "a") == ([1] * 7 if again == "longer" else [])
    tamis.open(f"{root}/db/a").append(rows(5))
    assert 5 in ids(root, "a")
    assert tamis.open(f"{root}/db/a").verify().ok


def test_a_commit_that_a_rename_took_along_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a local disk, the folder moves right after the commit was written: it is in the table of the new name."""
    warehouse = grown(str(tmp_path))
    put = Store.put_if_absent

    def moved(store: Store, path: str, data: bytes) -> bool:
        done = put(store, path, data)
        if "_tamis/log" in path:
            monkeypatch.undo()
            warehouse.rename(OLD, NEW)
        return done

    writer = tamis.open(tmp_path / "db" / "a")
    monkeypatch.setattr(Store, "put_if_absent", moved)
    with pytest.raises(StoreUnavailable, match="COMMIT_UNKNOWN"):
        writer.append(rows(100))
    assert ids(str(tmp_path), "b") == [*ALL, 100]
    assert not (tmp_path / "db" / "a").exists()


def test_a_log_that_does_not_answer_does_not_undo_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tamis.create(tmp_path / "t", SCHEMA)
    table.append(rows(1))
    plain, written = Store._run, [False]

    def run(store: Store, action: str, path: str, call: Any, *, create: bool = False) -> Any:
        if written[0] and action == "read" and "_tamis/log" in path:
            raise StoreUnavailable("planned")
        found = plain(store, action, path, call, create=create)
        written[0] |= action == "write" and "_tamis/log" in path
        return found

    with monkeypatch.context() as patched:
        patched.setattr(Store, "_run", run)
        assert table.append(rows(2)).rows_inserted == 1
    assert sorted(tamis.open(tmp_path / "t").scan().to_arrow()["id"].to_pylist()) == [1, 2]
