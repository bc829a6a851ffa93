"""Source of streaming reads: optionally the rows of a version first, then what each commit adds.

Invariant: the range between two positions always contains the same parts, and consecutive ranges neither omit
nor repeat rows. A commit that removes rows cannot be expressed as added rows, and one that restores rows
would repeat them: it raises an error naming it, or is skipped on request.

Positions never depend on a filter. A filter decides which parts of a range are read, and which of them count
when a micro-batch is limited.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tamis.core.types import Schema
from tamis.engine.operations.rows.feed_columns import schema_replacements
from tamis.engine.scan import PartRefs
from tamis.errors import InvalidInput, NotFound, SchemaFenced
from tamis.sizes import SIZES
from tamis.storage.commit_log import Snapshot, load, version_after
from tamis.storage.commit_log.commit_objects import read_commits
from tamis.storage.commit_log.commit_record import Commit
from tamis.storage.commit_log.conflict import deletes_older_rows
from tamis.storage.commit_log.part_range import PartRange
from tamis.storage.commit_log.vacuum_marker import check_readable, oldest_readable
from tamis.storage.object_store import Store
from tamis.storage.object_store.metadata_union import stack_tables
from tamis.world import world


@dataclass(frozen=True, slots=True)
class Position:
    """The next part to read: number ``index`` of those ``version`` added (``whole``: of all its parts).

    ``after`` is the ``operation_id`` of the commit at ``version`` if reading it was begun (``whole`` or ``index``),
    else of the one before. None if unknown, as in older checkpoints.
    """

    table_id: str
    version: int
    index: int = 0
    whole: bool = False
    after: str | None = field(default=None, compare=False)

    def to_json(self) -> str:
        known = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(known, sort_keys=True)  # the text of an older checkpoint stays what it was

    @staticmethod
    def from_json(text: str) -> Position:
        """Inverse of ``to_json``, without fields of a later release. Raises ``InvalidInput`` (``BAD_OFFSET``)."""
        try:
            held = json.loads(text)
            return Position(**{name: held[name] for name in Position.__slots__ if name in held})
        except (ValueError, TypeError):
            raise InvalidInput(
                f"{text!r:.100} is not a stream position.",
                code="BAD_OFFSET",
                name="offset",
                remedy="Start with a checkpoint of its own.",
            ) from None

    @property
    def order(self) -> tuple[int, int]:
        return self.version, self.index

    def follows(self, commit: Commit) -> bool:
        """Whether the log still has what was read; ``commit`` is its commit at ``self.version``."""
        return _may_equal(self.after, commit.operation_id if self.whole or self.index else commit.parent)


def _may_equal(one: str | None, other: str | None) -> bool:
    return None in (one, other) or one == other


RUN_VERSIONS = SIZES.stream_run_versions
"""Number of versions of which a stream looks at one snapshot. Runs end at its multiples."""

Bools = np.ndarray[Any, np.dtype[np.bool_]]
Wanted = Callable[[PartRange], Bools]
"""Returns a mask over the parts of a range: those that are likely to be read."""


class Run:
    """The parts that a stream returns of consecutive versions, all of which are in one snapshot.

    ``commits`` are those that added them, in order; None: all parts of the snapshot.
    """

    def __init__(self, snapshot: Snapshot, schemas: tuple[Schema, ...], commits: list[Commit] | None) -> None:
        self._snapshot, self._schemas, self._commits = snapshot, schemas, commits
        self._table_id = snapshot.head.table_id
        self._added = None if commits is None else np.array([c.version for c in commits], dtype=np.int64)

    @cached_property
    def _starts(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The ordinal in the snapshot of the first part of each version, then the end."""
        ends = np.cumsum(self._snapshot.segments["parts"].to_numpy())
        starts = np.concatenate([[0], ends]).astype(np.int64)
        if self._added is None:
            return starts[[0, -1]]
        held = self._snapshot.segments["version"].to_numpy()[-len(self._added) :]
        if not np.array_equal(held, self._added):
            raise AssertionError(f"Version {self._snapshot.version} does not end with the segments of a stream.")
        return starts[-len(self._added) - 1 :]

    def ordinal(self, at: Position) -> int:
        """Return the ordinal in the snapshot of the part at a position, or of the nearest one in this run."""
        if self._added is None:
            return at.index if at.whole else int(self._starts[-1])
        row = int(np.searchsorted(self._added, at.version))
        inside = row < len(self._added) and self._added[row] == at.version
        return int(self._starts[row]) + (at.index if inside else 0)

    def position(self, ordinal: int) -> Position:
        """Inverse of ``ordinal``, for a part of this run."""
        if self._commits is None:
            operation = self._snapshot.commit.operation_id
            return Position(self._table_id, self._snapshot.version, ordinal, whole=True, after=operation)
        row = int(np.searchsorted(self._starts, ordinal, side="right")) - 1
        commit, index = self._commits[row], ordinal - int(self._starts[row])
        return Position(self._table_id, commit.version, index, after=commit.operation_id if index else commit.parent)

    def between(self, first: int, end: int | None = None) -> PartRange:
        """Return the parts from one ordinal to another, or to the end of the run."""
        return PartRange(self._snapshot, first, int(self._starts[-1]) if end is None else end, self._schemas)


