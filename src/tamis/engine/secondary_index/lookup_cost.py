"""Cost model of index lookups, in bytes, estimated from statistics before the lookup runs.

A hit makes the reader read the filter's columns in one page of the table; without the index, it reads all of
their pages. The other columns are read for matching rows either way. So a lookup pays while it reads fewer
index bytes than it saves in the filter's columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

import pyarrow as pa
import pyarrow.compute as pc

from tamis.cost_model import COSTS
from tamis.sizes import SIZES
from tamis.storage.files import PAGE_ROWS, page_rows_for

CHEAP_BYTES = SIZES.index_cheap_bytes
"""Bytes that a lookup may always read: about the cost of a request."""
FEW_HITS = SIZES.index_few_hits
"""Hits that a lookup may always have."""
HELD_BYTES = SIZES.index_held_bytes
"""Bytes of entries that a process holds for the readers of base parts."""
DEARER = COSTS.index_byte
"""Cost of an index byte, read by page, relative to a byte of a column read whole (docs/design/0013)."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimated lower bound of a lookup's hits, and the bytes it reads."""

    hits: int
    bytes: int
    segments: int = 1
    """The index segments that they are in."""

    @property
    def segment_hits(self) -> int:
        """The average number of hits of a segment, all of which a part reader looks up before its first row."""
        return self.hits // max(self.segments, 1)


_ENTRY, _VALUE = 16, 16
"""Approximate bytes of a position, and of a value, in memory."""


def exceeds_memory(estimate: Estimate, columns: int) -> bool:
    """Whether a segment's entries, with the values of this many columns, are too many to be held in memory."""
    return estimate.segment_hits * (_ENTRY + _VALUE * columns) > HELD_BYTES


def early_end(estimate: Estimate, limit: int | None) -> str | None:
    """Reason why a scan with a limit would end before part readers finish looking up their matches, or None."""
    hits = estimate.segment_hits
    if limit is None or hits <= max(FEW_HITS, limit):
        return None
    return f"it finds {hits:,} rows or more at once, of which {limit:,} suffice"


@dataclass(frozen=True, slots=True)
class LookupBudget:
    """The rows, and bytes of the filter's columns, in the parts that a lookup covers."""

    rows: int
    leaders: int
    page_rows: int = PAGE_ROWS
    """Rows of a page of these parts."""

    @staticmethod
    def from_parts(parts: pa.Table, share: float) -> LookupBudget:
        """Return the budget of these manifest rows, if ``share`` of their bytes are the filter's columns."""
        rows = int(pc.sum(parts["rows"]).as_py() or 0)
        blocks = int(pc.sum(pc.list_value_length(parts["blocks"])).as_py() or 0)
        size = int(pc.sum(parts["bytes"]).as_py() or 0)
        return LookupBudget(rows, int(size * share), page_rows_for(-(-rows // max(blocks, 1))))

    def refusal(self, estimate: Estimate, *, covering: bool) -> str | None:
        """Return why the lookup would cost more than it saves, as the end of a sentence, or None if it pays.

        ``covering``: the rows come from the index alone.
        """
        saved = self._saved(0 if covering else estimate.hits)
        if estimate.hits > self.most_hits(estimate.bytes) and not covering:
            percent = min(100 * estimate.hits / max(self.rows, 1), 100)
            return f"it finds {estimate.hits:,} rows or more, {percent:.1f} % of all, and saves too little"
        if estimate.bytes <= CHEAP_BYTES or DEARER * estimate.bytes < saved:
            return None
        return f"it would read {estimate.bytes:,} bytes in pages to save about {saved:,} in whole columns"

    def cost(self, estimate: Estimate) -> int:
        """Return the weighted bytes read from the index, plus those then read from the filter's columns."""
        return DEARER * estimate.bytes + self.leaders - self._saved(estimate.hits)

    def most_hits(self, cost: int) -> int:
        """Return the maximum number of hits for which a lookup that reads ``cost`` bytes pays."""
        gain = max(self.leaders, 1) / max(DEARER * cost, 1)
        return max(FEW_HITS, int(self.rows / self.page_rows * log(gain))) if gain > 1 else FEW_HITS

    def _saved(self, hits: int) -> int:
        """Estimate the bytes of pages without a hit, assuming scattered hits."""
        return int(self.leaders * exp(-hits * self.page_rows / max(self.rows, 1)))
