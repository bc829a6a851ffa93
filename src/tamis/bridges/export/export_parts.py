"""The parts of a version that an export names, and what a later version changed of them.

Invariant: a file with the same deleted rows in both versions is in neither half of a difference, whatever its part
is called: a part that was restored has a new id and the old file.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.storage.commit_log import Snapshot
from tamis.storage.commit_log.commit_objects import read_commits
from tamis.storage.commit_log.commit_record import Commit


@dataclass(frozen=True, slots=True)
class PartChange:
    """What changed between two versions: rows of ``Snapshot.parts`` of the old one, and of the new one."""

    removed: pa.Table
    added: pa.Table
    before: pa.Table
    """All parts, in the old version, of the segments that a commit in between changed."""
    after: pa.Table
    """All parts of those segments in the new version."""
    whole: bool
    """Whether these are all parts of the table."""
    data_change: bool


def exported_columns(snapshot: Snapshot) -> tuple[int, ...]:
    """Return the ids of the columns whose statistics an export tells: those at the top of the schema."""
    return tuple(f.id for f in snapshot.schema) if snapshot.schema else ()


def parts_of(snapshot: Snapshot, segments: Collection[str] | None = None, ids: Collection[int] = ()) -> pa.Table:
    """Return the live parts of a version, or only those of some segments."""
    if segments is None:
        return snapshot.parts(None, ids)
    wanted = pa.array(list(segments), pa.string())
    mask = pc.is_in(snapshot.segments["segment_id"], value_set=wanted).to_numpy()
    return snapshot.parts(np.asarray(mask, dtype=np.bool_), ids)


def part_change(old: Snapshot, new: Snapshot) -> PartChange:
    """Return how the parts of ``new`` differ from those of the earlier version ``old``; reads no other segment."""
    commits = read_commits(new.store, range(old.version + 1, new.version + 1), new.commit.table_id)
    segments = _changed_segments(old, commits)
    before, after = parts_of(old, segments), parts_of(new, segments, exported_columns(new))
    stays = _same(after, before)
    return PartChange(
        before.filter(pa.array(~_same(before, after))),
        after.filter(pa.array(~stays)),
        before,
        after,
        segments is None,
        any(commit.data_change for commit in commits),
    )


def all_added(snapshot: Snapshot) -> PartChange:
    """Return the change from a table without parts."""
    parts, nothing = parts_of(snapshot, None, exported_columns(snapshot)), parts_of(snapshot, ())
    return PartChange(nothing, parts, nothing, parts, True, True)


def _changed_segments(old: Snapshot, commits: list[Commit]) -> frozenset[str] | None:
    found: set[str] = set()
    for commit in commits:
        if commit.remove_all:
            return None
        found |= {commit.segment.segment_id} if commit.segment else set()
        found |= {*commit.remove_segments, *(part.segment_id for part in commit.remove_parts)}
        if commit.deletions is not None:
            named = commit.deletions.read(old.store, lambda _: ["segment_id"])
            found |= set(pc.unique(named["segment_id"]).to_pylist())
    return frozenset(found)


def _same(parts: pa.Table, others: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which of ``parts`` have a counterpart: the same file with the same deleted rows."""
    at = pc.index_in(parts["path"].combine_chunks(), value_set=others["path"].combine_chunks())
    mine, theirs = parts["deletion"].combine_chunks(), others["deletion"].combine_chunks().take(at)
    alike = pc.or_(pc.and_(mine.is_null(), theirs.is_null()), pc.fill_null(pc.equal(mine, theirs), False))
    found: np.ndarray[tuple[int], np.dtype[np.bool_]] = np.asarray(pc.and_(at.is_valid(), alike), dtype=np.bool_)
    return found
