"""Coverage: which segments of a version an index answers for, and why not the others.

Invariant: a segment is covered if and only if each of its live parts is in a built index segment whose schema
still means the same columns and whose objects could be read. Coverage is computed from the live parts of the
version read, never stored: compaction, deletes, overwrites, restores and time travel need no repair for
correctness, and no query affects another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.types import DATE, TIMESTAMP, VARIANT, Schema
from tamis.engine.secondary_index.index_definition import schemas_of
from tamis.engine.secondary_index.index_segments import SCHEME, IndexSegment, live_entries
from tamis.engine.secondary_index.indexed_paths import type_of
from tamis.errors import TamisError
from tamis.storage.commit_log import IndexDefinition, Snapshot

Ints = np.ndarray[Any, np.dtype[np.int64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]

YOUNGER = "the index is younger than the segment"
DEFERRED = "it is built later (deferred)"
OLDER = "it was built by an earlier release, whose entries of JSON paths do not say where they are not sure"
NOT_BUILT = "it was written without building the index"


@dataclass(slots=True)
class Coverage:
    """The coverage of one index over some live parts (``Snapshot.parts``) of a version."""

    index: IndexDefinition
    part_ids: pa.StringArray
    """The ids of the examined parts."""
    segment: Ints
    """Per part: its segment (row of ``Snapshot.segments``)."""
    built: list[IndexSegment]
    owner: Ints
    """Per part: the index in ``built`` of the index segment that covers it; -1 if its segment is uncovered.
    """
    ordinal: Ints
    """Per part: its ordinal in that index segment's coverage."""
    holder: Ints
    """Like ``owner``, but also for parts in segments that are not covered."""
    segments: Bools
    """Per segment of the version: whether it is covered; false if none of its parts was examined."""
    missing: Bools
    """Per segment: whether an examined part is not covered."""
    reasons: list[IndexSegment] = field(default_factory=list)
    """Entries that record why something was not built, oldest first."""
    problem: str | None = None
    """Why built entries could not be used, if it is not known what they cover."""
    damaged: list[tuple[IndexSegment, str]] = field(default_factory=list)
    """Entries left out because an object of theirs is damaged, with the problem."""
    unread: dict[int, str] = field(default_factory=dict)
    """Entries (index in ``built``) that a lookup could not read, with the error."""
    unread_segments: int = 0
    """Segments that are not covered for this reason."""

    @property
    def unread_reason(self) -> str | None:
        """Why segments that the index covers are read without it, or None."""
        if not self.unread:
            return None
        count = self.unread_segments
        return (
            f"{self.index.name} cannot be read for {count:,} segment{'' if count == 1 else 's'}, read by statistics "
            f"until repair_index rebuilds it: {next(iter(self.unread.values()))}"
        )

    def mark_unreadable(self, at: int, error: TamisError) -> None:
        """Record that ``built[at]`` could not be read: segments of which it covers a part become uncovered."""
        if at in self.unread:
            return
        self.unread[at] = error.message
        gone = np.zeros(len(self.segments), dtype=np.bool_)
        gone[self.segment[self.owner == at]] = True
        self.unread_segments += int(gone.sum())
        self.owner = np.where(gone[self.segment], -1, self.owner)
        self.segments, self.missing = self.segments & ~gone, self.missing | gone


