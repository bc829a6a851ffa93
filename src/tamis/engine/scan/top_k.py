"""ORDER BY … LIMIT k over a plan's parts: search the sort and filter columns, then fetch the rest for k rows.

Invariant: the result equals reading every part, sorting and truncating (with some choice among ties). Parts
are visited best first, in waves; the k-th row so far is a bound that prunes parts, blocks and rows of the
following waves. No bound is derived from fewer than k rows.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from tamis.core.expr import Expr
from tamis.core.types import Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.core.types.numbered_rows import NumberedRows
from tamis.engine.part_reader import ReadCounters, ReadSpec, read_part
from tamis.engine.scan.limit_pruning import Bools, Numbers, RankedParts
from tamis.engine.scan.parallel_reader import read_in_order, reader_threads
from tamis.engine.scan.scan_order import sorted_rows, sorts_before
from tamis.engine.scan.scan_plan import Plan
from tamis.engine.scan.skip_audit import OnViolation, read_audited
from tamis.engine.secondary_index import read_shared
from tamis.sizes import SIZES
from tamis.storage.files import PartRef

LEAST_HELD = SIZES.topk_held_rows
"""Rows of keys that are collected before they are cut to the best k."""
HELD_BYTES = SIZES.topk_held_bytes
"""Bytes that they have, too, and those of the batches of the result; a single row may have more."""

PLACE, POSITION = "_place", "_position"


@dataclass(frozen=True, slots=True)
class TopRows:
    """The best rows that a search found, and what it left unvisited."""

    rows: pa.Table
    """The best rows in order: their keys, ``PLACE`` and ``POSITION``."""
    bound: Expr | None
    """True of every row that sorts before the last found row; None if fewer than k were found."""
    left: Numbers
    """Indices of unvisited parts that may hold such a row."""


class TopK:
    """A search for the first ``limit`` rows of ``plan``; ``read`` holds the indices of visited parts.

    ``on_violation`` receives the wrong proofs that audits find.
    """

    def __init__(self, plan: Plan, on_violation: OnViolation) -> None:
        assert plan.limit is not None
        self._plan, self._on_violation, self._limit, self._order = plan, on_violation, plan.limit, plan.order
        self._keys = Schema(tuple({by.field.id: by.field for by in plan.order}.values()))
        self._columns = [self._keys.names.index(by.field.name) for by in plan.order]
        self.read: set[int] = set()
        self.counters: list[ReadCounters] = []
        """One per visited part."""

    # --- search ---

    def search(self, most_bytes: int | None = None) -> TopRows:
        """Find the best rows in all parts that may hold one.

        ``most_bytes`` limits the total size of the visited parts (at least one is visited).
        """
        plan, found, bound = self._plan, self._none(), None
        if self._limit == 0:
            return TopRows(found, None, np.empty(0, dtype=np.int64))
        ranked = RankedParts(
            plan.parts, plan.spec.conjuncts, self._order, plan.spec.part_schemas, (plan.spec.now_micros or 0,) * 2
        )
        waiting, wave = ranked.best_first(), 1
        held_back = np.array([ref in plan.proofs for ref in plan.parts.table["part_id"].to_pylist()], dtype=np.bool_)
        if len(plan.audit):
            found = self._best([found, *self._audited()])
        while len(waiting):
            now = waiting[:wave]
            if most_bytes is not None and self.read and self._bytes([*self.read, *now.tolist()]) > most_bytes:
                break
            waiting = waiting[wave:]
            found = self._best([found, *self._wave(now.tolist(), bound, held_back)])
            wave = min(2 * wave, reader_threads(self._plan.spec.url))
            sharper = self._bound(found)
            if sharper is not None and sharper != bound and plan.options.scan_topk:
                bound = sharper
                waiting = self._left(ranked, bound, waiting, held_back)
        return TopRows(found, bound, waiting)

    def _left(self, ranked: RankedParts, bound: Expr, waiting: Numbers, held_back: Bools) -> Numbers:
        if not len(waiting) or not self._plan.options.stats_filter:
            return waiting
        return waiting[~ranked.cannot_qualify(bound, waiting) | held_back[waiting]]

    def _bytes(self, places: list[int]) -> int:
        return int(self._plan.parts.column("bytes")[places].sum())

    def _bound(self, found: pa.Table) -> Expr | None:
        if len(found) < self._limit:
            return None
        try:
            return sorts_before(self._order, [found.column(at)[self._limit - 1] for at in range(len(self._order))])
        except ValueError:  # text that is not valid UTF-8 cannot be a literal
            return None

    def _wave(self, places: list[int], bound: Expr | None, held_back: Bools) -> Iterator[pa.Table]:
        """Yield the best rows of each of these parts, read in parallel."""
        self.read.update(places)
        refs = [self._plan.parts[at] for at in places]
        work = [
            partial(self._search, at, ref, None if held_back[at] else bound)
            for at, ref in zip(places, refs, strict=True)
        ]
        for batch in read_in_order(work, min(reader_threads(self._plan.spec.url), len(work))):
            yield pa.Table.from_batches([batch])

    def _search(self, place: int, ref: PartRef, bound: Expr | None) -> Generator[pa.RecordBatch]:
        """Yield the best rows of one part."""
        counters = ReadCounters()
        spec, proof = self._spec(ref, bound), self._plan.proofs.get(ref.part_id)
        try:
            if proof is not None:
                batches = read_audited(
                    ref, proof, replace(spec, conjuncts=self._plan.spec.conjuncts), counters, self._on_violation
                )
            else:
                batches = read_shared(
                    replace(ref, all_match=ref.all_match and bound is None), spec, counters, self._plan.shared
                )
            yield from self._kept(batches, place)
        finally:
            self.counters.append(counters)
            self._plan.report.add(("embedded", place), counters)

    def _spec(self, ref: PartRef, bound: Expr | None) -> ReadSpec:
        spec = self._plan.spec
        tested = () if ref.all_match else spec.conjuncts
        return replace(spec, schema=self._keys, positions=True, conjuncts=tested if bound is None else (*tested, bound))

    def _audited(self) -> Iterator[pa.Table]:
        """Yield rows of skipped parts, read to check the proof."""
        first = len(self._plan.parts)
        for at, ref in enumerate(self._plan.audit, first):
            yield from (pa.Table.from_batches([batch]) for batch in self._search(at, ref, None))

    def _kept(self, batches: Iterator[pa.RecordBatch], place: int) -> Iterator[pa.RecordBatch]:
        held, rows, size, most = [self._none()], 0, 0, HELD_BYTES
        for batch in batches:
            held.append(self._placed(batch, place))
            rows += len(batch)
            size += held[-1].nbytes
            if rows > max(LEAST_HELD, 4 * self._limit) or size > most:
                held = [self._best(held)]
                rows, size = len(held[0]), held[0].nbytes
                most = max(HELD_BYTES, 2 * size)  # so that the best rows are not sorted again for each batch
        yield from self._best(held).combine_chunks().to_batches()

    def _placed(self, batch: pa.RecordBatch, place: int) -> pa.Table:
        keys = [batch.column(at) for at in self._columns]
        where = [pa.repeat(pa.scalar(place, pa.int64()), len(batch)), batch.column(len(self._keys.fields))]
        return pa.Table.from_arrays([*keys, *where], schema=self._none().schema)

    def _none(self) -> pa.Table:
        arrow = to_arrow_schema(self._keys)
        keys = [pa.field(str(at), arrow.field(column).type) for at, column in enumerate(self._columns)]
        return pa.schema([*keys, (PLACE, pa.int64()), (POSITION, pa.int64())]).empty_table()

    def _best(self, tables: Sequence[pa.Table]) -> pa.Table:
        return sorted_rows(pa.concat_tables(tables), self._order, self._limit)

    # --- fetch ---

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the result rows with the selected columns, in order."""
        found = self.search().rows
        schema = self._plan.spec.schema
        if not len(found):
            return
        if not schema.fields:
            yield pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), len(found), [None]))
            return
        place, position = found[PLACE].to_numpy(), found[POSITION].to_numpy()
        fetched = pa.Table.from_batches(list(self._fetched(place, position)))
        at = np.empty(len(found), dtype=np.int64)
        at[np.lexsort((position, place))] = np.arange(len(found))
        yield from NumberedRows(fetched).pieces(at, HELD_BYTES, self._plan.spec.batch_rows)

    def _fetched(self, place: Numbers, position: Numbers) -> Iterator[pa.RecordBatch]:
        """Yield the wanted rows by part, ordered by position."""
        work = [
            partial(self._fetch, int(at), BitMap(position[place == at].astype(np.uint32))) for at in np.unique(place)
        ]
        yield from read_in_order(work, min(reader_threads(self._plan.spec.url), len(work)))

    def _fetch(self, place: int, wanted: Any) -> Generator[pa.RecordBatch]:
        kept = self._plan.parts
        ref = kept[place] if place < len(kept) else self._plan.audit[place - len(kept)]
        cost = ReadCounters()
        try:
            chosen = replace(ref, all_match=True, candidates=wanted.serialize(), window=None)
            yield from read_part(chosen, replace(self._plan.spec, conjuncts=(), positions=False), cost)
        finally:
            only = ReadCounters(
                bytes_follower=cost.bytes_leader + cost.bytes_follower,
                bytes_footer=cost.bytes_footer,
                requests=cost.requests,
            )
            self._plan.report.add(("followers", place), only)
