"""Decides whether a change still holds after a concurrent commit; see "Conflicts" in ``docs/format.md``.

Invariant: a commit lands only if it could have been made at exactly that place in the order, with the same
result. What cannot be decided is a conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr import Expr, conjuncts_of, parse_predicate
from tamis.core.expr.unfit_dates import unfit_dates
from tamis.core.pruning import decide
from tamis.core.stats import TableEvidence
from tamis.core.types import Schema
from tamis.errors import Conflict, SchemaMismatch
from tamis.storage.commit_log.commit_objects import read_commits
from tamis.storage.commit_log.commit_record import Commit, Segment
from tamis.storage.commit_log.model import Head
from tamis.storage.commit_log.proposal import Proposal, Removal
from tamis.storage.commit_log.reachable_objects import ids_in, paths_in
from tamis.storage.commit_log.snapshot import Snapshot
from tamis.storage.object_store.store import Store
from tamis.world import made_micros

StillValid = Callable[[Schema, Schema], "str | None"]
"""(schema of the rows, current schema of the table) → reason why such rows no longer fit, or None."""


def check_commit(store: Store, proposal: Proposal, removal: Removal, base: Snapshot, theirs: Commit) -> None:
    """Raise ``Conflict`` if ``theirs``, committed since ``base`` was read, invalidates the proposal."""
    # restored rows were checked against the columns and constraints of the version that was read
    if theirs.head is not None and (proposal.head is not None or proposal.restores is not None):
        raise _conflict("HEAD_CHANGED", theirs, "changed the table's schema or properties too")
    _check_removal(store, removal, theirs)
    if proposal.reads is not None and not proposal.blind_append and theirs.data_change:
        _check_added(proposal, base, theirs)
        if not proposal.exact:
            _check_removed(store, proposal, base, theirs)


def check_vacuum(store: Store, proposal: Proposal, theirs: Commit, segment_id: str | None) -> None:
    """Raise ``Conflict`` if ``theirs`` is a vacuum that may have removed a file of the proposal.

    That is a file of the table or of an index that the proposal adds or restores, or the manifest of its segment
    ``segment_id``, which may be written by an older clock than the parts.
    """
    if theirs.vacuum is None:
        return
    version, micros = theirs.vacuum
    if proposal.restores is not None and proposal.restores < version:
        raise _conflict("VACUUMED", theirs, f"let go of version {proposal.restores}")
    parts = [part for table in proposal.add for part in table["part_id"].to_pylist()]
    ids = (*parts, *([] if segment_id is None else [segment_id]))
    if any(made_micros(part) <= micros for part in (*ids, *ids_in(paths_in(store, proposal.add_index)))):
        raise _conflict(
            "VACUUMED",
            theirs,
            "may have removed files that this operation wrote: it took longer than the vacuum's retention",
        )


def check_rows(
    store: Store,
    add: Sequence[pa.Table],
    before: Head,
    now: Head,
    still_valid: StillValid,
    *,
    dates: Sequence[pa.Table],
) -> None:
    """Check that rows written under ``before`` fit the head in force now.

    ``dates`` are manifests whose dates must fit as well. Raises ``SchemaMismatch`` with the reason if rows do not fit,
    or if no statistics prove that these dates do.
    """
    if now.schema is None:
        return
    schemas = {schema.schema_id: schema for schema in (*before.schemas, *now.schemas)}
    used = {i for manifest in add for i in pc.unique(manifest["schema_id"]).to_pylist()}
    for schema_id in sorted(used - {now.schema.schema_id}):
        why = (
            still_valid(schemas[schema_id], now.schema)
            if schema_id in schemas
            else "theirs is not a schema of this table"
        )
        if why is None and _has_unfit_dates(dates, schemas[schema_id], now.schema):
            why = "a date among them may not fit TIMESTAMP_NTZ"
        if why is not None:
            raise SchemaMismatch(
                f"The table's schema has changed since these rows were made: {why}.",
                code="SCHEMA_CHANGED",
                name=store.url,
                remedy="Refresh the table and write again.",
                current_id=now.schema.schema_id,
                schema=now.schema,
            )


def _check_removal(store: Store, removal: Removal, theirs: Commit) -> None:
    if not removal:
        return
    if theirs.remove_all:
        raise _conflict("REMOVED", theirs, "replaced everything that was there")
    touched = {part.segment_id for part in removal.parts} | set(removal.segments) | removal.rows.segments
    if gone := touched & set(theirs.remove_segments):
        raise _conflict("REMOVED", theirs, f"removed the segment {min(gone)} too")
    whole, single = set(removal.segments), {part.part_id for part in removal.parts}
    for part in theirs.remove_parts:
        if part.segment_id in whole or part.part_id in single or part.part_id in removal.rows.parts:
            raise _conflict("REMOVED", theirs, f"removed the part {part.part_id} too")
    for segment_id, part_id in _parts_with_deletions(store, theirs):
        if segment_id in whole or part_id in single:
            raise _conflict("REMOVED", theirs, f"deleted rows of the part {part_id}, which this operation removes")
    if (changed := removal.rows.overlap(store, theirs.deletions)) is not None:
        raise _conflict("ROWS", theirs, f"changed the same rows of part {changed}")


def deletes_older_rows(store: Store, commit: Commit) -> bool:
    """Return whether ``commit`` deletes rows of parts other than those that it adds.

    A file of a source can be added together with its deleted rows, which does not count.
    """
    if commit.segment is None:
        return commit.deletions is not None
    return any(segment != commit.segment.segment_id for segment, _ in _parts_with_deletions(store, commit))


def _parts_with_deletions(store: Store, theirs: Commit) -> list[tuple[str, str]]:
    """List (segment id, part id) of the parts in which ``theirs`` deleted rows."""
    if theirs.deletions is None:
        return []
    found = theirs.deletions.read(store, lambda _: ["segment_id", "part_id"])
    return list(zip(found["segment_id"].to_pylist(), found["part_id"].to_pylist(), strict=True))


def _check_added(proposal: Proposal, base: Snapshot, theirs: Commit) -> None:
    if theirs.remove_all:
        raise _conflict("READ", theirs, "replaced everything that this operation read")
    if theirs.segment is not None and _may_match(proposal, base.head, _evidence(theirs.segment)):
        raise _conflict("READ", theirs, "added rows that this operation should have read")


def _check_removed(store: Store, proposal: Proposal, base: Snapshot, theirs: Commit) -> None:
    touched = {part.segment_id for part in theirs.remove_parts} | set(theirs.remove_segments)
    touched |= {segment_id for segment_id, _ in _parts_with_deletions(store, theirs)}
    if touched and _may_match(proposal, base.head, _touched_evidence(store, base, theirs, touched)):
        raise _conflict("READ", theirs, "removed rows that this operation read")


def _may_match(proposal: Proposal, head: Head, evidence: pa.Table) -> bool:
    """Return whether ``evidence`` may describe a row that the proposal read, or should have read."""
    reads = proposal.reads
    if reads is None or reads.filter is None or head.schema is None or not reads.by_statistics:
        return True
    try:
        filters = proposal.conjuncts
        if filters is None:
            filters = conjuncts_of(parse_predicate(reads.filter, head.schema, zone=reads.zone, ansi=reads.ansi))
        return _possible(filters, evidence, head.schemas)
    except Exception:  # noqa: BLE001  # any failure counts as a possible match
        return True


def _possible(filters: Sequence[Expr], evidence: pa.Table, schemas: Sequence[Schema]) -> bool:
    """Return whether the filters may be true for a row that ``evidence`` describes."""
    decision = decide(filters, TableEvidence(evidence, {schema.schema_id: schema for schema in schemas}), now=None)
    return not bool(decision.none.all())


def _has_unfit_dates(add: Sequence[pa.Table], written: Schema, now: Schema) -> bool:
    """Return whether new parts of the schema ``written`` may have a date that does not fit its type in ``now``."""
    parts = [manifest.filter(pc.equal(manifest["schema_id"], written.schema_id)) for manifest in add]
    return any(_possible([wrong], mine, [written]) for wrong in unfit_dates(written, now) for mine in parts)


def _evidence(segment: Segment) -> pa.Table:
    facts = {"rows": pa.array([segment.rows], pa.int64()), "schema_id": pa.array([segment.schema_id], pa.int32())}
    union = None if segment.statistics is None else segment.statistics.table
    known = {} if union is None else dict(zip(union.column_names, union.columns, strict=True))
    return pa.table(facts | {name: column for name, column in known.items() if name not in facts})


def _touched_evidence(store: Store, base: Snapshot, theirs: Commit, touched: set[str]) -> pa.Table:
    """Return the evidence, just before ``theirs``, of the segments that it removed data from."""
    before = Snapshot.at(store, read_commits(store, [theirs.version - 1], theirs.table_id)[0])
    evidence = before.segment_evidence(set(base.schema.by_id) if base.schema else ())
    return evidence.filter(pc.is_in(before.segments["segment_id"], value_set=pa.array(sorted(touched), pa.string())))


def _conflict(code: str, theirs: Commit, what: str) -> Conflict:
    return Conflict(
        f"Version {theirs.version} ({theirs.operation.name}) {what}.",
        code=f"CONFLICT_{code}",
        name=str(theirs.version),
        remedy="None of its changes were committed. Reload the table and retry.",
    )
