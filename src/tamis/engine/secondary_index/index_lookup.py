"""Index lookup: run conjuncts on the entries of an index to find row positions.

It uses the same funnel as the table: statistics of index parts, then of their pages, then the filter itself.
Positions in base parts that are dead, or that another index segment covers, are dropped.

Invariant: an index segment that cannot be read answers for nothing (``Coverage.mark_unreadable``); the others go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.expr import Call, Column, Expr
from tamis.core.pruning import decide
from tamis.core.types import BOOLEAN, Schema
from tamis.engine.part_reader import ReadCounters, ReadSpec, evidence_of, read_part
from tamis.engine.secondary_index.candidate_rows import Bools, Candidates, Ints
from tamis.engine.secondary_index.index_coverage import Coverage
from tamis.engine.secondary_index.index_definition import PART, ROW, schemas_of
from tamis.engine.secondary_index.index_pages import WHOLE_ROWS, Narrowed, narrow_index_part
from tamis.engine.secondary_index.index_segments import refs_of
from tamis.engine.secondary_index.indexed_paths import UNSURE
from tamis.engine.secondary_index.lookup_cost import Estimate
from tamis.engine.secondary_index.shared_lookup import SharedLookup
from tamis.errors import InvalidInput, TamisError
from tamis.sizes import SIZES
from tamis.storage.commit_log import Snapshot
from tamis.storage.files import PartRef
from tamis.storage.object_store import Store
from tamis.storage.object_store.lru_cache import LruCache
from tamis.storage.object_store.metadata_union import stack_tables
from tamis.world import new_id

FEW_ROWS = SIZES.index_few_rows
"""Entries that are read without estimating the cost first."""
SAMPLE = SIZES.index_sample_parts
"""Index parts whose pages are sampled for an estimate."""
THREADS = 4


_manifests = LruCache[pa.Table](8 * 2**20)


class TooManyHits(Exception):
    """A lookup found more hits than allowed."""


@dataclass
class Lookup:
    """One lookup: ``conjuncts`` use only columns of the index; ``wanted`` marks the plan's parts to cover."""

    snapshot: Snapshot
    store: Store
    covered: Coverage
    conjuncts: tuple[Expr, ...]
    wanted: Bools
    now: tuple[int, int]
    counters: ReadCounters = field(default_factory=ReadCounters)
    by_statistics: bool = True
    """Whether statistics of the index decide which of its parts and pages are read, and that hits are exact."""
    errors: str = "raise"
    """``ReadSpec.errors`` for entries that become rows, which the part readers do not test again."""
    _narrowed: dict[str, Narrowed] = field(default_factory=dict, repr=False)
    """Index parts that were opened for the estimate."""

    @cached_property
    def schemas(self) -> Mapping[int, Schema]:
        return schemas_of(self.covered.index, self.snapshot.head)

    @property
    def covered_parts(self) -> Bools:
        """The wanted parts that this lookup covers, as far as its index segments could be read."""
        known: Bools = self.wanted & (self.covered.owner >= 0)
        return known

    @property
    def _used(self) -> list[int]:
        return [int(at) for at in np.unique(self.covered.owner[self.covered_parts])]

    @cached_property
    def has_exact_hits(self) -> bool:
        """Whether no entry is flagged unsure, by the flag's statistics, so that every hit is exact."""
        if not self.covered.index.paths:
            return True
        flagged = Column(BOOLEAN, (UNSURE,), "unsure", False)
        return bool(
            decide((flagged,), evidence_of(self._manifest, self.schemas), now=self.now, reasons=False).none.all()
        )

    @cached_property
    def _flat(self) -> tuple[Expr, ...]:
        return tuple(flatten_columns(conjunct) for conjunct in self.conjuncts)

    @cached_property
    def _ids(self) -> frozenset[int]:
        """The columns whose statistics are loaded; none if statistics are off, so that every index part is kept."""
        if not self.by_statistics:
            return frozenset()
        return frozenset((*(path[-1] for path in self.covered.index.columns), UNSURE))

    @cached_property
    def _kept(self) -> list[tuple[PartRef, int]]:
        """The index parts that statistics keep, each with its index segment (index in ``covered.built``)."""
        table = self._manifest
        decision = decide(self._flat, evidence_of(table, self.schemas), now=self.now, reasons=False)
        alive = ~decision.none
        every = (decision.all & alive)[alive]
        left = table.filter(pa.array(alive))
        refs = [replace(ref, all_match=bool(sure)) for ref, sure in zip(refs_of(left), every, strict=True)]
        return list(zip(refs, left["entry"].to_pylist(), strict=True))

    def _parts(self) -> list[tuple[PartRef, int]]:
        """Return ``_kept`` without the index segments that proved unreadable or no longer cover a wanted part."""
        used = set(self._used)
        return [(ref, at) for ref, at in self._kept if at in used and at not in self.covered.unread]

    def load_manifest(self) -> bool:
        """Read the lists of index parts. Returns whether the readable ones cover any wanted part."""
        return bool(self.covered_parts.any() and self._manifest.num_columns and self.covered_parts.any())

    @cached_property
    def _manifest(self) -> pa.Table:
        """The parts of all used index segments: statistics, and their index in ``covered.built``.

        Without columns if no index segment can be read.
        """
        key = (self.store.url, self._ids, *((at, self.covered.built[at].segment_id) for at in self._used))
        table = _manifests.get(key)
        if table is None:
            tables = []
            for at in self._used:
                try:
                    one = self.covered.built[at].manifest(self.snapshot.store, self._ids)
                except TamisError as error:
                    self.covered.mark_unreadable(at, error)
                    continue
                tables.append(one.append_column("entry", pa.array(np.full(len(one), at, dtype=np.int64))))
            table = stack_tables(tables).combine_chunks() if tables else pa.table({})
            if not self.covered.unread:
                _manifests.put(key, table, table.nbytes)
        return table

    @cached_property
    def estimate(self) -> Estimate:
        """The estimate from statistics of index parts and their pages; reads footers.

        Counts all entries of pages that match entirely, and one entry of each page that may match.
        """
        parts = self._parts()
        segments = len({at for _, at in parts})
        sure = [ref for ref, _ in parts if ref.all_match]
        hits, size = sum(ref.rows for ref in sure), sum(ref.bytes for ref in sure)
        unsure = [(ref, at) for ref, at in parts if not ref.all_match]
        if sum(ref.rows for ref, _ in unsure) <= FEW_ROWS:
            return Estimate(hits + len(unsure), size + sum(ref.bytes for ref, _ in unsure), segments)
        looked = unsure[:: max(len(unsure) // SAMPLE, 1)][:SAMPLE]
        for ref, at in looked:
            try:
                self._narrowed[ref.part_id] = self._narrow(ref, self.counters)
            except TamisError as error:
                self.covered.mark_unreadable(at, error)
        scale = len(unsure) / max(len(looked), 1)
        found = self._narrowed.values()
        hits += int(scale * sum(f.hits for f in found))
        size += int(scale * sum(f.bytes for f in found))
        return Estimate(hits, size, segments)

    def _narrow(self, ref: PartRef, counters: ReadCounters) -> Narrowed:
        """Narrow an index part; small ones and those that match entirely are kept whole."""
        if not self.by_statistics or ref.all_match or ref.rows <= WHOLE_ROWS:
            return Narrowed(ref, 1, ref.bytes)
        return narrow_index_part(self.store, ref, self.schemas, self._ids, self._flat, self.now, counters)

    def run(self, limit: int | None) -> Candidates:
        """Return the candidates in the parts whose index segments can be read.

        Raises ``TooManyHits`` beyond ``limit`` hits.
        """
        kept = self._parts()
        spec = replace(self.spec(), block_statistics=False)  # pages have been judged already
        places = {at: self._places(at) for at in self._used}
        found: list[tuple[Ints, Ints]] = []
        total = 0

        def read(ref: PartRef, at: int) -> tuple[list[tuple[Ints, Ints]], ReadCounters, TamisError | None]:
            counters, hits = ReadCounters(), 0
            out = []
            try:
                left = (self._narrowed.get(ref.part_id) or self._narrow(ref, counters)).ref
                for batch in () if left is None else read_part(left, spec, counters):
                    parts = places[at][batch.column(0).to_numpy()]
                    rows = batch.column(1).to_numpy().astype(np.int64)
                    live = parts >= 0
                    out.append((parts[live], rows[live]))
                    hits += len(out[-1][0])
                    if limit is not None and hits > limit:
                        break
            except TamisError as error:
                return [], counters, error
            return out, counters, None

        for (_, at), (out, counters, error) in zip(kept, _each(read, kept), strict=True):
            self.counters.merge(counters)
            if error is not None:
                self.covered.mark_unreadable(at, error)
            found += out
            total += sum(len(parts) for parts, _ in out)
            if limit is not None and total > limit:
                raise TooManyHits
        return self._candidates(found)

    def _candidates(self, found: Sequence[tuple[Ints, Ints]]) -> Candidates:
        """Return the hits in the parts that are covered now that the index segments have been read."""
        empty, asked = np.empty(0, dtype=np.int64), self.covered_parts
        parts = np.concatenate([empty, *(parts for parts, _ in found)])
        rows = np.concatenate([empty, *(rows for _, rows in found)])
        return Candidates.from_hits(asked, parts[asked[parts]], rows[asked[parts]])

    def to_shared_lookup(self, columns: Schema | None) -> SharedLookup:
        """Return the same lookup for use by the part readers.

        ``columns`` are the reader's, if the index has them all and covers the whole filter.
        """
        segments: dict[int, list[PartRef]] = {at: [] for at in self._used}
        for ref, at in self._parts():
            if at in segments:
                segments[at].append(ref)
        mine = np.flatnonzero(self.covered_parts)
        ids = self.covered.part_ids.take(pa.array(mine)).to_pylist()
        places = zip(self.covered.owner[mine].tolist(), self.covered.ordinal[mine].tolist(), strict=True)
        return SharedLookup(
            token=new_id(),
            name=self.covered.index.name,
            read=self.spec(columns),
            segments=segments,
            places=dict(zip(ids, places, strict=True)),
            columns=columns,
        )

    def run_shared(self, shared: SharedLookup, limit: int | None) -> tuple[Candidates, SharedLookup | None]:
        """Read the entries that also supply the rows; return the candidates, and ``shared`` reduced to their parts.

        If an entry fails, or only Spark can test it, the rows come from the base: None replaces ``shared``. Raises
        ``TooManyHits`` as ``run`` does.
        """
        found = []
        for at in self._used:
            try:
                entries = shared.entries(at, self.counters)
            except InvalidInput:
                return self.run(limit), None
            except TamisError as error:
                self.covered.mark_unreadable(at, error)
                continue
            parts = self._places(at)[entries.parts]
            found.append((parts[parts >= 0], entries.rows[parts >= 0]))
        candidates = self._candidates(found)
        return candidates, shared.for_parts(self.covered.part_ids.filter(pa.array(self.covered_parts)).to_pylist())

    def spec(self, columns: Schema | None = None) -> ReadSpec:
        """Return a spec to read these columns of entries, then ordinal and row.

        Without columns, the spec keeps entries that match, that raise, or that only Spark can test, because the base
        part decides about them.
        """
        current = self.schemas[max(self.schemas)]
        wanted = () if columns is None else tuple(f.id for f in columns)
        return ReadSpec(
            url=self.store.url,
            storage_options=dict(self.store.options),
            schema=replace(current, fields=tuple(current.by_id[i] for i in (*wanted, PART, ROW))),
            part_schemas=self.schemas,
            conjuncts=self._flat,
            errors="keep" if columns is None else self.errors,
            lazy="off",
            block_statistics=self.by_statistics,
            now_micros=self.now[1],
        )

    def _places(self, at: int) -> Ints:
        """Return the plan index of each base part that the index segment covers; -1 if it is not wanted."""
        mine = np.flatnonzero(self.covered_parts & (self.covered.owner == at))
        places = np.full(len(self.covered.built[at].covers(self.snapshot.store)), -1, dtype=np.int64)
        places[self.covered.ordinal[mine]] = mine
        return places


def flatten_columns(expr: Expr) -> Expr:
    """Rewrite for an index part, where indexed columns are at the top level under their own ids."""
    if isinstance(expr, Column):
        return replace(expr, ids=expr.ids[-1:], name=f"c{expr.ids[-1]}", nullable=True)
    return replace(expr, args=tuple(flatten_columns(arg) for arg in expr.args)) if isinstance(expr, Call) else expr


def _each(read: Any, parts: Sequence[tuple[PartRef, int]]) -> Any:
    """Yield ``read`` of each part, a few in parallel."""
    if len(parts) < 2:
        yield from (read(ref, at) for ref, at in parts)
        return
    with ThreadPoolExecutor(min(THREADS, len(parts)), thread_name_prefix="tamis-index") as pool:
        futures = [pool.submit(read, ref, at) for ref, at in parts]
        try:
            for future in futures:
                yield future.result()
        finally:
            for future in futures:
                future.cancel()
