"""Rows of a few blocks by the pages that hold them: what to fetch, and how it becomes arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamis.files.parquet.pages import PAGE_ROWS, Octets, Ordinals, Pages, excerpt, runs_of

WORTH = 0.5
"""Share of the pages from which whole chunks are read: the excerpt costs a copy."""


@dataclass(frozen=True, slots=True)
class _Block:
    rows: int
    """Rows of the pages that are read."""
    ranges: list[tuple[int, list[int]]]
    """Of each column: which of the fetched ranges is its dictionary (-1: none), and which are its pages."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A plan: fetch ``ranges``, then ``decode`` them."""

    leaves: list[int]
    ranges: list[tuple[int, int]]
    _fields: list[pa.Field]
    _blocks: list[_Block]
    _taken: np.ndarray[Any, np.dtype[np.int64]]

    @staticmethod
    def plan(pages: Pages, leaves: list[int], blocks: Sequence[int], sizes: Ordinals, taken: Ordinals) -> Excerpt | None:
        """``taken``: the wanted rows, counted over ``blocks`` as if they were one, of ``sizes`` rows. None where pages would not help, or are not known."""
        ends = np.cumsum(sizes)
        cuts = np.searchsorted(taken, ends - sizes), np.searchsorted(taken, ends)
        within = [taken[a:z] - (end - size) for a, z, end, size in zip(*cuts, ends, sizes, strict=True)]
        chosen = [np.unique(w // PAGE_ROWS) for w in within]
        if not leaves or sum(len(c) for c in chosen) > WORTH * int((-(-sizes // PAGE_ROWS)).sum()):
            return None
        places = pages.readable(leaves, [b for b, c in zip(blocks, chosen, strict=True) if len(c)])
        if places is None:
            return None
        ranges: list[tuple[int, int]] = []
        planned: list[_Block] = []
        rows, base = [], 0
        for block, size, mine, wanted in zip(blocks, sizes.tolist(), chosen, within, strict=True):
            if not len(mine):
                continue
            runs = runs_of(mine)
            found = [_column(ranges, pages.dictionary(block, leaf), places[block, leaf], runs) for leaf in leaves]
            count = int(np.minimum(size - mine * PAGE_ROWS, PAGE_ROWS).sum())
            planned.append(_Block(count, found))
            rows.append(base + np.searchsorted(mine, wanted // PAGE_ROWS) * PAGE_ROWS + wanted % PAGE_ROWS)
            base += count
        return Excerpt(leaves, ranges, [pages.field(leaf) for leaf in leaves], planned, np.concatenate(rows))

    def decode(self, fetched: Sequence[Octets]) -> list[pa.Array]:
        """The columns' wanted rows. Raises ``pa.ArrowException``, ``OSError`` or ``ValueError`` where the pages are not what they should be."""
        file = pq.ParquetFile(
            pa.BufferReader(excerpt(self._fields, self._groups(fetched), "ZSTD")),
            pre_buffer=False,
            page_checksum_verification=True,
            arrow_extensions_enabled=False,
        )
        table = file.reader.read_row_groups(range(len(self._blocks)), use_threads=False)
        expected = sum(b.rows for b in self._blocks)
        if len(table) != expected:
            raise ValueError(f"{len(table)} rows where {expected} were said")
        taken = pa.array(self._taken)
        return [column.take(taken).combine_chunks() for column in table.columns]

    def _groups(self, fetched: Sequence[Octets]) -> Iterator[tuple[int, list[tuple[Octets, list[Octets]]]]]:
        for block in self._blocks:
            yield block.rows, [(fetched[d] if d >= 0 else b"", [fetched[p] for p in pages]) for d, pages in block.ranges]


def _column(
    ranges: list[tuple[int, int]], dictionary: tuple[int, int] | None, places: Ordinals, runs: list[tuple[int, int]]
) -> tuple[int, list[int]]:
    """Adds what a column needs to ``ranges``; says where it stands there."""
    at = -1
    if dictionary is not None:
        at = len(ranges)
        ranges.append(dictionary)
    first = len(ranges)
    ranges += [(int(places[a]), int(places[z] - places[a])) for a, z in runs]
    return at, list(range(first, len(ranges)))
