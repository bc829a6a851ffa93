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
from tamis.engine.part_reader.lazy_choice import LazyChoice, ScanScattering
from tamis.engine.part_reader.leaf_filter import rewrite_to_leaves
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
"""Bytes of a column up to which a rough upper bound of its size suffices, because the bounds are added up."""

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
        counters.rows_total += live.count_live(*ref.window)
    evaluated = rewrite_to_leaves(conjuncts, part.leaves)
    columns = split_columns(
        with_leaves(part_schema, part.leaves), spec.schema, spec.part_schemas, evaluated, partial(_is_split_free, part)
    )
    reader = _Reader(part, live, spec, columns, conjuncts, evaluated, meter, scattering)
    for batch in reader.batches(ref):
        for start in range(0, len(batch), spec.batch_rows):
            yield batch if len(batch) <= spec.batch_rows else batch.slice(start, spec.batch_rows)


def _is_split_free(part: PartFile, first: Sequence[int], second: Sequence[int]) -> bool:
    """Whether reading two lists of columns separately costs no more than reading them together."""
    blocks = range(min(1, len(part.block_rows)))
    return part.cost(first, blocks) + part.cost(second, blocks) <= part.cost([*first, *second], blocks)


def runnable_conjuncts(spec: ReadSpec) -> tuple[Expr, ...]:
    """Return the conjuncts that the reader evaluates: those before the first unsupported one that can fail.

    Conjuncts after it must not drop rows, because it might raise an error on them. Unsupported conjuncts
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
    """Whether the reader evaluates every conjunct, so that it yields exactly the rows that match."""
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
    """One pass over an open part; ``evaluated`` holds the conjuncts, rewritten to read the file's leaves."""

    def __init__(
        self,
        part: PartFile,
        live: LiveRows,
        spec: ReadSpec,
        columns: Columns,
        conjuncts: tuple[Expr, ...],
        evaluated: tuple[Expr, ...],
        meter: Meter,
        scattering: ScanScattering | None,
    ) -> None:
        self._live, self._evaluated = live, evaluated
        self._part, self._spec, self._columns, self._conjuncts, self._meter = part, spec, columns, conjuncts, meter
        self._schema = to_arrow_schema(spec.schema)
        self._output_ids = {f.id for f in spec.schema}
        self._has_read_chunk = False
        """Whether a chunk was read. The first one is small, for consumers that need few rows."""
        self._leader_ids = columns.file_column_ids(columns.leaders)
        self._follower_ids = columns.file_column_ids(columns.followers)
        self._filter = ordered_conjunction(evaluated, spec.now_micros)
        self._choice = LazyChoice(spec.lazy, part, self._leader_ids, self._follower_ids, scattering)

    def batches(self, ref: PartRef) -> Iterator[pa.RecordBatch]:
        blocks = np.array(self._part.block_rows, dtype=np.int64)
        skip, sure = self._prune_blocks(ref, len(blocks))
        skip |= self._live.deleted_blocks
        by_index = self._live.blocks_without_candidates & ~skip
        first, end = ref.window or (0, len(blocks))
        self._meter.record_plan(end - first, int(skip[first:end].sum()), int(by_index[first:end].sum()))
        skip |= by_index
        skip[:first] = skip[end:] = True
        probe = bool(self._conjuncts) and self._choice.needs_probe
        for chunk in _chunks(self._live.estimate_visited(blocks), skip, sure, self._stride, probe=probe):
            if not self._conjuncts or sure[chunk[0]]:
                yield from self._read_unfiltered(chunk)
            elif (few := self._prefers_single_read(chunk)) or not self._choice.prefers_lazy(chunk):
                yield from self._read_eager(chunk, few=few)
            else:
                yield from self._read_lazy(chunk)
            self._has_read_chunk = True

    def _stride(self) -> int:
        """Return the number of rows to read before followers are fetched.

        If few rows survive, a longer stride costs no more memory, and each fetch costs as much as decoding
        some pages.
        """
        if self._choice.is_sparse:
            return SPARSE_STRIDE * self._part.stride
        if self._live.has_candidates:
            return CHOSEN_STRIDE * self._part.stride
        return LATER_STRIDE * self._part.stride if self._has_read_chunk else self._part.stride

    def _prefers_single_read(self, chunk: Sequence[int]) -> bool:
        """Whether an index left so few rows that reading all columns at once is cheaper than two reads."""
        return self._spec.lazy == "auto" and self._live.has_few_candidates(chunk)

    def _prune_blocks(self, ref: PartRef, count: int) -> tuple[Mask, Mask]:
        """Return masks of the blocks where no row survives and of those where all do, by the file's statistics.

        The statistics must be correct, but may be missing.
        """
        none, every = np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
        if not self._conjuncts or not self._spec.block_statistics:
            return none, every
        if count < 2 or self._prefers_single_read(range(count)):  # the manifest already covers a single block
            return none, every
        now = self._spec.now_micros
        try:
            ids = {i for conjunct in self._conjuncts for node in conjunct.walk() for i in getattr(node, "ids", ())}
            ids |= derived_ids(self._spec.part_schemas[ref.schema_id], frozenset(ids))
            evidence = block_evidence(self._part, ref, self._spec.url, ids, self._spec.part_schemas)
            decision = decide(self._conjuncts, evidence, now=None if now is None else (now, now), reasons=False)
            if len(decision.none) != count:
                return none, every
            self._choice.expected_shares = expected_share(self._conjuncts, evidence)
        except Exception:  # noqa: BLE001  # a statistics problem never fails a query: read the blocks
            return none, every
        return decision.none, decision.all & ~decision.none

    def _read_unfiltered(self, chunk: list[int]) -> Iterator[pa.RecordBatch]:
        """Yield all rows of blocks in which every row matches."""
        wanted = [f for f in self._columns.whole if f.id in self._output_ids]
        ids = self._columns.file_column_ids(wanted)
        for piece in self._read_pieces(ids, chunk, self._live.ordinals_to_visit(chunk), leaders=False):
            positions = piece.positions if self._spec.positions else None
            yield self._output_batch(self._columns.convert_columns(wanted, piece.batch), len(piece), positions)
        self._meter.record_blocks(read=len(chunk), eager=len(chunk))

    def _read_eager(self, chunk: list[int], *, few: bool) -> Iterator[pa.RecordBatch]:
        """Read all columns at once, then filter.

        ``few``: the rows are the few candidates that an index left; the read is counted as lazy.
        """
        kept = rows = decoded = 0
        wanted = self._columns.whole
        ids, share = self._columns.file_column_ids(wanted), self._choice.leader_share
        for piece in self._read_pieces(ids, chunk, self._live.ordinals_to_visit(chunk), leaders=True, share=share):
            arrays = self._columns.convert_columns(wanted, piece.batch)
            keep = self._filter_mask(arrays, len(piece))
            some = Survivors(keep)
            kept, rows = kept + some.count, rows + len(keep)
            decoded += 0 if few else self._decoded_rows(some, piece)
            if some.count:
                positions = some.positions(piece) if self._spec.positions else None
                yield self._output_batch(some.filter_columns(self._output_columns(arrays)), some.count, positions)
        self._choice.record_survivors(chunk, kept, rows, None if few else self._decoded_share(chunk, decoded))
        self._meter.record_blocks(read=len(chunk), lazy=len(chunk) * few, eager=len(chunk) * (not few))

    def _read_lazy(self, chunk: list[int]) -> Iterator[pa.RecordBatch]:
        """Read leaders, filter, then read the followers of the surviving blocks and rows."""
        rows = size = 0
        found = [np.empty(0, np.int64)]
        starts = np.concatenate([[0], np.cumsum(self._part.block_rows)])
        waiting: list[tuple[dict[int, pa.Array], Ordinals]] = []
        for piece in self._read_pieces(self._leader_ids, chunk, self._live.ordinals_to_visit(chunk), leaders=True):
            arrays = self._columns.convert_columns(self._columns.leaders, piece.batch)
            try:
                keep = self._filter_mask(arrays, len(piece))
            except InvalidInput:
                yield from self._fetch_followers(waiting, starts)  # these rows come before the failing row
                raise
            some = Survivors(keep)
            rows += len(keep)
            if some.count:
                leading = some.filter_columns(self._output_columns(arrays))
                more = sum(bytes_without_dictionary(a, _ROUGH_BYTES) for a in leading.values())
                if size + more > MOST_WAITING_BYTES:  # together they might not fit into one array
                    yield from self._fetch_followers(waiting, starts)
                    waiting, size = [], 0
                found.append(some.positions(piece))
                waiting.append((leading, found[-1]))
                size += more
            if sum(len(p) for _, p in waiting) > MOST_WAITING:
                yield from self._fetch_followers(waiting, starts)
                waiting, size = [], 0
        yield from self._fetch_followers(waiting, starts)
        survivors = np.concatenate(found)
        alive = len(_blocks_of(survivors, starts))
        needed = self._choice.needs_decoded_share
        decoded = self._part.decoded_rows(self._follower_ids, survivors) if needed else 0
        self._choice.record_survivors(chunk, len(survivors), rows, self._decoded_share(chunk, decoded))
        self._meter.record_blocks(read=alive, lazy=len(chunk), skipped_filter=len(chunk) - alive)

    def _decoded_rows(self, some: Survivors, piece: Piece) -> int:
        """Estimate how many rows of the followers a lazy read decodes for the survivors of a piece."""
        if not some.count or not self._choice.needs_decoded_share:
            return 0
        if self._choice.is_dense(some.count, len(piece)):
            return len(piece)
        return self._part.decoded_rows(self._follower_ids, some.positions(piece))

    def _decoded_share(self, chunk: list[int], decoded: int) -> float:
        """Return ``decoded`` as a share of the chunk's rows."""
        return decoded / max(sum(self._part.block_rows[block] for block in chunk), 1)

    def _fetch_followers(
        self, waiting: list[tuple[dict[int, pa.Array], Ordinals]], starts: Ordinals
    ) -> Iterator[pa.RecordBatch]:
        """Yield the surviving rows with their followers."""
        if not waiting:
            return
        positions = np.concatenate([p for _, p in waiting])
        leaders = {i: joined_arrays([arrays[i] for arrays, _ in waiting]) for i in waiting[0][0]}
        if not self._columns.followers:
            yield self._output_batch(leaders, len(positions), positions)
            return
        done = 0
        for piece in self._read_pieces(self._follower_ids, _blocks_of(positions, starts), positions, leaders=False):
            size = len(piece)
            followers = self._columns.convert_columns(self._columns.followers, piece.batch)
            leading = {i: a.slice(done, size) for i, a in leaders.items()}
            yield self._output_batch(self._columns.merge_followers(leading, followers), size, piece.positions)
            done += size

    def _read_pieces(
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

    def _filter_mask(self, arrays: dict[int, pa.Array], length: int) -> Mask:
        with self._meter.filtering(length), spark_decides() if self._spec.errors == "keep" else nullcontext():
            keep, failed, error = self._filter.mask(arrays, length)
        if failed.any():
            if self._spec.errors == "raise":
                now = self._spec.now_micros
                raise failure_error(
                    self._evaluated, arrays, length, error, now_micros=now, where="", written=self._conjuncts
                )
            keep |= failed
        return keep

    def _output_columns(self, arrays: dict[int, pa.Array]) -> dict[int, pa.Array]:
        """Return the columns of ``arrays`` that the output needs."""
        return {i: a for i, a in arrays.items() if i in self._output_ids}

    def _output_batch(self, arrays: dict[int, pa.Array], rows: int, positions: Ordinals | None) -> pa.RecordBatch:
        """Return ``rows`` rows of the output; ``positions`` may be None if the output has none."""
        self._meter.record_matches(rows)
        if not self._spec.positions:
            return self._build_output(arrays, rows)
        assert positions is not None
        if not self._schema.names:
            return with_positions(pa.record_batch([], schema=pa.schema([])), positions)
        return with_positions(self._build_output(arrays, rows), positions)

    def _build_output(self, arrays: dict[int, pa.Array], rows: int) -> pa.RecordBatch:
        return self._columns.build_output(arrays, self._schema, rows, dictionaries=self._spec.dictionaries)


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
