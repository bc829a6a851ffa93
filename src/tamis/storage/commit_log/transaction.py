"""Optimistic commit: write one object if it is absent; after a lost race, check for conflicts and retry.

Invariant: when ``commit`` returns, the change has been made once. When it raises ``COMMIT_UNKNOWN``,
proposing the same change again finds out. When it raises anything else, the change was not made.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.schema import rows_fit
from tamis.core.stats.statistics_columns import DROPPED, EXCESS
from tamis.errors import InvalidInput, StoreUnavailable
from tamis.storage.commit_log.checked_parts import check_tested_constraints
from tamis.storage.commit_log.commit_landing import Landing, land_commit, notify_watchers, replaced_conflict
from tamis.storage.commit_log.commit_objects import head_commit, read_commits
from tamis.storage.commit_log.commit_record import Commit, Segment
from tamis.storage.commit_log.conflict import StillValid, check_commit, check_rows, check_vacuum
from tamis.storage.commit_log.deletion_vectors import FOLDER, vectors_of
from tamis.storage.commit_log.features import DELETION_VECTORS, check_writer
from tamis.storage.commit_log.following import check_following
from tamis.storage.commit_log.manifests import add_segment
from tamis.storage.commit_log.model import Head
from tamis.storage.commit_log.newest_commit import find_latest
from tamis.storage.commit_log.path_checks import no_table_error
from tamis.storage.commit_log.proposal import Proposal, Removal, resolve_proposal
from tamis.storage.commit_log.retry_policy import COMMIT_RACES, LostRace
from tamis.storage.commit_log.snapshot import Snapshot
from tamis.storage.commit_log.stream_epochs import Streams, next_streams
from tamis.storage.object_store.metadata_files import Columns, store_rows
from tamis.storage.object_store.store import Store
from tamis.world import new_id, world


def commit(store: Store, proposal: Proposal, *, still_valid: StillValid = rows_fit) -> Snapshot:
    """Commit the change as the table's next version and return that version.

    A change that was already made returns the version that made it. Raises ``Conflict`` if another commit
    since ``proposal.read_version`` invalidates it, ``SchemaMismatch`` with the reason from ``still_valid`` if
    its rows do not fit a concurrently changed schema, and ``NotFound`` if there is no table.
    """
    return _Transaction(store.with_new_counters(), proposal, still_valid).run()


class _Transaction:
    """One call of ``commit``, with the state kept between attempts."""

    def __init__(self, store: Store, proposal: Proposal, still_valid: StillValid) -> None:
        self._store = store
        self._proposal = proposal
        self._still_valid = still_valid
        self._landing = Landing(store, proposal.operation_id or new_id())
        self._checked: int | None = None
        self._removal = Removal()
        self._segment: Segment | None = None
        self._deletions: Columns | None = None
        self._prepared = False
        self._known_base: Snapshot | None = None

    def run(self) -> Snapshot:
        try:
            return COMMIT_RACES.run(lambda _: self._attempt())
        except LostRace:
            raise StoreUnavailable(
                f"{COMMIT_RACES.attempts} other commits landed before this one.",
                code="TOO_BUSY",
                name=self._store.url,
                remedy="Try again with fewer writers.",
            ) from None

    def _attempt(self) -> Snapshot:
        """Commit as the version after the newest. Raises ``LostRace`` if another commit takes that version."""
        ready = self._landing.call_or_raise_unknown(self._ready)
        if isinstance(ready, Snapshot):
            return ready
        mine, head = ready
        made = self._landing.put(mine)
        if made is None:
            raise LostRace
        return land_commit(self._store, made, made.head or head)

    def _ready(self) -> Snapshot | tuple[Commit, Head]:
        """Return the next commit to try and the head before it, or the version if nothing is left to do."""
        latest, head = self._latest()
        done = self._made_before(latest)
        if done is not None:
            return done
        streams = next_streams(self._store, latest, self._proposal.operation.stream)
        if streams is None:
            return Snapshot(self._store, latest, head)
        self._check(latest, head)
        self._prepare()
        return self._next(latest, head, streams), head

    def _latest(self) -> tuple[Commit, Head]:
        latest = find_latest(self._store)
        if latest is None:
            raise no_table_error(self._store)
        proposal = self._proposal
        if latest.version < proposal.read_version or proposal.table_id not in ("", latest.table_id):
            raise replaced_conflict(self._store)
        if latest.version == proposal.read_version and proposal.read_operation_id not in ("", latest.operation_id):
            raise replaced_conflict(self._store)
        head = head_commit(self._store, latest).head
        assert head is not None
        return latest, head

    def _follows_base(self, theirs: Commit) -> bool:
        """Whether the version after ``read_version`` follows the commit that the operation started from."""
        return not self._proposal.read_operation_id or theirs.parent in (None, self._proposal.read_operation_id)

    def _made_before(self, latest: Commit) -> Snapshot | None:
        """Return the version that this operation made in an earlier attempt or call, or None.

        Raises ``Conflict`` if a commit made meanwhile conflicts.
        """
        proposal = self._proposal
        if self._checked is None:
            # An append with an id generated just now cannot have been committed before and cannot conflict, so the
            # commits in between need not be read.
            nothing_to_find = not proposal.operation_id and proposal.cannot_conflict
            self._checked = latest.version if nothing_to_find else proposal.read_version
        for theirs in read_commits(self._store, range(self._checked + 1, latest.version + 1), latest.table_id):
            if theirs.operation_id == self._landing.operation_id:
                if self._landing.has_unknown_outcome:  # made by this call, whose response was lost
                    notify_watchers(self._store, theirs)
                return Snapshot.at(self._store, theirs)
            if theirs.version == proposal.read_version + 1 and not self._follows_base(theirs):
                raise replaced_conflict(self._store)
            segment_id = None if self._segment is None else self._segment.segment_id
            check_vacuum(self._store, proposal, theirs, segment_id)
            if theirs.vacuum is not None:
                self._deletions = None  # vacuum may have removed the file, which no commit names
            if not proposal.cannot_conflict:
                self._resolve()
                check_commit(self._store, proposal, self._removal, self._base, theirs)
                if theirs.deletions is not None and self._removal.rows.parts:
                    self._removal.rows.add_concurrent_deletions(self._store, theirs.deletions)
                    self._deletions = None
            self._checked = theirs.version
        return None

    def _check(self, latest: Commit, head: Head) -> None:
        """Check that the change fits the head in force now."""
        proposal = self._proposal
        check_writer(head.reader_features, head.writer_features, self._store.url)
        check_following(head, proposal, self._store.url)
        if proposal.head is not None and proposal.head.table_id != latest.table_id:
            raise InvalidInput(
                f"The head is that of another table ({proposal.head.table_id}).",
                code="WRONG_TABLE",
                name=self._store.url,
                remedy="Change a copy of the snapshot's head.",
            )
        if proposal.data_change:
            check_tested_constraints(proposal.add, proposal.head or head)
        if proposal.head is None and latest.head_version > proposal.read_version:
            # the change of the schema has tested the rows that the table had
            dates = proposal.add if proposal.data_change else ()
            check_rows(self._store, proposal.add, self._base.head, head, self._still_valid, dates=dates)

    def _prepare(self) -> None:
        """Write the objects that must exist before the commit, once the checks have passed."""
        self._resolve()
        if not self._prepared:
            self._segment = add_segment(self._store, self._proposal.add, self._proposal.tables)
            self._proposal = _with_dropped(self._proposal)
            self._prepared = True
        added = self._proposal.add_deletions if self._segment else {}
        if (
            self._removal.rows.parts or added
        ) and self._deletions is None:  # again, whenever another commit deleted rows of the same parts
            table = self._removal.rows.table()
            if self._segment and added:
                table = pa.concat_tables([table, vectors_of(self._segment.segment_id, added)])
            self._deletions = store_rows(self._store, [table], table.schema, f"{FOLDER}/{new_id()}.parquet")

    def _resolve(self) -> None:
        proposal = self._proposal
        if not self._removal and (proposal.remove_segments or proposal.remove_parts or proposal.delete_rows):
            self._removal = resolve_proposal(self._base, proposal)

    @property
    def _base(self) -> Snapshot:
        """The version that the proposal was made from."""
        if self._known_base is None:
            self._known_base = Snapshot.at(
                self._store, read_commits(self._store, [self._proposal.read_version], None)[0]
            )
        return self._known_base

    def _next(self, latest: Commit, head: Head, streams: Streams) -> Commit:
        """Build the commit that would follow ``latest``."""
        proposal, version = self._proposal, latest.version + 1
        after = proposal.head or head
        vectors = self._deletions if self._deletions is not None and self._deletions.rows else None
        if (
            vectors is not None and DELETION_VECTORS not in after.reader_features
        ):  # the first commit that has one asks it of readers
            after = replace(after, reader_features=(*after.reader_features, DELETION_VECTORS))
        changed = after if after != head else proposal.head
        return Commit(
            version=version,
            table_id=latest.table_id,
            operation_id=self._landing.operation_id,
            timestamp_micros=max(world().now_micros(), latest.timestamp_micros + 1),
            operation=proposal.operation,
            schema_id=after.schema.schema_id if after.schema else None,
            head_version=latest.head_version if changed is None else version,
            head=changed,
            read_version=proposal.read_version,
            reads=None if proposal.blind_append else proposal.reads,
            blind_append=proposal.blind_append,
            data_change=proposal.data_change,
            segment=self._segment,
            remove_all=proposal.replace_all,
            remove_segments=self._removal.segments,
            remove_parts=self._removal.all_parts,
            deletions=vectors,
            add_index=tuple(proposal.add_index),
            remove_index=tuple(proposal.remove_index),
            streams_version=version if streams else latest.streams_version,
            streams=streams,
            vacuum=proposal.vacuum,
            reader_features=after.reader_features,
            parent=latest.operation_id,
        )


def _with_dropped(proposal: Proposal) -> Proposal:
    """Record in the operation's metrics the statistics that were dropped, and the bytes beyond their budget."""
    found = {}
    for name in (DROPPED, EXCESS):
        columns = [table[name] for table in proposal.add if table.schema.get_field_index(name) >= 0]
        if total := sum(pc.sum(column).as_py() or 0 for column in columns):
            found[name] = total
    if not found:
        return proposal
    return replace(proposal, operation=replace(proposal.operation, metrics={**proposal.operation.metrics, **found}))
