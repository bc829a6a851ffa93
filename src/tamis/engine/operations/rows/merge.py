"""Merge: update or delete matching target rows and insert, update or delete others by clauses, in one commit.

Reads only parts that may hold one of the source's keys, and only the columns that a clause needs. Memory
holds the source's keys, their hashes if they are many, and a group of rows of each side, whose bytes are bounded too;
new rows are written to parts as they come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from tamis.core.expr import Expr, filter_mask
from tamis.core.types import Schema
from tamis.core.types.arrow import to_arrow_type
from tamis.core.types.bounded_batches import row_sizes, slices_within, spans_within
from tamis.core.types.numbered_rows import NumberedRows
from tamis.engine.operations.result import Progress, Result
from tamis.engine.operations.rows.append import write_rows
from tamis.engine.operations.rows.merge_keys import SourceKeys, equality_bits
from tamis.engine.operations.rows.merge_plan import BY_SOURCE, MATCHED, NOT_MATCHED, Clause, MergePlan
from tamis.engine.operations.rows.overwrite import find_matching
from tamis.engine.operations.rows.row_change import RowChange, read_set
from tamis.engine.operations.rows.store_assignment import computed_values
from tamis.engine.operations.tracked_read import TrackedRead
from tamis.engine.part_reader import failure_error
from tamis.engine.scan import Options
from tamis.errors import InvalidInput
from tamis.sizes import SIZES
from tamis.storage.commit_log import Snapshot
from tamis.storage.object_store import Store
from tamis.world import world

GROUP_ROWS = SIZES.merge_group_rows
"""Rows that are joined at once."""
GROUP_BYTES = SIZES.merge_group_bytes
"""Bytes that they have at most, unless a single row has more."""

Indices = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
Arrays = Mapping[int, pa.Array]


def merge(
    store: Store,
    snapshot: Snapshot,
    source: pa.Table,
    plan: MergePlan,
    options: Options,
    each_once: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> tuple[Snapshot, Result]:
    """Run ``plan`` with the rows of ``source``; ``each_once`` names the unique key columns of an upsert.

    Raises ``InvalidInput`` (``MERGE_CARDINALITY_VIOLATION``) if two source rows would change one target row,
    or (``DUPLICATE_KEYS``) for a duplicate key; ``Conflict`` if another commit changed what was read.
    """
    keys = SourceKeys(plan, source, world().now_micros())
    if each_once is not None:
        _check_unique(source, each_once, plan, keys)
    conjuncts = () if plan.clauses_of(BY_SOURCE) else keys.filter()
    found = find_matching(store, snapshot, plan.target, conjuncts, options)
    change = RowChange(
        "merge" if each_once is None else "upsert", read_set(conjuncts, options), options, conjuncts or None
    )
    run = _Run(plan, NumberedRows(source), keys, TrackedRead(found, progress), change)
    change.manifests = list(write_rows(store, snapshot.head, run.rows(), options))
    change.exact = run.seen == sum(len(rows) for rows in change.gone.values())
    change.read, change.bytes_read = len(found.parts), run.tracked.finish()
    return change.commit(store, snapshot)


@dataclass(slots=True)
class _Run:
    """One pass over the target, then over the unmatched source rows."""

    plan: MergePlan
    source: NumberedRows
    keys: SourceKeys
    tracked: TrackedRead
    change: RowChange
    seen: int = 0
    """Target rows that were read."""
    met: Mask = field(init=False)

    def __post_init__(self) -> None:
        self.met = np.zeros(len(self.source.sizes), dtype=np.bool_)

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the new rows; record the positions of removed rows in ``change``."""
        schema = self._needed()
        for parts, batch in self._groups(schema):
            arrays = {f.id: batch.column(at) for at, f in enumerate(schema)}
            yield from self._group(arrays, parts, batch.column(len(schema)).to_numpy())
        clauses = self.plan.clauses_of(NOT_MATCHED)
        left = np.flatnonzero(~self.met)
        for span in spans_within(self.source.sizes[left], GROUP_BYTES, GROUP_ROWS) if clauses else ():
            arrays = self._of_source(left[span])
            for clause, chosen in self._chosen(clauses, arrays, span.stop - span.start):
                self.change.inserted += len(chosen)
                yield self._made(clause, _some(arrays, chosen), len(chosen), {})

    def _group(self, arrays: Arrays, parts: list[tuple[str, int]], positions: Indices) -> Iterator[pa.RecordBatch]:
        count = len(positions)
        self.seen += count
        t, s = self.keys.pairs(arrays, count)
        if self.plan.checks and len(t):
            kept = [self._mask(self.plan.checks, both, length) for _, both, length in self._both(arrays, t, s)]
            keep = np.concatenate(kept)
            t, s = t[keep], s[keep]
        if self.plan.unique and len(t) > 1 and (t[1:] == t[:-1]).any():
            raise InvalidInput(
                "A row of the target matches several rows of the source.",
                code="MERGE_CARDINALITY_VIOLATION",
                name="source",
                remedy="Make the source's keys unique.",
            )
        self.met[s] = True
        if self.plan.clauses_of(MATCHED) and len(t):
            # only an unconditional delete may match a row twice
            first = np.concatenate([[True], t[1:] != t[:-1]])
            t, s = t[first], s[first]
            for span, both, _ in self._both(arrays, t, s):
                yield from self._changed(MATCHED, both, t[span], parts, positions)
        if self.plan.clauses_of(BY_SOURCE):
            alone = np.ones(count, dtype=np.bool_)
            alone[t] = False
            rows = np.flatnonzero(alone)
            yield from self._changed(BY_SOURCE, _some(arrays, rows), rows, parts, positions)

    def _both(self, arrays: Arrays, t: Indices, s: Indices) -> Iterator[tuple[slice, Arrays, int]]:
        """Yield the columns of both sides for spans of pairs, with their number; one source row may be in many."""
        sizes = row_sizes(arrays.values(), len(next(iter(arrays.values()))))[t] + self.source.sizes[s]
        for span in spans_within(sizes, GROUP_BYTES, GROUP_ROWS):
            yield span, {**_some(arrays, t[span]), **self._of_source(s[span])}, span.stop - span.start

    def _of_source(self, rows: Indices) -> dict[int, pa.Array]:
        return dict(zip((f.id for f in self.plan.source), self.source.take(rows).columns, strict=True))

    def _changed(
        self, kind: str, arrays: Arrays, rows: Indices, parts: list[tuple[str, int]], positions: Indices
    ) -> Iterator[pa.RecordBatch]:
        """Update and delete the target's ``rows`` (ordinals in the group), whose columns are ``arrays``."""
        for clause, chosen in self._chosen(self.plan.clauses_of(kind), arrays, len(rows)):
            self._gone(parts, positions, rows[chosen])
            if clause.action == "delete":
                self.change.deleted += len(chosen)
            else:
                self.change.updated += len(chosen)
                yield self._made(clause, _some(arrays, chosen), len(chosen), arrays)

    def _chosen(self, clauses: Sequence[Clause], arrays: Arrays, length: int) -> Iterator[tuple[Clause, Indices]]:
        """Yield each clause with the rows where its condition is true and no earlier clause applied."""
        left = np.arange(length)
        for clause in clauses:
            if not len(left):
                return
            keep = self._mask(clause.conditions, _some(arrays, left), len(left))
            if keep.any():
                yield clause, left[keep]
            left = left[~keep]

    def _mask(self, conditions: Sequence[Expr], arrays: Arrays, length: int) -> Mask:
        now = self.tracked.found.spec.now_micros
        keep, failed, error = filter_mask(conditions, arrays, length, now_micros=now)
        if failed.any():
            raise failure_error(conditions, arrays, length, error, now_micros=now, where=" of the merge")
        return keep

    def _made(self, clause: Clause, arrays: Arrays, length: int, old: Arrays) -> pa.RecordBatch:
        columns = []
        for f in self.plan.target:
            if f.id in clause.values:
                columns.append(
                    computed_values(clause.values[f.id], arrays, length, self.tracked.found.spec.now_micros, f.name)
                )
            elif f.id in old and f.generated is None:  # a generated column is computed anew
                columns.append(arrays[f.id])
            else:
                columns.append(_default(f, length))
        return pa.RecordBatch.from_arrays(columns, names=list(self.plan.target.names))

    def _gone(self, parts: list[tuple[str, int]], positions: Indices, rows: Indices) -> None:
        start = 0
        for part_id, end in parts:  # parts of the group, with the row at which each ends
            low, high = np.searchsorted(rows, (start, end)) if len(rows) else (0, 0)
            if high > low:
                new = BitMap(positions[rows[low:high]].astype(np.uint32))
                self.change.gone[part_id] = self.change.gone.get(part_id, BitMap()) | new
            start = end

    def _groups(self, schema: Schema) -> Iterator[tuple[list[tuple[str, int]], pa.RecordBatch]]:
        """Yield the target's candidate rows in large groups, with the parts they come from."""
        spec = replace(self.tracked.found.spec, schema=schema, positions=True)
        group = _Group()
        for ref in self.tracked.found.parts:
            for batch in self.tracked.rows(ref, spec):
                for piece in slices_within(batch, GROUP_BYTES):
                    if group.rows >= GROUP_ROWS or (group.rows and group.size + piece.nbytes > GROUP_BYTES):
                        yield group.parts, group.joined()
                        group = _Group()
                    group.append(ref.part_id, piece)
        if group.rows:
            yield group.parts, group.joined()

    def _needed(self) -> Schema:
        """Return the target columns used by keys, conditions or values, or kept by an update."""
        plan = self.plan
        named = set(plan.named)
        for clause in plan.clauses:
            if clause.action == "update":
                named |= {f.id for f in plan.target if f.id not in clause.values and f.generated is None}
        return replace(plan.target, fields=tuple(f for f in plan.target if f.id in named))


