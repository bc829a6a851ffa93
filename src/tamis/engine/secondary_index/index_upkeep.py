"""Index maintenance: entries for commits, repairs, and merging of small index segments.

Invariants: an index build failure never fails the load that triggers it, nor one that catches up on it, and an
index never claims to cover what it does not. Merging keeps coverage.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.engine.part_reader import ReadCounters, ReadSpec, read_part
from tamis.engine.part_writer import WriteSpec
from tamis.engine.secondary_index.index_build import (
    Build,
    Done,
    Run,
    build_spec,
    raise_planned_failure,
    run_here,
    write_sorted_entries,
)
from tamis.engine.secondary_index.index_coverage import compute_coverage
from tamis.engine.secondary_index.index_definition import PART, schemas_of
from tamis.engine.secondary_index.index_segments import IndexSegment, built_entry, live_entries, refs_of, unbuilt_entry
from tamis.errors import CorruptData, NotFound, TamisError
from tamis.sizes import SIZES
from tamis.storage.commit_log import Head, IndexDefinition, Snapshot
from tamis.storage.files import PartRef
from tamis.storage.object_store import Store

MERGE_FROM = SIZES.index_merge_segments
"""The number of small index segments from which they are merged."""
FAILED = "its build failed: "
"""Prefix of the reason of a failed build."""
SMALL_ROWS = 4_000_000
"""Index segments with more entries are not merged."""


def entries_for_load(
    store: Store, head: Head, manifests: Sequence[pa.Table], mode: str = "", run: Run = run_here
) -> list[dict[str, Any]]:
    """Build index entries for a commit that adds the parts in ``manifests``, one per index built with writes.

    ``mode`` is the option ``tamis.index.build`` of this write: ``deferred`` builds nothing. Raises nothing; a
    failed build becomes an entry with the reason.
    """
    refs = [ref for manifest in manifests if len(manifest) for ref in refs_of(manifest)]
    if not refs or mode == "deferred":
        return []
    return [_attempt(store, head, index, refs, mode, run) for index in head.indexes if index.build == "with_write"]


def _attempt(
    store: Store, head: Head, index: IndexDefinition, refs: Sequence[PartRef], mode: str, run: Run
) -> dict[str, Any]:
    try:
        return build_entry(store, head, index, refs, mode, run)
    except Exception as error:  # noqa: BLE001  # a failed build must not fail the load
        reason = error.message if isinstance(error, TamisError) else f"{type(error).__name__}: {error}"
        return unbuilt_entry(store, index.index_id, [ref.part_id for ref in refs], f"{FAILED}{reason[:500]}")


def catch_up_entries(
    store: Store,
    snapshot: Snapshot,
    most_bytes: int,
    broken: Collection[str],
    mode: str = "",
    run: Run = run_here,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Build index entries that earlier loads failed to build: per index, up to ``most_bytes``, at least one part.

    ``broken``: ids of indexes whose builds fail now; these are not tried. Returns the entries to add, and the
    ids of the recorded failures that are settled. A build that fails again changes nothing.
    """
    known = live_entries(snapshot)
    failures = [e for e in known if e.parts is None and (e.reason or "").startswith(FAILED)]
    indexes = {e.index_id for e in failures} - set(broken)
    add, remove = list[dict[str, Any]](), list[str]()
    if not indexes:
        return add, remove
    parts = snapshot.parts(None, frozenset())
    ids, sizes = parts["part_id"].combine_chunks(), parts["bytes"].to_numpy()
    for index in (i for i in snapshot.head.indexes if i.index_id in indexes):
        with suppress(Exception):  # the failures stay recorded, and the next load tries again
            mine = _readable_covers(store, [e for e in failures if e.index_id == index.index_id])
            failed = pc.is_in(ids, value_set=pa.concat_arrays([covers for _, covers in mine]))
            todo = np.flatnonzero((compute_coverage(snapshot, index, parts, known).holder < 0) & failed.to_numpy(False))
            now = max(int(np.searchsorted(np.cumsum(sizes[todo]), most_bytes, side="right")), 1)
            if len(todo):
                add.append(
                    build_entry(store, snapshot.head, index, refs_of(parts.take(pa.array(todo[:now]))), mode, run)
                )
            left = ids.take(pa.array(todo[now:]))
            remove += [at for at, covers in mine if not pc.any(pc.is_in(covers, value_set=left)).as_py()]
    return add, remove


def _readable_covers(store: Store, failures: Sequence[IndexSegment]) -> list[tuple[str, pa.StringArray]]:
    """Return the id of each recorded failure and the base parts that it names, without those that are damaged."""
    found = []
    for one in failures:
        with suppress(CorruptData, NotFound):
            found.append((one.segment_id, one.covers(store)))
    return found


