"""Lazy or eager, decided chunk by chunk: laziness loses where leaders are most of the bytes or most rows survive."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.files import PartFile

MOST_BYTES = 0.8
"""Share of the leaders in the bytes from which the followers are not worth a second read."""
MOST_ROWS = 0.25
"""Share of survivors among the rows of the chunk before from which the next is read whole."""
_SAMPLE = 4
"""Blocks looked at for the share of bytes."""


class Gate:
    """``mode``: ``on`` and ``off`` are obeyed, ``auto`` goes by what was seen last, and so can change its mind."""

    def __init__(self, mode: str, part: PartFile, leaders: Sequence[int], followers: Sequence[int]) -> None:
        blocks = range(min(_SAMPLE, len(part.block_rows)))
        leading, following = part.cost(leaders, blocks), part.cost(followers, blocks)
        self.leader_share = leading / max(leading + following, 1)
        self._mode = mode
        self._survived = 0.0

    def lazy(self) -> bool:
        if self._mode != "auto":
            return self._mode == "on"
        return self.leader_share < MOST_BYTES and self._survived < MOST_ROWS

    def saw(self, kept: int, rows: int) -> None:
        """Of a chunk's ``rows``, ``kept`` survived."""
        self._survived = kept / max(rows, 1)
