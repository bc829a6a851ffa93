"""Cuts decoded rows into pieces of which every column fits into one array.

A writer may put more texts into a row group than an array holds. The library then decodes a column to several
arrays, and the texts of a dictionary column take more memory when written out.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.core.types.dictionary_arrays import LARGEST_ARRAY, bytes_without_dictionary

_TOO_LARGE = "chunked array outputs"
"""Part of the library's message where the texts of a nested column do not fit into one array."""


def array_cuts(columns: Sequence[pa.ChunkedArray], length: int) -> list[int]:
    """Return the rows at which to cut columns of ``length`` rows so that every piece of every column fits.

    The first is 0 and the last ``length``.
    """
    cuts = {0, length}
    for column in columns:
        if pa.types.is_primitive(column.type):
            continue
        if any(
            sum(bytes_without_dictionary(chunk, enough) for chunk in column.chunks) <= LARGEST_ARRAY
            for enough in (LARGEST_ARRAY, 0)  # the rough bound first
        ):
            continue
        at = 0
        for chunk in column.chunks:
            cuts.update(at + cut for cut in _cuts_within(chunk))
            at += len(chunk)
    return sorted(cuts) if length else [0, 0]


def _cuts_within(chunk: pa.Array) -> list[int]:
    """Return the first row of each slice of ``chunk`` that fits, by halves."""
    if len(chunk) < 2 or bytes_without_dictionary(chunk, LARGEST_ARRAY) <= LARGEST_ARRAY:
        return [0]
    middle = len(chunk) // 2
    return [*_cuts_within(chunk[:middle]), *(middle + cut for cut in _cuts_within(chunk[middle:]))]


def read_groups(file: pq.ParquetFile, groups: Sequence[int], leaves: Sequence[int], length: int) -> pa.Table:
    """Decode columns of row groups of ``length`` rows.

    The library makes one array of a nested column, and fails if its texts do not fit. In that case, decode fewer rows
    at a time.
    """
    rows = length
    try:
        return file.reader.read_row_groups(groups, column_indices=leaves, use_threads=False)
    except pa.ArrowNotImplementedError as error:
        if _TOO_LARGE not in str(error):
            raise
    while True:
        rows = max(rows // 8, 1)
        try:
            return pa.Table.from_batches(
                list(file.reader.iter_batches(rows, groups, column_indices=leaves, use_threads=False))
            )
        except pa.ArrowNotImplementedError:
            if rows == 1:
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