def build_entry(
    store: Store, head: Head, index: IndexDefinition, refs: Sequence[PartRef], mode: str = "", run: Run = run_here
) -> dict[str, Any]:
    """Build an index segment that covers ``refs``; return its entry.

    Raises any error, recording no coverage.
    """
    raise_planned_failure(index, mode)
    spec = build_spec(store, head, index)
    manifest = _stacked(run(Build(list(enumerate(refs)), spec)))
    return built_entry(store, index.index_id, spec.write.schema.schema_id, manifest, [ref.part_id for ref in refs])


def _stacked(manifests: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(manifests, promote_options="default").combine_chunks()


@dataclass(frozen=True, slots=True)
class Merged:
    """An entry that replaces several."""

    add: dict[str, Any]
    remove: tuple[str, ...]


def small_segments(snapshot: Snapshot, index: IndexDefinition) -> list[IndexSegment]:
    """Return the index segments of ``index`` that are small enough to be merged."""
    schemas = schemas_of(index, snapshot.head)
    if snapshot.head.schema is None or snapshot.head.schema.schema_id not in schemas:
        return []
    return [
        e
        for e in live_entries(snapshot)
        if e.index_id == index.index_id and e.parts is not None and e.rows <= SMALL_ROWS and e.schema_id in schemas
    ]


def merge_small_segments(
    snapshot: Snapshot, index: IndexDefinition, small: Sequence[IndexSegment], run: Run = run_here
) -> Merged | None:
    """Merge the index segments ``small`` of ``index`` if there are enough of them; None if not.

    Drops entries of base parts that no longer exist. Raises what reading an index part raises.
    """
    if len(small) < MERGE_FROM:
        return None
    store = snapshot.store
    parts = snapshot.parts(None, frozenset())
    found = compute_coverage(snapshot, index, parts, small)
    ids = parts["part_id"].combine_chunks()
    sources, covers = [], list[str]()
    for at, segment in enumerate(found.built):
        mine = np.flatnonzero(found.holder == at)
        place = np.full(len(segment.covers(store)), -1, dtype=np.int32)
        place[found.ordinal[mine]] = np.arange(len(covers), len(covers) + len(mine))
        sources.append((refs_of(segment.manifest(store, frozenset())), place))
        covers += ids.take(pa.array(mine)).to_pylist()
    gone = tuple(e.segment_id for e in found.built)
    if not covers:
        return Merged({}, gone)
    write = build_spec(store, snapshot.head, index).write
    schemas = schemas_of(index, snapshot.head)
    read = ReadSpec(url=store.url, storage_options=dict(store.options), schema=write.schema, part_schemas=schemas)
    manifest = _stacked(run(Merge(sources, read, write)))
    return Merged(built_entry(store, index.index_id, write.schema.schema_id, manifest, covers), gone)


@dataclass(frozen=True, slots=True)
class Merge:
    """Rewrites index parts as one sorted run.

    ``sources`` pairs the parts of an index segment with new ordinals of the base parts it covers (-1:
    dropped).
    """

    sources: Sequence[tuple[Sequence[PartRef], np.ndarray[Any, np.dtype[np.int32]]]]
    read: ReadSpec
    write: WriteSpec

    @property
    def rows(self) -> int:
        return sum(ref.rows for refs, _ in self.sources for ref in refs)

    @property
    def url(self) -> str:
        return self.write.url

    def manifests(self, done: Done | None = None) -> list[pa.Table]:  # noqa: ARG002  # no base part is read
        return write_sorted_entries(self._entries(), self.write)

    def cut(self, count: int) -> Sequence[Merge]:  # noqa: ARG002  # a merge produces a single run
        return [self]

    def _entries(self) -> Iterator[pa.RecordBatch]:
        at = next(i for i, f in enumerate(self.write.schema) if f.id == PART)
        for refs, place in self.sources:
            for batch in (batch for ref in refs for batch in read_part(ref, self.read, ReadCounters())):
                ordinals = place[batch.column(at).to_numpy()]
                moved = batch.set_column(at, batch.schema.field(at), pa.array(ordinals, pa.int32()))
                yield moved if (ordinals >= 0).all() else moved.filter(pa.array(ordinals >= 0))


def obsolete_entries(snapshot: Snapshot) -> tuple[str, ...]:
    """Return obsolete entries: of dropped indexes, of removed base parts, or reasons for covered parts."""
    parts = snapshot.parts(None, frozenset())
    known = live_entries(snapshot)
    live = set(parts["part_id"].to_pylist())
    indexes = {index.index_id: compute_coverage(snapshot, index, parts, known) for index in snapshot.head.indexes}
    out = []
    for e in known:
        found = indexes.get(e.index_id)
        try:
            covers = set(e.covers(snapshot.store).to_pylist()) & live
        except TamisError:  # it is not known what it covers: repair_index replaces it if it is damaged
            if found is None:
                out.append(e.segment_id)
            continue
        if found is None or not covers:
            out.append(e.segment_id)
        elif e.parts is None:
            open_parts = set(parts["part_id"].filter(pa.array(found.holder < 0)).to_pylist())
            if not covers & open_parts:
                out.append(e.segment_id)
    return tuple(out)
