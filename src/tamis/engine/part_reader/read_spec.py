"""What to read and what it cost: two plain values that travel between driver and executors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from tamis.core.expr import Expr
from tamis.core.types import Schema


@dataclass(frozen=True, slots=True)
class ReadSpec:
    """One scan's rows and columns, the same for all its parts. Picklable."""

    url: str
    schema: Schema
    """The reader's columns, in the order in which they leave; none for a count."""
    part_schemas: Mapping[int, Schema]
    """The table's schemas by schema id: parts are resolved by them."""
    storage_options: Mapping[str, Any] = field(default_factory=dict)
    conjuncts: tuple[Expr, ...] = ()
    """Every row that leaves satisfies them all (or, under ``keep``, could not be judged)."""
    errors: str = "raise"
    """``raise``: a row on which the filter fails is an error. ``keep``: it survives, and whoever asked decides."""
    lazy: str = "auto"
    """``on``: followers are read for surviving rows only. ``off``: all columns at once. ``auto``: decided as reading goes on."""
    block_statistics: bool = True
    """Whether blocks that their own statistics exclude are left out; a switch, and off where an audit checks what they say."""
    batch_rows: int = 65_536
    positions: bool = False
    """One more column at the end, ``_position`` (int64): each row's physical ordinal in its part."""
    now_micros: int | None = None


@dataclass(slots=True)
class ReadCounters:
    """What reading cost so far. Bytes and requests are those of the store; footers count with the leaders where there is a filter, else with the followers."""

    blocks_total: int = 0
    blocks_skipped_stats: int = 0
    blocks_skipped_index: int = 0
    blocks_skipped_filter: int = 0
    blocks_read: int = 0
    blocks_lazy: int = 0
    """Blocks read leaders first; the others that were not skipped by statistics were read whole."""
    blocks_eager: int = 0
    rows_total: int = 0
    rows_leader: int = 0
    """Rows for which the filter was run."""
    rows_matched: int = 0
    bytes_leader: int = 0
    bytes_follower: int = 0
    bytes_index: int = 0
    """Of an index, where the reader asked it itself."""
    bytes_footer: int = 0
    """Within leaders and followers."""
    requests: int = 0
    seconds_open: float = 0.0
    seconds_leader: float = 0.0
    seconds_filter: float = 0.0
    seconds_follower: float = 0.0

    def merge(self, other: ReadCounters) -> None:
        """Adds what ``other`` counted."""
        for f in fields(self):
            setattr(self, f.name, getattr(self, f.name) + getattr(other, f.name))

    def without_blocks(self) -> ReadCounters:
        """The same of a part whose blocks nobody counts: it was skipped, and is read for another's sake."""
        return replace(self, **{f.name: 0 for f in fields(self) if f.name.startswith("blocks_")})

    def as_dict(self) -> dict[str, int | float]:
        return asdict(self)
