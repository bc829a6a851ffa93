"""The search for the newest commit of the log, and whether it follows the one before it.

Invariant: the hint (``_tamis/latest``) may be stale, missing, garbled or false: it only says where to look first.
"""

from __future__ import annotations

from tamis.errors import CorruptData, InvalidInput, NotFound, TamisError
from tamis.storage.commit_log.commit_objects import (
    HINT,
    LOG,
    commit_path,
    missing_commit_error,
    read_commit,
    remember_commit,
)
from tamis.storage.commit_log.commit_record import Commit
from tamis.storage.commit_log.retry_policy import LOG_READS
from tamis.storage.object_store.checked_json import seal_json, unseal_json
from tamis.storage.object_store.object_cache import CACHE
from tamis.storage.object_store.parallel_requests import gather_requests
from tamis.storage.object_store.store import Store

_WINDOWS = (2, 2, 8, 8)
"""Versions probed concurrently beyond the newest known, per round; after that one listing is cheaper.

Each width is at least two, because a gap in the log must not be taken for its end: the end is where two are
missing.
"""


def find_latest(store: Store) -> Commit | None:
    """Read the newest commit from the store; None if there is no table.

    With a correct hint this takes one round of three or four concurrent requests after the one for the hint,
    regardless of the log's length, and one more if others have committed at least twice since this process looked.

    Raises ``CorruptData``: ``MISSING_COMMIT`` if the log has a gap, ``WRONG_TABLE`` if the newest commit is another
    table's than the one before it.
    """
    return LOG_READS.run(lambda _: _find_latest(store))


def _find_latest(store: Store) -> Commit | None:
    probes = _Probes(store)
    newest = _search(store, probes)
    if newest is not None:
        check_follows(store, newest, probes.found.get(newest.version - 1))
    return newest


def check_follows(store: Store, commit: Commit, before: Commit | None = None) -> None:
    """Raise ``CorruptData`` (``WRONG_TABLE``) if ``commit`` is another table's than the version before it.

    ``before`` is that version, if it was just read. If it is missing, the newest one below it is compared; one that is
    damaged proves nothing.
    """
    if commit.version == 0 or _follows_known(store, commit):
        drop_lost_history(store, commit)
        return
    before = before or _Probes(store).try_probe(commit.version - 1)
    other = before or _commit_below(store, commit.version)
    if other is not None and commit.table_id != other.table_id:
        CACHE.forget(store.url)
        raise _stray_commit(store, commit)
    if before is None or not commit.follows(before):
        drop_lost_history(store, commit)
    else:
        confirm_commit(store, commit)
        read = CACHE.get((store.url, "as read", before.version))
        remember_commit(store, before, len(read[0]) if read is not None else 0)  # scans read it


def confirm_commit(store: Store, commit: Commit) -> None:
    """Remember that the store has both ``commit`` and the version that it follows."""
    drop_lost_history(store, commit)
    CACHE.put((store.url, commit.table_id, "follows", commit.version), commit.operation_id, 256)


def _follows_known(store: Store, commit: Commit) -> bool:
    """Whether ``confirm_commit`` was called for this commit."""
    confirmed: str | None = CACHE.get((store.url, commit.table_id, "follows", commit.version))
    return confirmed == commit.operation_id


def _stray_commit(store: Store, stray: Commit) -> CorruptData:
    """Return the error for a commit of another table than the ones before it."""
    name = store.name(commit_path(stray.version))
    return CorruptData(
        f"The commit {name} belongs to another table ({stray.table_id}) than the versions before it.",
        code="WRONG_TABLE",
        name=name,
        remedy="If a table of this name was dropped while others wrote to it, remove this file: it is a commit to that "
        "table. After a restore, restore the whole of _tamis/log from one backup.",
    )


def drop_lost_history(store: Store, current: Commit) -> None:
    """Forget the cached commits of this table unless they are of the history of ``current``, just read from the store.

    They are not if the folder was restored from a backup and then written to again. The cached versions before a commit
    may be used once this was called for it.
    """
    table = (store.url, current.table_id)
    checked, key = (*table, "in cached history", current.version), (*table, "newest cached")
    newest: tuple[int, str] | None = CACHE.get(key)  # always, so that it stays as long as what it is about
    if CACHE.get(checked) == current.operation_id:
        return
    if newest is None or not _same_history(store, newest, current):
        CACHE.forget(*table)
        read = CACHE.get((store.url, "as read", current.version))
        if read is not None:
            remember_commit(store, current, len(read[0]))
        newest = None
    if newest is None or newest[0] <= current.version:
        newest = (current.version, current.operation_id)
    CACHE.put(key, newest, 256)
    CACHE.put(checked, current.operation_id, 256)