@dataclass(slots=True)
class _Group:
    """Rows of the target that are gathered."""

    parts: list[tuple[str, int]] = field(default_factory=list)
    """The parts that they come from, and the row at which each ends."""
    rows: int = 0
    size: int = 0
    """Their bytes."""
    batches: list[pa.RecordBatch] = field(default_factory=list)

    def append(self, part_id: str, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)
        self.rows += len(batch)
        self.size += batch.nbytes
        self.parts = [*(p for p in self.parts if p[0] != part_id), (part_id, self.rows)]

    def joined(self) -> pa.RecordBatch:
        """Return the rows as one batch, and release the pieces."""
        whole = pa.concat_batches(self.batches)
        self.batches.clear()
        return whole


def _check_unique(source: pa.Table, names: Sequence[str], plan: MergePlan, keys: SourceKeys) -> None:
    """Raise for duplicate keys; 0.0 equals −0.0, and CHAR padding is ignored, as in matching."""
    there = keys.compared
    if len(plan.keys) < len(names):  # a key that cannot be looked up is compared as given
        for name in names:
            there = there.append_column(f"as it is: {name}", equality_bits(source[name]))
    there = there.drop_null()
    if there.group_by(there.column_names).aggregate([]).num_rows < there.num_rows:
        raise duplicate_keys(names)


def duplicate_keys(names: Iterable[str]) -> InvalidInput:
    """Return the error for an upsert whose data has several rows of one key."""
    return InvalidInput(
        "The data has several rows of one key.",
        code="DUPLICATE_KEYS",
        name=", ".join(names),
        remedy="Keep one row of each key.",
    )


def _some(arrays: Arrays, rows: Indices) -> dict[int, pa.Array]:
    indices = pa.array(rows)
    return {i: a.take(indices) for i, a in arrays.items()}


def _default(f: Any, length: int) -> pa.Array:
    """Return NULLs, which an insert stores in columns that it does not name."""
    return pa.nulls(length, to_arrow_type(f.type))
