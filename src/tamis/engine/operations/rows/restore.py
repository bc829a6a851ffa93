"""Restore: bring back the rows of an older version in one commit, under the current schema.

Invariant: afterwards the table holds the rows of that version as the current schema shows them. Files are not
copied: a part that is still live with the same rows stays; a part that was removed, or has lost rows since,
is added as a new part over the same file. Part ids are never reused, so that no position, index entry or
deletion vector of the old part is applied to the new one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.stats.json_paths.packed_paths import PACKED, PATHS, pack_paths
from tamis.engine.operations.layout.compaction_candidates import with_age
from tamis.engine.operations.layout.index_commits import with_index_segments
from tamis.engine.operations.result import Result
from tamis.engine.operations.schema.constraint_validation import check_dates, check_rows
from tamis.engine.scan import Options
from tamis.errors import InvalidInput
from tamis.storage.commit_log import Operation, Proposal, ReadSet, Snapshot, commit, load
from tamis.storage.commit_log.checked_parts import add_tested_constraints
from tamis.storage.commit_log.commit_objects import read_commits
from tamis.storage.commit_log.model import ANALYZED
from tamis.storage.commit_log.retry_policy import RESTORES
from tamis.storage.commit_log.table_constraints import enforced_constraints
from tamis.storage.commit_log.vacuum_marker import released_version_error
from tamis.storage.object_store import Store
from tamis.world import new_id

Ints = np.ndarray[Any, np.dtype[np.int64]]


def restore(store: Store, version: int, *, allow_dropped_columns: bool = False) -> tuple[Snapshot, Result]:
    """Restore the rows of ``version``; commits nothing if they are already there.

    Raises ``NotFound`` (``VERSION_NOT_FOUND``), also for a vacuumed version; ``InvalidInput``
    (``COLUMN_DROPPED``) naming a column that has been dropped since, unless allowed, and (``COLUMN_NEEDS_VALUE``)
    naming a column of today that must have values and was not there then; ``SchemaMismatch``
    (``CHECK_VIOLATION``) for a row that violates a constraint of today; ``IncompatibleSchema`` for a date that its
    column, which is TIMESTAMP_NTZ today, does not hold; ``Conflict`` if other commits keep getting in the way.
    """
    then = load(store, version)

    def attempt(_: int) -> tuple[Snapshot, Result]:
        now = load(store)
        _check_kept(store, then, now)
        if not allow_dropped_columns:
            _check_columns(then, now)
        return _restore(store, then, now)

    return RESTORES.run(attempt)


def _check_kept(store: Store, then: Snapshot, now: Snapshot) -> None:
    """Raise if a vacuum up to ``now`` has released ``then``.

    Vacuum records this in the log before it deletes anything; the commit detects a later vacuum.
    """
    for commit_ in read_commits(store, range(then.version + 1, now.version + 1), now.commit.table_id):
        if commit_.vacuum is not None and commit_.vacuum[0] > then.version:
            raise released_version_error(store, then.version, commit_.vacuum[0])


def _check_columns(then: Snapshot, now: Snapshot) -> None:
    """Raise if rows of ``then`` would lose a column."""
    if then.schema is None:
        return
    kept = set(now.schema.by_id) if now.schema else set()
    lost = [ids for ids, f in then.schema.walk() if f.id not in kept]
    if lost:
        names = [".".join(then.schema.by_id[i].name for i in ids) for ids in lost]
        raise InvalidInput(
            f"Column {names[0]!r} of version {then.version} has been dropped since: its values would not come back.",
            code="COLUMN_DROPPED",
            name=", ".join(names),
            remedy="Read them from that version, or allow it: allow_dropped_columns=True.",
        )


def _check_values(then: Snapshot, now: Snapshot) -> None:
    """Raise if rows of ``then`` have no value for a column that must have one: NOT NULL, generated, or identity.

    Such a column cannot be added to rows. So it is older than them, or the table was replaced in between.
    """
    known = {} if then.schema is None else then.schema.by_id
    for ids, f in () if now.schema is None else now.schema.walk():
        inside_new = any(i not in known for i in ids[:-1])  # then the outer column decides: it may be NULL
        if f.id in known or inside_new or (f.nullable and not f.computed):
            continue
        what = "NOT NULL" if f.computed_as is None else f.computed_as
        raise InvalidInput(
            f"Column {f.name!r} ({what}) is newer than version {then.version}, whose rows have no value for it.",
            code="COLUMN_NEEDS_VALUE",
            name=f.name,
            remedy=f"Read the rows with version={then.version}, and append them with the columns of today.",
        )


def _restore(store: Store, then: Snapshot, now: Snapshot) -> tuple[Snapshot, Result]:
    ids = frozenset(i for schema in now.head.schemas for i in schema.by_id)
    before, after = _with_analyzed(then, with_age(then, then.parts(None, ids))), now.parts(None)
    stay = _stay(before, after)
    back = before.filter(pc.invert(pc.is_in(before["part_id"], value_set=stay)))
    gone = after.filter(pc.invert(pc.is_in(after["part_id"], value_set=stay)))
    if not len(back) and not len(gone):
        return now, Result(now.version)
    if live_rows(back):
        _check_values(then, now)
    result = Result(
        -1, rows_inserted=live_rows(back), rows_deleted=live_rows(gone), parts_added=len(back), parts_removed=len(gone)
    )
    checks = enforced_constraints(now.head.constraints)
    other = set(before["part_id"].to_pylist()) - set(back["part_id"].to_pylist())
    if now.schema is not None:
        check_dates(store, then, now.schema, other)
    if checks:
        check_rows(store, Snapshot(store, then.commit, now.head), checks, other)
    manifest, vectors = added_again(back.append_column(PACKED, _paths(then, back, ids)))
    proposal = Proposal(
        operation=Operation("restore", {"version": then.version}, result.metrics()),
        read_version=now.version,
        read_operation_id=now.commit.operation_id,
        reads=ReadSet(),
        add=[add_tested_constraints(manifest, [check.constraint_id for check in checks])],
        add_deletions=vectors,
        remove_parts=gone["part_id"].to_pylist(),
        restores=then.version,
        operation_id=new_id(),
        table_id=then.head.table_id,
    )
    build = Options.resolve(None, None, now.head.properties).index_build
    made = commit(store, with_index_segments(store, now.head, proposal, build))
    return made, replace(result, version=made.version)


def _with_analyzed(snapshot: Snapshot, parts: pa.Table) -> pa.Table:
    analyzed = snapshot.table("parts", ("part_id", ANALYZED))
    return parts.append_column(ANALYZED, analyzed[ANALYZED]) if ANALYZED in analyzed.column_names else parts


def _stay(before: pa.Table, after: pa.Table) -> pa.Array:
    """Return the ids of parts that are live in both with the same rows."""
    at = pc.index_in(before["part_id"].combine_chunks(), value_set=after["part_id"].combine_chunks())
    both = before.filter(at.is_valid())
    other = after.take(at.drop_null())
    mine, theirs = both["deletion"], other["deletion"]
    same = pc.or_(pc.fill_null(pc.equal(mine, theirs), False), pc.and_(mine.is_null(), theirs.is_null()))
    return both["part_id"].filter(same).combine_chunks()


def added_again(parts: pa.Table) -> tuple[pa.Table, dict[str, bytes]]:
    """Return a manifest of new parts over the files of ``parts``, and their deletion vectors."""
    names = pa.array([new_id() for _ in range(len(parts))], pa.string())
    pairs = zip(names.to_pylist(), parts["deletion"].to_pylist(), strict=True)
    vectors = {name: vector for name, vector in pairs if vector is not None}
    left = [n for n in parts.column_names if n not in {"segment", "part", "deleted", "deletion"}]
    manifest = parts.select(left)
    return manifest.set_column(left.index("part_id"), "part_id", names), vectors


def _paths(then: Snapshot, parts: pa.Table, ids: frozenset[int]) -> pa.Array:
    """Return each part's JSON path statistics, packed as a writer would; NULL if there are none."""
    rows = then.table(PATHS, (), None, ids)
    if not len(rows):
        return pa.nulls(len(parts), pa.binary())

    def keys(table: pa.Table) -> Ints:
        place: Ints = table["segment"].to_numpy().astype(np.int64) << 32 | table["part"].to_numpy().astype(np.int64)
        return place

    found = keys(rows)
    order = np.argsort(found, kind="stable")
    rows = rows.drop_columns(["segment", "part"]).take(pa.array(order)).combine_chunks()
    starts, ends = (np.searchsorted(found[order], keys(parts), side=side).tolist() for side in ("left", "right"))
    return pa.array(
        [pack_paths(rows.slice(a, b - a)) if b > a else None for a, b in zip(starts, ends, strict=True)], pa.binary()
    )


def live_rows(parts: pa.Table) -> int:
    return int((pc.sum(parts["rows"]).as_py() or 0) - (pc.sum(parts["deleted"]).as_py() or 0))
