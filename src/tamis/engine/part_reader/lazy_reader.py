"""Reader of one part: the filter's columns first, the others only for rows that survive.

Invariant: the output, rows and errors, equals reading every column of every live row and then filtering; only
the cost differs. Deleted rows do not exist. Blocks excluded by their own statistics are not read at all; a
block without survivors costs only its leaders; in a block with survivors, followers are decoded and reduced
to them. Memory is bounded by a few blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.expr import Expr, can_fail, check_supported, is_supported
from tamis.core.expr.generated_columns import derived_ids
from tamis.core.expr.java_doubles import spark_decides
from tamis.core.pruning import decide
from tamis.core.pruning.selectivity import expected_share
from tamis.core.types import Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.core.types.dictionary_arrays import bytes_without_dictionary, joined_arrays
from tamis.engine.part_reader.evidence_cache import block_evidence
from tamis.engine.part_reader.filter_failure import failure_error
from tamis.engine.part_reader.filter_order import ordered_conjunction
from tamis.engine.part_reader.lazy_choice import Gate, ScanScattering
from tamis.engine.part_reader.leaf_filter import through_leaves
from tamis.engine.part_reader.live_rows import LiveRows, Ordinals, count_rows, with_positions
from tamis.engine.part_reader.read_columns import Columns, split_columns
from tamis.engine.part_reader.read_meter import Meter
from tamis.engine.part_reader.read_spec import ReadCounters, ReadSpec
from tamis.engine.part_reader.surviving_rows import Survivors
from tamis.errors import CorruptData, InvalidInput
from tamis.sizes import SIZES
from tamis.storage.files import PartFile, PartRef, Piece, open_part
from tamis.storage.files.shredded_leaves import with_leaves
from tamis.storage.object_store import open_store

MOST_WAITING = SIZES.waiting_rows
"""Maximum number of survivors held back so that one request fetches their followers together."""

MOST_WAITING_BYTES = 2**28
"""Maximum bytes of their leaders as plain arrays, unless one piece has more."""
_ROUGH_BYTES = 2**20
"""Bytes of a column up to which a rough bound will do: bounds are added up."""

SPARSE_STRIDE, CHOSEN_STRIDE, LATER_STRIDE = 16, 4, 4
"""Strides read at once if few rows survive, if an index chose the rows, and after the first chunk."""

Mask = np.ndarray[Any, np.dtype[np.bool_]]


def read_part(
    ref: PartRef, spec: ReadSpec, counters: ReadCounters, scattering: ScanScattering | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the live rows that satisfy ``spec.conjuncts``, in order, in the Arrow form of ``spec.schema``.

    ``scattering`` is shared by the parts of a scan; it changes the cost only. Batches are never empty. Raises
    ``CorruptData`` naming the part; under ``errors="raise"`` also ``InvalidInput``: ``FILTER_FAILED`` for the first
    row on which the filter fails, ``UNKNOWN_FUNCTION`` for a filter that cannot run here.
    """
    conjuncts = () if ref.all_match else runnable_conjuncts(spec)
    if ref.window is None:
        counters.rows_total += ref.live_rows
    if not conjuncts and not spec.schema.fields and ref.window is None:
        counters.rows_matched += ref.live_rows
        yield from count_rows(ref, spec.batch_rows, positions=spec.positions)
        return
    part_schema = _schema_of(ref, spec)
    meter = Meter(counters)
    store = open_store(spec.url, spec.storage_options)
    with meter.opening(filtered=bool(conjuncts)) as opened:
        part = opened(open_part(store, ref, part_schema, spec.sources))
    live = LiveRows(ref, part.block_rows)
    if ref.window is not None:
        counters.rows_total += live.within(*ref.window)
    asking = through_leaves(conjuncts, part.leaves)
    columns = split_columns(
        with_leaves(part_schema, part.leaves), spec.schema, spec.part_schemas, asking, partial(_apart, part)
    )
    reader = _Reader(part, live, spec, columns, conjuncts, asking, meter, scattering)
    for batch in reader.batches(ref):
        for start in range(0, len(batch), spec.batch_rows):
            yield batch if len(batch) <= spec.batch_rows else batch.slice(start, spec.batch_rows)


def _apart(part: PartFile, first: Sequence[int], second: Sequence[int]) -> bool:
    blocks = range(min(1, len(part.block_rows)))
    return part.cost(first, blocks) + part.cost(second, blocks) <= part.cost([*first, *second], blocks)


