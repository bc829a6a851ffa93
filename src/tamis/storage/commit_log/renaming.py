"""Keeps writers away from a table whose objects are copied to another place.

A commit that says so takes the next version of the log, so that no other commit can land. The copy leaves it out, so
that its newest version is the one before. On a local disk a folder moves in one step, and needs none of this.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from tamis.errors import Conflict, TamisError
from tamis.storage.commit_log.commit_landing import Landing
from tamis.storage.commit_log.commit_objects import commit_path, find_latest, head_commit
from tamis.storage.commit_log.commit_record import Commit
from tamis.storage.commit_log.features import RENAMING, check_writer
from tamis.storage.commit_log.model import Operation
from tamis.storage.commit_log.path_checks import no_table
from tamis.storage.commit_log.retry_policy import COMMIT_RACES, LostRace
from tamis.storage.object_store.object_cache import CACHE
from tamis.storage.object_store.store import Store
from tamis.world import new_id, world

_TARGET = "to"


def begin_rename(store: Store, target: str) -> Commit:
    """Refuse all further commits to a table, which is renamed to ``target``; return the commit that says so.

    A rename to the same target that was interrupted goes on. Raises ``NotFound`` if there is no table,
    ``InvalidInput`` as ``check_writer`` does, and ``Conflict`` (``CONFLICT_RENAME``) if another rename has begun.
    """
    operation_id = new_id()

    def attempt(_: int) -> Commit:
        latest = find_latest(store)
        if latest is None:
            raise no_table(store)
        if (begun := rename_target(latest)) is not None:
            if begun != target:
                raise Conflict(
                    f"The table {store.url} is being renamed to {begun}.",
                    code="CONFLICT_RENAME",
                    name=store.url,
                    remedy="Finish that rename first: run it again.",
                )
            return latest
        made = Landing(store, operation_id).put(_next(store, latest, target, operation_id))
        if made is None:
            raise LostRace
        return made

    return COMMIT_RACES.run(attempt)


def cancel_rename(store: Store, begun: Commit) -> None:
    """Take the commit ``begun`` back, so that the table can be written again; failures are ignored."""
    CACHE.forget(store.url)
    with suppress(TamisError):
        store.delete(commit_path(begun.version))


def rename_target(commit: Commit) -> str | None:
    """Return the new name of the table if ``commit`` has begun a rename, else None."""
    if commit.head is None or RENAMING not in commit.head.writer_features:
        return None
    return str(commit.operation.parameters.get(_TARGET))


def _next(store: Store, latest: Commit, target: str, operation_id: str) -> Commit:
    head = head_commit(store, latest).head
    assert head is not None
    check_writer(head.reader_features, head.writer_features, store.url)
    return Commit(
        version=latest.version + 1,
        table_id=latest.table_id,
        operation_id=operation_id,
        timestamp_micros=max(world().now_micros(), latest.timestamp_micros + 1),
        operation=Operation("begin rename", {_TARGET: target}),
        schema_id=latest.schema_id,
        head_version=latest.version + 1,
        head=replace(head, writer_features=(*head.writer_features, RENAMING)),
        read_version=latest.version,
        blind_append=False,
        data_change=False,
        streams_version=latest.streams_version,
        reader_features=latest.reader_features,
        parent=latest.operation_id,
    )
