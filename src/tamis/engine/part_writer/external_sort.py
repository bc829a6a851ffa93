"""External sort: sorted runs in temporary files, merged a few batches at a time.

Invariant: the output is the input in clustering order, stable for ties, and at most about ``memory_bytes``
are held.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from tamis.core.types import Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.part_writer.clustering_order import Order
from tamis.engine.part_writer.stream_spool import gather_batches
from tamis.sizes import SIZES

OUT_ROWS = SIZES.sorted_batch_rows
"""Rows per output batch."""
_RUN_ROWS = SIZES.sort_step_rows
"""Minimum rows per batch of a run; a merge holds a batch of each run."""
_RUN_BYTES = 1 << 20
"""Bytes up to which a run's batches have more rows: each round of a merge has a fixed cost."""


def sorted_batches(
    batches: Iterable[pa.RecordBatch], schema: Schema, cluster_by: Sequence[tuple[int, ...]], memory_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Sort ``batches`` (in the schema's Arrow form) by ``cluster_by`` ascending, NULLs first and NaN last.

    Without ``cluster_by``, yields them unchanged.
    """
    if not cluster_by:
        yield from batches
        return
    order, limit = Order(schema, cluster_by), max(memory_bytes // 2, 1)  # sorting needs the same amount again
    source = iter(batches)
    held, ended = gather_batches(source, limit)
    if ended:
        yield from _sorted(held, order, OUT_ROWS)
        return
    with tempfile.TemporaryDirectory(prefix="tamis-sort-") as folder:
        runs: list[Path] = []
        while held:
            runs.append(_spill(_sorted(held, order, _run_rows(held)), schema, Path(folder) / str(len(runs))))
            held, ended = ([], True) if ended else gather_batches(source, limit)
        yield from _merge([_load(run) for run in runs], order)


def _run_rows(batches: Sequence[pa.RecordBatch]) -> int:
    """Return how many rows the batches of a run have."""
    width = sum(batch.nbytes for batch in batches) / max(sum(len(batch) for batch in batches), 1)
    return max(_RUN_ROWS, min(OUT_ROWS, int(_RUN_BYTES / max(width, 1))))


def _sorted(batches: list[pa.RecordBatch], order: Order, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the sorted rows of ``batches``, ``rows`` at a time; clears the list to free memory."""
    if not sum(len(b) for b in batches):
        return
    whole = pa.concat_batches(batches)
    batches.clear()
    indices = order.sort(whole)
    for start in range(0, len(indices), rows):
        yield whole.take(indices[start : start + rows])


def _spill(batches: Iterable[pa.RecordBatch], schema: Schema, path: Path) -> Path:
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with (
        pa.OSFile(str(path), "wb") as sink,
        pa.ipc.new_stream(sink, to_arrow_schema(schema), options=options) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)
    return path


def _load(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(path), "rb") as source, pa.ipc.open_stream(source) as reader:
        yield from reader


def _merge(runs: list[Iterator[pa.RecordBatch]], order: Order) -> Iterator[pa.RecordBatch]:
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
