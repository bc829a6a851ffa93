"""Cuts decoded rows into pieces of which every column fits into one array.

A writer may put more texts into a row group than an array holds. The library then decodes a column to several
arrays, and a dictionary's texts may take more than its numbers do.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.core.types.dictionary_arrays import LARGEST_ARRAY, written_bytes

_SHARES = (8, 64, 512)
"""Into how many batches to cut nested columns, one attempt after the other."""


def array_cuts(columns: Sequence[pa.ChunkedArray], length: int) -> list[int]:
    """Return the rows at which to cut columns of ``length`` rows so that every piece of every column fits.

    The first is 0 and the last ``length``.
    """
    cuts = {0, length}
    for column in columns:
        sizes = [written_bytes(chunk) for chunk in column.chunks]
        if sum(sizes) <= LARGEST_ARRAY:
            continue
        at = 0
        for chunk, size in zip(column.chunks, sizes, strict=True):
            step = len(chunk) if size <= LARGEST_ARRAY else len(chunk) * LARGEST_ARRAY // size
            cuts.update(range(at, at + len(chunk), max(step, 1)))
            at += len(chunk)
    return sorted(cuts) if length else [0, 0]


def read_groups(file: pq.ParquetFile, groups: Sequence[int], leaves: Sequence[int], length: int) -> pa.Table:
    """Decode columns of row groups of ``length`` rows.

    The library makes one array of a nested column, and fails if its texts do not fit; then it is asked for fewer
    rows at once.
    """
    try:
        return file.reader.read_row_groups(groups, column_indices=leaves, use_threads=False)
    except pa.ArrowNotImplementedError:
        for share in _SHARES:
            rows = max(length // share, 1)
            try:
                batches = list(file.reader.iter_batches(rows, groups, column_indices=leaves, use_threads=False))
            except pa.ArrowNotImplementedError:
                continue
            return pa.Table.from_batches(batches)
        raise


def runs_within(runs: Sequence[tuple[int, int]], first: int, end: int) -> list[tuple[int, int]]:
    """Return the runs of the rows ``first`` to ``end`` (exclusive), counted over all rows of ``runs``."""
    found, at = [], 0
    for start, stop in runs:
        a, z = max(first - at, 0), min(end - at, stop - start)
        if a < z:
            found.append((start + a, start + z))
        at += stop - start
    return found or [(runs[0][0], runs[0][0])]
