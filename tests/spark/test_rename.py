"""RENAME and DROP beside writers: a commit is made where the table is, or its writer gets an error."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.conftest import Lake
from tests.storage.making import forget

import tamis
from tamis.errors import InvalidInput, NotFound, StoreUnavailable, TamisError
from tamis.spark.catalog import catalog
from tamis.spark.catalog.warehouse_paths import Warehouse
from tamis.storage.commit_log import commit
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


def test_a_table_moves_with_all_that_it_has(tmp_path: Path) -> None:
    root = str(tmp_path)
    warehouse = grown(root)
    warehouse.rename(OLD, NEW)
    assert ids(root, "b") == ALL
    assert not warehouse.is_table(OLD)
    assert warehouse.root.list("db/a") == []
    moved = tamis.open(f"{root}/db/b")
    operations = moved.history()["operation"].to_pylist()
    assert (operations[0], operations[-1]) == ("delete", "create")
    moved.append(rows(30))
    assert ids(root, "b") == [*ALL, 30]
    assert tamis.open(f"{root}/db/b").verify().ok
    warehouse.rename(NEW, OLD)
    assert ids(root, "a") == [*ALL, 30]


def test_a_table_that_another_session_drops_first_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have found it; one of the two moves its folder away."""
    warehouse = grown(str(tmp_path / "lake"))
    check = Warehouse.check_not_ended

    def meanwhile(self: Warehouse, names: tuple[str, ...]) -> None:
        check(self, names)
        monkeypatch.undo()
        Warehouse(open_store(str(tmp_path / "lake"))).drop_table(OLD)

    monkeypatch.setattr(Warehouse, "check_not_ended", meanwhile)
    assert not warehouse.drop_table(OLD)
    assert not warehouse.is_table(OLD)
    with pytest.raises(NotFound, match="dropped or renamed meanwhile"):
        warehouse.rename(OLD, NEW)


def test_a_rename_beside_a_change_of_the_head_succeeds(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder has moved when the new name is committed: an error would name a table that is not there any more."""
    lake.sql("CREATE TABLE lake.db.a (id BIGINT) USING tamis")
    made = commit
    others: list[int] = []

    def beside(store: Store, proposal: Any) -> Any:
        if not others:
            others.append(1)
            tamis.open(lake.folder / "db" / "b").alter().set_properties({"owner": "x"}).commit()
        return made(store, proposal)

    monkeypatch.setattr(catalog, "commit", beside)
    lake.sql("ALTER TABLE lake.db.a RENAME TO db.b")
    assert others
    head = tamis.open(lake.folder / "db" / "b").snapshot.head
    assert (head.name, head.properties["owner"]) == ("db.b", "x")


def test_an_object_store_renames_nothing(remote: str) -> None:
    warehouse = grown(remote)
    with pytest.raises(
        InvalidInput, match=r"CREATE TABLE db\.b AS SELECT \* FROM db\.a, then DROP TABLE db\.a"
    ) as caught:
        warehouse.rename(OLD, NEW)
    assert caught.value.code == "UNSUPPORTED_STATEMENT"
    assert ids(remote, "a") == ALL
    assert not warehouse.is_table(NEW)


@pytest.mark.slow
def test_a_table_that_is_made_beside_a_drop_stays(remote: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another table is created and filled ahead of any request of the drop."""
    at = made = 0
    while True:
        place = f"{remote}-{at}"
        warehouse = grown(place)
        tried: list[bool] = []

        def create(number: int, _: str, __: str) -> None:
            if number == at and not tried:  # noqa: B023
                tried.append(False)  # noqa: B023
                with contextlib.suppress(TamisError):
                    tamis.create(f"{place}/db/a", SCHEMA).append(rows(77))  # noqa: B023
                    tried[0] = True  # noqa: B023

        with before_request(monkeypatch, create):
            warehouse.drop_table(OLD)
        forget()
        if tried == [True]:
            made += 1
            assert ids(place, "a") == [77], at
            tamis.open(f"{place}/db/a").append(rows(78))
            assert tamis.open(f"{place}/db/a").verify().ok
        else:
            assert warehouse.root.list("db/a") == []
        if not tried:
            break
        at += 1
    assert made >= 2


@pytest.mark.slow
def test_a_drop_that_is_killed_can_be_run_again(remote: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at = 0
    while True:
        place = f"{remote}-{at}"
        warehouse = grown(place)

        def kill(number: int, _: str, __: str) -> None:
            if number >= at:  # noqa: B023
                raise Killed

        with before_request(monkeypatch, kill) as count, contextlib.suppress(Killed):
            warehouse.drop_table(OLD)
        forget()
        if count[0] <= at:
            break
        assert tamis_error(lambda: ids(place, "a")) or ids(place, "a") == ALL  # noqa: B023
        if warehouse.root.list("db/a"):
            assert warehouse.is_table(OLD), at
            warehouse.drop_table(OLD)
        assert warehouse.root.list("db/a") == [], at
        at += 1
    assert at > 10


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
        with pytest.raises(StoreUnavailable) as caught:
            table.append(rows(2))
    assert caught.value.code == "COMMIT_UNKNOWN"
    assert sorted(tamis.open(tmp_path / "t").scan().to_arrow()["id"].to_pylist()) == [1, 2]
