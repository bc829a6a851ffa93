"""Compaction: rewrite many small parts into few large ones, sorted, without deleted rows, under one schema.

Invariants: the rows are the same before and after. Each group of parts is one commit, so that a call that
stops for any reason has completed whole groups, and the next call continues. If another operation changed a
part of a group meanwhile, compaction yields: it removes its output and plans the rest anew; appends are never
affected. Output has the newest schema at planning time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from tamis.core.types import Schema
from tamis.engine.operations.layout.compaction_candidates import Group, PartChoice, choose_groups
from tamis.engine.operations.layout.curve_clustering import Layout, write_along_curve
from tamis.engine.operations.layout.index_commits import with_index_segments
from tamis.engine.operations.result import Progress, Result, written_counts
from tamis.engine.operations.rows.append import discard_parts, write_rows
from tamis.engine.part_reader import ReadCounters, ReadSpec, read_part
from tamis.engine.scan import Options
from tamis.engine.secondary_index import Run, run_here
from tamis.errors import Conflict, CorruptData
from tamis.storage.commit_log import Head, Operation, Proposal, Snapshot, commit, load
from tamis.storage.commit_log.retry_policy import UNKNOWN_COMMITS
from tamis.storage.object_store import Store
from tamis.world import new_id, world

PLANS = 8
"""Maximum number of rounds per call: a conflict starts a new round, which plans the rest anew."""


@dataclass(frozen=True, slots=True)
class Work:
    """The context of a rewrite; ``head`` is that of the snapshot."""

    store: Store
    snapshot: Snapshot
    options: Options
    layout: Layout | None = None

    @property
    def head(self) -> Head:
        return self.snapshot.head

    def read_spec(self, schema: Schema | None = None) -> ReadSpec:
        """Return a spec that reads whole rows of any part, under the newest schema or the given one."""
        chosen = schema or self.head.schema
        assert chosen is not None
        known = {s.schema_id: s for s in self.head.schemas}
        options = dict(self.store.options)
        return ReadSpec(self.store.url, chosen, known, options, batch_rows=16_384, sources=self.head.sources)

    def write_options(self, group: Group) -> Options:
        """Return options that write one part for a group up to the target size, else several."""
        target = self.options.write_part_bytes
        return replace(self.options, write_part_bytes=2 * target) if group.bytes <= target else self.options


Rewrite = Callable[[Work, Group], list[pa.Table]]
"""Rewrites the live rows of a group and returns the new parts' manifests."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Who rewrites groups and who builds the index segments of new parts."""

    rewrite: Rewrite
    run: Run = run_here


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one call: it reads at most ``max_bytes``, and starts no group that would end later."""

    max_bytes: int | None = None
    max_seconds: float | None = None


UNLIMITED = Limits()


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """What a call would do: ``groups``, youngest rows first, and ``later``, deferred by its limits."""

    version: int
    groups: tuple[Group, ...]
    later: tuple[Group, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(g.bytes for g in self.groups)

    def as_dict(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "groups": [g.as_dict() for g in self.groups],
            "parts": sum(len(g.parts) for g in self.groups),
            "bytes": self.bytes,
            "later": [g.as_dict() for g in self.later],
        }


@dataclass(frozen=True, slots=True)
class Compacted(Result):
    """``Result`` plus what was read.

    ``groups`` were rewritten, one commit each; ``later`` counts the deferred.
    """

    commits: int = 0
    conflicts: int = 0
    rows_dropped: int = 0
    """Rows that were already deleted, and are now gone from the files too."""
    bytes_read: int = 0
    seconds: float = 0.0
    groups: tuple[Group, ...] = field(default=(), repr=False)
    later: int = 0

    def as_dict(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in (*Result.__slots__, *Compacted.__slots__)}
        return {**own, "groups": [g.as_dict() for g in self.groups]}


def plan_compaction(
    store: Store,
    snapshot: Snapshot,
    choice: PartChoice,
    options: Options,
    *,
    max_bytes: int | None = None,
) -> CompactionPlan:
    """Plan what ``compact`` would do to ``snapshot``; reads metadata only."""
    groups = choose_groups(store, snapshot, choice, options, max_bytes=max_bytes)
    now: list[Group] = []
    left = max_bytes
    for group in groups:
        if left is not None and group.bytes > left and (now or len(group.parts) > 1):
            break
        now.append(group)
        left = None if left is None else left - group.bytes
    return CompactionPlan(snapshot.version, tuple(now), tuple(groups[len(now) :]))


def compact(
    store: Store,
    snapshot: Snapshot,
    choice: PartChoice,
    options: Options,
    *,
    limits: Limits = UNLIMITED,
    workers: Workers | None = None,
    progress: Progress | None = None,
) -> tuple[Snapshot, Compacted]:
    """Rewrite eligible groups of parts, within the limits; without ``workers``, in this process.

    Raises errors of reads and writes; groups committed before stay.
    """
    workers = workers or Workers(rewrite_locally, run_here)
    max_bytes, max_seconds = limits.max_bytes, limits.max_seconds
    start = world().monotonic()
    done = Compacted(snapshot.version)
    todo = plan_compaction(store, snapshot, choice, options, max_bytes=max_bytes)
    for _ in range(PLANS):
        work = Work(store, snapshot, options, choice.layout)
        met = False
        for at, group in enumerate(todo.groups):
            spent = world().monotonic() - start
            if (
                max_seconds is not None
                and spent + spent * group.bytes / max(done.bytes_read, 1) > max_seconds
                and (at or done.commits)
            ):
                todo = replace(todo, later=(*todo.groups[at:], *todo.later))
                break
            after, outcome = _group(work, group, workers)
            done = _add(done, group, outcome)
            met = met or outcome is None
            snapshot = after or snapshot
            if progress is not None:
                progress(group.bytes, "gave way to another writer" if outcome is None else ", ".join(group.reasons))
        if not met:
            break
        snapshot = load(store)
        left = None if max_bytes is None else max(0, max_bytes - done.bytes_read)
        todo = plan_compaction(store, snapshot, choice, options, max_bytes=left)
    return snapshot, replace(done, later=len(todo.later), seconds=world().monotonic() - start)


def rewrite_locally(work: Work, group: Group) -> list[pa.Table]:
    """Rewrite a group in this process, in bounded memory: the sort spills."""
    assert work.head.schema is not None
    head = replace(work.head, constraints=())  # the rows are not new
    spec = work.read_spec()
    options = work.write_options(group)

    def rows() -> Iterator[pa.RecordBatch]:
        return (batch for ref in group.parts for batch in read_part(ref, spec, ReadCounters()))

    manifests: list[pa.Table] = []
    try:
        if work.layout is None:
            parts = write_rows(work.store, head, rows(), options, complete=True)
        else:
            parts = write_along_curve(work.store, head, rows, options, work.layout, group.rows)
        manifests.extend(parts)
    except BaseException:
        discard_parts(work.store, manifests)
        raise
    return manifests


def _group(work: Work, group: Group, workers: Workers) -> tuple[Snapshot | None, Result | None]:
    """Rewrite one group and commit it; return nothing if another operation conflicted."""
    manifests = [_with_age(m, group, work.layout) for m in workers.rewrite(work, group)]
    rows, parts, size = written_counts(manifests)
    if rows != group.rows:
        discard_parts(work.store, manifests)
        raise CorruptData(
            f"Parts that hold {group.rows} rows by their manifests gave {rows}.",
            code="ROWS_DIFFER",
            name=work.store.url,
            remedy="Nothing was committed; run tamis verify.",
        )
    result = Result(
        -1, parts_added=parts, parts_removed=len(group.parts), parts_rewritten=len(group.parts), bytes_written=size
    )
    parameters = {
        "reasons": list(group.reasons),
        "schema_id": work.head.schema.schema_id if work.head.schema else None,
        "since_micros": group.since_micros,
        "until_micros": group.until_micros,
        **({"layout": work.layout.name} if work.layout else {}),
    }
    metrics = {**result.metrics(), "rows": rows, "rows_dropped": group.deleted, "bytes_read": group.bytes}
    proposal = Proposal(
        operation=Operation("compact", parameters, metrics),
        read_version=work.snapshot.version,
        read_operation_id=work.snapshot.commit.operation_id,
        data_change=False,
        add=manifests,
        remove_parts=group.parts.table["part_id"].to_pylist(),
        operation_id=new_id(),
        table_id=work.head.table_id,
    )
    proposal = with_index_segments(work.store, work.head, proposal, work.options.index_build, workers.run)
    try:
        after = _commit_until_known(work.store, proposal)
    except Conflict:
        discard_parts(work.store, manifests)
        return None, None
    return after, replace(result, version=after.version)


def _commit_until_known(store: Store, proposal: Proposal) -> Snapshot:
    """Commit, repeating while the outcome is unknown.

    Parts of an older schema are always valid, so a concurrent schema change does not invalidate the commit.
    """
    return UNKNOWN_COMMITS.run(
        lambda _: commit(store, proposal, still_valid=lambda old, new: None)  # noqa: ARG005  # as above
    )


def _with_age(manifest: pa.Table, group: Group, layout: Layout | None) -> pa.Table:
    """Add the age of the rows to a manifest, so that they do not count as new."""
    count = len(manifest)
    facts = {
        "since_micros": pa.array([group.since_micros] * count, pa.int64()),
        "until_micros": pa.array([group.until_micros] * count, pa.int64()),
        "layout": pa.array([None if layout is None else layout.name] * count, pa.string()),
    }
    for name, values in facts.items():
        manifest = manifest.append_column(name, values)
    return manifest


def _add(done: Compacted, group: Group, outcome: Result | None) -> Compacted:
    if outcome is None:
        return replace(done, conflicts=done.conflicts + 1, bytes_read=done.bytes_read + group.bytes)
    return replace(
        done,
        version=outcome.version,
        parts_added=done.parts_added + outcome.parts_added,
        parts_removed=done.parts_removed + outcome.parts_removed,
        parts_rewritten=done.parts_rewritten + outcome.parts_rewritten,
        bytes_written=done.bytes_written + outcome.bytes_written,
        bytes_read=done.bytes_read + group.bytes,
        commits=done.commits + 1,
        rows_dropped=done.rows_dropped + group.deleted,
        groups=(*done.groups, group),
    )
