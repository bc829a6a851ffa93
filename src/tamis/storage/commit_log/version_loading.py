"""Opens a table at its newest version, by number, or by time, and lists its history."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pyarrow as pa

from tamis.errors import NotFound
from tamis.storage.commit_log.commit_objects import read_commit, read_commits
from tamis.storage.commit_log.commit_record import Commit
from tamis.storage.commit_log.features import check_not_ended
from tamis.storage.commit_log.newest_commit import check_follows, find_latest
from tamis.storage.commit_log.path_checks import no_table_error
from tamis.storage.commit_log.snapshot import Snapshot
from tamis.storage.commit_log.vacuum_marker import check_readable, oldest_readable
from tamis.storage.commit_log.version_points import check_single_point, checked_version
from tamis.storage.object_store.object_cache import CACHE
from tamis.storage.object_store.store import Store

HISTORY = pa.schema(
    [
        ("version", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("operation", pa.string()),
        ("parameters", pa.string()),  # JSON
        ("metrics", pa.map_(pa.string(), pa.int64())),
        ("read_version", pa.int64()),
        ("blind_append", pa.bool_()),
        ("data_change", pa.bool_()),
        ("operation_id", pa.string()),
        ("schema_id", pa.int32()),
        ("filter", pa.string()),
        ("stream_query", pa.string()),
        ("stream_epoch", pa.int64()),
        ("parts_added", pa.int64()),
        ("rows_added", pa.int64()),
        ("bytes_added", pa.int64()),
        ("changes", pa.list_(pa.string())),  # changes of schema and properties, as text
    ]
)
"""The columns of ``history``."""


def load(
    store: Store,
    version: int | None = None,
    timestamp_micros: int | None = None,
    *,
    afresh: bool = False,
    vacuumed: bool = False,
) -> Snapshot:
    """Load the newest version, ``version``, or the newest not later than ``timestamp_micros``.

    ``afresh`` ignores what this process has cached of the table, so that damage since then is found.
    ``vacuumed`` also allows a version that vacuum has removed, whose objects may be missing.

    Raises ``NotFound`` (``TABLE_NOT_FOUND``, or ``VERSION_NOT_FOUND`` naming the existing versions),
    ``CorruptData`` naming the object that is damaged or missing, and ``InvalidInput`` (``TABLE_ENDED``) for the newest
    version of a table that ended with an export.
    """
    check_single_point(version, timestamp_micros)
    if afresh:
        CACHE.forget(store.url)
    store = store.with_new_counters()
    if version is None and timestamp_micros is None:
        return _not_ended(Snapshot.at(store, _latest(store)))
    found = _numbered(store, version) if version is not None else _dated(store, _latest(store), timestamp_micros or 0)
    if not vacuumed:
        check_readable(store, found.table_id, found.version)
    snapshot = Snapshot.at(store, found)
    return snapshot if version is not None else _not_ended(snapshot)


def version_after(store: Store, micros: int) -> int:
    """Return the first version later than ``micros``, which need not exist yet; versions that vacuum has removed count.

    Raises ``NotFound`` (``TABLE_NOT_FOUND``).
    """
    try:
        return load(store, timestamp_micros=micros, vacuumed=True).version + 1
    except NotFound as error:
        if error.code != "VERSION_NOT_FOUND":
            raise
        return 0  # the table did not exist then


def history(store: Store, limit: int | None = None, until: Commit | None = None) -> pa.Table:
    """Return the commits up to ``until`` (None: the newest), newest first, as ``HISTORY``."""
    latest = until or _latest(store)
    oldest = 0 if limit is None else max(0, latest.version + 1 - limit)
    commits = read_commits(store, range(latest.version, oldest - 1, -1), latest.table_id)
    return pa.Table.from_pylist([_row(commit) for commit in commits], schema=HISTORY)


def _not_ended(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot; raise ``InvalidInput`` (``TABLE_ENDED``) if others write to the table outside of the log."""
    check_not_ended(snapshot.head.writer_features, snapshot.store.url)
    return snapshot


def _latest(store: Store) -> Commit:
    latest = find_latest(store)
    if latest is None:
        raise no_table_error(store)
    return latest


def _numbered(store: Store, version: int) -> Commit:
    try:
        found = read_commit(store, checked_version(version))
    except NotFound:
        pass
    else:
        check_follows(store, found)
        return found
    latest = _latest(store)
    if 0 <= version <= latest.version:
        return read_commits(store, [version], latest.table_id)[0]
    raise NotFound(
        f"The table {store.url} has no version {version}.",
        code="VERSION_NOT_FOUND",
        name=str(version),
        remedy=f"Its versions are {oldest_readable(store, latest.table_id)} to {latest.version}.",
    )


def _dated(store: Store, latest: Commit, micros: int) -> Commit:
    """Return the newest commit not later than ``micros`` by binary search; timestamps rise with versions."""
    if latest.timestamp_micros <= micros:
        return latest
    low, high = -1, latest.version  # low: not later (or none); high: later
    found: Commit | None = None
    while high - low > 1:
        middle = (low + high) // 2
        commit = read_commits(store, [middle], latest.table_id)[0]
        if commit.timestamp_micros <= micros:
            low, found = middle, commit
        else:
            high = middle
    if found is None:
        first = read_commits(store, [0], latest.table_id)[0]
        raise NotFound(
            f"The table {store.url} did not exist at {_text(micros)}.",
            code="VERSION_NOT_FOUND",
            name=_text(micros),
            remedy=f"Its first version is of {_text(first.timestamp_micros)}.",
        )
    return found


def _text(micros: int) -> str:
    try:
        return datetime.fromtimestamp(micros / 1e6, UTC).isoformat(timespec="microseconds")
    except (OverflowError, ValueError, OSError):
        return f"{micros} microseconds"


def _row(commit: Commit) -> dict[str, object]:
    operation, segment = commit.operation, commit.segment
    query, epoch, _ = operation.stream or (None, None, None)
    return {
        "version": commit.version,
        "timestamp": commit.timestamp_micros,
        "operation": operation.name,
        "parameters": json.dumps(operation.parameters),
        "metrics": [(name, int(value)) for name, value in operation.metrics.items()],
        "read_version": commit.read_version,
        "blind_append": commit.blind_append,
        "data_change": commit.data_change,
        "operation_id": commit.operation_id,
        "schema_id": commit.schema_id,
        "filter": commit.reads.filter if commit.reads else None,
        "stream_query": query,
        "stream_epoch": epoch,
        "parts_added": segment.parts if segment else 0,
        "rows_added": segment.rows if segment else 0,
        "bytes_added": segment.bytes if segment else 0,
        "changes": [str(change) for change in operation.parameters.get("changes") or ()],
    }
