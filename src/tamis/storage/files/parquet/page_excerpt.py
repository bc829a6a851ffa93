"""Reads rows of a few blocks through the pages that hold them: plans the fetch and decodes the result.

Pages that need no dictionary are decoded together across blocks: a chunk costs as much as several pages. Columns whose
pages end at other rows are decoded apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.cost_model import COSTS
from tamis.sizes import SIZES
from tamis.storage.files.parquet.dictionary_texts import is_dictionary_text, taken_columns
from tamis.storage.files.parquet.excerpt_file import ExcerptColumn, Octets, excerpt_file, open_excerpt
from tamis.storage.files.parquet.page_headers import HEADER_BYTES, values_per_page
from tamis.storage.files.parquet.page_offsets import Chunk, Ordinals, PageBoundaries, Pages

EXCERPT_SHARE = COSTS.excerpt_page_share
"""Share of the pages above which whole chunks are read instead, because an excerpt costs a copy."""

DECODED_VALUES = SIZES.decoded_values


@dataclass(frozen=True, slots=True)
class Chosen:
    """The pages that hold the wanted rows, in order, over several blocks treated as one."""

    block: Ordinals
    """For each page, the position of its block."""
    page: Ordinals
    """The page's number over these blocks."""
    rows: Ordinals
    taken: Ordinals
    """The wanted rows, numbered over these pages."""

    @staticmethod
    def of(edges: PageBoundaries, wanted: Ordinals) -> Chosen:
        """Find the pages of ``wanted`` rows (ascending), numbered over the blocks of ``edges``."""
        counts = np.diff(np.searchsorted(wanted, edges.rows))
        page = np.flatnonzero(counts)
        block = np.searchsorted(edges.blocks, page, side="right") - 1
        rows = edges.rows[page + 1] - edges.rows[page]
        skipped = edges.rows[page] - (np.cumsum(rows) - rows)
        return Chosen(block, page, rows, wanted - np.repeat(skipped, counts[page]))

    def runs(self) -> tuple[Ordinals, Ordinals]:
        """Return the first and the last page of each run of adjacent pages in a block."""
        cuts = np.flatnonzero((np.diff(self.block) != 0) | (np.diff(self.page) != 1))
        return np.concatenate([[0], cuts + 1]), np.concatenate([cuts, [len(self.page) - 1]])


@dataclass(frozen=True, slots=True)
class _Column:
    """The fetched ranges of one column."""

    leaf: int
    described: ExcerptColumn
    text: bool
    """Whether it is read as a dictionary."""
    at: int
    """The range of the first run of pages, which those of the other runs follow."""
    starts: Ordinals
    """For each page, its offset in the file."""
    groups: list[tuple[int, int, int]]
    """For each group of rows, in order: the dictionary's range (-1 if none), the first run's, and one past the last."""


