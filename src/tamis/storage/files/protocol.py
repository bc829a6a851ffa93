"""The protocol of a data format: write a part in one pass, read chosen blocks, columns and rows.

No other package depends on a particular format. ``read`` returns compacted rows: no selection vector crosses
this interface.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from tamis.core.stats.columns.tally import Extremes
from tamis.sizes import SIZES
from tamis.storage.commit_log.deletion_vectors import read_bitmap
from tamis.storage.files.shredded_leaves import Leaf

PAGE_ROWS = SIZES.page_rows
"""Rows of a Parquet page in blocks of wide rows. A page is the unit that is decoded for a single row."""
_LARGE_BLOCK = 2 * SIZES.wide_block_rows


def page_rows_for(block_rows: int) -> int:
    """Return the rows of a page for blocks of so many rows.

    A page costs Spark's reader as much as decoding a few thousand numbers, so that the pages of large blocks, which
    hold narrow rows, are twice as long (docs/design/0014).
    """
    return PAGE_ROWS if block_rows < _LARGE_BLOCK else 2 * PAGE_ROWS


Vector = bytes
"""A serialized roaring bitmap of row ordinals. Named apart because parts have a field ``bytes``."""


@dataclass(slots=True)
class IoCounters:
    """The cost of reading: bytes fetched from the store and requests made."""

    bytes: int = 0
    requests: int = 0


@dataclass(frozen=True, slots=True)
class PartRef:
    """What a reader must know of a part: its location and its state when committed. Picklable."""

    part_id: str
    path: str
    format: str
    schema_id: int
    rows: int
    bytes: int
    checksum: int | None = None
    footer_checksum: int | None = None
    blocks: tuple[int, ...] = ()
    segment: int = 0
    part: int = 0
    all_match: bool = False
    """The filter is proved true for every row and need not be evaluated."""
    deletion: Vector | None = None
    """The serialized bitmap of the ordinals of deleted rows; None if no row is deleted."""
    window: tuple[int, int] | None = None
    """The blocks to read, as (first, last + 1); None means the whole part."""

    candidates: Vector | None = None
    """The serialized bitmap of the ordinals of candidate rows from an index; None if every row may match."""

    source: str | None = None
    """The id of the source that the file belongs to; None for a file of the table itself."""
    constants: str | None = None
    """JSON by column id: values of columns that are the same in every row, whatever the file holds."""
    etag: str | None = None
    modified_micros: int | None = None
    """The state of a source's file when it became a part, as its store named it; None if unknown."""

    @property
    def file_key(self) -> tuple[str | int | None, ...]:
        """The key, within the table, of everything that is cached about the file."""
        return self.path, self.bytes, self.checksum, self.footer_checksum, self.source, self.constants

    @property
    def live_rows(self) -> int:
        """Number of rows that are not deleted."""
        return self.rows - (len(read_bitmap(self.deletion, self.part_id)) if self.deletion else 0)


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A finished file.

    ``checksum`` is the CRC-32 of all its bytes, ``footer_checksum`` that of its footer (None if it has none),
    and ``blocks`` holds the rows of each block.
    """

    bytes: int
    checksum: int
    footer_checksum: int | None
    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of a writer.

    ``schema_json`` is Spark's JSON of the schema, for readers other than Tamis. ``part_id`` is stored in the
    file to identify its part. A format with pages ends one every ``page_rows`` rows.
    """

    part_id: str = ""
    schema_json: str = ""
    page_rows: int = PAGE_ROWS


class PartWriter(Protocol):
    """Writes one file.

    Invariant: the file becomes visible when ``close`` succeeds, and in no other way.
    """

    @property
    def size(self) -> int:
        """Bytes written so far."""
        ...

    @property
    def measured(self) -> Collection[int]:
        """The ids of the columns that ``extremes`` returns."""
        ...

    def write(self, batch: pa.RecordBatch) -> None:
        """Write ``batch`` as one block; a format with a minimum block size may merge small ones."""
        ...

    def close(self, notes: Mapping[str, str] = ...) -> WrittenFile:
        """Finish the file; ``notes`` are stored in the format's key-value metadata."""
        ...

    def extremes(self) -> Extremes:
        """Return the extremes of columns in each batch that was written, as the closed file's writer found them."""
        ...

    def abort(self) -> None:
        """Discard the file; nothing of it becomes visible."""
        ...


@dataclass(frozen=True)
class Piece:
    """Rows of one block, or of several requested consecutively; ``block`` is the first of them."""

    block: int
    rows: np.ndarray[Any, np.dtype[np.int64]] | Sequence[tuple[int, int]] = field(repr=False)
    """The ordinals of the rows, or the runs (first, last + 1) of which these consist."""
    batch: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.batch)

    @cached_property
    def positions(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Physical row ordinals within the part (ascending), one per row of ``batch``."""
        if isinstance(self.rows, np.ndarray):
            return self.rows
        return np.concatenate([np.arange(first, end) for first, end in self.rows])

    def positions_of(self, indices: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the positions of the rows with these indices in ``batch``, without computing those of the others."""
        if isinstance(self.rows, np.ndarray):
            chosen: np.ndarray[Any, np.dtype[np.int64]] = self.rows[indices]
            return chosen
        runs = np.array(self.rows, dtype=np.int64)
        ends = np.cumsum(runs[:, 1] - runs[:, 0])
        shifts = runs[:, 1] - ends
        adjacent = bool((shifts == shifts[0]).all())
        found: np.ndarray[Any, np.dtype[np.int64]] = (
            indices + shifts[0 if adjacent else np.searchsorted(ends, indices, side="right")]
        )
        return found


class PartFile(Protocol):
    """One open data file.

    Columns are addressed by id and are not converted to a later schema.
    """

    @property
    def block_rows(self) -> Sequence[int]:
        """Rows of each block, in order."""
        ...

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The document paths stored as separate columns; their values are read by their field ids."""
        ...

    @property
    def stride(self) -> int:
        """Rows to filter before reading the followers of all survivors together, when these are few.

        Some formats read in units of this size.
        """
        ...

    def read(
        self,
        columns: Sequence[int],
        blocks: Sequence[int],
        rows: np.ndarray[Any, np.dtype[np.int64]] | None = None,
    ) -> Iterator[Piece]:
        """Read the top-level columns with these ids from these blocks, or only ``rows`` (ascending) of them.

        The id of a struct field (or of one in a list of structs) instead of its column's requests only that
        field. A batch has one column per id that the file holds, named by the id (``"7"``); an id that the
        file lacks is left out, and the reader fills it. A STRING column may have a dictionary. Raises
        ``CorruptData`` naming the part if the file is not as committed.
        """
        ...

    def cost(self, columns: Sequence[int], blocks: Sequence[int]) -> int:
        """Return the bytes that these columns of these blocks take in the file."""
        ...

    def decoded_rows(self, columns: Sequence[int], rows: np.ndarray[Any, np.dtype[np.int64]]) -> int:
        """Estimate how many rows of these columns are decoded in order to read ``rows`` (ascending) of them."""
        ...

    def statistics(self, ids: Collection[int]) -> pa.Table:
        """Return the file's own statistics of these column ids, one row per block.

        The columns are statistics columns of a manifest (``tamis.core.stats``) and ``rows``.
        """
        ...

    def pages(self) -> pa.Table | None:
        """Return ``statistics`` for each run of rows that can be read alone, in order; None if unknown."""
        ...

    @property
    def io(self) -> IoCounters: ...