class Follower:
    """Follows the table at ``store``.

    ``skip_changes`` skips commits that remove or restore rows, including what they add; ``skip_deletes`` those that
    remove rows and add none. ``table_id`` is that of the table to follow; None: whichever lies there.
    """

    def __init__(
        self, store: Store, table_id: str | None = None, *, skip_changes: bool = False, skip_deletes: bool = False
    ) -> None:
        self._store = store
        self._table_id = table_id
        self._skip_changes = skip_changes
        self._skip_deletes = skip_deletes

    def begin(self, version: int | None = None, timestamp_micros: int | None = None) -> Position:
        """Return a start: all rows of the newest version, or additions from ``version`` or a time on.

        Raises ``InvalidInput`` (``BAD_TIMESTAMP``) for a time in the future, ``NotFound`` for an unknown version, and
        ``SchemaFenced`` (``TABLE_REPLACED``).
        """
        latest = self._latest()
        table_id = latest.head.table_id
        if timestamp_micros is not None:
            version = version_after(self._store, timestamp_micros - 1)
            if version > latest.version and timestamp_micros > world().now_micros():
                raise _in_the_future()  # a position holds no time: commits until then would be read
        if version is None:
            return Position(table_id, latest.version, whole=True, after=latest.commit.operation_id)
        if version > latest.version + 1 or version < 0:
            raise NotFound(
                f"The table {self._store.url} has no version {version}.",
                code="VERSION_NOT_FOUND",
                name=str(version),
                remedy=f"Its versions are {oldest_readable(self._store, table_id)} to {latest.version}.",
            )
        check_readable(self._store, table_id, max(version, 0))
        return Position(table_id, version)

    def _latest(self) -> Snapshot:
        found = load(self._store)
        if self._table_id not in (None, found.head.table_id):
            raise _replaced(self._store)
        return found

    def end(self) -> Position:
        """Return the position after everything present now. Raises ``SchemaFenced`` (``TABLE_REPLACED``)."""
        latest = self._latest()
        return Position(latest.head.table_id, latest.version + 1, after=latest.commit.operation_id)

    def advance(
        self,
        start: Position,
        *,
        max_parts: int | None = None,
        max_bytes: int | None = None,
        until: Position | None = None,
        wanted: Wanted | None = None,
    ) -> Position:
        """Return the position after the next parts, at most ``until``.

        ``max_parts`` and ``max_bytes`` limit the range, but it contains at least one part if there is any. Only
        the parts that ``wanted`` selects count, so a range also contains all parts before the next wanted one.
        Raises ``SchemaFenced`` (``TABLE_REPLACED``) if the table no longer has what was read.
        """
        last = self.end() if until is None else until
        if last.table_id != start.table_id:
            raise _replaced(self._store)
        if start.version >= last.version:
            # A commit may land after Spark has fixed ``until``, and before it asks for a start.
            newest = last if until is None else self.end()
            lost = start.version == newest.version and not _may_equal(start.after, newest.after)
            if start.version > newest.version or lost:
                raise _history_lost(self._store, start)
            return start
        parts, size = 0, 0
        for run in self._runs(start, last.version):
            if max_parts is None and max_bytes is None:
                continue
            first = run.ordinal(start)
            left = run.between(first)
            sizes = left.parts()["bytes"].to_numpy()
            counted = np.arange(len(sizes)) if wanted is None else np.flatnonzero(wanted(left))
            total = size + np.cumsum(sizes[counted])
            over = np.zeros(len(counted), dtype=np.bool_)
            if max_parts is not None:
                over |= parts + np.arange(1, len(counted) + 1) > max_parts
            if max_bytes is not None:
                over |= total > max_bytes
            over[: 1 if parts == 0 else 0] = False
            if over.any():
                return run.position(first + int(counted[np.argmax(over)]))
            parts, size = parts + len(counted), int(total[-1]) if len(total) else size
        return Position(start.table_id, last.version, after=last.after)

    def parts(self, start: Position, end: Position) -> PartRefs:
        """Return the parts from ``start`` (inclusive) to ``end`` (exclusive)."""
        table = stack_tables([piece.parts() for piece in self.ranges(start, end)])
        return PartRefs(table, np.zeros(len(table), dtype=np.bool_))

    def ranges(self, start: Position, end: Position) -> list[PartRange]:
        """Return the parts from ``start`` (inclusive) to ``end`` (exclusive), in few ranges; at least one.

        Raises ``InvalidInput`` (``BAD_OFFSET``) if the start is after the end, and ``SchemaFenced``
        (``TABLE_REPLACED``) if the table no longer has what was read.
        """
        if start.order > end.order or (start.order == end.order and start.whole != end.whole):
            raise _start_after_end(start, end)
        stop = end.version + (1 if end.index else 0)
        found = [run.between(run.ordinal(start), run.ordinal(end)) for run in self._runs(start, stop, end)]
        return found or [PartRange(load(self._store), 0, 0)]

    def _runs(self, start: Position, stop: int, end: Position | None = None) -> Iterator[Run]:
        """Yield what the versions from ``start`` on add, up to ``stop`` (exclusive), which is where ``end`` lies.

        A commit that removes or moves rows ends a run, since later snapshots may lack what was added before.
        It is an error only once the run before it has been yielded.
        """
        newest = load(self._store)
        if newest.head.table_id != start.table_id:
            raise _replaced(self._store)
        if end is not None and stop > newest.version + 1:
            raise _history_lost(self._store, end)
        check_readable(self._store, start.table_id, start.version)
        first = start.version
        if start.whole and start.version < stop:
            yield self._made(self._commits(start, first, first + 1)[0], newest, None)
            first += 1
        while first < stop:
            after = min(stop, (first // RUN_VERSIONS + 1) * RUN_VERSIONS)
            adding: list[Commit] = []
            commits = self._commits(start, first, after)
            if end is not None and after == stop and not _may_equal(end.after, commits[-1].operation_id):
                raise _history_lost(self._store, end)
            for commit in commits:
                if changes_rows(self._store, commit):
                    yield from self._run(adding, newest)
                    adding = []
                    skipped = self._skip_changes or (self._skip_deletes and commit.segment is None)
                    if commit.data_change and not skipped:
                        raise _changed(self._store, commit)
                elif commit.segment is not None and not commit.data_change:
                    yield from self._run(adding, newest)
                    adding = []
                elif commit.segment is not None:
                    adding.append(commit)
            yield from self._run(adding, newest)
            first = after

    def _commits(self, start: Position, first: int, stop: int) -> list[Commit]:
        found = read_commits(self._store, range(first, stop), start.table_id)
        if first == start.version and not start.follows(found[0]):
            raise _history_lost(self._store, start)
        return found

    def _run(self, adding: list[Commit], newest: Snapshot) -> Iterator[Run]:
        if adding:
            yield self._made(adding[-1], newest, adding)

    def _made(self, commit: Commit, newest: Snapshot, commits: list[Commit] | None) -> Run:
        """Return the run of ``commits`` that ends with ``commit``.

        Raises ``SchemaFenced`` if its columns have been replaced since.
        """
        snapshot = Snapshot.at(self._store.with_new_counters(), commit)
        then, now = snapshot.schema, newest.schema
        lost = then is not None and now is not None and not {f.id for f in then} & {f.id for f in now}
        if then is not None and lost and any(schema_replacements(newest.head.schemas[then.schema_id :])):
            raise _columns_replaced(self._store, commit.version)
        return Run(snapshot, newest.head.schemas, commits)


def _in_the_future() -> InvalidInput:
    return InvalidInput(
        "The time at which the stream starts is in the future.",
        code="BAD_TIMESTAMP",
        name="startingTimestamp",
        remedy="Use startingVersion = latest to start with the next commit.",
    )


def _start_after_end(start: Position, end: Position) -> InvalidInput:
    return InvalidInput(
        f"The stream would start at version {start.version}, but a micro-batch was planned up to version "
        f"{end.version}: the checkpoint does not hold where the stream started.",
        code="BAD_OFFSET",
        name="offset",
        remedy="Start the stream with a checkpoint of its own; startingVersion says which rows it begins with.",
    )


def _replaced(store: Store) -> SchemaFenced:
    return SchemaFenced(
        f"Another table lies at {store.url} now: the one that was followed is gone.",
        code="TABLE_REPLACED",
        name=store.url,
        remedy="Make the DataFrame again, and start the stream with a checkpoint of its own.",
    )


def _history_lost(store: Store, position: Position) -> SchemaFenced:
    newest = position.version - (0 if position.whole or position.index else 1)
    return SchemaFenced(
        f"The table at {store.url} no longer has what was read of it up to version {newest}: it was put "
        "back to an earlier state, such as a backup.",
        code="TABLE_REPLACED",
        name=store.url,
        remedy="Start the stream anew, with a checkpoint of its own; startingVersion says which rows it begins with.",
    )


def _columns_replaced(store: Store, version: int) -> SchemaFenced:
    return SchemaFenced(
        f"The table at {store.url} was replaced after version {version}, whose rows have none of its columns now.",
        code="TABLE_REPLACED",
        name=store.url,
        remedy="Start the stream anew, with a checkpoint of its own and a version after the replacement.",
    )


def changes_rows(store: Store, commit: Commit) -> bool:
    """Whether ``commit`` removed or moved rows of the version before, or brought back those of an earlier one."""
    return commit.removes_parts or commit.operation.may_restore or deletes_older_rows(store, commit)


def _changed(store: Store, commit: Commit) -> InvalidInput:
    return InvalidInput(
        f"Version {commit.version} ({commit.operation.name}) of {store.url} changed, removed or restored rows: "
        "a stream reads appended rows only.",
        code="CHANGED_SOURCE",
        name=str(commit.version),
        remedy="Set the option skipChangeCommits (for deletions alone ignoreDeletes), or read table.changes(a, b).",
    )