@dataclass(frozen=True, slots=True)
class _Table:
    """Columns whose pages hold the same rows."""

    edges: PageBoundaries
    chosen: Chosen
    used: list[int]
    """The positions of the blocks that have chosen pages."""
    place: Ordinals
    """For each page, the position of its block in ``used``."""
    first: Ordinals
    last: Ordinals
    """For each run of adjacent pages, its first and its last."""
    columns: list[_Column]

    @staticmethod
    def of(edges: PageBoundaries, taken: Ordinals) -> _Table:
        chosen = Chosen.of(edges, taken)
        used, place = np.unique(chosen.block, return_inverse=True)
        return _Table(edges, chosen, used.tolist(), place, *chosen.runs(), [])

    @property
    def is_selective(self) -> bool:
        """Whether few enough of all pages are chosen."""
        return len(self.chosen.page) <= EXCERPT_SHARE * int(self.edges.blocks[-1])

    @property
    def block_rows(self) -> list[int]:
        """The rows of the chosen pages of each block that has any."""
        found: list[int] = np.bincount(self.place, weights=self.chosen.rows).astype(np.int64).tolist()
        return found

    def add_columns(
        self, ranges: list[tuple[int, int]], pages: Pages, leaves: Sequence[int], blocks: Sequence[int]
    ) -> None:
        """Add columns, and what they need to ``ranges``; ``blocks`` are those of ``edges``.

        Those are left out whose pages are unknown, or are compressed in different ways.
        """
        known: list[tuple[int, ExcerptColumn, list[Chunk]]] = []
        for leaf in leaves:
            chunks = [pages.chunk(blocks[b], leaf) for b in self.used]
            described = pages.excerpt_column(leaf, chunks[0].codec)
            if described is not None and all(c.first >= 0 and c.codec == chunks[0].codec for c in chunks):
                known.append((leaf, described, chunks))
        if not known:
            return
        places = np.array([[(c.first, c.begin, c.end, c.dictionary) for c in chunks] for _, _, chunks in known])
        at, runs = len(ranges), len(self.first)
        starts = self._add_pages(ranges, pages, places)
        dictionaries = self._add_dictionaries(ranges, places)
        cuts = np.searchsorted(self.place[self.first], np.arange(len(self.used) + 1)).tolist()
        for (leaf, described, chunks), row, held in zip(known, starts, dictionaries.tolist(), strict=True):
            groups = [(-1, at, at + runs)]
            if max(held) >= 0:
                groups = [(d, at + a, at + z) for d, a, z in zip(held, cuts, cuts[1:], strict=False)]
            text = is_dictionary_text(pages.field(leaf), chunks)
            self.columns.append(_Column(leaf, described, text, at, row, groups))
            at += runs

    def _add_pages(self, ranges: list[tuple[int, int]], pages: Pages, places: Ordinals) -> Ordinals:
        """Add the runs of pages, column by column, and return for each column the offset of each page."""
        block, page, edges = self.chosen.block, self.chosen.page, self.edges.blocks
        number = places[:, self.place, 0] + (page - edges[block])  # among the pages of the file
        starts: Ordinals = pages.starts[number]
        following = pages.starts[np.minimum(number[:, self.last] + 1, len(pages.starts) - 1)]
        final = (page + 1 == edges[block + 1])[self.last]
        begin = starts[:, self.first]
        sizes = np.where(final, places[:, self.place[self.last], 2], following) - begin
        ranges += zip(begin.ravel().tolist(), sizes.ravel().tolist(), strict=True)
        return starts

    def _add_dictionaries(self, ranges: list[tuple[int, int]], places: Ordinals) -> Ordinals:
        """Add the dictionaries, and return for each column and block in use the range of its own, -1 if none."""
        begin, dictionary = places[..., 1], places[..., 3]
        held = dictionary >= 0
        found: Ordinals = np.where(held, len(ranges) + np.cumsum(held).reshape(held.shape) - 1, -1)
        ranges += zip(dictionary[held].tolist(), (begin - dictionary)[held].tolist(), strict=True)
        return found

    def heads(self, fetched: Sequence[Octets]) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Return the first bytes of each page, column by column."""
        run = np.repeat(np.arange(len(self.first)), self.last - self.first + 1)
        heads = []
        for column in self.columns:
            offsets = column.starts - column.starts[self.first][run]
            for at, offset in zip((column.at + run).tolist(), offsets.tolist(), strict=True):
                heads.append(bytes(fetched[at][offset : offset + HEADER_BYTES]).ljust(HEADER_BYTES, b"\0"))
        return np.frombuffer(b"".join(heads), np.uint8).reshape(-1, HEADER_BYTES)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A plan: fetch ``ranges``, then ``decode`` them."""

    leaves: list[int]
    """The columns that it reads, ascending; fewer than asked for where pages are unknown or would not help."""
    ranges: list[tuple[int, int]]
    _tables: list[_Table]

    @staticmethod
    def plan(
        pages: Pages, leaves: list[int], blocks: Sequence[int], sizes: Ordinals, taken: Ordinals
    ) -> Excerpt | None:
        """Plan the read of the rows ``taken``, numbered over ``blocks`` as if they were one.

        ``sizes`` are the rows of each block. Returns None if pages are unknown or would not help.
        """
        if not leaves or not len(taken) or not pages.readable(leaves):
            return None
        ranges: list[tuple[int, int]] = []
        tables = []
        for edges, members in pages.group_by_page_boundaries(leaves, blocks, sizes):
            table = _Table.of(edges, taken)
            if table.is_selective:
                table.add_columns(ranges, pages, members, blocks)
            if table.columns:
                tables.append(table)
        planned = sorted(column.leaf for table in tables for column in table.columns)
        return Excerpt(planned, ranges, tables) if planned else None

    def pages_hold_expected_rows(self, fetched: Sequence[Octets]) -> bool:
        """Whether each page says itself that it holds as many rows as were expected of its place."""
        return all(
            np.array_equal(values_per_page(table.heads(fetched)), np.tile(table.chosen.rows, len(table.columns)))
            for table in self._tables
        )

    def decode(self, fetched: Sequence[Octets]) -> list[pa.Array] | None:
        """Decode the columns' wanted rows, in the order of ``leaves``; None if a column may not fit into one array.

        Raises ``pa.ArrowException``, ``OSError`` or ``ValueError`` if the pages are not valid.
        """
        found: dict[int, pa.Array] = {}
        for table in self._tables:
            by_block = table.block_rows
            together = [c for c in table.columns if len(c.groups) == 1]
            apart = [c for c in table.columns if len(c.groups) > 1]
            for columns, sizes in ((together, [sum(by_block)]), (apart, by_block)):
                for some in _batches(columns, sum(sizes)):
                    arrays = taken_columns(_decoded(some, sizes, fetched), table.chosen.taken)
                    if arrays is None:
                        return None
                    found.update(zip((column.leaf for column in some), arrays, strict=True))
        return [found[leaf] for leaf in self.leaves]


def _batches(columns: Sequence[_Column], rows: int) -> Iterator[Sequence[_Column]]:
    """Cut the columns into batches whose values take little memory.

    All values of a page are decoded for the few that are wanted. The next batch reuses the memory of the last; all
    columns at once would take fresh memory, which the system clears first.
    """
    most = max(DECODED_VALUES // max(rows, 1), 1)
    for start in range(0, len(columns), most):
        yield columns[start : start + most]


def _decoded(columns: Sequence[_Column], sizes: Sequence[int], fetched: Sequence[Octets]) -> list[pa.ChunkedArray]:
    """Decode the pages of columns that all have the same number of groups, of ``sizes`` rows."""
    groups = []
    for number, rows in enumerate(sizes):
        places = [column.groups[number] for column in columns]
        groups.append((rows, [(fetched[d] if d >= 0 else b"", fetched[a:z]) for d, a, z in places]))
    texts = [str(place) for place, column in enumerate(columns) if column.text]
    file = open_excerpt(excerpt_file([column.described for column in columns], groups), texts)
    table = file.reader.read_row_groups(range(len(sizes)), use_threads=False)
    if len(table) != sum(sizes):
        raise ValueError(f"{len(table)} rows where {sum(sizes)} were said")
    found: list[pa.ChunkedArray] = table.columns
    return found
