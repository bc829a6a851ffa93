"""External sort: sorted runs in temporary files, merged a few batches at a time.

Invariant: the output is the input in clustering order, stable for ties, and at most about ``memory_bytes``
are held, however wide the rows and however many the runs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa

from tamis.core.types import Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.core.types.bounded_batches import slices_within
from tamis.engine.part_writer.clustering_order import ClusteringOrder
from tamis.engine.part_writer.stream_spool import gather_batches
from tamis.sizes import SIZES

OUT_ROWS = SIZES.sorted_batch_rows
"""Rows per output batch."""
STEP_BYTES = SIZES.sort_step_bytes
"""Bytes of a batch of a run, unless a single row has more: each round of a merge has a fixed cost."""
_STEP_COLUMNS = 64
"""Columns for which a batch has ``STEP_BYTES``; with more columns it has more, since each has a fixed cost too."""
_MOST_STEPS = 8


@dataclass(frozen=True, slots=True)
class _Run:
    """Sorted rows in a file; ``largest``: the bytes of its largest batch."""

    path: Path
    largest: int


def sorted_batches(
    batches: Iterable[pa.RecordBatch], schema: Schema, cluster_by: Sequence[tuple[int, ...]], memory_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Sort ``batches`` (in the schema's Arrow form) by ``cluster_by`` ascending, NULLs first and NaN last.

    Without ``cluster_by``, yields them unchanged.
    """
    if not cluster_by:
        yield from batches
        return
    order, limit = ClusteringOrder(schema, cluster_by), max(memory_bytes // 2, 1)  # sorting needs the same amount again
    source = (piece for batch in batches for piece in slices_within(batch, max(limit // 8, 1)))
    held, ended = gather_batches(source, limit)
    if ended:
        yield from _sorted(held, order, OUT_ROWS)
        return
    with tempfile.TemporaryDirectory(prefix="tamis-sort-") as folder:
        spilled = _Spilled(Path(folder), schema, order)
        while held:
            spilled.append(held)
            held, ended = ([], True) if ended else gather_batches(source, limit)
        yield from spilled.merged(memory_bytes // 3)  # merging joins what it holds, and takes rows from that


def _sorted(batches: list[pa.RecordBatch], order: ClusteringOrder, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the sorted rows of ``batches``, ``rows`` at a time; clears the list to free memory."""
    if not sum(len(b) for b in batches):
        return
    whole = pa.concat_batches(batches)
    batches.clear()
    indices = order.sort(whole)
    for start in range(0, len(indices), rows):
        yield whole.take(indices[start : start + rows])


class _Spilled:
    """The runs of one sort, in the order of their rows' arrival."""

    def __init__(self, folder: Path, schema: Schema, order: ClusteringOrder) -> None:
        self._files = (folder / str(number) for number in count())
        self._schema, self._order = to_arrow_schema(schema), order
        self._step = STEP_BYTES * min(max(len(schema) // _STEP_COLUMNS, 1), _MOST_STEPS)
        self._runs: list[_Run] = []

    def append(self, batches: list[pa.RecordBatch]) -> None:
        """Sort the rows of ``batches`` and write them as a new run; clears the list to free memory."""
        width = sum(batch.nbytes for batch in batches) / max(sum(len(batch) for batch in batches), 1)
        rows = max(1, min(OUT_ROWS, int(self._step / max(width, 1))))
        self._runs.append(self._written(_sorted(batches, self._order, rows)))

    def merged(self, room: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all runs in order, while about ``room`` bytes of runs are held.

        Neighbouring runs are first merged into longer ones, until one batch of each fits, or two runs are left.
        """
        runs, at = self._runs, 0
        while len(runs) > 2 and (excess := sum(run.largest for run in runs) - room) > 0:
            at = at if at < len(runs) - 1 else 0
            group = runs[at : _group_end(runs, at, room, excess)]
            runs[at : at + len(group)] = [self._written(_merge([_load(run.path) for run in group], self._order))]
            for run in group:
                run.path.unlink()
            at += 1
        yield from _merge([_load(run.path) for run in runs], self._order)

    def _written(self, batches: Iterable[pa.RecordBatch]) -> _Run:
        path, largest = next(self._files), 0
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, self._schema, options=options) as writer:
            for piece in (piece for batch in batches for piece in slices_within(batch, self._step)):
                writer.write_batch(piece)
                largest = max(largest, piece.nbytes)
        return _Run(path, largest)


def _group_end(runs: Sequence[_Run], at: int, room: int, excess: int) -> int:
    """Return where a group of runs from ``at`` on ends that one merge holds: at least two, and no more than needed.

    A batch of the run that it becomes is held instead of one of each, which is to save ``excess`` bytes.
    """
    held = largest = runs[at].largest
    end = at + 1
    while end < len(runs) and (end == at + 1 or (held + runs[end].largest <= room and held - largest < excess)):
        held, largest = held + runs[end].largest, max(largest, runs[end].largest)
        end += 1
    return end


def _load(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(path), "rb") as source, pa.ipc.open_stream(source) as reader:
        yield from reader


def _merge(runs: list[Iterator[pa.RecordBatch]], order: ClusteringOrder) -> Iterator[pa.RecordBatch]:
    """Merge sorted runs.

    Each round sorts the buffered rows of all runs, and yields those up to the smallest last row of an
    unfinished run.
    """
    held: list[pa.RecordBatch] = [pa.RecordBatch.from_pylist([])] * len(runs)
    ended = [False] * len(runs)
    while True:
        for i, run in enumerate(runs):
            while not ended[i] and not len(held[i]):
                batch = next(run, None)
                ended[i] = batch is None
                held[i] = held[i] if batch is None else batch
        present = [i for i, batch in enumerate(held) if len(batch)]
        if not present:
            return
        batches = [held[i] for i in present]
        whole = pa.concat_batches(batches)
        indices = order.sort(whole, in_runs=True).to_numpy()
        place = np.empty(len(indices), dtype=np.int64)
        place[indices] = np.arange(len(indices))
        ends = np.cumsum([len(b) for b in batches])
        lasts = [int(place[end - 1]) for i, end in zip(present, ends, strict=True) if not ended[i]]
        cut = min(lasts, default=len(indices) - 1) + 1
        yield whole.take(pa.array(indices[:cut]))
        for i, end, batch in zip(present, ends, batches, strict=True):
            held[i] = batch.slice(int((place[end - len(batch) : end] < cut).sum()))
