"""Records in the log of a table that its objects are being copied to another place.

The record takes the next version of the log, so that no other commit can land. Each attempt makes a record of its own:
an attempt whose record is not the newest any more has been taken over, and must remove nothing. The copy ends at the
version before the first record. On a local disk a folder moves in one step, and needs none of this.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tamis.errors import Conflict, NotFound
from tamis.storage.commit_log.commit_landing import Landing
from tamis.storage.commit_log.commit_objects import LOG, find_latest, head_commit, read_commit
from tamis.storage.commit_log.commit_record import Commit
from tamis.storage.commit_log.features import RENAMING, check_writer
from tamis.storage.commit_log.model import Head, Operation
from tamis.storage.commit_log.path_checks import no_table
from tamis.storage.commit_log.retry_policy import COMMIT_RACES, LostRace
from tamis.storage.object_store.store import Store
from tamis.world import new_id, world


@dataclass(frozen=True, slots=True)
class RenameRecord:
    """A commit that has begun a rename."""

    commit: Commit
    target: str
    last_version: int
    """The newest version to copy."""
    last_operation: str

    @staticmethod
    def of(commit: Commit) -> RenameRecord | None:
        """Return the record that ``commit`` is, or None."""
        if commit.head is None or RENAMING not in commit.head.writer_features:
            return None
        said = commit.operation.parameters
        return RenameRecord(commit, str(said["to"]), int(said["version"]), str(said["operation"]))


def newest_record(store: Store) -> RenameRecord | None:
    """Return the record that the newest commit is, or None. Older commits may be missing.

    Raises ``StoreUnavailable``, and ``CorruptData`` for a commit that cannot be read.
    """
    listed = sorted(entry.path for entry in store.list(LOG))
    commits = [path for path in listed if path.removeprefix(f"{LOG}/").removesuffix(".json").isdigit()]
    if not commits:
        return None
    version = int(commits[-1].removeprefix(f"{LOG}/").removesuffix(".json"))
    try:
        return RenameRecord.of(read_commit(store, version))
    except NotFound:
        return None


def begin_rename(store: Store, target: str) -> RenameRecord:
    """Refuse all further commits to a table, which is renamed to ``target``.

    Takes over a rename to the same target that has begun. Raises ``NotFound`` if there is no table, ``InvalidInput`` as
    ``check_writer`` does, and ``Conflict`` (``CONFLICT_RENAME``) if a rename to another target has begun.
    """
    operation_id = new_id()

    def attempt(_: int) -> RenameRecord:
        latest = find_latest(store)
        if latest is None:
            raise no_table(store)
        begun = RenameRecord.of(latest)
        if begun is not None and begun.target != target:
            raise Conflict(
                f"The table {store.url} is being renamed to {begun.target}.",
                code="CONFLICT_RENAME",
                name=store.url,
                remedy="Finish that rename first: run it again.",
            )
        version, operation = (
            (latest.version, latest.operation_id) if begun is None else (begun.last_version, begun.last_operation)
        )
        head = head_commit(store, latest).head
        assert head is not None
        if begun is None:
            check_writer(head.reader_features, head.writer_features, store.url)
            head = replace(head, writer_features=(*head.writer_features, RENAMING))
        parameters = {"to": target, "version": version, "operation": operation}
        mine = _next(latest, Operation("begin rename", parameters), head, operation_id)
        made = Landing(store, operation_id).put(mine)
        found = None if made is None else RenameRecord.of(made)
        if found is None:
            raise LostRace
        return found

    return COMMIT_RACES.run(attempt)


def is_newest(store: Store, record: RenameRecord) -> bool:
    """Whether no other attempt has taken the rename over, or finished it."""
    newest = newest_record(store)
    return newest is not None and newest.commit.operation_id == record.commit.operation_id


def cancel_rename(store: Store, record: RenameRecord) -> None:
    """Let writers commit again, unless the rename was taken over. Raises ``StoreUnavailable``."""
    begun = record.commit
    assert begun.head is not None
    features = tuple(name for name in begun.head.writer_features if name != RENAMING)
    operation_id = new_id()
    cancelled = _next(begun, Operation("cancel rename"), replace(begun.head, writer_features=features), operation_id)
    Landing(store, operation_id).put(cancelled)


def _next(latest: Commit, operation: Operation, head: Head, operation_id: str) -> Commit:
    more: dict[str, Any] = {"streams_version": latest.streams_version, "reader_features": latest.reader_features}
    return Commit(
        version=latest.version + 1,
        table_id=latest.table_id,
        operation_id=operation_id,
        timestamp_micros=max(world().now_micros(), latest.timestamp_micros + 1),
        operation=operation,
        schema_id=latest.schema_id,
        head_version=latest.version + 1,
        head=head,
        read_version=latest.version,
        blind_append=False,
        data_change=False,
        parent=latest.operation_id,
        **more,
    )


def is_copied(target: Store, record: RenameRecord) -> bool:
    """Whether ``target`` has all that the rename copies: its first version, which comes last, and its newest."""
    try:
        first, last = read_commit(target, 0), read_commit(target, record.last_version)
    except NotFound:
        return False
    return (first.table_id, last.operation_id) == (record.commit.table_id, record.last_operation)
