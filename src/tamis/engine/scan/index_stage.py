"""Level 3 of the funnel: prune the parts that statistics kept by secondary indexes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.expr import Expr
from tamis.core.types import Schema
from tamis.engine.scan.funnel import FunnelOutcome
from tamis.engine.scan.report.scan_report import Counts, Report
from tamis.engine.scan.scan_options import Options
from tamis.engine.secondary_index import IndexUse, LookupOutcome, check_use, choose_candidates
from tamis.storage.commit_log import Head, Snapshot
from tamis.storage.object_store import Store


def prune_by_index(
    snapshot: Snapshot,
    store: Store,
    conjuncts: Sequence[Expr],
    selected: Schema,
    outcome: FunnelOutcome,
    use: IndexUse,
    now: tuple[int, int],
) -> LookupOutcome:
    """Look the filter up in the indexes and reduce ``outcome.keep`` to the parts that they leave.

    The parts of ``outcome`` get the columns ``candidates`` and ``candidate_rows``. Reads a bounded amount of
    index data.
    """
    wanted = outcome.keep & ~outcome.all_match
    found = choose_candidates(
        snapshot,
        store,
        conjuncts,
        selected,
        outcome.parts,
        wanted,
        use=use,
        now=now,
    )
    empty = found.candidates.empty & wanted
    if found.candidates.known.any():
        chosen: list[bytes | None] = [None] * len(outcome.parts)
        counts = outcome.parts["rows"].to_numpy().copy()
        for part, rows in found.candidates.rows.items():
            chosen[part], counts[part] = rows.serialize(), len(rows)
        outcome.parts = outcome.parts.append_column("candidates", pa.array(chosen, pa.large_binary()))
        outcome.parts = outcome.parts.append_column("candidate_rows", pa.array(counts, pa.int64()))
    segment = outcome.parts["segment"].to_numpy()
    before = np.unique(segment[outcome.keep])
    outcome.keep = outcome.keep & ~empty
    outcome.parts_skipped_index = int(empty.sum())
    outcome.segments_by_index = len(before) - len(np.unique(segment[outcome.keep]))
    return found


def check_index_options(given: Mapping[str, Any], options: Options, head: Head) -> None:
    """Raise ``InvalidInput`` (``BAD_OPTION``) if a query's own options name an unknown index.

    A conf or a property may name one: it may be meant for other tables or versions.
    """
    if any(str(name).lower() == "tamis.index.use" for name in given):
        check_use(head, options.index_use)


def report_lookup(report: Report, found: LookupOutcome) -> None:
    """Record in the report what the indexes did, and the cost."""
    report.indexes = [Counts(name=used.name, segments=used.segments, missing=used.missing) for used in found.used]
    report.index_reason = found.reason
    cost = found.counters
    report.record_lookup(cost.bytes_leader + cost.bytes_follower + cost.bytes_index, cost.requests)
