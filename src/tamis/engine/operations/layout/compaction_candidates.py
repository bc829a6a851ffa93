"""Candidates for compaction: groups of parts, each with its reasons. Reads metadata only.

Size-tiered: parts are visited in order of age, and a small part is merged with its neighbours only if the
result is at least twice the size of the largest of them. So the number of times a row is rewritten grows with
the logarithm of the table size, new rows stay in small young parts and old ones in large parts, and a
compacted segment holds rows of one time range: filters on time skip it as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr import Expr
from tamis.core.stats import TableEvidence
from tamis.core.types import Schema
from tamis.engine.operations.layout.clustering_quality import (
    Clustering,
    Intervals,
    clustering_figures,
    overlap_depth,
    part_intervals,
)
from tamis.engine.operations.layout.curve_clustering import Layout
from tamis.engine.scan import Options, PartRefs, PlanRequest, plan_scan
from tamis.sizes import SIZES
from tamis.storage.commit_log import Snapshot, ordered_now
from tamis.storage.commit_log.reachable_objects import own_parts
from tamis.storage.object_store import Store

DELETED_SHARE = 0.1
"""Share of deleted rows from which a part is rewritten."""
DEPTH = 4
"""Number of overlapping runs in the first clustering column from which they are merged."""
RUN_PARTS = SIZES.compact_run_parts
"""Target-sized parts that a group may produce if rows are sorted; one if they are not."""

AGE = ("since_micros", "until_micros", "layout")
"""Facts about compacted parts: times of the oldest and newest commit of their rows, and their sort curve."""

Bools = np.ndarray[Any, np.dtype[np.bool_]]
Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class PartChoice:
    """The parts that a call may rewrite: those that may match ``conjuncts``.

    With ``layout``, every part not yet in this layout is eligible; with ``adopted``, every part in a source's file,
    which is left where it is otherwise.
    """

    conjuncts: Sequence[Expr] = ()
    layout: Layout | None = None
    adopted: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Parts that become one segment in one commit. Sizes are bytes; ``rows`` are live rows."""

    parts: PartRefs = field(repr=False)
    reasons: tuple[str, ...]
    rows: int
    deleted: int
    bytes: int
    since_micros: int
    until_micros: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "parts": len(self.parts),
            "rows": self.rows,
            "deleted_rows": self.deleted,
            "bytes": self.bytes,
            "since_micros": self.since_micros,
            "until_micros": self.until_micros,
            "reasons": list(self.reasons),
        }


@dataclass(frozen=True, slots=True)
class CompactionCandidates:
    """The live parts in order of age, with the reasons to rewrite each."""

    parts: PartRefs
    live_bytes: Ints
    live_rows: Ints
    deleted: Ints
    since: Ints
    until: Ints
    small: Bools
    heavy: Bools
    unordered: Bools
    other_layout: Bools
    adopted: Bools
    spans: Intervals | None
    runs: Ints

    def group(self, at: Ints) -> Group:
        reasons = {
            "small parts": self.small[at].any() and len(at) > 1,
            "deleted rows": self.heavy[at].any(),
            "out of order": self.unordered[at].any(),
            "another layout": self.other_layout[at].any(),
            "adopted files": self.adopted[at].any(),
        }
        found = tuple(name for name, holds in reasons.items() if holds) or ("overlapping ranges",)
        return Group(
            self.parts.take(at),
            found,
            int(self.live_rows[at].sum()),
            int(self.deleted[at].sum()),
            int(self.parts.column("bytes")[at].sum()),
            int(self.since[at].min()),
            int(self.until[at].max()),
        )


