"""Rows of a table that are taken by their numbers, a bounded piece at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.types.bounded_batches import row_sizes, spans_within

Ints = np.ndarray[Any, np.dtype[np.int64]]


class NumberedRows:
    """The rows of ``table``; ``sizes`` are about their bytes.

    Arrow's own ``take`` joins all chunks of a column first, which copies the column and fails beyond 2 GiB of text.
    """

    def __init__(self, table: pa.Table) -> None:
        self._batches = table.to_batches()
        self._ends = np.cumsum([0, *map(len, self._batches)])
        self.sizes: Ints = np.concatenate(
            [np.zeros(0, dtype=np.int64), *(row_sizes(b.columns, len(b)) for b in self._batches)]
        )

    def take(self, rows: Ints) -> pa.RecordBatch:
        """Return these rows, at least one, in this order; a row may be taken more than once."""
        if len(self._batches) == 1:
            return self._batches[0].take(pa.array(rows))
        order = np.argsort(rows, kind="stable")
        ascending = rows[order]
        cuts = np.searchsorted(ascending, self._ends)
        found = [
            batch.take(pa.array(ascending[a:z] - start))
            for batch, start, (a, z) in zip(self._batches, self._ends[:-1], pairwise(cuts.tolist()), strict=True)
            if a < z
        ]
        whole = found[0] if len(found) == 1 else pa.concat_batches(found)
        if (rows[1:] >= rows[:-1]).all():
            return whole
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return whole.take(pa.array(back))

    def pieces(self, rows: Ints, most_bytes: int, most_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield these rows in batches within both limits; a larger row has its own."""
        for span in spans_within(self.sizes[rows], most_bytes, most_rows):
            yield self.take(rows[span])
