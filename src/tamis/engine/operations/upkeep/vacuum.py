"""Vacuum: remove objects that no retained version and no running write can need.

Invariants: a version is retained if it was the newest at some time within the retention; nothing that a
retained version references is removed. Nothing created within the retention is removed, so that a write in
progress keeps its files whatever its outcome. Objects that neither the log references nor look like a
writer's own are never touched. Released versions are recorded in the log before the first object is removed:
readers of such a version get a clear error, and ``restore`` cannot bring back what is being removed. If
nothing is to be removed, no version is released and no commit is made.

Another vacuum may remove objects of versions that this one would keep, but not before it has released them in the
log. So a missing object is damage, unless the log says that its version was released; then this vacuum keeps what the
other one keeps, and finds anew what that needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import pyarrow as pa

from tamis.engine.operations.result import Progress
from tamis.engine.operations.upkeep.linked_folders import check_links
from tamis.errors import CorruptData, InvalidInput, NotFound, TamisError
from tamis.storage.commit_log import Operation, Proposal, Snapshot, commit, load
from tamis.storage.commit_log.commit_objects import read_commits
from tamis.storage.commit_log.reachable_objects import (
    DELETIONS,
    FOLDERS,
    OURS,
    deletion_paths,
    reachable_paths,
    rollup_paths,
)
from tamis.storage.commit_log.vacuum_marker import first_kept_version, oldest_readable, record_oldest
from tamis.storage.object_store import Entry, Store
from tamis.storage.object_store.local_remains import finished_name
from tamis.world import made_micros, new_id, world

T = TypeVar("T")

REMOVABLE = pa.schema(
    [
        ("path", pa.string()),
        ("kind", pa.string()),
        ("bytes", pa.int64()),
        ("age_seconds", pa.float64()),
        ("reason", pa.string()),
    ]
)
_KINDS = {"part": "data file", "table": "table of the log", "rollup": "table of a rollup", "probe": "probe"}

_LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])", re.IGNORECASE)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

SAFE_RETENTION = timedelta(days=7)
"""The shortest retention that needs no ``below_retention``: longer than any usual write or query."""

DEAD, ORPHAN = "removed by a version before those retained", "of no version: a write that failed or was given up"


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """What was (or would be) removed: ``objects``, one row each (``REMOVABLE``).

    Versions before ``oldest_version`` are no longer readable.
    """

    version: int
    oldest_version: int
    dry_run: bool
    objects: pa.Table
    retention: timedelta
    listed: int
    failed: int = 0
    """Objects that could not be removed; the next call retries."""

    @property
    def bytes(self) -> int:
        return sum(self.objects["bytes"].to_pylist())

    def as_dict(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "oldest_version": self.oldest_version,
            "dry_run": self.dry_run,
            "retention_seconds": self.retention.total_seconds(),
            "objects": len(self.objects),
            "bytes": self.bytes,
            "listed": self.listed,
            "failed": self.failed,
        }


def retention_of(given: object) -> timedelta:
    """Convert a timedelta, or text such as ``7d``, ``36h``, ``90m``.

    Raises ``InvalidInput`` (``BAD_RETENTION``) for other or negative values.
    """
    length = given
    if isinstance(given, str) and (match := _LENGTH.fullmatch(given.strip())):
        with suppress(OverflowError):
            length = timedelta(**{_UNITS[match[2].lower()]: float(match[1])})
    if not isinstance(length, timedelta) or length < timedelta(0):
        raise InvalidInput(
            f"{given!r} is not a retention period.",
            code="BAD_RETENTION",
            name="retention",
            remedy="Give a timedelta, such as timedelta(days=7), or text such as 7d, 36h or 90m.",
        )
    return length


def _check_length(retention: timedelta, below_retention: bool) -> None:
    """Raise ``InvalidInput`` (``BELOW_RETENTION``) for a retention that running writes and queries may exceed."""
    if retention < SAFE_RETENTION and not below_retention:
        raise InvalidInput(
            f"A retention of {retention} is below {SAFE_RETENTION.days} days: "
            "writes and queries that run longer would lose their files.",
            code="BELOW_RETENTION",
            name="retention",
            remedy="Keep 7 days or more. If nothing runs longer, pass below_retention=True "
            "(in SQL CALL … (below_retention => true), on the command line --below-retention).",
        )


def vacuum(
    store: Store,
    retention: timedelta,
    *,
    dry_run: bool = True,
    below_retention: bool = False,
    released: Callable[[], None] | None = None,
    progress: Progress | None = None,
) -> Vacuumed:
    """Remove (with ``dry_run`` only list) what nothing within ``retention`` needs.

    A retention below ``SAFE_RETENTION`` needs ``below_retention``, a dry run too: it shows what the same call
    would do. ``released`` is called when the versions to keep are known, before the first removal, and perhaps again.

    Raises ``InvalidInput`` for a retention that is negative or too short, or if a link leads out of the table's
    folder, and ``CorruptData`` for a log that cannot be read in full; then nothing is removed.
    """
    retention = retention_of(retention)
    _check_length(retention, below_retention)
    now = world().now_micros()
    cutoff = now - int(retention.total_seconds() * 1e6)
    latest = load(store, afresh=True)
    before = oldest_readable(store, latest.head.table_id)
    kept = _Kept(before, max(_oldest(store, latest, cutoff), before), latest)
    check_links(store, FOLDERS)
    listed = [entry for folder in FOLDERS for entry in (*store.list(folder), *store.list_uploads(folder))]
    old = _old_objects(listed, cutoff)
    (doomed, named), kept = _beside_others(store, kept, lambda kept: _plan(store, kept, old))
    if dry_run or not doomed:
        oldest = kept.oldest if dry_run else before
        return Vacuumed(kept.latest.version, oldest, dry_run, _table(doomed, named, now), retention, len(listed))
    # The state as of this commit stays valid: restore yields to it, and other operations only add new
    # objects.
    after = _announce(store, kept.latest, kept.oldest, cutoff, retention)

    def settle(kept: _Kept) -> list[_Old]:
        record_oldest(store, after.head.table_id, kept.oldest)
        if released is not None:
            released()
        return _unneeded(store, kept, old)[0]

    doomed, kept = _beside_others(store, _Kept(kept.oldest, kept.oldest, after), settle)
    failed = 0
    for entry, _, _ in doomed:
        try:
            store.delete(entry.path)
        except TamisError:
            failed += 1
        if progress is not None:
            progress(entry.size, entry.path)
    removed = _table(doomed, named, now)
    return Vacuumed(after.version, kept.oldest, False, removed, retention, len(listed), failed)


@dataclass(frozen=True, slots=True)
class _Kept:
    """The versions to keep: ``oldest`` to ``latest``. Those below ``before`` were released earlier."""

    before: int
    oldest: int
    latest: Snapshot

    def as_of_now(self, store: Store) -> _Kept:
        """Return the versions to keep now that other vacuums may have released some."""
        latest = load(store)
        before, oldest = (first_kept_version(store, version, latest.commit) for version in (self.before, self.oldest))
        return _Kept(before, oldest, latest)


def _beside_others(store: Store, kept: _Kept, find: Callable[[_Kept], T]) -> tuple[T, _Kept]:
    """Return what ``find`` does, and the versions that it found it for.

    Starts anew, for the versions that are kept then, if another vacuum has released some of them: objects that
    ``find`` read may be missing, whether it noticed or took them for damaged ones, and a marker that it wrote may have
    replaced the later one of that vacuum.
    """
    while True:
        try:
            found = find(kept)
        except (CorruptData, NotFound):
            now = kept.as_of_now(store)
            if (now.before, now.oldest) == (kept.before, kept.oldest):
                raise
        else:
            if first_kept_version(store, kept.oldest, load(store).commit) == kept.oldest:
                return found, kept
            now = kept.as_of_now(store)
        kept = now


def _oldest(store: Store, latest: Snapshot, cutoff: int) -> int:
    """Return the version that was the newest at ``cutoff``."""
    if latest.timestamp_micros <= cutoff:
        return latest.version
    with suppress(NotFound):
        return load(store, timestamp_micros=cutoff, vacuumed=True).version
    return 0


def _announce(store: Store, latest: Snapshot, oldest: int, cutoff: int, retention: timedelta) -> Snapshot:
    """Record in the log that versions before ``oldest`` are released."""
    parameters = {"retention_seconds": retention.total_seconds(), "oldest_version": oldest}
    return commit(
        store,
        Proposal(
            Operation("vacuum", parameters),
            read_version=latest.version,
            read_operation_id=latest.commit.operation_id,
            data_change=False,
            vacuum=(oldest, cutoff),
            operation_id=new_id(),
            table_id=latest.head.table_id,
        ),
    )


_Old = tuple[Entry, str, int]
"""An object, its kind, and when it was made."""


def _old_objects(listed: list[Entry], cutoff: int) -> list[_Old]:
    """Return the objects of writers that were made before ``cutoff``."""
    found = []
    for entry in listed:
        match = OURS.fullmatch(finished_name(entry.path))
        if match is None or match.lastgroup is None:
            continue
        made = max(made_micros(match[match.lastgroup]), entry.modified_micros)
        if made <= cutoff:
            found.append((entry, _KINDS[match.lastgroup], made))
    return found


def _plan(store: Store, kept: _Kept, old: list[_Old]) -> tuple[list[_Old], set[str]]:
    """Return the objects to remove, and the paths that any version names which was not released earlier."""
    doomed, needed, first = _unneeded(store, kept, old)
    if not doomed:
        return doomed, needed
    start = load(store, kept.before, vacuumed=True)
    return doomed, needed | reachable_paths(store, start, first)


def _unneeded(store: Store, kept: _Kept, old: list[_Old]) -> tuple[list[_Old], set[str], Snapshot]:
    """Return those of the objects that no kept version needs, the paths that one does, and the oldest version kept."""
    first = load(store, kept.oldest, vacuumed=True)
    needed = reachable_paths(store, first, kept.latest) | rollup_paths(store)
    found = [item for item in old if item[0].path not in needed]
    if any(entry.path.startswith(DELETIONS) for entry, _, _ in found):
        # A reader of the log without rollups reads every deletion vector that a commit references.
        vectors = _vectors(store, kept.latest)
        found = [item for item in found if item[0].path not in vectors]
    return found, needed, first


def _table(doomed: list[_Old], named: set[str], now: int) -> pa.Table:
    rows = [
        {
            "path": entry.path,
            "kind": kind,
            "bytes": entry.size,
            "age_seconds": (now - made) / 1e6,
            "reason": DEAD if entry.path in named else ORPHAN,
        }
        for entry, kind, made in doomed
    ]
    return pa.Table.from_pylist(rows, schema=REMOVABLE)


def _vectors(store: Store, latest: Snapshot) -> set[str]:
    commits = read_commits(store, range(latest.version + 1), latest.commit.table_id)
    return {path for commit in commits for path in deletion_paths(commit)}
