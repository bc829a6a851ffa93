"""Writes one commit to the log and resolves unknown outcomes of the write.

Invariant: the outcome of a version is unknown only until the version is taken. While it is free, writing the
same operation there again is safe, because at most one attempt can succeed; once it is taken, reading it
shows whose it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tamis.errors import Conflict, CorruptData, InvalidInput, NotFound, StoreUnavailable
from tamis.storage.commit_log.commit_objects import LOG, commit_bytes, commit_path, read_commit, remember_commit
from tamis.storage.commit_log.commit_record import Commit
from tamis.storage.commit_log.model import Head
from tamis.storage.commit_log.newest_commit import confirm_commit, write_hint
from tamis.storage.commit_log.retry_policy import COMMIT_READS
from tamis.storage.commit_log.rollups import complete_rollups
from tamis.storage.commit_log.snapshot import Snapshot
from tamis.storage.object_store.local_remains import remove_empty_folders
from tamis.storage.object_store.object_cache import CACHE
from tamis.storage.object_store.store import Store

T = TypeVar("T")

DOUBTS = 5
"""Number of lost responses after which an operation gives up."""

_CERTAIN = frozenset({"ACCESS_DENIED", "NOT_SUPPORTED", "DISK_ERROR"})
"""Errors that prove no write is in flight: an object that is absent afterwards was not written."""


class Landing:
    """The attempts of one operation to write its commit to the log."""

    def __init__(self, store: Store, operation_id: str) -> None:
        self.store = store
        self.operation_id = operation_id
        self._doubts = 0
        self._open: StoreUnavailable | None = None

    def put(self, commit: Commit) -> Commit | None:
        """Write ``commit`` and return the commit of this operation at ``commit.version``.

        Returns None if another operation's commit is there, or if none was found.
        """
        data = commit_bytes(commit)
        refused: StoreUnavailable | None = None
        before = self._open
        made = False
        try:
            made = self.store.put_if_absent(commit_path(commit.version), data)
        except StoreUnavailable as error:
            refused = self._open = error
        if made:
            self._check_parent(commit)
            confirm_commit(self.store, commit)
            remember_commit(self.store, commit, len(data))
            return commit
        there = self._find_commit(commit.version)
        if there is None and refused is not None and refused.code in _CERTAIN and before is None:
            raise refused
        if there is None:  # not written, or still in flight: the next attempt at this version settles it
            self._doubts += 1
            if self._doubts >= DOUBTS:
                raise self._unknown_outcome_error()
            return None
        self._open = None
        if there.operation_id != self.operation_id:
            return None
        self._check_parent(there)
        return there

    def _check_parent(self, commit: Commit) -> None:
        """Remove ``commit``, just written, if the version before it is gone or belongs to another table.

        In that case the table was dropped or renamed after that version was read: the write has created its folder
        again, or went into the log of another table. Raises ``Conflict`` (``CONFLICT_REPLACED``) after the removal.
        Raises ``StoreUnavailable`` (``COMMIT_UNKNOWN``) if the commit is gone as well, which a rename can cause, if it
        cannot be removed, or if the store does not answer.
        """
        try:
            if commit.version == 0 or self._has_parent(commit):
                return
        except StoreUnavailable as error:
            self._open = error
            raise self._unknown_outcome_error() from error
        CACHE.forget(self.store.url)
        there = self._find_commit(commit.version)
        if there is None or there.operation_id != self.operation_id:
            raise self._unknown_outcome_error()
        try:
            self.store.delete(commit_path(commit.version))
        except StoreUnavailable as error:
            self._open = error
            raise self._unknown_outcome_error() from error
        CACHE.forget(self.store.url)  # ``_find_commit`` has cached it
        if self.store.location.scheme == "file":
            remove_empty_folders(self.store.location.path, LOG)
        raise replaced_conflict(self.store)

    def _has_parent(self, commit: Commit) -> bool:
        """Whether the store has the version that ``commit`` was made for, or one that cannot be read."""
        path = commit_path(commit.version - 1)
        try:
            before = COMMIT_READS.run(lambda _: read_commit(self.store, commit.version - 1))
        except NotFound:
            return COMMIT_READS.run(lambda _: any(entry.path == path for entry in self.store.list(LOG)))
        except (CorruptData, InvalidInput):
            return True
        return commit.follows(before)

    @property
    def has_unknown_outcome(self) -> bool:
        """Whether an attempt of this operation may have written a commit that its caller has not seen."""
        return self._doubts > 0

    def call_or_raise_unknown(self, call: Callable[[], T]) -> T:
        """Return ``call()``; raise ``COMMIT_UNKNOWN`` if it fails while a commit's outcome is unknown."""
        try:
            return call()
        except (StoreUnavailable, CorruptData) as error:
            if self._open is None:
                raise
            raise self._unknown_outcome_error() from error

    def _find_commit(self, version: int) -> Commit | None:
        try:
            return COMMIT_READS.run(lambda _: read_commit(self.store, version))
        except NotFound:
            return None
        except StoreUnavailable as error:
            self._open = error
            raise self._unknown_outcome_error() from error
        except CorruptData as error:
            if self._open is None:
                raise
            raise self._unknown_outcome_error() from error  # the write may land yet

    def _unknown_outcome_error(self) -> StoreUnavailable:
        said = f": {self._open.message}" if self._open else "."
        return StoreUnavailable(
            f"The outcome of commit {self.operation_id} is unknown{said}",
            code="COMMIT_UNKNOWN",
            name=self.operation_id,
            remedy="Look at history() for this commit before you repeat the operation: it may have been made.",
        )


def replaced_conflict(store: Store) -> Conflict:
    """Return the error for an operation whose table has been removed, or replaced by another one, since it started."""
    return Conflict(
        f"The table {store.url} is not the one from which this operation started.",
        code="CONFLICT_REPLACED",
        name=store.url,
        remedy="Open the table again: it was dropped, renamed, made anew, or restored from a backup.",
    )


def land_commit(store: Store, commit: Commit, head: Head) -> Snapshot:
    """Finish a successful commit: write the hint and the rollups, notify watchers, return the snapshot.

    A failure here cannot undo the commit or make it fail.
    """
    write_hint(store, commit.version)
    complete_rollups(store, commit)
    notify_watchers(store, commit)
    return Snapshot(store, commit, head)


_watchers: list[Callable[[Store, Commit], None]] = []


def watch_commits(watcher: Callable[[Store, Commit], None]) -> None:
    """Register ``watcher``, called with every commit of this process and the store of its table.

    It must not raise.
    """
    _watchers.append(watcher)


def notify_watchers(store: Store, commit: Commit) -> None:
    """Call the watchers with a commit that this process has made."""
    for watcher in tuple(_watchers):
        watcher(store, commit)
