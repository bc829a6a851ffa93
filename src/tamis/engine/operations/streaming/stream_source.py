"""Source of streaming reads: optionally the rows of a version first, then what each commit adds.

Invariant: the range between two positions always contains the same parts, and consecutive ranges neither omit
nor repeat rows. A commit that removes rows cannot be expressed as added rows: it raises an error naming it,
or is skipped on request.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow.compute as pc

from tamis.engine.scan import PartRefs
from tamis.errors import InvalidInput, NotFound, SchemaFenced
from tamis.storage.commit_log import Snapshot, load
from tamis.storage.commit_log.commit_objects import read_commits
from tamis.storage.commit_log.commit_record import Commit
from tamis.storage.commit_log.vacuum_marker import check_readable, oldest_readable
from tamis.storage.object_store import Store
from tamis.storage.object_store.metadata_union import stack


@dataclass(frozen=True, slots=True)
class Position:
    """The next part to read: number ``index`` of those ``version`` added (``whole``: of all its parts)."""

    table_id: str
    version: int
    index: int = 0
    whole: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> Position:
        """Inverse of ``to_json``. Raises ``InvalidInput`` (``BAD_OFFSET``) for anything else."""
        try:
            return Position(**json.loads(text))
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


class Follower:
    """Follows the table at ``store``.

    ``skip_changes`` skips commits that remove rows, including what they add.
    """

    def __init__(self, store: Store, *, skip_changes: bool = False) -> None:
        self._store = store
        self._skip_changes = skip_changes
        self._known: dict[tuple[int, bool], PartRefs] = {}

    def begin(self, version: int | None = None, timestamp_micros: int | None = None) -> Position:
        """Return a start: all rows of the newest version, or additions from ``version`` or a time on."""
        latest = load(self._store)
        table_id = latest.head.table_id
        if timestamp_micros is not None:
            try:
                found = load(self._store, timestamp_micros=timestamp_micros - 1)
                version = found.version + 1
            except NotFound:
                version = 0
        if version is None:
            return Position(table_id, latest.version, whole=True)
        if version > latest.version + 1 or version < 0:
            raise NotFound(
                f"The table {self._store.url} has no version {version}.",
                code="VERSION_NOT_FOUND",
                name=str(version),
                remedy=f"Its versions are {oldest_readable(self._store, table_id)} to {latest.version}.",
            )
        check_readable(self._store, table_id, max(version, 0))
        return Position(table_id, version)

    def end(self) -> Position:
        """Return the position after everything present now."""
        latest = load(self._store)
        return Position(latest.head.table_id, latest.version + 1)

    def advance(
        self,
        start: Position,
        *,
        max_parts: int | None = None,
        max_bytes: int | None = None,
        until: Position | None = None,
    ) -> Position:
        """Return the position after the next parts, at most ``until``.

        ``max_parts`` and ``max_bytes`` limit the range, but it contains at least one part if there is any.
        """
        at, parts, size = start, 0, 0
        last = self.end() if until is None else until
        while at.version < last.version:
            sizes = self._parts_at(at).column("bytes")
            for index in range(at.index, len(sizes)):
                over = (max_parts is not None and parts >= max_parts) or (
                    max_bytes is not None and size + sizes[index] > max_bytes
                )
                if over and parts:
                    return replace(at, index=index)
                parts, size = parts + 1, size + int(sizes[index])
            at = Position(at.table_id, at.version + 1)
        return at if at.order >= start.order else start

    def parts(self, start: Position, end: Position) -> PartRefs:
        """Return the parts from ``start`` (inclusive) to ``end`` (exclusive)."""
        at, pieces = start, []
        while at.version < end.version:
            pieces.append(self._parts_at(at)[at.index :])
            at = Position(at.table_id, at.version + 1)
        if end.index > at.index:
            pieces.append(self._parts_at(replace(at, whole=end.whole))[at.index : end.index])
        return _joined(pieces) if pieces else _refs(load(self._store), None)[:0]

    def _parts_at(self, at: Position) -> PartRefs:
        """Return all parts that the position's version adds (or, with ``whole``, holds)."""
        key = at.version, at.whole
        if key not in self._known:
            if len(self._known) > 64:
                self._known.clear()
            self._known[key] = self._read(at)
        return self._known[key]

    def _read(self, at: Position) -> PartRefs:
        check_readable(self._store, at.table_id, at.version)
        commit = read_commits(self._store, [at.version], None)[0]
        if commit.table_id != at.table_id:
            raise SchemaFenced(
                f"Another table lies at {self._store.url} now: the one that was followed is gone.",
                code="TABLE_REPLACED",
                name=self._store.url,
                remedy="Start the stream anew, with a checkpoint of its own.",
            )
        snapshot = Snapshot.at(self._store, commit)
        if at.whole:
            return _refs(snapshot, None)
        adds = commit.segment is not None and commit.data_change
        if adds and takes_rows(commit):
            if not self._skip_changes:
                raise _changed(self._store, commit)
            adds = False
        elif commit.data_change and takes_rows(commit) and not self._skip_changes:
            raise _changed(self._store, commit)
        mine = np.zeros(len(snapshot.segments), dtype=np.bool_)
        if adds and commit.segment is not None:
            mine |= pc.equal(snapshot.segments["segment_id"], commit.segment.segment_id).to_numpy().astype(np.bool_)
        return _refs(snapshot, mine)


def takes_rows(commit: Commit) -> bool:
    """Whether ``commit`` removed or moved rows of the version before."""
    return bool(commit.remove_all or commit.remove_segments or commit.remove_parts or commit.deletions)


def _changed(store: Store, commit: Commit) -> InvalidInput:
    return InvalidInput(
        f"Version {commit.version} ({commit.operation.name}) of {store.url} changed or removed rows: "
        "a stream reads appended rows only.",
        code="CHANGED_SOURCE",
        name=str(commit.version),
        remedy="Set the option skipChangeCommits, or read table.changes(a, b).",
    )


def _refs(snapshot: Snapshot, mask: np.ndarray[Any, np.dtype[np.bool_]] | None) -> PartRefs:
    table = snapshot.parts(mask)
    return PartRefs(table, np.zeros(len(table), dtype=np.bool_))


def _joined(pieces: Sequence[PartRefs]) -> PartRefs:
    return PartRefs(stack([p.table for p in pieces]), np.concatenate([p.all_match for p in pieces]))
