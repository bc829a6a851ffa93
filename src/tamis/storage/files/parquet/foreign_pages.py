"""Locates the pages of Parquet files of other writers, by their offset indexes.

Other writers end pages of different columns at different rows. Their indexes are read when they may save much more than
they cost. A chunk whose pages do not follow each other from its beginning to its end is read whole; so is a file of
whose pages one holds other rows than its index says.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tamis.sizes import SIZES
from tamis.storage.files.file_source import PartSource
from tamis.storage.files.parquet.offset_index import PageLocations, page_locations
from tamis.storage.files.parquet.page_offsets import Chunk, Ordinals, PageEdges, Pages
from tamis.storage.files.protocol import PAGE_ROWS

_PERCENT = SIZES.page_index_percent
_FOOTER_END = 8
"""Bytes behind Parquet's metadata: its length and the magic number."""


class ForeignPages(Pages):
    """The chunks of one file, and the pages of its plain columns once ``load_page_index`` has found them."""

    _locations: PageLocations | None = None
    _asked = False

    def _noted(self) -> tuple[int, Ordinals]:
        return PAGE_ROWS, np.zeros(0, dtype=np.int64)  # tools that rewrite a file copy its notes

    def load_page_index(self, source: PartSource, size: int) -> None:
        """Read the offset indexes, unless they are known or too large beside the ``size`` bytes that they may save."""
        groups, columns = self._footer.num_row_groups, self._footer.num_columns
        if self._asked or not groups or not self._flat:
            return
        begin = max(self.chunk(groups - 1, leaf).end for leaf in range(columns))
        length = source.ref.bytes - _FOOTER_END - self._footer.serialized_size - begin
        if length * 100 > size * _PERCENT:
            return
        self._asked = True
        if length > 0:
            index = bytes(source.get([(begin, length)])[0])
            found = page_locations(index, self.chunk(0, 0).begin, groups * columns)
            if found is not None:
                self.starts, self.rows = found.starts, max(int(np.diff(found.rows).max(initial=1)), 1)
                self._locations = found  # last, as other threads may be about to read the file
                self._chunks = {}  # they did not know their pages

    def ignore_page_index(self) -> None:
        """Read all chunks whole from now on."""
        self._locations, self._chunks = None, {}

    def _first_page(self, block: int, leaf: int, chunk: Chunk) -> int:
        found = self._locations
        if found is None:
            return -1
        a, z = self._between(found, block, leaf)
        starts, ends, rows = found.starts[a:z], found.starts[a:z] + found.sizes[a:z], found.rows[a:z]
        adjacent = (
            int(starts[0]) == chunk.begin and int(ends[-1]) == chunk.end and bool((starts[1:] == ends[:-1]).all())
        )
        ordered = int(rows[0]) == 0 and int(rows[-1]) < chunk.rows and bool((np.diff(rows) > 0).all())
        return a if adjacent and ordered else -1

    def _between(self, found: PageLocations, block: int, leaf: int) -> tuple[int, int]:
        """Return the numbers of a chunk's first page, and of the one behind its last."""
        at = block * self._footer.num_columns + leaf
        return int(found.chunks[at]), int(found.chunks[at + 1])

    def group_by_edges(
        self, leaves: Sequence[int], blocks: Sequence[int], sizes: Ordinals
    ) -> list[tuple[PageEdges, list[int]]]:
        found = self._locations
        if found is None:
            return []
        begins = (np.cumsum(sizes) - sizes).tolist()
        grouped: dict[bytes, tuple[PageEdges, list[int]]] = {}
        for leaf in leaves:
            if any(self.chunk(block, leaf).first < 0 for block in blocks):
                continue
            cuts = [self._between(found, block, leaf) for block in blocks]
            rows = [found.rows[a:z] + begin for (a, z), begin in zip(cuts, begins, strict=True)]
            edges = np.append(np.concatenate(rows), sizes.sum())
            counts = np.concatenate([[0], np.cumsum([z - a for a, z in cuts])])
            known = grouped.setdefault(edges.tobytes() + counts.tobytes(), (PageEdges(edges, counts), []))
            known[1].append(leaf)
        return list(grouped.values())
