"""A folder, or only its log, that is restored from a backup and written to again by another process."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.errors import Conflict, CorruptData, SchemaFenced
from tamis.storage.commit_log import rollups
from tamis.storage.commit_log.commit_objects import commit_path
from tamis.storage.commit_log.newest_commit import find_latest
from tamis.storage.commit_log.rollups import Tile
from tamis.storage.commit_log.snapshot import Snapshot
from tamis.storage.commit_log.version_loading import load
from tamis.storage.object_store.checked_json import seal_json, unseal_json
from tamis.storage.object_store.object_cache import CACHE
from tamis.storage.object_store.store import open_store


def rows(*values: int) -> pa.Table:
    return pa.table({"n": values})


def values(table: tamis.Table) -> list[int]:
    return sorted(table.scan().to_arrow()["n"].to_pylist())


def parts_of(snapshot: Snapshot) -> list[int]:
    return snapshot.parts()["rows"].to_pylist()


@contextmanager
def another_process() -> Iterator[None]:
    """Leave this process's cache alone."""
    kept, size = dict(CACHE._items), CACHE.bytes
    CACHE.clear()
    yield
    CACHE._items.clear()
    CACHE._items.update(kept)
    CACHE.bytes = size


def filled(path: Path, count: int) -> tamis.Table:
    table = tamis.create(path, rows(0).schema)
    for value in range(count):
        table.append(rows(value))
    return table


def put_back(path: Path, backup: Path) -> None:
    shutil.rmtree(path)
    shutil.copytree(backup, path)


def rewrite(path: Path, kind: str, without: str) -> None:
    """Drop a key of a commit or a rollup, as an earlier writer would have."""
    body = unseal_json(kind, path.read_bytes(), path.name)
    path.write_bytes(seal_json(kind, {key: value for key, value in body.items() if key != without}))


def test_a_version_written_after_the_backup_is_not_the_one_before(tmp_path: Path) -> None:
    path, backup = tmp_path / "t", tmp_path / "backup"
    table = tamis.create(path, rows(1).schema)
    table.append(rows(1))
    shutil.copytree(path, backup)
    table.append(rows(2, 2))
    table.append(rows(3, 3, 3))
    store = open_store(str(path))
    before = load(store)
    assert parts_of(before) == [1, 2, 3]
    assert before.cached_result("kept", lambda: "old", lambda _: 1) == "old"

    put_back(path, backup)
    with another_process():
        again = tamis.open(path)
        again.append(rows(4, 4, 4, 4))
        again.append(rows(5, 5, 5, 5, 5))

    after = load(store)
    assert after.version == before.version
    assert parts_of(after) == [1, 4, 5]
    assert after.cached_result("kept", lambda: "new", lambda _: 1) == "new"


@pytest.mark.parametrize("lost", [1, 2, 4])
@pytest.mark.parametrize("written", [1, 2, 3, 4, 5, 8])
def test_a_process_that_cached_lost_commits_reads_the_new_ones(tmp_path: Path, lost: int, written: int) -> None:
    path, backup = tmp_path / "t", tmp_path / "backup"
    table = filled(path, 3)
    shutil.copytree(path, backup)
    table.delete("n = 1")
    for value in range(1, lost):
        table.append(rows(10 + value))
    assert values(table) == [0, 2, *range(11, 10 + lost)]
    put_back(path, backup)
    with another_process():
        again = tamis.open(path)
        for value in range(written):
            again.append(rows(100 + value))
    assert values(table) == [0, 1, 2, *range(100, 100 + written)]
    assert table.delete("n = 100").rows_deleted == 1
    assert values(table) == values(tamis.open(path)) == [0, 1, 2, *range(101, 100 + written)]
    assert table.verify().ok


def test_a_version_by_number_and_then_the_newest(tmp_path: Path) -> None:
    path, backup = tmp_path / "t", tmp_path / "backup"
    table = filled(path, 3)
    shutil.copytree(path, backup)
    for value in range(10, 14):
        table.append(rows(value))
    store = open_store(str(path))
    assert len(parts_of(load(store))) == 7
    put_back(path, backup)
    with another_process():
        again = tamis.open(path)
        for value in range(3):
            again.append(rows(*[value] * 5))
    assert parts_of(load(store, 5)) == [1, 1, 1, 5, 5]
    assert parts_of(load(store)) == [1, 1, 1, 5, 5, 5]


def columns_of(snapshot: Snapshot) -> list[str]:
    assert snapshot.schema is not None
    return [field.name for field in snapshot.schema]