def runnable_conjuncts(spec: ReadSpec) -> tuple[Expr, ...]:
    """Return the conjuncts that the reader evaluates: those before the first unsupported one that can fail.

    Conjuncts after such a one must not drop rows: it might raise an error for them. Unsupported conjuncts
    that cannot fail are left to Spark. Raises ``InvalidInput`` (``UNKNOWN_FUNCTION``) under
    ``errors="raise"``.
    """
    evaluated: list[Expr] = []
    for conjunct in spec.conjuncts:
        if is_supported(conjunct):
            evaluated.append(conjunct)
        elif spec.errors != "keep":
            check_supported(conjunct)
        elif can_fail(conjunct):
            break
    return tuple(evaluated)


def evaluates_all(spec: ReadSpec) -> bool:
    """Return whether the reader evaluates every conjunct, so that the rows it yields are those that match."""
    return all(is_supported(conjunct) for conjunct in spec.conjuncts)


def _schema_of(ref: PartRef, spec: ReadSpec) -> Schema:
    if ref.schema_id not in spec.part_schemas:
        raise CorruptData(
            f"Part {ref.part_id} ({ref.path}) was written under schema {ref.schema_id}, which the table does not have.",
            name=ref.path,
            remedy="Refresh the table; if that does not help, its log has to be restored.",
        )
    return spec.part_schemas[ref.schema_id]


