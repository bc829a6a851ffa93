"""Locates the pages of Parquet files of other writers, by their offset indexes.

Other writers end pages of different columns at different rows. Their indexes are read when they may save much more than
they cost. A chunk whose pages do not follow each other from its beginning to its end is read whole. If a fetched page
contradicts the rows that the index gives it, the whole file is read by chunks from then on. An index that gives every
page its own number of rows, but the wrong first row, is believed, as Spark's reader believes it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tamis.sizes import SIZES
from tamis.storage.files.file_source import PartSource
from tamis.storage.files.parquet.offset_index import PageLocations, page_locations
from tamis.storage.files.parquet.page_offsets import Chunk, Ordinals, PageBoundaries, Pages
from tamis.storage.files.protocol import PAGE_ROWS

_PERCENT = SIZES.page_index_percent
_FOOTER_END = 8
"""Bytes behind Parquet's metadata: its length and the magic number."""


class ForeignPages(Pages):
    """The chunks of one file, and the pages of its plain columns once ``load_page_index`` has found them."""

    _locations: PageLocations | None = None
    _asked = False
    _range: tuple[int, int] | None = None
    _saved = 0
    """Bytes that the indexes might have saved if they had been read at first."""

    def _noted(self) -> tuple[int, Ordinals]:
        # a note of Tamis says nothing: a tool that rewrote the file may have copied it
        return PAGE_ROWS, np.zeros(0, dtype=np.int64)

    def load_page_index(self, source: PartSource, saved_bytes: int) -> None:
        """Read the offset indexes, unless they are known or cost too much for what they could have saved so far.

        ``saved_bytes`` is what they may save now. Raises ``CorruptData`` if the file is shorter than it was.
        """
        if self._asked or not self._footer.num_row_groups or not self._flat:
            return
        if self._range is None:
            self._range = self._index_range(source.ref.bytes)
        begin, end = self._range
        self._saved += saved_bytes
        if (end - begin) * 100 > self._saved * _PERCENT:
            return
        self._asked = True
        first = self.chunk(0, 0).begin
        if not 0 < first < begin < end:
            return
        index = bytes(source.get([(begin, end - begin)])[0])
        found = page_locations(index, first, self._footer.num_row_groups * self._footer.num_columns)
        if found is not None:
            self.starts, self.rows = found.starts, max(int(np.diff(found.rows).max(initial=1)), 1)
            self._locations = found  # last, as other threads may be about to read the file
            self._chunks = {}  # they did not know their pages

    def _index_range(self, size: int) -> tuple[int, int]:
        """Return where the page indexes begin and end: behind all pages, before Bloom filters and the footer."""
        first, last = self._footer.row_group(0), self._footer.num_row_groups - 1
        columns = range(self._footer.num_columns)
        begin = max(self.chunk(last, leaf).end for leaf in columns)
        filters = [first.column(leaf).bloom_filter_offset or 0 for leaf in columns]
        footer = size - _FOOTER_END - self._footer.serialized_size
        return begin, min([footer, *(at for at in filters if at > begin)])

    def _decoded_type(self, f: pa.Field) -> pa.DataType:
        """Return the type that Parquet alone gives a column; writers of Arrow note others in the footer."""
        kind = f.type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            return pa.string()
        if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
            return pa.binary()
        return pa.timestamp(kind.unit, "UTC") if pa.types.is_timestamp(kind) and kind.tz else kind

    @property
    def is_index_known(self) -> bool:
        """Whether the offset indexes were read, or there is none that could be."""
        return self._asked or not self._flat

    @property
    def has_page_index(self) -> bool:
        """Whether rows can be read by pages."""
        return self._locations is not None

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

    def group_by_page_boundaries(
        self, leaves: Sequence[int], blocks: Sequence[int], sizes: Ordinals
    ) -> list[tuple[PageBoundaries, list[int]]]:
        found = self._locations
        if found is None:
            return []
        begins = (np.cumsum(sizes) - sizes).tolist()
        grouped: dict[bytes, tuple[PageBoundaries, list[int]]] = {}
        for leaf in leaves:
            if any(self.chunk(block, leaf).first < 0 for block in blocks):
                continue
            cuts = [self._between(found, block, leaf) for block in blocks]
            rows = [found.rows[a:z] + begin for (a, z), begin in zip(cuts, begins, strict=True)]
            edges = np.append(np.concatenate(rows), sizes.sum())
            counts = np.concatenate([[0], np.cumsum([z - a for a, z in cuts])])
            known = grouped.setdefault(edges.tobytes() + counts.tobytes(), (PageBoundaries(edges, counts), []))
            known[1].append(leaf)
        return list(grouped.values())
