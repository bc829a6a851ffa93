"""Index lookups by the part readers: each task looks up its own base parts, bypassing the driver.

There are two uses. For a large result, only positions are looked up (``columns`` is None), and the reader
visits these rows. If the index has every column that a query needs, rows are built from its entries, and the
base is not read. Both leave out deleted rows and removed parts.

Invariant: the output equals that of a lookup during planning. If an index cannot be read, the base part is
read whole, and the counter ``parts_index_unread`` says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from tamis.core.types import Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.part_reader import ReadCounters, ReadSpec, read_part
from tamis.engine.secondary_index.candidate_rows import Ints
from tamis.engine.secondary_index.index_definition import PART, ROW
from tamis.engine.secondary_index.index_pages import WHOLE_ROWS, narrow_index_part
from tamis.engine.secondary_index.lookup_cost import HELD_BYTES
from tamis.errors import InvalidInput, TamisError
from tamis.storage.commit_log.deletion_vectors import read_bitmap, row_ordinals
from tamis.storage.files import PartRef
from tamis.storage.object_store import open_store
from tamis.storage.object_store.lru_cache import LruCache

Reading = Callable[[PartRef, ReadSpec, ReadCounters], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class MatchingEntries:
    """The matching entries of an index segment, sorted by base part (ordinal) and row."""

    parts: Ints
    rows: Ints
    values: pa.RecordBatch
    """The requested columns in order; empty if only positions were requested."""

    def rows_of_part(self, ordinal: int) -> tuple[Ints, pa.RecordBatch]:
        """Return the sorted rows of a base part, and their values."""
        first, end = (int(at) for at in np.searchsorted(self.parts, (ordinal, ordinal + 1)))
        return self.rows[first:end], self.values.slice(first, end - first)


_found = LruCache[MatchingEntries](HELD_BYTES, largest_share=4.0)
"""Matching entries of index segments, reused for their other base parts. A result larger than estimated stays alone."""
_failed = LruCache[TamisError](2**20)
"""Errors of index segments that could not be read, so that the lookup's other parts do not try again."""
_asking: dict[tuple[str, int], threading.Lock] = {}
_lock = threading.RLock()


