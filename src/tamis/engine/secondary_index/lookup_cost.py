"""What a look-up costs and what it saves: bytes, as far as statistics tell before it runs.

A hit makes the reader look at the filter's columns of one page of the table; without the index it looks at all of their pages. The other columns are read for the rows that match,
either way. So a look-up pays as long as what is read of the index is less than what is not read of the filter's columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

from tamis.sizes import SIZES
from tamis.storage.files import PAGE_ROWS

CHEAP_BYTES = SIZES.index_cheap_bytes
"""What a look-up may always read: about what a request costs."""
FEW_HITS = SIZES.index_few_hits
"""What a look-up may always find."""
DEARER = 4
"""Bytes of a column read whole that cost as much time as one of an index read by its pages (docs/design/0013)."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a look-up would find, at least, and what it would read."""

    hits: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Worth:
    """Of the parts that a look-up is asked about: their rows, and the bytes of the filter's columns."""

    rows: int
    leaders: int

    def refusal(self, estimate: Estimate, *, covering: bool) -> str | None:
        """Why the look-up would cost more than it saves, as the end of a sentence; None where it should pay. ``covering``: the rows come from the index alone."""
        saved = self._saved(0 if covering else estimate.hits)
        if estimate.hits > self.most(estimate.bytes) and not covering:
            return f"it finds {estimate.hits:,} rows or more, {min(100 * estimate.hits / max(self.rows, 1), 100):.1f} % of all, and saves too little"
        if estimate.bytes <= CHEAP_BYTES or DEARER * estimate.bytes < saved:
            return None
        return f"it would read {estimate.bytes:,} bytes in pages to save about {saved:,} in whole columns"

    def cost(self, estimate: Estimate) -> int:
        """Bytes that are read of the index, at what they cost in pages, and then of the filter's columns."""
        return DEARER * estimate.bytes + self.leaders - self._saved(estimate.hits)

    def most(self, cost: int) -> int:
        """The hits up to which a look-up that reads ``cost`` bytes pays."""
        gain = max(self.leaders, 1) / max(DEARER * cost, 1)
        return max(FEW_HITS, int(self.rows / PAGE_ROWS * log(gain))) if gain > 1 else FEW_HITS

    def _saved(self, hits: int) -> int:
        """Bytes of pages without a hit, where hits lie scattered."""
        return int(self.leaders * exp(-hits * PAGE_ROWS / max(self.rows, 1)))
