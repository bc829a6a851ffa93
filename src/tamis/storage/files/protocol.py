"""What a data format must do: write one part in a pass, read chosen blocks, columns and rows of it.

Nothing else in the package knows a format. What leaves ``read`` is compacted: no selection vector crosses this line.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from tamis.sizes import SIZES
from tamis.storage.commit_log.deletion_vectors import bitmap
from tamis.storage.files.shredded_leaves import Leaf

PAGE_ROWS = SIZES.page_rows
"""Rows of a page of Parquet: what is decoded for the sake of one. A page costs Spark's reader as much as decoding a few thousand numbers (docs/design/0014)."""

Vector = bytes
"""A serialised roaring bitmap of row ordinals. (A name of its own: parts have a field ``bytes``.)"""


@dataclass(slots=True)
class IoCounters:
    """What reading cost: bytes fetched from the store and requests made."""

    bytes: int = 0
    requests: int = 0


@dataclass(frozen=True, slots=True)
class PartRef:
    """One part as a reader must know it: where it is, and what it was when it was committed. Picklable."""

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
    """The filter is proved to be true for every row: it need not be run."""
    deletion: Vector | None = None
    """The serialised bitmap of the ordinals of its deleted rows; None: no row is deleted."""
    window: tuple[int, int] | None = None
    """Only these blocks of it, first and one behind the last, are meant; None: the whole part."""

    candidates: Vector | None = None
    """The serialised bitmap of the ordinals of the rows that an index left; None: every row may match."""

    @property
    def live_rows(self) -> int:
        """How many of its rows are not deleted."""
        return self.rows - (len(bitmap(self.deletion, self.part_id)) if self.deletion else 0)


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """What a finished file is: its size, the CRC-32 of all its bytes and of its footer (None: it has none), the rows of each block."""

    bytes: int
    checksum: int
    footer_checksum: int | None
    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """``schema_json`` is Spark's JSON of the schema, for readers that are not ours; ``part_id`` lets a file say which part it is; a format with pages ends one every ``page_rows``."""

    part_id: str = ""
    schema_json: str = ""
    page_rows: int = PAGE_ROWS


class PartWriter(Protocol):
    """Writes one file. Law: the file becomes visible when ``close`` succeeds, and in no other way."""

    @property
    def size(self) -> int:
        """Bytes written so far."""
        ...

    def write(self, batch: pa.RecordBatch) -> None:
        """Writes one block: the whole of ``batch``; a format whose blocks have a least size may put small ones together."""
        ...

    def close(self, notes: Mapping[str, str] = ...) -> WrittenFile:
        """Finishes the file; ``notes`` go where the format keeps such pairs."""
        ...

    def abort(self) -> None:
        """Forgets the file; nothing of it becomes visible."""
        ...


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of one block, or of several that were asked for in a row; ``block`` is the first. ``positions`` are physical row ordinals within the part (int64,
    rising), one per row of ``batch``."""

    block: int
    positions: np.ndarray[Any, np.dtype[np.int64]] = field(repr=False)
    batch: pa.RecordBatch


class PartFile(Protocol):
    """One open data file. Columns are named by id path and come back under their ids' physical places, unconverted to a later schema."""

    @property
    def block_rows(self) -> Sequence[int]:
        """Rows of each block, in order."""
        ...

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The paths of document columns that it keeps apart; their values are read by the ids of their fields."""
        ...

    @property
    def stride(self) -> int:
        """Rows to look through before the followers of all that survived are asked for at once, where these are few: some formats read in pieces as large."""
        ...

    def read(
        self,
        columns: Sequence[int],
        blocks: Sequence[int],
        rows: np.ndarray[Any, np.dtype[np.int64]] | None = None,
    ) -> Iterator[Piece]:
        """The top-level columns with these ids, of these blocks, or of only these ``rows`` (rising ordinals) within them.

        The id of a struct field (or of one in a list of structs) instead of its column's asks for no more of that column than this. A batch has one column per id that the file holds, named by the id (``"7"``); an id that the file lacks is left out (the
        reader fills it). Raises ``CorruptData`` naming the part where the file is not what it should be.
        """
        ...

    def cost(self, columns: Sequence[int], blocks: Sequence[int]) -> int:
        """Bytes in the file of these columns of these blocks."""
        ...

    def statistics(self, ids: Collection[int]) -> pa.Table:
        """What the file itself says of each block, as statistics columns of a manifest (``tamis.core.stats``), with ``rows``; of these column ids only."""
        ...

    def pages(self) -> pa.Table | None:
        """As ``statistics``, a row for each run of rows that can be read alone, in order; None where the file does not say."""
        ...

    @property
    def io(self) -> IoCounters: ...