def _same_history(store: Store, newest: tuple[int, str], current: Commit) -> bool:
    """Whether the store has both the newest cached commit, of that version and operation, and ``current``."""
    version, operation_id = newest
    following = current if current.version == version + 1 else None
    try:
        if current.version > version + 1:
            following = _probe(store, version + 1)  # not the cached version, because readers of rows need this one
        if following is not None and following.parent is not None:
            return following.parent == operation_id
        there = _probe(store, version)
    except (CorruptData, InvalidInput):  # raised where that commit is needed
        return False
    return there is not None and there.operation_id == operation_id


class _Probes:
    """The commits that one search has found in the store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.found: dict[int, Commit] = {}

    def probe(self, version: int) -> Commit | None:
        commit = _probe(self.store, version)
        if commit is not None:
            self.found[version] = commit
        return commit

    def try_probe(self, version: int) -> Commit | None:
        """Return the commit, or None if it is missing or cannot be read."""
        try:
            return self.probe(version)
        except (CorruptData, InvalidInput):
            return None

    def gather(self, versions: range, behind: int = 0) -> list[Commit | None]:
        """Probe ``versions`` and the ``behind`` versions before them; damage of the latter is ignored."""
        all_versions = range(versions.start - behind, versions.stop)
        first = versions.start
        found = gather_requests(self.store, lambda v: self.probe(v) if v >= first else self.try_probe(v), all_versions)
        return found[behind:]


def _search(store: Store, probes: _Probes) -> Commit | None:
    hinted = read_hint(store)
    if hinted is None:
        return _listed(store)
    known = CACHE.get((store.url, "as read", hinted))
    behind = int(hinted > 0 and not (known is not None and _follows_known(store, known[1])))
    newest, *beyond = probes.gather(range(hinted, hinted + 1 + _WINDOWS[0]), behind)
    if newest is None:
        return _listed(store)
    for width in _WINDOWS[1:]:
        if not any(beyond):
            return newest
        newest = _last(store, newest, beyond)
        first = newest.version + 1
        beyond = probes.gather(range(first, first + width))
    return _listed(store) if any(beyond[-2:]) else _last(store, newest, beyond)


def read_hint(store: Store) -> int | None:
    """Return the version that the hint names, or None."""
    try:
        version = unseal_json("latest", store.get(HINT), HINT)["version"]
    except (TamisError, KeyError):
        return None
    return version if isinstance(version, int) and 0 <= version < 10**19 else None


def write_hint(store: Store, version: int) -> None:
    """Write the version of the newest commit as the hint; ignore failures."""
    try:
        store.put(HINT, seal_json("latest", {"version": version}))
    except TamisError:
        return


def list_versions(store: Store) -> list[int]:
    """List all versions in the log, in order. Raises ``CorruptData`` if one is missing."""
    found = _listed_versions(store)
    listed = set(found)
    for version in range(found[-1] if found else 0):
        if version not in listed and _probe(store, version) is None:  # a listing may miss concurrent writes
            raise _gap(store, version, min(v for v in found if v > version))
    return list(range(found[-1] + 1)) if found else []


def _listed_versions(store: Store) -> list[int]:
    found = []
    for entry in store.list(LOG):
        stem = entry.path.removeprefix(f"{LOG}/").removesuffix(".json")
        if entry.path == f"{LOG}/{stem}.json" and len(stem) == 20 and stem.isascii() and stem.isdigit():
            found.append(int(stem))
    return found


def _probe(store: Store, version: int) -> Commit | None:
    try:
        return read_commit(store, version)
    except NotFound:
        return None


def _last(store: Store, newest: Commit, beyond: list[Commit | None]) -> Commit:
    """Return the last commit among those probed right after ``newest``.

    A version may seem missing because it was written during the probes, so it is probed again. Raises
    ``CorruptData`` if it is still missing.
    """
    last = newest
    for at, commit in enumerate(beyond, newest.version + 1):
        if commit is None:
            continue
        for between in range(last.version + 1, at):
            if _probe(store, between) is None:
                raise (
                    missing_commit_error(store, between)
                    if commit.table_id == last.table_id
                    else _stray_commit(store, commit)
                )
        last = commit
    return last


def _listed(store: Store) -> Commit | None:
    """Return the newest commit according to a listing, or a later one committed since."""
    found = list_versions(store)
    if not found:
        return None
    newest = _probe(store, found[-1])
    if newest is None:
        raise missing_commit_error(store, found[-1])
    while (following := _probe(store, newest.version + 1)) is not None:
        newest = following
    return newest


def _gap(store: Store, version: int, following: int) -> CorruptData:
    """Return the error for a log that lacks ``version`` and has ``following``, a later one."""
    before, after = _commit_below(store, version), _Probes(store).try_probe(following)
    if before is not None and after is not None and before.table_id != after.table_id:
        return _stray_commit(store, after)
    return missing_commit_error(store, version)


def _commit_below(store: Store, version: int) -> Commit | None:
    """Return the newest commit before ``version``, if a listing has one that can be read."""
    below = [found for found in _listed_versions(store) if found < version]
    return _Probes(store).try_probe(max(below)) if below else None