def append_with(path: Path, column: str) -> None:
    tamis.open(path).append(pa.table({"n": [9], column: [9]}), merge_schema=True)


@pytest.mark.parametrize("by_number", [False, True])
def test_a_head_in_a_lost_commit_is_not_that_of_the_new_history(tmp_path: Path, *, by_number: bool) -> None:
    path, backup = tmp_path / "t", tmp_path / "backup"
    table = filled(path, 2)
    shutil.copytree(path, backup)
    table.append(pa.table({"n": [9], "lost": [9]}), merge_schema=True)
    assert table.scan().to_arrow().column_names == ["n", "lost"]
    put_back(path, backup)
    with another_process():
        append_with(path, "found")
        for value in (6, 7):
            tamis.open(path).append(rows(value))
    assert columns_of(load(table.store, 6 if by_number else None)) == ["n", "found"]
    for call in (table.scan, lambda: table.append(pa.table({"n": [1], "lost": [1]})), lambda: table.delete("lost = 9")):
        with pytest.raises(SchemaFenced, match="was restored from a backup") as caught:
            call()
        assert caught.value.code == "TABLE_REPLACED"
    assert table.refresh().scan("found = 9").count() == 1


@pytest.mark.parametrize("others", [0, 1, 4])
def test_a_table_object_with_lost_columns_is_refused_however_many_were_lost(tmp_path: Path, others: int) -> None:
    path, backup = tmp_path / "t", tmp_path / "backup"
    table = filled(path, 2)
    shutil.copytree(path, backup)
    for column in ("lost", "lost_too"):
        table.append(pa.table({"n": [9], column: [9]}), merge_schema=True)
    table.refresh()
    earlier = table.scan(version=2)
    put_back(path, backup)
    with another_process():
        for _ in range(others):
            append_with(path, "found")
    for call in (
        table.scan,
        lambda: table.append(pa.table({"n": [1], "lost": [1]})),
        lambda: table.overwrite(pa.table({"n": [1], "lost": [1]})),
        lambda: table.update({"lost": "77"}, "n = 9"),
        lambda: table.delete("lost = 9"),
    ):
        with pytest.raises(SchemaFenced, match="was restored from a backup"):
            call()
    assert earlier.count() == table.scan(version=2).count() == 2
    assert columns_of(load(table.store)) == ["n", "found"][: 1 + min(others, 1)]


@pytest.mark.parametrize("others", [0, 2, 3, 5])
def test_a_change_that_started_from_a_lost_version_is_refused(tmp_path: Path, others: int) -> None:
    path, backup = tmp_path / "t", tmp_path / "backup"
    table = filled(path, 2)
    shutil.copytree(path, backup)
    for value in (10, 11, 12):
        table.append(rows(value))
    alter = table.alter().add_column("lost", "BIGINT")

    def late() -> Iterator[pa.RecordBatch]:
        put_back(path, backup)
        with another_process():
            if others:
                append_with(path, "found")
            for value in range(20, 18 + others):
                tamis.open(path).append(rows(value))
        yield from rows(11, 12).to_batches()

    stream = pa.RecordBatchReader.from_batches(rows(1).schema, late())
    expected: tuple[type[tamis.errors.TamisError], ...] = (Conflict, SchemaFenced, CorruptData)
    with pytest.raises(expected):
        table.overwrite(stream, "n >= 10")
    content = tamis.open(path).scan().to_arrow().to_pydict()
    with pytest.raises(Conflict, match="restored from a backup") as caught:
        alter.commit()
    assert caught.value.code == "CONFLICT_REPLACED"
    assert tamis.open(path).scan().to_arrow().to_pydict() == content
    assert content["n"] == [0, 1, *([9] if others else []), *range(20, 18 + others)]


def test_a_history_of_a_lost_version_is_not_a_mixture(tmp_path: Path) -> None:
    path, backup = tmp_path / "t", tmp_path / "backup"
    table = filled(path, 5)
    shutil.copytree(path, backup)
    for value in range(10, 20):
        table.append(rows(value))
    lost = table.history()["operation_id"].to_pylist()
    pinned = tamis.open(path, version=table.version)
    assert pinned.history(3)["operation_id"].to_pylist() == lost[:3]
    put_back(path, backup)
    with another_process():
        again = tamis.open(path)
        for value in range(100, 120):
            again.append(rows(value))
        now = again.history()["operation_id"].to_pylist()
    assert pinned.history()["operation_id"].to_pylist() == now[-len(lost) :]


