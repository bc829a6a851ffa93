"""Analyze: learns the full statistics of parts that have none of their own, such as the files of an adopted table.

Invariants: rows, files and deletion vectors are the same before and after. Each batch of parts is one commit, so that
a call that stops for any reason has committed whole batches, and the next call learns the rest. A new part over the
same file, with the learned statistics, replaces the old part; the indexes that covered the old part cover the new one.
Statistics of a part that another operation removed meanwhile are dropped; if it only lost rows, they remain valid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr import Expr
from tamis.core.stats.statistics_columns import DROPPED
from tamis.engine.operations.layout.compact import UNLIMITED, Limits
from tamis.engine.operations.layout.compaction_candidates import with_age
from tamis.engine.operations.result import Progress
from tamis.engine.operations.rows.restore import added_again
from tamis.engine.operations.upkeep.part_analysis import LearnParts, analysis_spec, learn_here
from tamis.engine.scan import Options, PartRefs, PlanRequest, plan_scan
from tamis.engine.secondary_index.index_segments import renamed_covers
from tamis.storage.commit_log import Operation, Proposal, Snapshot, commit, load
from tamis.storage.commit_log.model import ANALYZED
from tamis.storage.commit_log.retry_policy import ANALYSES
from tamis.storage.object_store import Store
from tamis.storage.object_store.metadata_union import stack_tables
from tamis.world import new_id, world

Bools = np.ndarray[Any, np.dtype[np.bool_]]

BATCH_BYTES = 2**30
BATCH_PARTS = 1_000
"""What one commit lands at most: its loss is the price of being killed, its commit that of going on."""


@dataclass(frozen=True, slots=True)
class Analyzed:
    """What a call did. ``later`` parts are left to the next call, or changed while they were read."""

    version: int
    parts: int = 0
    commits: int = 0
    bytes_read: int = 0
    seconds: float = 0.0
    later: int = 0

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def analyze(
    store: Store,
    snapshot: Snapshot,
    conjuncts: Sequence[Expr],
    options: Options,
    *,
    limits: Limits = UNLIMITED,
    learn: LearnParts = learn_here,
    progress: Progress | None = None,
) -> tuple[Snapshot, Analyzed]:
    """Learn the statistics of the parts without full ones that may match ``conjuncts``, within the limits.

    Raises the first error that reading a part gave (``SOURCE_CHANGED`` …); the statistics of others are committed.
    """
    start = world().monotonic()
    refs = _chosen(store, snapshot, conjuncts, options)
    now, later = _within(refs, limits.max_bytes)
    spec = analysis_spec(snapshot, options) if len(now) else None
    done = Analyzed(snapshot.version)
    for batch in _batches(now):
        spent = world().monotonic() - start
        if (
            limits.max_seconds is not None
            and done.commits
            and spent * (1 + batch.bytes / max(done.bytes_read, 1)) > (limits.max_seconds)
        ):
            later += len(batch)
            continue
        assert spec is not None
        rows, failed, read = {}, [], 0
        for ref, found in zip(batch, learn(spec, list(batch)), strict=True):
            read += found.bytes_read
            if found.error is not None:
                failed.append(found.error)
            elif found.row is not None:
                rows[found.part_id] = found.row
            if progress is not None:
                progress(ref.bytes, ref.path)
        if rows:
            snapshot, landed = _commit_statistics(store, rows, read)
            done = replace(done, version=snapshot.version, parts=done.parts + landed, commits=done.commits + 1)
            later += len(rows) - landed
        done = replace(done, bytes_read=done.bytes_read + read)
        if failed:
            raise failed[0]
    return snapshot, replace(done, later=later, seconds=world().monotonic() - start)


def unanalyzed_parts(snapshot: Snapshot) -> pa.Table:
    """Return the rows of ``Snapshot.parts`` of the parts without full statistics."""
    parts = _never_read(snapshot)
    bare = pc.is_in(parts["part_id"], value_set=_without_statistics(snapshot))
    return parts.filter(pc.or_(parts["source"].is_valid(), bare) if "source" in parts.column_names else bare)


def unanalyzed_external(snapshot: Snapshot) -> pa.Table:
    """Return those rows of the parts that lie in a source; the table must have sources."""
    parts = _never_read(snapshot)
    return parts.filter(parts["source"].is_valid())


def _never_read(snapshot: Snapshot) -> pa.Table:
    parts = snapshot.parts()
    analyzed = snapshot.table("parts", ("part_id", ANALYZED))
    if ANALYZED not in analyzed.column_names:
        return parts
    return parts.filter(pc.invert(pc.fill_null(analyzed[ANALYZED], False)))


def _without_statistics(snapshot: Snapshot) -> pa.Array:
    """Return the ids of the parts of which not even a count is known: they were written without statistics."""
    ids = frozenset(field.id for schema in snapshot.head.schemas for field in schema)
    doubtful = ~_counted(snapshot.segment_evidence(ids))
    if not doubtful.any():
        return pa.array([], pa.string())
    table = snapshot.table("parts", ("part_id", DROPPED), doubtful, ids)
    known = _counted(table)
    if DROPPED in table.column_names:  # there were some, and there was no room for them
        known |= np.asarray(table[DROPPED].is_valid())
    return table["part_id"].filter(pa.array(~known)).combine_chunks()


def _counted(table: pa.Table) -> Bools:
    """Return which rows know how many NULLs some column has: the first thing that is collected of every column."""
    found = np.zeros(len(table), np.bool_)
    for name in table.column_names:
        if name.endswith("|nulls"):
            found |= np.asarray(table[name].is_valid())
    return found


def _chosen(store: Store, snapshot: Snapshot, conjuncts: Sequence[Expr], options: Options) -> PartRefs:
    if snapshot.schema is None:
        return PartRefs(snapshot.parts(), np.zeros(0, np.bool_))
    found = unanalyzed_parts(snapshot)
    if conjuncts and len(found):
        request = PlanRequest(conjuncts=conjuncts, selected=snapshot.schema, options=options)
        kept = plan_scan(snapshot, store, request).parts.table["part_id"]
        found = found.filter(pc.is_in(found["part_id"], value_set=kept.combine_chunks()))
    return PartRefs(found, np.zeros(len(found), np.bool_))


def _within(refs: PartRefs, max_bytes: int | None) -> tuple[PartRefs, int]:
    """Return the parts of this call, at least one, and how many are left to the next."""
    if max_bytes is None or not len(refs):
        return refs, 0
    fits = max(1, int(np.searchsorted(np.cumsum(refs.column("bytes")), max_bytes, side="right")))
    return refs.take(np.arange(min(fits, len(refs)))), max(0, len(refs) - fits)


def _batches(refs: PartRefs) -> list[PartRefs]:
    if not len(refs):
        return []
    ends = np.cumsum(refs.column("bytes"))
    number = np.maximum((ends - 1) // BATCH_BYTES, 0)
    batches = []
    for n in np.unique(number).tolist():
        at = np.flatnonzero(number == n)
        batches += [refs.take(at[first : first + BATCH_PARTS]) for first in range(0, len(at), BATCH_PARTS)]
    return batches


def _commit_statistics(store: Store, rows: Mapping[str, pa.Table], read: int) -> tuple[Snapshot, int]:
    """Commit the statistics of those parts that are still live; return the version and the number of these parts."""

    def attempt(_: int) -> tuple[Snapshot, int]:
        now = load(store)
        parts = with_age(now, now.parts())
        parts = parts.filter(pc.is_in(parts["part_id"], value_set=pa.array(list(rows), pa.string())))
        if not len(parts):
            return now, 0
        old = parts["part_id"].to_pylist()
        manifest, vectors = added_again(parts)
        found = stack_tables([rows[part_id].append_column("_", pa.array([True])) for part_id in old]).drop_columns(
            ["_"]
        )
        known = set(found.column_names)  # what was left out of the statistics, for example
        manifest = manifest.select([name for name in manifest.column_names if name not in known])
        # Each append_column copies the list of all columns.
        fields = pa.schema([*manifest.schema, *found.schema], manifest.schema.metadata)
        manifest = pa.Table.from_arrays([*manifest.columns, *found.columns], schema=fields)
        manifest = manifest.append_column(ANALYZED, pa.repeat(pa.scalar(True), len(manifest)))
        names = dict(zip(old, manifest["part_id"].to_pylist(), strict=True))
        add, remove = renamed_covers(now, store, names)
        proposal = Proposal(
            operation=Operation("analyze", {}, {"parts": len(old), "bytes_read": read}),
            read_version=now.version,
            read_operation_id=now.commit.operation_id,
            data_change=False,
            add=[manifest],
            add_deletions=vectors,
            remove_parts=old,
            add_index=add,
            remove_index=remove,
            operation_id=new_id(),
            table_id=now.head.table_id,
        )
        # Parts of an older schema stay valid, as they were before.
        return commit(store, proposal, still_valid=lambda old, new: None), len(old)  # noqa: ARG005

    return ANALYSES.run(attempt)
