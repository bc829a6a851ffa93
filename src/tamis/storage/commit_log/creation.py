"""Creates a table by writing its first commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from tamis.storage.commit_log.checked_parts import check_tested_constraints
from tamis.storage.commit_log.commit_landing import Landing, land_commit, notify_watchers
from tamis.storage.commit_log.commit_objects import read_commits
from tamis.storage.commit_log.commit_record import Commit, Segment
from tamis.storage.commit_log.deletion_vectors import FOLDER, vectors_of
from tamis.storage.commit_log.features import check_writer
from tamis.storage.commit_log.manifests import add_segment
from tamis.storage.commit_log.model import Head, Operation
from tamis.storage.commit_log.newest_commit import find_latest
from tamis.storage.commit_log.path_checks import already_exists_error, check_free, check_store
from tamis.storage.commit_log.snapshot import Snapshot
from tamis.storage.commit_log.stream_epochs import next_streams
from tamis.storage.object_store.metadata_files import Columns, store_rows
from tamis.storage.object_store.store import Store
from tamis.world import new_id, world

ATTEMPTS = 10


def create(
    store: Store,
    head: Head,
    operation: Operation,
    *,
    add: Sequence[pa.Table] = (),
    deletions: Mapping[str, bytes] | None = None,
    operation_id: str = "",
) -> Snapshot:
    """Create a table with this head at the store's root; version 0 holds the parts listed in ``add``.

    ``deletions``: rows of these parts that are deleted from the start (part id → deletion vector).
    A head without a ``table_id`` or ``created_micros`` gets them. Repeating the call with the same
    ``operation_id`` returns the same version 0. Raises ``AlreadyExists`` if there is a table and
    ``InvalidInput`` if there is something else; then nothing was touched.
    """
    store = store.with_new_counters()
    check_writer(head.reader_features, head.writer_features, store.url)
    check_tested_constraints(add, head)
    operation_id = operation_id or new_id()
    landing = Landing(store, operation_id)
    now = world().now_micros()
    head = replace(head, table_id=head.table_id or new_id(), created_micros=head.created_micros or now)
    first = None
    for _ in range(ATTEMPTS):
        if (latest := landing.call_or_raise_unknown(lambda: find_latest(store))) is not None:
            return _existing(store, latest, landing)
        if first is None:
            check_free(store)
            check_store(store)
            streams = next_streams(store, None, operation.stream) or ()
            segment = add_segment(store, add, {})
            first = Commit(
                version=0,
                table_id=head.table_id,
                operation_id=operation_id,
                timestamp_micros=now,
                operation=operation,
                schema_id=head.schema.schema_id if head.schema else None,
                head_version=0,
                head=head,
                segment=segment,
                deletions=_kept(store, segment, deletions or {}),
                streams_version=0 if streams else None,
                streams=streams,
                reader_features=head.reader_features,
            )
        made = landing.put(first)
        if made is not None:
            return land_commit(store, made, made.head or head)
    raise already_exists_error(store)


def _kept(store: Store, segment: Segment | None, deletions: Mapping[str, bytes]) -> Columns | None:
    """Store the deletion vectors of the first parts."""
    if segment is None or not deletions:
        return None
    table = vectors_of(segment.segment_id, deletions)
    return store_rows(store, [table], table.schema, f"{FOLDER}/{new_id()}.parquet")


def _existing(store: Store, latest: Commit, landing: Landing) -> Snapshot:
    """Return the version 0 that an earlier call of the same operation made, else raise ``AlreadyExists``."""
    first = read_commits(store, [0], latest.table_id)[0]
    if first.operation_id != landing.operation_id:
        raise already_exists_error(store)
    if landing.has_unknown_outcome:  # made by this call, whose response was lost
        notify_watchers(store, first)
    return Snapshot.at(store, first)