def test_commits_after_an_earlier_version_that_was_read_again(tmp_path: Path) -> None:
    path, backup = tmp_path / "t", tmp_path / "backup"
    filled(path, 2)
    shutil.copytree(path, backup)
    store = open_store(str(path))
    with another_process():
        tamis.open(path).append(rows(5))
        append_with(path, "lost")
    CACHE.clear()  # so that version 3 is not in it
    assert columns_of(load(store)) == ["n", "lost"]
    assert columns_of(load(store, 2)) == ["n"]
    put_back(path, backup)
    with another_process():
        tamis.open(path).append(rows(6))
        append_with(path, "found")
        tamis.open(path).append(rows(7))
    assert columns_of(load(store)) == ["n", "found"]


def test_a_commit_in_the_cache_that_the_next_one_does_not_follow(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = filled(path, 5)
    snapshot = load(table.store)
    lost = replace(load(table.store, 3).commit, operation_id="another", segment=None)
    CACHE.put((table.store.url, lost.table_id, 3), lost, 100)
    assert parts_of(snapshot) == [1] * 5


def test_the_rollup_of_a_warm_process_holds_one_history(tmp_path: Path) -> None:
    path, backup = tmp_path / "t", tmp_path / "backup"
    table = filled(path, 8)
    shutil.copytree(path, backup)
    for value in range(50, 54):
        table.append(rows(value))
    assert len(values(table)) == 12
    put_back(path, backup)
    with another_process():
        again = tamis.open(path)
        for value in range(100, 105):
            again.append(rows(value))
    while table.append(rows(7)).version < 16:
        pass
    expected = sorted([*range(8), *range(100, 105), 7, 7, 7])
    CACHE.clear()
    assert values(table) == expected
    shutil.rmtree(path / "_tamis" / "rollup")
    assert values(tamis.open(path)) == expected


LOST = Tile(0, 1).path


def log_restored(tmp_path: Path) -> tuple[Path, bytes]:
    """A table of 0 to 9 whose log alone was restored, and the rollup of what was lost: 10 to 19."""
    path, backup = tmp_path / "t", tmp_path / "log"
    table = filled(path, 10)
    shutil.copytree(path / "_tamis" / "log", backup)
    for value in range(10, 20):
        table.append(rows(value))
    shutil.rmtree(path / "_tamis" / "log")
    shutil.copytree(backup, path / "_tamis" / "log")
    CACHE.clear()
    return path, (path / LOST).read_bytes()


def test_a_rollup_of_a_lost_history_is_not_used_and_is_replaced(tmp_path: Path) -> None:
    path, lost = log_restored(tmp_path)
    again = tamis.open(path)
    assert values(again) == list(range(10))
    for value in range(100, 110):
        again.append(rows(value))
    expected = [*range(10), *range(100, 110)]
    assert values(tamis.open(path)) == expected
    assert (path / LOST).read_bytes() != lost

    (path / LOST).write_bytes(lost)  # as if no commit had replaced it
    assert values(tamis.open(path)) == expected
    again = tamis.open(path)
    assert parts_of(load(again.store)) == [1] * 20  # past the rollup, which is in the cache now
    while again.append(rows(1)).version < 32:
        pass
    assert (path / LOST).read_bytes() != lost
    CACHE.clear()
    snapshot = load(open_store(str(path)))
    assert parts_of(snapshot) == [1] * 32
    assert snapshot.io.requests < 16  # by rollups


def test_a_rollup_that_was_replaced_is_not_in_the_cache_of_its_writer(tmp_path: Path) -> None:
    path, _ = log_restored(tmp_path)
    again = tamis.open(path)
    while again.append(rows(1)).version < 15:
        pass
    last = load(again.store).commit
    cached = CACHE.get((again.store.url, last.table_id, Tile(0, 1)))
    assert cached is None or cached.operation_id == last.operation_id


@pytest.mark.parametrize("newest", [15, 31])
def test_a_rollup_that_ends_with_the_newest_commit(tmp_path: Path, newest: int) -> None:
    path, lost = log_restored(tmp_path)
    again = tamis.open(path)
    while again.append(rows(1)).version < newest:
        pass
    (path / LOST).write_bytes(lost)
    assert values(tamis.open(path)) == sorted([*range(10), *[1] * (newest - 10)])


def test_a_rollup_in_the_cache_that_was_lost(tmp_path: Path) -> None:
    path, backup = tmp_path / "t", tmp_path / "backup"
    table = filled(path, 12)
    shutil.copytree(path, backup)
    for value in range(50, 60):
        table.append(rows(value))
    assert len(values(table)) == 22
    store = table.store
    assert CACHE.get((store.url, load(store).head.table_id, Tile(0, 1))) is not None
    put_back(path, backup)
    with another_process():
        again = tamis.open(path)
        for value in range(100, 112):
            again.append(rows(value))
    assert values(table) == [*range(12), *range(100, 112)]


def test_a_rollup_that_does_not_name_its_last_commit_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = filled(path, 20)
    rewrite(path / LOST, "rollup", "operation_id")
    table = tamis.open(path)
    assert rollups.read(table.store, load(table.store).head.table_id, Tile(0, 1)) is None
    assert values(table) == list(range(20))


def test_commits_of_an_earlier_writer_do_not_name_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = filled(path, 20)
    for version in range(21):
        rewrite(path / commit_path(version), "commit", "parent")
    table = tamis.open(path)
    assert values(table) == list(range(20))
    store = table.store
    shutil.copytree(path, tmp_path / "backup")
    table.append(rows(77))
    put_back(path, tmp_path / "backup")
    with another_process():
        again = tamis.open(path)
        for value in (100, 101):
            again.append(rows(value))
        for version in (21, 22):
            rewrite(path / commit_path(version), "commit", "parent")
    latest = find_latest(store)
    assert latest is not None
    assert latest.parent is None
    assert values(table) == [*range(20), 100, 101]


@pytest.mark.parametrize("format_name", ["delta", "iceberg"])
@pytest.mark.parametrize("written", [0, 1, 2, 5])
def test_an_export_of_a_lost_history_is_refused(tmp_path: Path, format_name: str, written: int) -> None:
    path, backup = tmp_path / "t", tmp_path / "log"
    table = filled(path, 3)
    table.export(format_name)
    shutil.copytree(path / "_tamis" / "log", backup)
    for value in (10, 11):
        table.append(rows(value))
    assert table.export(format_name).written
    shutil.rmtree(path / "_tamis" / "log")
    shutil.copytree(backup, path / "_tamis" / "log")
    with another_process():
        again = tamis.open(path)
        for value in range(100, 100 + written):
            again.append(rows(value))
    with pytest.raises(Conflict, match="restored from a backup") as caught:
        table.export(format_name)
    folder = {"delta": "_delta_log", "iceberg": "metadata"}[format_name]
    assert (caught.value.code, caught.value.name) == ("EXPORT_OF_LOST_HISTORY", folder)
    shutil.rmtree(path / folder)
    assert table.export(format_name).written
    table.append(rows(200))
    assert table.export(format_name).files_added == 1
    assert not table.export(format_name).written


def test_a_log_of_two_histories_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t"
    filled(path, 5)
    other = tmp_path / "backup"
    shutil.copytree(path, other)
    for at in (path, other):
        held = tamis.open(at)
        for value in (10, 11):
            held.append(rows(value))
    shutil.copy(other / commit_path(6), path / commit_path(6))
    with pytest.raises(CorruptData, match="two histories") as caught:
        tamis.open(path).scan().to_arrow()
    assert (caught.value.code, caught.value.name) == ("MIXED_HISTORY", str(path / commit_path(6)))
    assert "MIXED_HISTORY" in tamis.open(path).verify().problems["code"].to_pylist()
    assert tamis.open(path).scan(version=5).count() == 5


def test_polling_keeps_the_entry_that_guards_the_cache(tmp_path: Path) -> None:
    store = filled(tmp_path / "t", 2).store
    table_id = load(store).commit.table_id
    CACHE.put("other work", b"", 1)
    load(store)
    kept = list(CACHE._items)
    assert kept.index((store.url, table_id, "newest cached")) > kept.index("other work")


def test_what_the_check_of_the_history_costs(tmp_path: Path) -> None:
    """A look at the commit before the newest; after more than one commit of another process, at one that scans read anyway."""
    path = tmp_path / "t"
    filled(path, 3)

    def requests(commits: int) -> int:
        with another_process():
            again = tamis.open(path)
            for value in range(commits):
                again.append(rows(value))
        snapshot = load(open_store(str(path)))
        return snapshot.io.requests

    assert [requests(commits) for commits in (0, 1, 0, 2, 3, 0)] == [5, 5, 4, 6, 6, 4]
