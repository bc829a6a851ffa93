"""The index verbs: create, drop, repair, drop segments, list.

They change metadata and index parts, never rows.

Invariants: listings match what queries use, because both are computed by ``secondary_index.coverage``. A
listing also leaves out index segments whose files are gone or have another size. A repair that fails raises,
and keeps what it had completed. Each step is a commit, so that an interrupted repair continues where it
stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.engine.operations.layout.index_commits import add_entries, same_rows, tidy_indexes
from tamis.engine.operations.result import Progress, Result
from tamis.engine.secondary_index import (
    Coverage,
    Run,
    compute_coverage,
    define_index,
    find_index,
    run_here,
    why_missing,
    with_index,
    without_index,
)
from tamis.engine.secondary_index.index_build import build_failed
from tamis.engine.secondary_index.index_damage import damage_sentences, damaged_segments, index_sizes
from tamis.engine.secondary_index.index_definition import given_names, indexed_names
from tamis.engine.secondary_index.index_segments import IndexSegment, live_entries, refs_of, unbuilt_entry, with_covers
from tamis.engine.secondary_index.index_upkeep import build_entry
from tamis.errors import CorruptData, InvalidInput, NotFound, TamisError
from tamis.storage.commit_log import Head, IndexDefinition, Operation, Snapshot, commit, load
from tamis.storage.commit_log.retry_policy import HEAD_CHANGES
from tamis.storage.files import PartRef
from tamis.storage.files.file_check import Problem
from tamis.storage.object_store import Store

STEP_ROWS = 50_000_000
"""Rows that a repair step covers before it commits."""
MOST_LOGGED_DAMAGES = 20
"""Damaged objects that the commit of a repair names."""


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """An index in one version; ``missing`` maps uncovered segment ids to reasons."""

    name: str
    columns: tuple[str, ...]
    build: str
    covered: tuple[str, ...]
    missing: dict[str, str] = field(default_factory=dict)
    rows: int = 0
    bytes: int = 0
    parts: int = 0
    index_segments: int = 0
    created_micros: int = 0
    built_micros: int | None = None
    """The build time of its newest index segment."""

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__} | {
            "columns": list(self.columns),
            "covered": list(self.covered),
        }


def list_indexes(snapshot: Snapshot) -> list[IndexInfo]:
    """List the indexes of a version in order of creation.

    Lists the stored index parts. Damage that leaves sizes alone is found by ``verify`` and ``repair_index``.
    """
    if not snapshot.head.indexes:
        return []
    parts = snapshot.parts(None, frozenset())
    known = live_entries(snapshot)
    listed = index_sizes(snapshot.store)
    return [_info(snapshot, index, parts, known, listed) for index in snapshot.head.indexes]


def _info(
    snapshot: Snapshot, index: IndexDefinition, parts: pa.Table, known: Sequence[IndexSegment], listed: dict[str, int]
) -> IndexInfo:
    mine = [entry for entry in known if entry.index_id == index.index_id]
    bad = damaged_segments(snapshot.store, snapshot, mine, listed, data=False)
    found = compute_coverage(snapshot, index, parts, mine, damage_sentences(bad))
    ids = snapshot.segments["segment_id"].to_pylist()
    return IndexInfo(
        name=index.name,
        columns=tuple(indexed_names(index, snapshot.head)),
        build=index.build,
        covered=tuple(ids[at] for at in np.flatnonzero(found.segments)),
        missing={ids[at]: why for at, why in why_missing(snapshot, found, parts).items()},
        rows=sum(e.rows for e in found.built),
        bytes=sum(e.bytes for e in found.built),
        parts=sum(e.count for e in found.built),
        index_segments=len(found.built),
        created_micros=index.created_micros,
        built_micros=max((e.micros for e in found.built), default=None),
    )


def create_index(
    store: Store,
    snapshot: Snapshot,
    name: str,
    columns: Sequence[str] | str,
    build: str = "with_write",
    *,
    build_mode: str = "",
    run: Run = run_here,
    progress: Progress | None = None,
) -> tuple[Snapshot, Result]:
    """Create an index and, unless ``build`` is deferred, build it for all existing segments.

    ``progress`` is as for ``repair_index``. Raises ``AlreadyExists``, ``NotFound``, ``InvalidInput``; and
    ``StoreUnavailable`` (``INDEX_BUILD_FAILED``) if the index was created but not built: it exists, but
    covers only what was built.
    """
    operation = Operation(
        "create index",
        {"index": name, "columns": given_names(columns), "build": build},
    )
    after = _change_head(
        store,
        snapshot,
        operation,
        lambda s: (with_index(s.head, define_index(s.head, name, columns, build, s.version)), ()),
    )
    if build == "deferred":
        return after, Result(after.version)
    try:
        return repair_index(store, after, name, build_mode=build_mode, run=run, progress=progress)
    except TamisError as error:
        first = f"{error.remedy} Then call" if isinstance(error, InvalidInput) else "Call"  # else a repair fails, too
        raise build_failed(
            f"The index {name!r} was made, but could not be built: {error.message}",
            name,
            f"{first} repair_index, or drop_index.",
        ) from error


def drop_index(store: Store, snapshot: Snapshot, name: str) -> tuple[Snapshot, Result]:
    """Drop an index with all its segments. Raises ``NotFound``.

    Its files stay until vacuum, for running queries.
    """

    def change(s: Snapshot) -> tuple[Head, tuple[str, ...]]:
        index = find_index(s.head, name)
        return without_index(s.head, index), tuple(
            e.segment_id for e in live_entries(s) if e.index_id == index.index_id
        )

    after = _change_head(store, snapshot, Operation("drop index", {"index": name}), change)
    return after, Result(after.version)


def _change_head(
    store: Store, snapshot: Snapshot, operation: Operation, change: Callable[[Snapshot], tuple[Head, tuple[str, ...]]]
) -> Snapshot:
    """Commit a head derived from the newest version, retrying after other head changes."""

    def attempt(before: int) -> Snapshot:
        latest = load(store) if before else snapshot
        head, remove = change(latest)
        return commit(store, same_rows(latest, operation, head=head, remove_index=remove))

    return HEAD_CHANGES.run(attempt)


def repair_index(
    store: Store,
    snapshot: Snapshot,
    name: str | None = None,
    segments: Sequence[str] | None = None,
    *,
    build_mode: str = "",
    run: Run = run_here,
    progress: Progress | None = None,
) -> tuple[Snapshot, Result]:
    """Build what is missing or damaged of one index, or of all, optionally for some ``segments`` only.

    Reads the index parts for their checksums. Damaged index segments leave the log, with the reason in the
    commit's operation.
    ``progress`` receives all bytes of the table's parts once per index: immediately for parts that need no
    read, otherwise as this process reads them. Raises ``NotFound`` (``INDEX_NOT_FOUND``), ``InvalidInput``
    (``UNKNOWN_SEGMENT``), and any build error: completed steps stay.
    """
    chosen = list(snapshot.head.indexes) if name is None else [find_index(snapshot.head, name)]
    wanted = _rows_of(snapshot, segments)
    total = Result(snapshot.version)
    for index in chosen:
        parts = snapshot.parts(None, frozenset())
        known = [entry for entry in live_entries(snapshot) if entry.index_id == index.index_id]
        checked = known if segments is None else _covering_entries(snapshot, index, parts, wanted)
        bad = damaged_segments(store, snapshot, checked, index_sizes(store) if checked else {}, data=True)
        found = compute_coverage(snapshot, index, parts, known, damage_sentences(bad))
        todo = (found.holder < 0) & np.isin(parts["segment"].to_numpy(), wanted)
        refs = refs_of(parts.filter(pa.array(todo)))
        if progress is not None:
            progress(
                int(parts["bytes"].to_numpy()[~todo].sum()), f"{index.name}: {len(refs)} of {len(parts)} parts to read"
            )
        for step in _steps(refs):
            made = build_entry(store, snapshot.head, index, step, build_mode, _with_progress(run, progress))
            snapshot = add_entries(store, snapshot, Operation("repair index", {"index": index.name}), (made,), ())
            total = replace(
                total, parts_added=total.parts_added + made["count"], bytes_written=total.bytes_written + made["bytes"]
            )
        if bad:
            snapshot = _remove_damaged(store, snapshot, index, found, bad, np.asarray(todo))
    if total.parts_added:
        snapshot = tidy_indexes(store, snapshot, run)
    return snapshot, replace(total, version=snapshot.version)


def _covering_entries(snapshot: Snapshot, index: IndexDefinition, parts: pa.Table, wanted: Any) -> list[IndexSegment]:
    """Return the index segments that cover parts of the ``wanted`` segments (row numbers)."""
    found = compute_coverage(snapshot, index, parts)
    asked = found.holder[np.isin(parts["segment"].to_numpy(), wanted)]
    return [found.built[at] for at in np.unique(asked[asked >= 0]).tolist()]


def _remove_damaged(
    store: Store,
    snapshot: Snapshot,
    index: IndexDefinition,
    found: Coverage,
    bad: Mapping[str, Sequence[Problem]],
    rebuilt: Any,
) -> Snapshot:
    """Remove damaged index segments from the log; parts that were not ``rebuilt`` are listed with the reason."""
    left = set(found.part_ids.filter(pa.array((found.holder < 0) & ~rebuilt)).to_pylist())
    add = []
    for segment, reason in found.damaged:
        try:
            mine = sorted(left.intersection(segment.covers(store).to_pylist()))
        except TamisError:  # it is not known what it covered
            continue
        if mine:
            add.append(unbuilt_entry(store, index.index_id, mine, reason))
    said = [f"{name}: {problem}" for problems in bad.values() for _, name, problem in problems]
    operation = Operation("repair index", {"index": index.name, "damaged": said[:MOST_LOGGED_DAMAGES]})
    return add_entries(store, snapshot, operation, tuple(add), tuple(sorted(bad)))


def _with_progress(run: Run, progress: Progress | None) -> Run:
    """Return ``run`` reporting base parts to ``progress``; reads by executors are not reported."""
    if progress is None or run is not run_here:
        return run
    return partial(run_here, done=lambda ref: progress(ref.bytes, ref.path))


def _steps(refs: Sequence[PartRef]) -> list[list[PartRef]]:
    ends = np.cumsum([ref.rows for ref in refs], dtype=np.int64)
    group = (ends - 1) // STEP_ROWS
    cuts = [0, *(np.flatnonzero(np.diff(group)) + 1), len(refs)]
    return [list(refs[a:b]) for a, b in pairwise(cuts) if b > a]


def _rows_of(snapshot: Snapshot, segments: Sequence[str] | None) -> Any:
    """Return row numbers in ``snapshot.segments``. Raises ``InvalidInput`` (``UNKNOWN_SEGMENT``)."""
    ids = snapshot.segments["segment_id"].combine_chunks()
    if segments is None:
        return np.arange(len(ids))
    names = [str(name) for name in given_names(segments)]
    wanted = pc.index_in(pa.array(names, pa.string()), value_set=ids)
    if wanted.null_count:
        stranger = pa.array(names, pa.string()).filter(wanted.is_null())[0].as_py()
        raise InvalidInput(
            f"There is no live segment {stranger!r}.",
            code="UNKNOWN_SEGMENT",
            name=stranger,
            remedy="See the table's segments.",
        )
    return wanted.to_numpy()


def drop_index_segments(
    store: Store, snapshot: Snapshot, name: str, segments: Sequence[str]
) -> tuple[Snapshot, Result]:
    """Remove an index's coverage of these segments; segments built together with them stay covered.

    Index segments of which it cannot be read what they cover are removed as well: they answer for nothing now, and
    must not answer for these segments if the missing object comes back. ``repair_index`` builds them anew.
    Raises ``NotFound``, ``InvalidInput`` (``UNKNOWN_SEGMENT``).
    """
    index = find_index(snapshot.head, name)
    if segments is None:  # of which all would be meant
        raise InvalidInput("No segment is named.", code="UNKNOWN_SEGMENT", name="segments", remedy="Name at least one.")
    wanted = _rows_of(snapshot, segments)
    parts = snapshot.parts(None, frozenset())
    hit = np.isin(parts["segment"].to_numpy(), wanted)
    gone = set(parts["part_id"].filter(pa.array(hit)).to_pylist())
    add, remove = [unbuilt_entry(store, index.index_id, sorted(gone), "it was dropped (drop_index_segments)")], []
    for e in live_entries(snapshot):
        if e.index_id != index.index_id or e.parts is None:
            continue
        try:
            covers = e.covers(snapshot.store).to_pylist()
        except (CorruptData, NotFound):
            remove.append(e.segment_id)
            continue
        if not gone & set(covers):
            continue
        remove.append(e.segment_id)
        if set(covers) - gone:
            # ordinals stay, so a part that is dropped is replaced by an id that no part has
            add.append(with_covers(store, e, ["" if part in gone else part for part in covers]))
    if not remove:
        return snapshot, Result(snapshot.version)
    operation = Operation("drop index segments", {"index": index.name, "segments": list(segments)})
    after = add_entries(store, snapshot, operation, tuple(add), tuple(remove))
    return after, Result(after.version)
