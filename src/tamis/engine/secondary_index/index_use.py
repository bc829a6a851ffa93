"""How a scan uses indexes, as its options say."""

from __future__ import annotations

from typing import NamedTuple


class IndexUse(NamedTuple):
    """The option ``tamis.index.use``, and whether statistics of the indexes decide anything."""

    mode: str = "auto"
    by_statistics: bool = True
    """If false (``tamis.stats.filter=off``), a lookup reads all entries."""
    errors: str = "raise"
    """The scan's ``ReadSpec.errors``. Rows that come from an index alone are tested as the scan tests its own."""
    covering: bool = True
    """Whether rows may come from an index alone, which can prune parts that it would not prune for other columns."""
    limit: int | None = None
    """Rows, in any order, at which the scan stops."""
