"""The statistics of a part's manifest row, within the budget for as many rows."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import pyarrow as pa

from tamis.core.stats import Collector
from tamis.core.stats.json_paths.packed_paths import PACKED, pack_paths
from tamis.core.stats.json_paths.path_rows import stacked_paths
from tamis.core.stats.statistics_budget import Priorities, trim_statistics
from tamis.core.stats.statistics_columns import DROPPED, EXCESS, Figure

Places = Iterable[tuple[int, str]]


def trimmed_statistics(
    collector: Collector, room: int, keep: Places, recent: Places, ends: Iterable[Figure] = ()
) -> dict[str, pa.Array]:
    """Return what ``collector`` found, in at most ``room`` bytes; see ``statistics_budget`` for what is kept longest.

    ``ends`` are the clustering tuples of a sorted part. JSON path statistics are packed; the committer unpacks them.
    """
    priorities = Priorities(frozenset(keep), frozenset(recent))
    left = trim_statistics(chain(collector.figures(), ends), collector.documents(), room, priorities)
    found = left.statistics
    for name, value in ((DROPPED, left.dropped + collector.uncollected_fields), (EXCESS, left.excess)):
        if value:
            found[name] = pa.array([value], pa.int32())
    rows = stacked_paths(left.documents)
    return found if rows is None else found | {PACKED: pa.array([pack_paths(rows)], pa.binary())}
