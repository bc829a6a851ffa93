"""What a data format must do: write one part in a pass, read chosen blocks, columns and rows of it.

Nothing else in the package knows a format. What leaves ``read`` is compacted: no selection vector crosses this line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa


@dataclass(slots=True)
class IoCounters:
    """What reading cost: bytes fetched from the store and requests made."""

    bytes: int = 0
    requests: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of one block. ``positions`` are physical row ordinals within the part (int64, rising), one per row of ``batch``."""

    block: int
    positions: np.ndarray[Any, np.dtype[np.int64]]
    batch: pa.RecordBatch


class PartFile(Protocol):
    """One open data file. Columns are named by id path and come back under their ids' physical places, unconverted to a later schema."""

    @property
    def block_rows(self) -> Sequence[int]:
        """Rows of each block, in order."""
        ...

    def read(
        self,
        columns: Sequence[int],
        blocks: Sequence[int],
        rows: np.ndarray[Any, np.dtype[np.int64]] | None = None,
    ) -> Iterator[Piece]:
        """The top-level columns with these ids, of these blocks, or of only these ``rows`` (rising ordinals) within them.

        A batch has one column per id that the file holds, named by the id (``"7"``); an id that the file lacks is left out (the
        reader fills it). Raises ``CorruptData`` naming the part where the file is not what it should be.
        """
        ...

    @property
    def io(self) -> IoCounters: ...
