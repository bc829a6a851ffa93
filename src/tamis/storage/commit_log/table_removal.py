"""Removes the objects of a table on an object store, which has no folders that could go in one step."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from tamis.errors import CorruptData, InvalidInput, NotFound, TamisError
from tamis.storage.commit_log.commit_objects import HINT, LOG, ROOT, read_commit
from tamis.storage.object_store import Store
from tamis.storage.object_store.parallel_requests import gather_requests

_AT_ONCE = 64
_ROUNDS = 10
"""Number of listings after which a removal ends, even if writers still commit to the removed table."""


def remove_table(store: Store) -> None:
    """Remove the objects of a table, also commits that writers make meanwhile.

    A table that is created there meanwhile stays: no commit of another table is removed, and other objects only if the
    first listing has them. Commits are removed first, in order, because a writer removes its own commit if the one
    before it is gone (``commit_landing``). Other objects of the log's folder are removed last, so that an interrupted
    removal can be run again.
    """
    entries = store.list()
    commits = sorted(entry.path for entry in entries if entry.path.startswith(f"{LOG}/"))
    named = [e.path for e in entries if e.path.startswith(f"{ROOT}/") and not e.path.startswith(f"{LOG}/")]
    table_id = _table_id(store, commits)
    _remove_commits(store, commits, table_id)
    gather_requests(store, store.delete, [entry.path for entry in entries if not entry.path.startswith(f"{ROOT}/")])
    for _ in range(_ROUNDS):
        if not _remove_commits(store, [entry.path for entry in store.list(LOG)], table_id):
            break
    gather_requests(store, store.delete, named)
    if not store.list(LOG):  # a writer may have written it after its last commit
        store.delete(HINT)


def _version(path: str) -> int | None:
    stem = path.removeprefix(f"{LOG}/").removesuffix(".json")
    return int(stem) if stem.isdigit() else None


def _table_id(store: Store, commits: Sequence[str]) -> str:
    """Return the id of the table whose commits these are; empty if none of the oldest ones can be read.

    The newest may be that of a table that was there before (``newest_commit.check_follows``).
    """
    for path in commits[:3]:
        version = _version(path)
        with suppress(TamisError):
            if version is not None:
                return read_commit(store, version).table_id
    return ""


def _remove_commits(store: Store, paths: Sequence[str], table_id: str) -> int:
    """Remove the commits of the table, and those that cannot be read, in order; return their number.

    Without an id, all go.
    """

    def is_of_another(path: str) -> bool:
        version = _version(path)
        try:
            return bool(table_id) and version is not None and read_commit(store, version).table_id != table_id
        except NotFound:
            return True
        except (CorruptData, InvalidInput):
            return False

    removed = 0
    for at in range(0, len(paths), _AT_ONCE):  # read just before: the path may be a new table's by then
        some = paths[at : at + _AT_ONCE]
        for path, is_other in zip(some, gather_requests(store, is_of_another, some), strict=True):
            if not is_other:
                store.delete(path)
                removed += 1
    return removed
