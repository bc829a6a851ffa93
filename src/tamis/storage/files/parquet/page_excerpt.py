"""Reads rows of a few blocks through the pages that hold them: plans the fetch and decodes the result.

Pages that need no dictionary are decoded together across blocks: a chunk costs as much as several pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamis.cost_model import COSTS
from tamis.storage.files.parquet.dictionary_texts import is_dictionary_text, plain_values
from tamis.storage.files.parquet.page_offsets import Chunk, Octets, Ordinals, Pages, excerpt_file

WORTH = COSTS.excerpt_page_share
"""Share of the pages above which whole chunks are read instead, because an excerpt costs a copy."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The pages that hold the wanted rows, in order, over several blocks treated as one."""

    block: Ordinals
    """For each page, the position of its block."""
    page: Ordinals
    """The page's number within that block."""
    rows: Ordinals
    taken: Ordinals
    """The wanted rows, numbered over these pages."""

    @staticmethod
    def of(sizes: Ordinals, wanted: Ordinals, page_rows: int) -> Chosen:
        """Find the pages of ``wanted`` rows (ascending), numbered over blocks of ``sizes`` rows."""
        ends = np.cumsum(sizes)
        block = np.searchsorted(ends, wanted, side="right")
        page, within = np.divmod(wanted - (ends - sizes)[block], page_rows)
        first = np.flatnonzero((np.diff(block, prepend=-1) != 0) | (np.diff(page, prepend=-1) != 0))
        mine = np.zeros(len(wanted), dtype=np.int64)
        mine[first] = 1
        block, page = block[first], page[first]
        rows = np.minimum(sizes[block] - page * page_rows, page_rows)
        return Chosen(block, page, rows, (np.cumsum(rows) - rows)[np.cumsum(mine) - 1] + within)

    def runs(self) -> tuple[Ordinals, Ordinals]:
        """Return the first and the last page of each run of adjacent pages in a block."""
        cuts = np.flatnonzero((np.diff(self.block) != 0) | (np.diff(self.page) != 1))
        return np.concatenate([[0], cuts + 1]), np.concatenate([cuts, [len(self.page) - 1]])


@dataclass(frozen=True, slots=True)
class _Column:
    """The fetched ranges of one column.

    For each group of rows, in order: the dictionary (-1 if none), the first run of pages, and one past the
    last.
    """

    field: pa.Field
    codec: str
    text: bool
    """Whether it is read as a dictionary."""
    groups: list[tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A plan: fetch ``ranges``, then ``decode`` them."""

    leaves: list[int]
    ranges: list[tuple[int, int]]
    _columns: list[_Column]
    _chosen: Chosen

    @staticmethod
    def plan(
        pages: Pages, leaves: list[int], blocks: Sequence[int], sizes: Ordinals, taken: Ordinals
    ) -> Excerpt | None:
        """Plan the read of the rows ``taken``, numbered over ``blocks`` as if they were one.

        ``sizes`` are the rows of each block. Returns None if pages are unknown or would not help.
        """
        if not leaves or not len(taken) or not pages.readable(leaves):
            return None
        chosen = Chosen.of(sizes, taken, pages.rows)
        if len(chosen.page) > WORTH * int((-(-sizes // pages.rows)).sum()):
            return None
        used, place = np.unique(chosen.block, return_inverse=True)
        runs = chosen.runs()
        of_block = np.searchsorted(place[runs[0]], np.arange(len(used) + 1)).tolist()
        ranges: list[tuple[int, int]] = []
        columns = []
        for leaf in leaves:
            chunks = [pages.chunk(blocks[b], leaf) for b in used.tolist()]
            if any(chunk.first < 0 or chunk.codec != chunks[0].codec for chunk in chunks):
                return None
            columns.append(
                _Column(
                    pages.field(leaf),
                    chunks[0].codec,
                    is_dictionary_text(pages.field(leaf), chunks),
                    _placed(ranges, pages, chunks, chosen.page, place, runs, of_block),
                )
            )
        return Excerpt(leaves, ranges, columns, chosen)

    def decode(self, fetched: Sequence[Octets]) -> list[pa.Array]:
        """Decode the columns' wanted rows.

        Raises ``pa.ArrowException``, ``OSError`` or ``ValueError`` if the pages are not valid.
        """
        per_block = np.bincount(self._chosen.block, weights=self._chosen.rows).astype(np.int64)
        by_block = per_block[per_block > 0].tolist()
        together = [c for c in self._columns if len(c.groups) == 1]
        apart = [c for c in self._columns if len(c.groups) > 1]
        found = {
            id(column): array
            for columns, sizes in ((together, [sum(by_block)]), (apart, by_block))
            if columns
            for column, array in zip(columns, _decoded(columns, sizes, fetched), strict=True)
        }
        return [plain_values(found[id(column)], self._chosen.taken) for column in self._columns]


def _placed(
    ranges: list[tuple[int, int]],
    pages: Pages,
    chunks: Sequence[Chunk],
    page: Ordinals,
    place: Ordinals,
    runs: tuple[Ordinals, Ordinals],
    of_block: list[int],
) -> list[tuple[int, int, int]]:
    """Append the ranges that a column needs to ``ranges`` and return their positions, group by group.

    ``place`` gives, for each page, the position of its chunk in ``chunks``.
    """
    (first, last), starts = runs, pages.starts
    base = np.array([chunk.first for chunk in chunks], dtype=np.int64)
    begin = starts[base[place[first]] + page[first]]
    final = np.array([-(-chunk.rows // pages.rows) - 1 for chunk in chunks], dtype=np.int64)[place[last]]
    following = np.minimum(base[place[last]] + page[last] + 1, len(starts) - 1)
    end = np.where(
        page[last] == final, np.array([chunk.end for chunk in chunks], dtype=np.int64)[place[last]], starts[following]
    )
    at = len(ranges)
    ranges += zip(begin.tolist(), (end - begin).tolist(), strict=True)
    if all(chunk.dictionary < 0 for chunk in chunks):
        return [(-1, at, len(ranges))]
    groups = []
    for chunk, a, z in zip(chunks, of_block, of_block[1:], strict=False):
        groups.append((len(ranges) if chunk.dictionary >= 0 else -1, at + a, at + z))
        if chunk.dictionary >= 0:
            ranges.append((chunk.dictionary, chunk.begin - chunk.dictionary))
    return groups


def _decoded(columns: Sequence[_Column], sizes: Sequence[int], fetched: Sequence[Octets]) -> list[pa.ChunkedArray]:
    """Decode the pages of columns that all have the same number of groups, of ``sizes`` rows."""
    groups = []
    for number, rows in enumerate(sizes):
        places = [column.groups[number] for column in columns]
        groups.append((rows, [(fetched[d] if d >= 0 else b"", fetched[a:z]) for d, a, z in places]))
    file = pq.ParquetFile(
        pa.BufferReader(
            excerpt_file([column.field for column in columns], [column.codec for column in columns], groups)
        ),
        read_dictionary=[column.field.name for column in columns if column.text],
        pre_buffer=False,
        page_checksum_verification=True,
        arrow_extensions_enabled=False,
    )
    table = file.reader.read_row_groups(range(len(sizes)), use_threads=False)
    if len(table) != sum(sizes):
        raise ValueError(f"{len(table)} rows where {sum(sizes)} were said")
    found: list[pa.ChunkedArray] = table.columns
    return found