def choose_groups(
    store: Store,
    snapshot: Snapshot,
    choice: PartChoice,
    options: Options,
    *,
    max_bytes: int | None = None,
) -> list[Group]:
    """Choose the groups worth rewriting, youngest rows first, as these cost least and help most.

    A group of several parts has at most ``max_bytes``.
    """
    if snapshot.schema is None:
        return []
    found = find_candidates(store, snapshot, choice, options)
    target = options.write_part_bytes
    sorts = bool(snapshot.head.cluster_by) or choice.layout is not None
    limit = target * (RUN_PARTS if sorts else 1)
    limit = limit if max_bytes is None else max(1, min(limit, max_bytes))
    groups = list(_stretches(found, limit, target * RUN_PARTS))
    if found.spans is not None and choice.layout is None:
        groups += _overlapping(found, groups, limit)
    made = [found.group(at) for at in groups]
    return sorted(made, key=lambda g: -g.until_micros)


def find_candidates(store: Store, snapshot: Snapshot, choice: PartChoice, options: Options) -> CompactionCandidates:
    """Return the live parts that may match, oldest first."""
    schema = snapshot.schema
    assert schema is not None
    ids = frozenset(snapshot.head.cluster_by[0]) if snapshot.head.cluster_by else frozenset()
    table = with_age(snapshot, snapshot.parts(None, ids))
    table = table if choice.adopted else own_parts(table)
    if choice.conjuncts:
        request = PlanRequest(conjuncts=choice.conjuncts, selected=schema, options=options)
        kept = plan_scan(snapshot, store, request).parts.table["part_id"]
        table = table.filter(pc.is_in(table["part_id"], value_set=kept.combine_chunks()))
    table = table.take(
        pc.sort_indices(table, [("since_micros", "ascending"), ("segment", "ascending"), ("part", "ascending")])
    )
    parts = PartRefs(table, np.zeros(len(table), dtype=np.bool_))
    rows, size = parts.column("rows"), parts.column("bytes")
    deleted = parts.column("deleted")
    live = rows - deleted
    live_bytes = (size * (live / np.maximum(rows, 1))).astype(np.int64)
    ordered = np.asarray(ordered_now(snapshot.head, table))
    by_curve = table["layout"].is_valid().to_numpy().astype(np.bool_)
    clustered = bool(snapshot.head.cluster_by)
    runs = _runs(table, ordered)
    return CompactionCandidates(
        parts=parts,
        live_bytes=live_bytes,
        live_rows=live,
        deleted=deleted,
        since=parts.column("since_micros"),
        until=parts.column("until_micros"),
        small=live_bytes < options.write_part_bytes // 2,
        heavy=deleted >= np.maximum(1, rows * DELETED_SHARE),
        unordered=~ordered & ~by_curve if clustered else np.zeros(len(table), dtype=np.bool_),
        other_layout=_other(table, choice.layout),
        adopted=_adopted(table),
        spans=_spans(snapshot, table, runs, schema) if clustered else None,
        runs=runs,
    )


def overlap_figures(snapshot: Snapshot) -> list[Clustering]:
    """Return overlap figures for each clustering column, and each column of a sort curve."""
    schema = snapshot.schema
    if schema is None:
        return []
    layouts = snapshot.table("parts", ("part_id", "layout"))
    named = pc.unique(layouts["layout"]).drop_null().to_pylist() if "layout" in layouts.column_names else []
    by_curve = [int(i) for name in named for i in name.partition("(")[2].rstrip(")").split(",")]
    paths = [p for p in dict.fromkeys((*snapshot.head.cluster_by, *(schema.paths.get(i, ()) for i in by_curve))) if p]
    found = snapshot.parts(None, frozenset(i for path in paths for i in path)) if paths else None
    if found is None:
        return []
    evidence = TableEvidence(found, {s.schema_id: s for s in snapshot.head.schemas})
    runs = _runs(found, np.asarray(ordered_now(snapshot.head, found)))
    alone = np.arange(len(found))
    return [
        clustering_figures(
            ".".join(schema.by_id[i].name for i in path),
            part_intervals(evidence.column(path), runs if at == 0 else alone),
        )
        for at, path in enumerate(paths)
        if schema.paths.get(path[-1]) == path
    ]


