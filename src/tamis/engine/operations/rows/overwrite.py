"""Overwrite: replace the rows that match a filter, or all rows, in one commit.

Parts that match entirely are removed by metadata, parts without a row that matches are untouched; of the others,
the remaining rows are rewritten. A part that neither statistics nor an index decide is therefore read up to its first
match, and then as a whole. A row for which the filter is false or NULL stays. A row on which it raises fails the
overwrite, unless statistics or an index have excluded it before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tamis.core.expr import Expr, check_supported, column_paths, filter_mask, short_sql, to_sql
from tamis.core.types import Schema
from tamis.engine.operations.layout.index_commits import commit_indexed
from tamis.engine.operations.result import Result, written_counts
from tamis.engine.operations.rows.append import discard_parts, new_rows, write_rows
from tamis.engine.operations.rows.replace_filter import check_rows_match
from tamis.engine.operations.tracked_read import TrackedRead
from tamis.engine.part_reader import ReadCounters, ReadSpec, failure_error, read_part
from tamis.engine.scan import Options, PartRefs, Plan, PlanRequest, plan_scan
from tamis.engine.secondary_index import Run, run_here
from tamis.storage.commit_log import Head, Operation, Proposal, ReadSet, Snapshot
from tamis.storage.files import PartRef
from tamis.storage.object_store import Store
from tamis.world import new_id, world


def overwrite(
    store: Store,
    snapshot: Snapshot,
    head: Head,
    data: pa.RecordBatchReader,
    conjuncts: Sequence[Expr] | None,
    options: Options,
) -> tuple[Snapshot, Result]:
    """Replace the rows that satisfy all ``conjuncts`` (None: every row) with those of ``data``.

    Commits nothing if there are no rows before and after. Raises ``Conflict`` if another commit changed what
    was read, ``SchemaMismatch`` for data that does not fit, ``InvalidInput`` (``OUTSIDE_FILTER``) for a row
    that the filter does not match, unless ``options`` allow it.
    """
    assert head.schema is not None
    rows = new_rows(store, head, data)
    if conjuncts is not None and options.write_outside != "allow":
        rows = check_rows_match(rows, head.schema, conjuncts, now_micros=world().now_micros())
    manifests = list(write_rows(store, head, rows, options, complete=True))
    if conjuncts is None:
        return commit_overwrite(store, snapshot, head, Replacement(None, snapshot_parts(snapshot), manifests), options)
    found = find_matching(store, snapshot, head.schema, conjuncts, options)
    partial = found.parts.where(~found.parts.all_match)
    tracked = TrackedRead(found)
    tracked.record_answered(found.parts.where(found.parts.all_match))
    untouched = [ref.part_id for ref in partial if not tracked.has_match(ref)]
    rewritten = partial.exclude(untouched)
    rest = unmatched_rows(rewritten, found.spec, head.schema, conjuncts, tracked.rows)
    survivors = list(write_rows(store, head, rest, options, complete=True))
    change = Replacement(
        conjuncts,
        found.parts.exclude(untouched),
        manifests,
        survivors,
        rewritten=len(rewritten),
        parts_read=len(partial),
        bytes_read=tracked.finish(),
    )
    return commit_overwrite(store, snapshot, head, change, options)


@dataclass(frozen=True)
class Replacement:
    """What an overwrite removes and adds. ``conjuncts`` keep the rows that go; None removes all rows."""

    conjuncts: Sequence[Expr] | None
    removed: PartRefs
    inserted: list[pa.Table]
    """Manifests of the new rows."""
    survivors: list[pa.Table] = field(default_factory=list)
    """Manifests of the rows that stay, of parts that match in part."""
    rewritten: int = 0
    """Number of these parts."""
    parts_read: int = 0
    """Number of parts that were read: the rewritten ones, and those without a row that matches."""
    bytes_read: int = 0
    reads_all: bool = False
    """Whether the new rows depend on rows of the table that ``conjuncts`` do not match."""


def commit_overwrite(
    store: Store, snapshot: Snapshot, head: Head, change: Replacement, options: Options, run: Run = run_here
) -> tuple[Snapshot, Result]:
    """Commit an overwrite; ``run`` builds its index segments.

    Commits nothing, and discards what was written, where no row goes or comes.
    """
    inserted, kept = written_counts(change.inserted)[0], written_counts(change.survivors)[0]
    manifests = [*change.inserted, *change.survivors]
    _, parts, size = written_counts(manifests)
    gone = int(change.removed.live_rows.sum()) - kept
    if not (inserted or gone) and head == snapshot.head:
        discard_parts(store, manifests)
        return snapshot, Result(snapshot.version, parts_read=change.parts_read, bytes_read=change.bytes_read)
    result = Result(
        -1,
        rows_inserted=inserted,
        rows_deleted=gone,
        parts_added=parts,
        parts_removed=len(change.removed),
        parts_rewritten=change.rewritten,
        bytes_written=size,
        parts_read=change.parts_read,
        bytes_read=change.bytes_read,
    )
    conjuncts = change.conjuncts
    text = None if conjuncts is None else " AND ".join(f"({to_sql(c)})" for c in conjuncts)
    proposal = Proposal(
        operation=Operation("overwrite", parameters={} if text is None else {"filter": text}, metrics=result.metrics()),
        table_id=snapshot.head.table_id,
        read_version=snapshot.version,
        read_operation_id=snapshot.commit.operation_id,
        reads=ReadSet() if change.reads_all else _read_set(text, conjuncts, options),
        conjuncts=None if change.reads_all else conjuncts,
        blind_append=False,
        head=head if head != snapshot.head else None,
        add=manifests,
        remove_parts=() if conjuncts is None else change.removed.table["part_id"].to_pylist(),
        # an overwrite of an empty table takes no rows away: a stream reads it as an append
        replace_all=conjuncts is None and len(change.removed) > 0,
        operation_id=new_id(),
    )
    after = commit_indexed(store, head, proposal, options.index_build, run, catch_up=options.index_catch_up)
    return after, replace(result, version=after.version)


def _read_set(text: str | None, conjuncts: Sequence[Expr] | None, options: Options) -> ReadSet:
    """Return the read set of an overwrite: the rows of its filter, or all."""
    named = None if conjuncts is None else tuple(dict.fromkeys(path for c in conjuncts for path in column_paths(c)))
    return ReadSet(text, named, options.timezone, options.ansi, options.stats_filter)


def snapshot_parts(snapshot: Snapshot) -> PartRefs:
    """Return all live parts."""
    import numpy as np

    table = snapshot.parts(None, frozenset())
    return PartRefs(table, np.ones(len(table), dtype=np.bool_))


def find_matching(
    store: Store, snapshot: Snapshot, schema: Schema, conjuncts: Sequence[Expr], options: Options
) -> Plan:
    """Plan the parts that may hold a matching row, marking those that match entirely.

    Raises ``InvalidInput`` for a filter that cannot run here.
    """
    for conjunct in conjuncts:
        check_supported(conjunct)
    now = world().now_micros()
    text = " AND ".join(short_sql(c) for c in conjuncts) or None
    name = snapshot.head.name or store.url
    request = PlanRequest(
        conjuncts=conjuncts, selected=schema, options=options, now=(now, now), table=name, filter_text=text
    )
    plan = plan_scan(snapshot, store, request)
    plan.report.parts["audited"] = 0  # a row change reads no skipped part; rows of sampled ones are tested one by one
    return plan


Read = Callable[[PartRef, ReadSpec], Iterator[pa.RecordBatch]]


def _read_uncounted(ref: PartRef, spec: ReadSpec) -> Iterator[pa.RecordBatch]:
    return read_part(ref, spec, ReadCounters())


def unmatched_rows(
    parts: Sequence[PartRef], spec: ReadSpec, schema: Schema, conjuncts: Sequence[Expr], read: Read = _read_uncounted
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``parts`` that the filter does not match, in order."""
    whole = replace(spec, conjuncts=(), schema=schema)
    for ref in parts:
        # index candidates are possible matches; the survivors are the other rows
        every = replace(ref, candidates=None)
        for batch in read(every, whole):
            by_id = {f.id: batch.column(at) for at, f in enumerate(schema)}
            matched, failed, error = filter_mask(conjuncts, by_id, len(batch), now_micros=spec.now_micros)
            if failed.any():
                raise failure_error(
                    conjuncts, by_id, len(batch), error, now_micros=spec.now_micros, where=f" of part {ref.part_id}"
                )
            yield batch.filter(pa.array(~matched))