@dataclass(frozen=True, slots=True)
class SharedLookup:
    """A picklable index lookup; ``token`` identifies it within a process."""

    token: str
    name: str
    """The index's name."""
    read: ReadSpec
    """The spec for reading entries: the requested columns, then ordinal and row."""
    segments: Mapping[int, Sequence[PartRef]]
    """The index parts that may hold a match, by index segment."""
    places: Mapping[str, tuple[int, int]]
    """The index segment and ordinal of each base part that it covers."""
    columns: Schema | None
    """The columns of rows built without reading the base; None: only positions are looked up."""

    def for_parts(self, part_ids: Sequence[str]) -> SharedLookup:
        """Return the lookup reduced to these base parts."""
        places = {part: self.places[part] for part in part_ids if part in self.places}
        used = {at for at, _ in places.values()}
        return replace(self, places=places, segments={at: self.segments[at] for at in used})

    def batches(self, ref: PartRef, spec: ReadSpec, counters: ReadCounters, read: Reading) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a base part, equal to ``read`` of the whole part."""
        if ref.part_id not in self.places or ref.all_match:
            yield from read(ref, spec, counters)
            return
        at, ordinal = self.places[ref.part_id]
        try:
            rows, values = self.entries(at, counters).rows_of_part(ordinal)
        except InvalidInput:  # an entry fails, or only Spark can test it: the base part shows for which row
            yield from read(ref, spec, counters)
            return
        except TamisError:  # the invariant above: read the part whole
            counters.parts_index_unread += 1
            yield from read(ref, spec, counters)
            return
        if ref.deletion:
            live = ~np.isin(rows, row_ordinals(read_bitmap(ref.deletion, ref.part_id)))
            rows, values = rows[live], values.filter(pa.array(live)) if values.num_columns else values
        if self._suffices(spec) and ref.window is None:
            counters.rows_total += ref.live_rows
            counters.rows_matched += len(rows)
            counters.blocks_skipped_index += len(ref.blocks)
            yield from self._rows_from_entries(values, len(rows), spec)
        elif len(rows):
            yield from read(replace(ref, candidates=_serialized(rows, ref)), spec, counters)
        elif ref.window is None:
            counters.rows_total += ref.live_rows
            counters.blocks_skipped_index += len(ref.blocks)

    def _suffices(self, spec: ReadSpec) -> bool:
        """Whether rows can be built from entries alone."""
        return self.columns is not None and not spec.positions and all(f in self.columns.fields for f in spec.schema)

    def _rows_from_entries(self, values: pa.RecordBatch, count: int, spec: ReadSpec) -> Iterator[pa.RecordBatch]:
        """Yield entries as rows of the reader's columns."""
        assert self.columns is not None
        schema, held = to_arrow_schema(spec.schema), [f.id for f in self.columns]
        arrays = [values.column(held.index(f.id)) for f in spec.schema]
        for start in range(0, count, spec.batch_rows):
            length = min(spec.batch_rows, count - start)
            pieces = [array.slice(start, length) for array in arrays]
            yield pa.RecordBatch.from_arrays(pieces, schema=schema) if pieces else _bare(length)

    def entries(self, at: int, counters: ReadCounters) -> MatchingEntries:
        """Return the matches in an index segment; read once per process, by the first caller."""
        key = (self.token, at)
        with _lock:
            asking = _asking.setdefault(key, threading.Lock())
        try:
            with asking:
                found = _found.get(key)
                if found is None:
                    if (failed := _failed.get(key)) is not None:
                        raise copy(failed)
                    found = self._read_once(key, counters)
        finally:
            with _lock:
                _asking.pop(key, None)
        return found

    def _read_once(self, key: tuple[str, int], counters: ReadCounters) -> MatchingEntries:
        """Read the matches in an index segment, and keep them, or the error, for the lookup's other parts."""
        try:
            found = self._read(key[1], counters)
        except TamisError as error:
            _failed.put(key, copy(error), 1024)  # an error that is raised holds this lookup, by its traceback
            raise
        _found.put(key, found, found.values.nbytes + found.rows.nbytes * 2)
        return found

    def _narrowed(self, part: PartRef, cost: ReadCounters) -> PartRef | None:
        """Narrow an index part by its page statistics; None if nothing is left."""
        if not self.read.block_statistics or part.all_match or part.rows <= WHOLE_ROWS:
            return part
        spec, now = self.read, self.read.now_micros or 0
        ids = {f.id for schema in spec.part_schemas.values() for f in schema} - {PART, ROW}
        store = open_store(spec.url, spec.storage_options)
        return narrow_index_part(store, part, spec.part_schemas, ids, spec.conjuncts, (now, now), cost).ref

    def _read(self, at: int, counters: ReadCounters) -> MatchingEntries:
        cost = ReadCounters()
        try:
            left = [ref for part in self.segments[at] if (ref := self._narrowed(part, cost)) is not None]
            batches = [batch for part in left for batch in read_part(part, self.read, cost)]
        finally:
            counters.bytes_index += cost.bytes_leader + cost.bytes_follower
            counters.requests += cost.requests
        table = pa.Table.from_batches(batches, to_arrow_schema(self.read.schema)).combine_chunks()
        parts, rows = (table.column(i).to_numpy().astype(np.int64) for i in (-2, -1))
        order = np.lexsort((rows, parts))
        values = table.select(range(table.num_columns - 2)).take(pa.array(order))
        return MatchingEntries(parts[order], rows[order], _one(values, len(rows)))


def _one(table: pa.Table, length: int) -> pa.RecordBatch:
    """Combine the table to one batch, keeping its length even without columns."""
    if not table.num_columns:
        return _bare(length)
    return pa.RecordBatch.from_arrays([c.combine_chunks() for c in table.columns], names=table.column_names)


def _bare(length: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), length, [None]))


def _serialized(rows: Ints, ref: PartRef) -> bytes:
    """Serialize the rows as candidates, intersected with another index's candidates."""
    chosen = BitMap(rows.astype(np.uint32))
    return bytes((chosen if ref.candidates is None else chosen & read_bitmap(ref.candidates, ref.part_id)).serialize())


def read_shared(
    ref: PartRef, spec: ReadSpec, counters: ReadCounters, shared: Sequence[SharedLookup], read: Reading = read_part
) -> Iterator[pa.RecordBatch]:
    """Yield a part's rows, using an index if a lookup was deferred to the reader."""
    mine = next((one for one in shared if ref.part_id in one.places), None)
    return read(ref, spec, counters) if mine is None else mine.batches(ref, spec, counters, read)
