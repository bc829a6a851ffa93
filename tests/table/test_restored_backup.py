"""A folder that is replaced by its own backup, and written to again, while a process has its versions in the cache."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa

import tamis
from tamis.storage.commit_log.snapshot import Snapshot
from tamis.storage.commit_log.version_loading import load
from tamis.storage.object_store.object_cache import CACHE
from tamis.storage.object_store.store import open_store


def rows(*values: int) -> pa.Table:
    return pa.table({"n": values})


def parts_of(snapshot: Snapshot) -> list[int]:
    return snapshot.parts()["rows"].to_pylist()


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
    assert before.remembered("kept", lambda: "old", lambda _: 1) == "old"

    shutil.rmtree(path)
    shutil.copytree(backup, path)
    kept, size = dict(CACHE._items), CACHE.bytes
    again = tamis.open(path)  # as another process: it leaves this one's cache alone
    again.append(rows(4, 4, 4, 4))
    again.append(rows(5, 5, 5, 5, 5))
    CACHE._items.clear()
    CACHE._items.update(kept)
    CACHE.bytes = size

    after = load(store)
    assert after.version == before.version
    assert parts_of(after) == [1, 4, 5]
    assert after.remembered("kept", lambda: "new", lambda _: 1) == "new"
