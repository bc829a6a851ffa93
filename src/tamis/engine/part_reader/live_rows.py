"""The rows of a part that a reader visits: those not deleted and, after an index lookup, only its candidates.

Deleted rows are not filtered either, so that they raise no errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.sizes import SIZES
from tamis.storage.commit_log.deletion_vectors import read_bitmap, row_ordinals
from tamis.storage.files import PartRef, count_touched_pages, page_rows_for

Ordinals = np.ndarray[Any, np.dtype[np.int64]]

FEW = SIZES.few_candidates
"""Number of candidates up to which their pages are read with all columns at once.

Nearly all candidates match, and a second read costs as much as the first.
"""

POSITION = pa.field("_position", pa.int64(), nullable=False)
"""The column added by ``ReadSpec.positions``."""


class LiveRows:
    """The live rows of one part, or its live candidates; ``block_rows`` holds the row count per block."""

    def __init__(self, ref: PartRef, block_rows: Sequence[int]) -> None:
        self._starts = np.concatenate([[0], np.cumsum(np.asarray(block_rows, dtype=np.int64))]).astype(np.int64)
        self._deleted = (
            row_ordinals(read_bitmap(ref.deletion, ref.part_id)) if ref.deletion else np.empty(0, dtype=np.int64)
        )
        cuts = np.searchsorted(self._deleted, self._starts)
        self._deleted_per_block = np.diff(cuts)
        self._chosen: Ordinals | None = None
        if ref.candidates is not None:
            chosen = row_ordinals(read_bitmap(ref.candidates, ref.part_id))
            self._chosen = np.setdiff1d(chosen, self._deleted, assume_unique=True) if len(self._deleted) else chosen

    @property
    def has_candidates(self) -> bool:
        """Whether an index chose the rows."""
        return self._chosen is not None

    @property
    def blocks_without_candidates(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """A mask of the blocks without a candidate."""
        if self._chosen is None:
            return np.zeros(len(self._deleted_per_block), dtype=np.bool_)
        none: np.ndarray[Any, np.dtype[np.bool_]] = self._candidates_per_block == 0
        return none

    @property
    def _candidates_per_block(self) -> Ordinals:
        """The number of candidates per block."""
        assert self._chosen is not None
        return np.diff(np.searchsorted(self._chosen, self._starts))

    def estimate_visited(self, blocks: Ordinals) -> Ordinals:
        """Estimate the rows visited per block, given all rows per block.

        After an index lookup, only the pages with candidates are visited.
        """
        if self._chosen is None:
            return blocks
        page = page_rows_for(int(np.diff(self._starts).max(initial=0)))
        visited: Ordinals = np.minimum(count_touched_pages(self._chosen, self._starts, page) * page, blocks)
        return visited

    @property
    def deleted_blocks(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """A mask of the blocks whose rows are all deleted."""
        lost, rows = self._deleted_per_block, np.diff(self._starts)
        deleted: np.ndarray[Any, np.dtype[np.bool_]] = (lost > 0) & (lost == rows)
        return deleted

    def count_live(self, first: int, end: int) -> int:
        """Count the rows of these blocks that are not deleted."""
        return int(self._starts[end] - self._starts[first] - self._deleted_per_block[first:end].sum())

    def has_few_candidates(self, blocks: Sequence[int]) -> bool:
        """Whether an index left at most ``FEW`` rows in these blocks."""
        return self._chosen is not None and int(self._candidates_per_block[list(blocks)].sum()) <= FEW

    def ordinals_to_visit(self, blocks: Sequence[int]) -> Ordinals | None:
        """Return the sorted ordinals of the rows to visit in these blocks; None: all of them."""
        chosen = np.asarray(blocks, dtype=np.int64)
        if self._chosen is not None:
            cuts = np.searchsorted(self._chosen, self._starts)
            return np.concatenate([self._chosen[cuts[b] : cuts[b + 1]] for b in blocks])
        if not self._deleted_per_block[chosen].any():
            return None
        rows = np.concatenate([np.arange(self._starts[b], self._starts[b + 1], dtype=np.int64) for b in blocks])
        low, high = np.searchsorted(self._deleted, (self._starts[chosen[0]], self._starts[chosen[-1] + 1]))
        return rows[~np.isin(rows, self._deleted[low:high], assume_unique=True)]


def count_rows(ref: PartRef, batch_rows: int, *, positions: bool) -> Iterator[pa.RecordBatch]:
    """Yield the live rows of a part without columns, or with positions only; the file is not opened.

    A part with index candidates must be read instead: candidates are a superset of the matches.
    """
    assert ref.candidates is None, ref.part_id
    if not positions:
        live = ref.live_rows
        for start in range(0, live, batch_rows):
            yield pa.RecordBatch.from_struct_array(
                pa.Array.from_buffers(pa.struct([]), min(batch_rows, live - start), [None])
            )
        return
    rows = LiveRows(ref, [ref.rows]).ordinals_to_visit([0])
    rows = np.arange(ref.rows, dtype=np.int64) if rows is None else rows
    for start in range(0, len(rows), batch_rows):
        yield pa.record_batch([pa.array(rows[start : start + batch_rows])], schema=pa.schema([POSITION]))


def with_positions(batch: pa.RecordBatch, positions: Ordinals) -> pa.RecordBatch:
    """Append the position column to ``batch``."""
    schema = pa.schema([*batch.schema, POSITION], batch.schema.metadata)
    return pa.RecordBatch.from_arrays([*batch.columns, pa.array(positions, pa.int64())], schema=schema)
