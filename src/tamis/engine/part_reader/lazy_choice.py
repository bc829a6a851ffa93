"""Lazy or eager, decided chunk by chunk: laziness loses where leaders are most of the bytes or most rows survive.

How many rows survive is guessed from bounds before any has been seen. Afterwards what was seen counts, moved by how the guess for this chunk differs from that for the last.
"""

from __future__ import annotations

from collections.abc import Sequence

from tamis.core.pruning.selectivity import Shares
from tamis.storage.files import PartFile

MOST_BYTES = 0.8
"""Share of the leaders in the bytes from which the followers are not worth a second read."""
MOST_ROWS = 0.25
"""Share of survivors among the rows from which a chunk is read whole."""
SPARSE = 1 / 256
"""Share of survivors up to which many rows are looked at before the followers of those that survived are asked for."""
_SAMPLE = 4
"""Blocks looked at for the share of bytes."""


class Gate:
    """``mode``: ``on`` and ``off`` are obeyed, ``auto`` goes by what is likely, and so can change its mind."""

    def __init__(self, mode: str, part: PartFile, leaders: Sequence[int], followers: Sequence[int]) -> None:
        blocks = range(min(_SAMPLE, len(part.block_rows)))
        leading, following = part.cost(leaders, blocks), part.cost(followers, blocks)
        self.leader_share = leading / max(leading + following, 1)
        self.likely: Shares | None = None
        """Of each block, the share of rows that is likely to survive; None: not known."""
        self._mode = mode
        self._survived: float | None = None
        self._guessed = 0.0

    @property
    def curious(self) -> bool:
        """Whether nothing is known yet of how many rows survive: then a single block is looked at first."""
        return self._mode == "auto" and self.likely is None and self._survived is None and self.leader_share < MOST_BYTES

    @property
    def sparse(self) -> bool:
        """Whether nearly no row of the last chunk survived."""
        return self._survived is not None and self._survived < SPARSE

    def lazy(self, chunk: Sequence[int]) -> bool:
        """Whether to read these blocks leaders first."""
        if self._mode != "auto":
            return self._mode == "on"
        return self.leader_share < MOST_BYTES and self._expected(chunk) < MOST_ROWS

    def saw(self, chunk: Sequence[int], kept: int, rows: int) -> None:
        """Of the ``rows`` of these blocks, ``kept`` survived."""
        self._survived, self._guessed = kept / max(rows, 1), self._guess(chunk)

    def _expected(self, chunk: Sequence[int]) -> float:
        guess = self._guess(chunk)
        if self._survived is None or not self._guessed:
            return guess if self._survived is None else self._survived
        return self._survived * guess / self._guessed

    def _guess(self, chunk: Sequence[int]) -> float:
        return 0.0 if self.likely is None else float(self.likely[list(chunk)].mean())
