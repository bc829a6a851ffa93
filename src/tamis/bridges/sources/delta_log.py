"""Finds the version of a Delta table, and replays its log up to there: checkpoints and commits, as whole columns.

Invariant: nothing is guessed. A checkpoint that cannot be read is passed over for an older one; a commit that is
missing or damaged is an error that names it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tamis.bridges.sources.delta_actions import Actions, check_paths_once, live_files, read_commit
from tamis.bridges.sources.delta_checkpoint import DamagedCheckpoint, read_checkpoint
from tamis.bridges.sources.delta_features import check_protocol
from tamis.bridges.sources.foreign_paths import Root
from tamis.errors import CorruptData, NotFound
from tamis.storage.object_store.parallel_requests import gather_requests
from tamis.storage.object_store.store import Entry, Store

LOG = "_delta_log"
_COMMIT = re.compile(rf"{LOG}/(\d{{20}})\.json")
_CHECKPOINT = re.compile(
    rf"{LOG}/(\d{{20}})\.checkpoint(?:\.(?P<part>\d{{10}})\.(?P<parts>\d{{10}})|\.(?P<id>[0-9a-fA-F-]{{36}}))?"
    r"\.(?:parquet|json)"
)


@dataclass(frozen=True, slots=True)
class DeltaSnapshot:
    """A version of a Delta table, as its log tells it."""

    version: int
    micros: int | None
    """When it was committed."""
    protocol: dict[str, Any]
    metadata: dict[str, Any]
    files: pa.Table = field(repr=False)
    """The live files, in columns of ``delta_actions.ADDED``."""


@dataclass(slots=True)
class Listing:
    """What lies in the log: commits by version, and checkpoints as (version, names of their files)."""

    commits: dict[int, Entry]
    checkpoints: list[tuple[int, list[str]]]

    @property
    def newest(self) -> int:
        return max([*self.commits, *(version for version, _ in self.checkpoints)], default=-1)


def list_log(store: Store) -> Listing:
    """Return the commits and the complete checkpoints of the log, the newest checkpoint first."""
    commits: dict[int, Entry] = {}
    groups: dict[tuple[int, str], dict[int, str]] = {}
    for entry in store.list(LOG):
        if found := _COMMIT.fullmatch(entry.path):
            commits[int(found[1])] = entry
        elif found := _CHECKPOINT.fullmatch(entry.path):
            parts = found["parts"] or found["id"] or ""
            groups.setdefault((int(found[1]), parts), {})[int(found["part"] or 0)] = entry.path
    whole = [
        (version, [names[n] for n in sorted(names)])
        for (version, parts), names in groups.items()
        if not parts.isdecimal() or _is_complete(names, int(parts))
    ]
    return Listing(commits, sorted(whole, key=lambda found: -found[0]))


def _is_complete(numbers: Collection[int], parts: int) -> bool:
    """Whether these are the numbers of all ``parts`` of a checkpoint; the name of a file may say any number."""
    return len(numbers) == parts and sorted(numbers) == list(range(1, len(numbers) + 1))


def read_snapshot(store: Store, version: int | None = None, *, listing: Listing | None = None) -> DeltaSnapshot:
    """Return the version, by default the newest.

    Raises ``NotFound`` (``DELTA_NOT_FOUND``, ``DELTA_VERSION_NOT_FOUND``), ``CorruptData`` (``DELTA_LOG_DAMAGED``) and
    ``InvalidInput`` (``DELTA_FEATURE``).
    """
    found = list_log(store) if listing is None else listing
    wanted = found.newest if version is None else version
    if found.newest < 0:
        raise NotFound(
            f"{store.url} is no Delta table: it has no {LOG}.",
            code="DELTA_NOT_FOUND",
            name=store.url,
            remedy=f"Give the folder that holds {LOG}.",
        )
    if not 0 <= wanted <= found.newest:
        raise _no_version(store, wanted, f"The newest is {found.newest}.")
    base, first = _base(store, found, wanted)
    versions = range(first, wanted + 1)
    if gone := next((v for v in versions if v not in found.commits), None):
        raise _no_version(store, wanted, f"The log has neither commit {gone} nor a checkpoint after it.")
    if 0 in versions and 0 not in found.commits:
        raise _no_version(store, wanted, "The log has neither commit 0 nor a checkpoint after it.")
    commits = gather_requests(store, lambda v: read_commit(store, found.commits[v].path), versions)
    return _replayed(store, wanted, [*base, *commits], found.commits.get(wanted))


def _base(store: Store, listing: Listing, wanted: int) -> tuple[list[Actions], int]:
    """Return the newest usable checkpoint up to ``wanted``, and the first version after it."""
    for version, names in listing.checkpoints:
        if version <= wanted:
            try:
                return [read_checkpoint(store, names)], version + 1
            except DamagedCheckpoint:
                continue
    return [], 0


def _replayed(store: Store, version: int, actions: Sequence[Actions], entry: Entry | None) -> DeltaSnapshot:
    protocol = next((a.protocol for a in reversed(actions) if a.protocol), None)
    metadata = next((a.metadata for a in reversed(actions) if a.metadata), None)
    if protocol is None or metadata is None:
        raise CorruptData(
            f"The log of {store.url} up to version {version} has no {'metaData' if protocol else 'protocol'} action.",
            code="DELTA_LOG_DAMAGED",
            name=store.url,
            remedy="Repair the Delta table's log.",
        )
    check_protocol(protocol, store.url)
    files = live_files(actions, Root(store))
    check_paths_once(files, Root(store))
    stamp = commit_micros(actions[-1], entry)
    return DeltaSnapshot(version, stamp, protocol, metadata, files)


def commit_micros(actions: Actions, entry: Entry | None) -> int | None:
    """Return when a commit was made: as it says itself (in-commit timestamps), else when its object was written."""
    stamp = actions.info.get("inCommitTimestamp")
    if isinstance(stamp, int):
        return stamp * 1000
    return None if entry is None else entry.modified_micros


_IN_COMMIT = "delta.enableInCommitTimestamps"
_IN_COMMIT_SINCE = "delta.inCommitTimestampEnablementVersion"


def in_commit_since(configuration: Mapping[str, str], url: str) -> int | None:
    """Return the version from which on commits hold when they were made; None if they do not.

    Raises ``CorruptData`` (``DELTA_LOG_DAMAGED``).
    """
    if configuration.get(_IN_COMMIT) != "true":
        return None
    since = configuration.get(_IN_COMMIT_SINCE, "0")
    if not (since.isascii() and since.isdecimal()):
        raise CorruptData(
            f"The property {_IN_COMMIT_SINCE} of the Delta table {url} is {since!r}, which is no version.",
            code="DELTA_LOG_DAMAGED",
            name=url,
            remedy="Repair the Delta table's log.",
        )
    return int(since)


def version_at(store: Store, listing: Listing, micros: int, *, in_commit_since: int | None) -> int:
    """Return the newest version that was committed at or before the time. Raises ``NotFound``.

    ``in_commit_since``: the version from which on the commits themselves hold when they were made. Their times are
    never compared with those of the objects of earlier commits, which a copy of the table changes.
    """
    by_object = {
        v: e.modified_micros for v, e in listing.commits.items() if in_commit_since is None or v < in_commit_since
    }
    by_commit = {v: _stamp(store, e) for v, e in listing.commits.items() if v not in by_object}
    best = _newest_at(by_commit, micros)
    if best is None:
        best = _newest_at(by_object, micros)
    if best is None:
        raise NotFound(
            f"{store.url} has no version that is as old as that.",
            code="DELTA_VERSION_NOT_FOUND",
            name=store.url,
            remedy="Name a later time, or a version.",
        )
    return best


def _newest_at(stamps: Mapping[int, int], micros: int) -> int | None:
    best, latest = None, 0
    for version in sorted(stamps):
        # Delta's own readers count a commit with an earlier time than the one before as later than that one
        latest = max(stamps[version], latest + 1)
        if latest <= micros:
            best = version
    return best


def _stamp(store: Store, entry: Entry) -> int:
    return commit_micros(read_commit(store, entry.path), entry) or entry.modified_micros


def _no_version(store: Store, version: int, why: str) -> NotFound:
    return NotFound(
        f"Version {version} of the Delta table {store.url} cannot be read. {why}",
        code="DELTA_VERSION_NOT_FOUND",
        name=str(version),
        remedy="Name a version that the Delta table still has, or leave it out for the newest.",
    )