def with_age(snapshot: Snapshot, parts: pa.Table) -> pa.Table:
    """Add the columns ``AGE`` to ``parts``; a part without its own facts is as old as its segment."""
    ages = snapshot.table("parts", ("part_id", *AGE))
    when = snapshot.segments["timestamp_micros"].take(parts["segment"].combine_chunks())
    for name, kind in zip(AGE, (pa.int64(), pa.int64(), pa.string()), strict=True):
        known = ages[name].cast(kind) if name in ages.column_names else pa.chunked_array([pa.nulls(len(parts), kind)])
        parts = parts.append_column(name, known if name == "layout" else pc.coalesce(known, when))
    return parts


def _runs(table: pa.Table, ordered: Bools) -> Ints:
    """Number the runs; an unsorted part is a run of its own."""
    ids = table["run_id"].combine_chunks()
    codes = ids.dictionary_encode().indices.fill_null(-1).to_numpy().astype(np.int64)
    alone = np.arange(len(codes)) + len(codes)
    return np.where(ordered & (codes >= 0), codes, alone)


def _adopted(table: pa.Table) -> Bools:
    if "source" not in table.column_names:
        return np.zeros(len(table), dtype=np.bool_)
    found: Bools = table["source"].is_valid().to_numpy().astype(np.bool_)
    return found


def _other(table: pa.Table, layout: Layout | None) -> Bools:
    if layout is None:
        return np.zeros(len(table), dtype=np.bool_)
    same: Bools = pc.fill_null(pc.equal(table["layout"], layout.name), False).to_numpy().astype(np.bool_)
    return ~same


def _spans(snapshot: Snapshot, table: pa.Table, runs: Ints, schema: Schema) -> Intervals:
    first = snapshot.head.cluster_by[0]
    known = {s.schema_id: s for s in snapshot.head.schemas}
    column = TableEvidence(table, known).column(first) if schema.paths.get(first[-1]) == first else None
    return part_intervals(column, runs)


def _stretches(found: CompactionCandidates, limit: int, apart: int) -> Iterator[Ints]:
    """Group eligible neighbours in age, of at most ``limit`` bytes.

    More than ``apart`` bytes of other data between two parts separate their groups.
    """
    chosen = found.small | _mandatory(found)
    size = np.maximum(found.live_bytes, 1)
    between = np.cumsum(np.where(chosen, 0, size))
    group: list[int] = []
    held = 0
    for at in np.flatnonzero(chosen).tolist():
        full = group and (held + size[at] > limit or between[at] - between[group[-1]] > apart)
        if full:
            yield from _paying(found, group)
            group, held = [], 0
        group.append(at)
        held += int(size[at])
    yield from _paying(found, group)


def _mandatory(found: CompactionCandidates) -> Bools:
    """Return which parts are rewritten whatever their size."""
    return found.heavy | found.unordered | found.other_layout | found.adopted


def _paying(found: CompactionCandidates, group: list[int]) -> Iterator[Ints]:
    """Reduce a group to what pays: mandatory rewrites, and small parts if the result is twice the largest."""
    at = np.array(group, dtype=np.int64)
    must = _mandatory(found)[at] if len(at) else np.zeros(0, dtype=np.bool_)
    while len(at) and not must.any() and (len(at) < 2 or 2 * found.live_bytes[at].max() > found.live_bytes[at].sum()):
        largest = int(np.argmax(found.live_bytes[at]))
        at, must = np.delete(at, largest), np.delete(must, largest)
    if len(at):
        yield at


def _overlapping(found: CompactionCandidates, taken: Sequence[Ints], limit: int) -> list[Ints]:
    """Group runs that overlap at the deepest place, oldest first, until none is deeper than ``DEPTH``."""
    assert found.spans is not None
    free = np.ones(len(found.parts), dtype=np.bool_)
    for at in taken:
        free[at] = False
    groups: list[Ints] = []
    while free.any():
        deep = overlap_depth(found.spans.where(free))
        if deep.max(initial=0) < DEPTH:
            break
        place = int(np.argmax(deep))
        over = np.flatnonzero(free & (found.spans.low <= place) & (found.spans.high >= place))
        within = over[np.cumsum(found.live_bytes[over]) <= limit]
        free[over] = False
        if len(within) > 1:
            groups.append(within)
    return groups
