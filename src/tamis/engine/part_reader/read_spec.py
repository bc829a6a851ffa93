"""What to read, and what it cost: two plain values exchanged between driver and executors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from tamis.core.expr import Expr
from tamis.core.types import Schema
from tamis.storage.commit_log import Source


@dataclass(frozen=True, slots=True)
class ReadSpec:
    """The rows and columns of one scan, the same for all its parts. Picklable."""

    url: str
    schema: Schema
    """The output columns in order; empty for a count."""
    part_schemas: Mapping[int, Schema]
    """The table's schemas by schema id, to resolve parts."""
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    conjuncts: tuple[Expr, ...] = ()
    """Every output row satisfies all of them (or, under ``errors="keep"``, could not be evaluated)."""
    errors: str = "raise"
    """``raise``: a row on which the filter fails is an error.

    ``keep``: it survives, and the caller decides.
    """
    lazy: str = "auto"
    """``on``: read followers for surviving rows only.

    ``off``: read all columns at once. ``auto``: adaptive.
    """
    block_statistics: bool = True
    """Whether to skip blocks by their own statistics; off by user option or for audits."""
    batch_rows: int = 65_536
    positions: bool = False
    """Append ``_position`` (int64): each row's physical ordinal in its part."""
    dictionaries: bool = False
    """Whether STRING columns of a batch keep the dictionary that their file gave them."""
    now_micros: int | None = None
    sources: tuple[Source, ...] = ()
    """The foreign tables in whose files parts may lie."""


@dataclass(slots=True)
class ReadCounters:
    """Accumulated read costs.

    Bytes and requests are the store's. Footers count towards leaders if there is a filter, else followers.
    """

    blocks_total: int = 0
    blocks_skipped_stats: int = 0
    blocks_skipped_index: int = 0
    blocks_skipped_filter: int = 0
    blocks_read: int = 0
    blocks_lazy: int = 0
    """Blocks read leaders first; all others not skipped by statistics were read whole."""
    blocks_eager: int = 0
    rows_total: int = 0
    rows_leader: int = 0
    """Rows on which the filter ran."""
    rows_matched: int = 0
    bytes_leader: int = 0
    bytes_follower: int = 0
    bytes_index: int = 0
    """Bytes of index lookups made by the reader itself."""
    parts_index_unread: int = 0
    """Parts read whole because the index that covers them could not be read."""
    bytes_footer: int = 0
    """Included in leaders and followers."""
    requests: int = 0
    seconds_open: float = 0.0
    seconds_leader: float = 0.0
    seconds_filter: float = 0.0
    seconds_follower: float = 0.0

    def merge(self, other: ReadCounters) -> None:
        """Add the counts of ``other``."""
        for f in fields(self):
            setattr(self, f.name, getattr(self, f.name) + getattr(other, f.name))

    def without_blocks(self) -> ReadCounters:
        """Return the counters without block counts, for a skipped part that is read only for an audit."""
        return replace(self, **{f.name: 0 for f in fields(self) if f.name.startswith("blocks_")})

    def as_dict(self) -> dict[str, int | float]:
        return asdict(self)