def compute_coverage(
    snapshot: Snapshot,
    index: IndexDefinition,
    parts: pa.Table,
    known: Sequence[IndexSegment] | None = None,
    damage: Mapping[str, str] | None = None,
) -> Coverage:
    """Compute what ``index`` covers of ``parts``, which must be whole segments of ``snapshot``.

    ``known``: the snapshot's entries, if already read. ``damage``: problems of damaged index segments by id;
    these cover nothing.
    """
    damage = damage or {}
    usable = schemas_of(index, snapshot.head)
    current = snapshot.head.schema
    if current is None or current.schema_id not in usable:
        usable = {}
    problem, oldest = None, _oldest_scheme(index, current)
    built: list[IndexSegment] = []
    reasons: list[IndexSegment] = []
    damaged: list[tuple[IndexSegment, str]] = []
    ids: list[pa.Array] = []
    for entry in live_entries(snapshot) if known is None else known:
        if entry.index_id != index.index_id:
            continue
        if entry.parts is None:
            reasons.append(entry)
        elif entry.scheme < oldest:
            problem = OLDER
        elif entry.segment_id in damage:
            damaged.append((entry, damage[entry.segment_id]))
        elif entry.schema_id in usable:
            try:
                ids.append(entry.covers(snapshot.store))
                built.append(entry)
            except TamisError as error:  # an index is optional: unreadable entries cover nothing
                problem = str(error)
    owner, ordinal = _owners(ids, parts)
    segment = parts["segment"].to_numpy()
    count = len(snapshot.segments)
    missing = np.bincount(segment[owner < 0], minlength=count) > 0
    covered = (np.bincount(segment, minlength=count) > 0) & ~missing
    return Coverage(
        index,
        parts["part_id"].combine_chunks(),
        segment,
        built,
        np.where(covered[segment], owner, -1),
        ordinal,
        owner,
        covered,
        missing,
        reasons,
        problem,
        damaged,
    )


def _oldest_scheme(index: IndexDefinition, schema: Schema | None) -> int:
    """Return the oldest ``IndexSegment.scheme`` whose entries are sound for the paths of the index."""
    if not index.paths:
        return 0
    documents = [ids[-2] for ids in index.columns if ids[-1] in index.by_path]
    if schema is None or any(i in schema.by_id and schema.by_id[i].type != VARIANT for i in documents):
        return SCHEME
    return 2 if any(type_of(path) in (DATE, TIMESTAMP) for path in index.paths) else 1


def _owners(ids: list[pa.Array], parts: pa.Table) -> tuple[Ints, Ints]:
    """Return, for each part, the last list in ``ids`` that contains it and its position there; else -1."""
    lengths = np.array([len(one) for one in ids], dtype=np.int64)
    listed = pa.concat_arrays([pa.array([], pa.string()), *ids])
    newest_first = listed.take(pa.array(np.arange(len(listed))[::-1]))
    at = (
        pc.fill_null(pc.index_in(parts["part_id"].combine_chunks(), value_set=newest_first), -1)
        .to_numpy()
        .astype(np.int64)
    )
    place = np.where(at < 0, 0, len(listed) - 1 - at)
    ends = np.cumsum(lengths)
    owner = np.searchsorted(ends, place, side="right")
    starts = np.concatenate([ends - lengths, [0]])
    return np.where(at < 0, -1, owner), np.where(at < 0, -1, place - starts[np.minimum(owner, len(starts) - 1)])


def why_missing(snapshot: Snapshot, covered: Coverage, parts: pa.Table) -> dict[int, str]:
    """Return, for each uncovered segment (row of ``snapshot.segments``), the reason as far as known."""
    reasons: dict[str, str] = {}
    unbuilt = [(entry, entry.reason or NOT_BUILT) for entry in covered.reasons]
    unknown = covered.problem
    for entry, why in [*unbuilt, *covered.damaged]:
        try:
            reasons |= dict.fromkeys(entry.covers(snapshot.store).to_pylist(), why)
        except TamisError:  # it is not known which segments it covers
            unknown = why if entry.parts is not None else unknown
    versions = snapshot.segments["version"].to_pylist()
    usable = snapshot.head.schema is not None and snapshot.head.schema.schema_id in schemas_of(
        covered.index, snapshot.head
    )
    open_parts = parts.filter(pa.array(covered.holder < 0)).select(["segment", "part_id"])
    first: dict[int, str | None] = {}
    for segment, part in zip(open_parts["segment"].to_pylist(), open_parts["part_id"].to_pylist(), strict=True):
        first[segment] = first.get(segment) or reasons.get(part)
    default = DEFERRED if covered.index.build == "deferred" else NOT_BUILT
    out: dict[int, str] = {}
    for segment, reason in sorted(first.items()):
        younger = YOUNGER if versions[segment] <= covered.index.created_version else default
        out[segment] = (
            "an indexed column is gone, or has a type without an order" if not usable else reason or unknown or younger
        )
    return out