class _Reader:
    """One pass over an open part; ``asking`` holds the conjuncts as evaluated, over leaves if available."""

    def __init__(
        self,
        part: PartFile,
        live: LiveRows,
        spec: ReadSpec,
        columns: Columns,
        conjuncts: tuple[Expr, ...],
        asking: tuple[Expr, ...],
        meter: Meter,
        scattering: ScanScattering | None,
    ) -> None:
        self._live, self._asking = live, asking
        self._part, self._spec, self._columns, self._conjuncts, self._meter = part, spec, columns, conjuncts, meter
        self._schema = to_arrow_schema(spec.schema)
        self._output_ids = {f.id for f in spec.schema}
        self._has_read_chunk = False
        """Whether a chunk was read. The first one is small, for consumers that need few rows."""
        self._leader_ids, self._follower_ids = columns.ask(columns.leaders), columns.ask(columns.followers)
        self._filter = ordered_conjunction(asking, spec.now_micros)
        self._gate = Gate(spec.lazy, part, self._leader_ids, self._follower_ids, scattering)

    def batches(self, ref: PartRef) -> Iterator[pa.RecordBatch]:
        blocks = np.array(self._part.block_rows, dtype=np.int64)
        skip, sure = self._judged(ref, len(blocks))
        skip |= self._live.emptied
        by_index = self._live.unwanted & ~skip
        first, end = ref.window or (0, len(blocks))
        self._meter.planned(end - first, int(skip[first:end].sum()), int(by_index[first:end].sum()))
        skip |= by_index
        skip[:first] = skip[end:] = True
        probe = bool(self._conjuncts) and self._gate.curious
        for chunk in _chunks(self._live.looked(blocks), skip, sure, self._stride, probe=probe):
            if not self._conjuncts or sure[chunk[0]]:
                yield from self._whole(chunk)
            elif (few := self._few(chunk)) or not self._gate.lazy(chunk):
                yield from self._eagerly(chunk, few=few)
            else:
                yield from self._lazily(chunk)
            self._has_read_chunk = True

    def _stride(self) -> int:
        """The number of rows to read before followers are fetched.

        If few rows survive, a longer stride costs no more memory, and each fetch costs as much as decoding
        some pages.
        """
        if self._gate.sparse:
            return SPARSE_STRIDE * self._part.stride
        if self._live.chosen:
            return CHOSEN_STRIDE * self._part.stride
        return LATER_STRIDE * self._part.stride if self._has_read_chunk else self._part.stride

    def _few(self, chunk: Sequence[int]) -> bool:
        """Whether an index left so few rows that one read of all columns is cheaper than two reads."""
        return self._spec.lazy == "auto" and self._live.has_few_candidates(chunk)

    def _judged(self, ref: PartRef, count: int) -> tuple[Mask, Mask]:
        """Return masks of blocks where no row survives, and where all do, by the file's own statistics.

        The statistics must be correct, but may be missing.
        """
        none, every = np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
        if (
            not self._conjuncts or not self._spec.block_statistics or count < 2 or self._few(range(count))
        ):  # the manifest already covers a single block
            return none, every
        now = self._spec.now_micros
        try:
            ids = {i for conjunct in self._conjuncts for node in conjunct.walk() for i in getattr(node, "ids", ())}
            ids |= derived_ids(self._spec.part_schemas[ref.schema_id], frozenset(ids))
            evidence = block_evidence(self._part, ref, self._spec.url, ids, self._spec.part_schemas)
            decision = decide(self._conjuncts, evidence, now=None if now is None else (now, now), reasons=False)
            if len(decision.none) != count:
                return none, every
            self._gate.likely = expected_share(self._conjuncts, evidence)
        except Exception:  # noqa: BLE001  # a statistics problem never fails a query: read the blocks
            return none, every
        return decision.none, decision.all & ~decision.none

    def _whole(self, chunk: list[int]) -> Iterator[pa.RecordBatch]:
        """Yield all rows without a test."""
        wanted = [f for f in self._columns.whole if f.id in self._output_ids]
        for piece in self._read(self._columns.ask(wanted), chunk, self._live.of(chunk), leaders=False):
            positions = piece.positions if self._spec.positions else None
            yield self._out(self._columns.typed(wanted, piece.batch), len(piece), positions)
        self._meter.blocks(read=len(chunk), eager=len(chunk))

    def _eagerly(self, chunk: list[int], *, few: bool) -> Iterator[pa.RecordBatch]:
        """Read all columns at once, then filter; ``few``: only an index's candidates, counted as lazy."""
        kept = rows = decoded = 0
        wanted = self._columns.whole
        share = self._gate.leader_share
        for piece in self._read(self._columns.ask(wanted), chunk, self._live.of(chunk), leaders=True, share=share):
            arrays = self._columns.typed(wanted, piece.batch)
            keep = self._filtered(arrays, len(piece))
            some = Survivors(keep)
            kept, rows = kept + some.count, rows + len(keep)
            decoded += 0 if few else self._decoded_rows(some, piece)
            if some.count:
                positions = some.positions(piece) if self._spec.positions else None
                yield self._out(some.of_columns(self._returned(arrays)), some.count, positions)
        self._gate.saw(chunk, kept, rows, None if few else self._decoded_share(chunk, decoded))
        self._meter.blocks(read=len(chunk), lazy=len(chunk) * few, eager=len(chunk) * (not few))

    def _lazily(self, chunk: list[int]) -> Iterator[pa.RecordBatch]:
        """Read leaders, filter, then read the followers of the surviving blocks and rows."""
        rows = size = 0
        found = [np.empty(0, np.int64)]
        starts = np.concatenate([[0], np.cumsum(self._part.block_rows)])
        waiting: list[tuple[dict[int, pa.Array], Ordinals]] = []
        for piece in self._read(self._leader_ids, chunk, self._live.of(chunk), leaders=True):
            arrays = self._columns.typed(self._columns.leaders, piece.batch)
            try:
                keep = self._filtered(arrays, len(piece))
            except InvalidInput:
                yield from self._followed(waiting, starts)  # these rows come before the failing row
                raise
            some = Survivors(keep)
            rows += len(keep)
            if some.count:
                leading = some.of_columns(self._returned(arrays))
                more = sum(bytes_without_dictionary(a, _ROUGH_BYTES) for a in leading.values())
                if size + more > MOST_WAITING_BYTES:  # together they might not fit into one array
                    yield from self._followed(waiting, starts)
                    waiting, size = [], 0
                found.append(some.positions(piece))
                waiting.append((leading, found[-1]))
                size += more
            if sum(len(p) for _, p in waiting) > MOST_WAITING:
                yield from self._followed(waiting, starts)
                waiting, size = [], 0
        yield from self._followed(waiting, starts)
        survivors = np.concatenate(found)
        alive = len(_blocks_of(survivors, starts))
        needed = self._gate.needs_decoded_share
        decoded = self._part.decoded_rows(self._follower_ids, survivors) if needed else 0
        self._gate.saw(chunk, len(survivors), rows, self._decoded_share(chunk, decoded))
        self._meter.blocks(read=alive, lazy=len(chunk), skipped_filter=len(chunk) - alive)

    def _decoded_rows(self, some: Survivors, piece: Piece) -> int:
        """Estimate how many rows of the followers a lazy read decodes for the survivors of a piece."""
        if not some.count or not self._gate.needs_decoded_share:
            return 0
        if self._gate.is_dense(some.count, len(piece)):
            return len(piece)
        return self._part.decoded_rows(self._follower_ids, some.positions(piece))

    def _decoded_share(self, chunk: list[int], decoded: int) -> float:
        """Return the share of a chunk's rows that ``decoded`` rows are."""
        return decoded / max(sum(self._part.block_rows[block] for block in chunk), 1)

    def _followed(
        self, waiting: list[tuple[dict[int, pa.Array], Ordinals]], starts: Ordinals
    ) -> Iterator[pa.RecordBatch]:
        """Yield the surviving rows with their followers."""
        if not waiting:
            return
        positions = np.concatenate([p for _, p in waiting])
        leaders = {i: joined_arrays([arrays[i] for arrays, _ in waiting]) for i in waiting[0][0]}
        if not self._columns.followers:
            yield self._out(leaders, len(positions), positions)
            return
        done = 0
        for piece in self._read(self._follower_ids, _blocks_of(positions, starts), positions, leaders=False):
            size = len(piece)
            followers = self._columns.typed(self._columns.followers, piece.batch)
            leading = {i: a.slice(done, size) for i, a in leaders.items()}
            yield self._out(self._columns.joined(leading, followers), size, piece.positions)
            done += size

    def _read(
        self,
        ids: Sequence[int],
        blocks: list[int],
        rows: np.ndarray[Any, np.dtype[np.int64]] | None,
        *,
        leaders: bool,
        share: float | None = None,
    ) -> Iterator[Piece]:
        pieces = self._part.read(ids, blocks, rows)
        while True:
            with self._meter.reading(self._part, leaders=leaders, share=share):
                piece = next(pieces, None)
            if piece is None:
                return
            yield piece

    def _filtered(self, arrays: dict[int, pa.Array], length: int) -> Mask:
        with self._meter.filtering(length), spark_decides() if self._spec.errors == "keep" else nullcontext():
            keep, failed, error = self._filter.mask(arrays, length)
        if failed.any():
            if self._spec.errors == "raise":
                now = self._spec.now_micros
                raise failure_error(
                    self._asking, arrays, length, error, now_micros=now, where="", written=self._conjuncts
                )
            keep |= failed
        return keep

    def _returned(self, arrays: dict[int, pa.Array]) -> dict[int, pa.Array]:
        """Return the columns of ``arrays`` that the output needs."""
        return {i: a for i, a in arrays.items() if i in self._output_ids}

    def _out(self, arrays: dict[int, pa.Array], rows: int, positions: Ordinals | None) -> pa.RecordBatch:
        """Return ``rows`` rows of the output; ``positions`` may be None if the output has none."""
        self._meter.matched(rows)
        if not self._spec.positions:
            return self._shaped(arrays, rows)
        assert positions is not None
        if not self._schema.names:
            return with_positions(pa.record_batch([], schema=pa.schema([])), positions)
        return with_positions(self._shaped(arrays, rows), positions)

    def _shaped(self, arrays: dict[int, pa.Array], rows: int) -> pa.RecordBatch:
        return self._columns.shaped(arrays, self._schema, rows, dictionaries=self._spec.dictionaries)


def _blocks_of(positions: Ordinals, starts: Ordinals) -> list[int]:
    """Return the blocks that hold any of ``positions`` (ascending)."""
    found: list[int] = np.flatnonzero(np.diff(np.searchsorted(positions, starts))).tolist()
    return found


def _chunks(rows: Ordinals, skip: Mask, sure: Mask, most: Callable[[], int], *, probe: bool) -> Iterator[list[int]]:
    """Group the blocks to read, in order, by whether they need testing, up to ``most()`` rows per chunk.

    With ``probe``, the first block to be tested is a chunk of its own.
    """
    chunk: list[int] = []
    count = 0
    for block in np.flatnonzero(~skip).tolist():
        size = int(rows[block])
        if chunk and (count + size > most() or sure[block] != sure[chunk[0]] or (probe and not sure[chunk[0]])):
            yield chunk
            probe = probe and bool(sure[chunk[0]])
            chunk, count = [], 0
        chunk.append(block)
        count += size
    if chunk:
        yield chunk
