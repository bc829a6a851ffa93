"""Levels 1 and 2 of the funnel: which segments, then which parts, may hold a row that matches or raises.

Invariant: a piece is dropped only by proof (``pruning.decide``); unknown means keep. A statistics problem
never fails a query: whatever cannot be read or decided counts as unknown, and the report says so. The work is
columnar: one decision per level over all its pieces.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.expr import Call, Expr, column_paths, evidence_ids, short_sql
from tamis.core.expr.generated_columns import derived_ids
from tamis.core.pruning import Decision, decide, document_columns, document_places
from tamis.core.pruning.value_cases import is_presence_check
from tamis.core.stats import TableEvidence
from tamis.core.stats import kept_statistics as keep
from tamis.core.stats.json_paths.packed_paths import PATHS, UNION
from tamis.core.stats.json_paths.path_evidence import PathTable
from tamis.core.types import Schema
from tamis.core.types.arrow import integer_column
from tamis.engine.part_reader import evidence_of
from tamis.engine.scan.report.scan_report import Counts
from tamis.engine.scan.scan_options import Options
from tamis.errors import TamisError
from tamis.sizes import SIZES
from tamis.storage.commit_log import Snapshot

Bools = np.ndarray[Any, np.dtype[np.bool_]]

MANY_PARTS = 1_000
"""Number of parts from which reading their statistics takes longer than evaluating the unions of segments."""
FEW_PARTS = SIZES.few_parts
"""Number of parts up to which pruning parts directly is cheaper than pruning segments first."""


@dataclass(slots=True)
class FunnelOutcome:
    """The outcome of the funnel.

    ``parts`` of the surviving segments (of all, if an audit samples the skipped ones or there are few parts), with
    the statistics that the filter needs; ``keep`` and ``all_match`` are masks over them.
    """

    parts: pa.Table
    keep: Bools
    all_match: Bools
    segments_total: int
    segments_skipped: int
    parts_total: int
    parts_skipped_segment: int
    bytes_table: int
    rows_total: int
    segments_by_index: int = 0
    parts_skipped_index: int = 0
    complete: bool = True
    """Whether all statistics and indexes that were asked could be read."""
    because: list[Counts] = field(default_factory=list)
    not_skipped_because: list[Counts] = field(default_factory=list)


def run_funnel(
    snapshot: Snapshot,
    conjuncts: Sequence[Expr],
    options: Options,
    now: tuple[int, int],
    measured: frozenset[int] = frozenset(),
) -> FunnelOutcome:
    """Run both levels.

    ``now`` is the inclusive range of the query's instant in microseconds; the result's ``parts`` also have
    the statistics of the columns ``measured``.
    """
    segments = snapshot.segments
    active = conjuncts if options.stats_filter else ()
    ids = _asked(snapshot.head.schema, active)
    tally = _Tally(conjuncts, options)
    schemas = {schema.schema_id: schema for schema in snapshot.head.schemas}
    parts_per_segment = integer_column(segments, "parts")
    skip, complete = np.zeros(len(segments), dtype=np.bool_), True
    documents = document_columns(active)
    remember_places(snapshot.store.url, active)
    # Statistics of parts are at least as tight as their segment's union, which pays only if they are many or in files.
    few = parts_per_segment.sum() <= FEW_PARTS and snapshot.in_log
    if active and not few and (len(segments) > 1 or parts_per_segment.sum() >= MANY_PARTS):
        decision = _decide(
            active,
            lambda: (snapshot.segment_evidence(ids), segment_paths(snapshot, documents)),
            schemas,
            now,
            len(segments),
        )
        skip, complete = decision.none, not decision.failed
        tally.count(decision, parts_per_segment)
    audited = options.audit_percent > 0
    # Without statistics, no later stage (limit, order, aggregates, estimates) can decide anything by them.
    asked = ids | measured if options.stats_filter else frozenset()
    parts = snapshot.parts(~skip if skip.any() and not audited else None, asked)
    none, every = np.zeros(len(parts), dtype=np.bool_), np.full(len(parts), not conjuncts)
    if active and len(parts):
        decision = _decide(active, lambda: (parts, part_paths(snapshot, parts, documents)), schemas, now, len(parts))
        in_skipped = skip[integer_column(parts, "segment")]
        none, every = decision.none | in_skipped, decision.all & ~decision.none
        complete = complete and not decision.failed
        tally.count(decision, (~in_skipped).astype(np.int64))
        if few and len(segments) > 1:
            skip = _emptied(parts, none, parts_per_segment)
    return FunnelOutcome(
        parts=parts,
        keep=~none,
        all_match=every,
        segments_total=len(segments),
        segments_skipped=int(skip.sum()),
        parts_total=int(parts_per_segment.sum()),
        parts_skipped_segment=int(parts_per_segment[skip].sum()),
        bytes_table=int(integer_column(segments, "bytes").sum()),
        rows_total=int(integer_column(segments, "rows").sum()),
        complete=complete,
        because=tally.because(),
        not_skipped_because=tally.not_skipped(bool(len(segments))),
    )


def _emptied(parts: pa.Table, none: Bools, parts_per_segment: np.ndarray[Any, np.dtype[np.int64]]) -> Bools:
    """Return the segments that have parts, all of which are skipped."""
    left = np.bincount(integer_column(parts, "segment")[~none], minlength=len(parts_per_segment))
    emptied: Bools = (left == 0) & (parts_per_segment > 0)
    return emptied


def remember_places(url: str, active: Sequence[Expr]) -> None:
    """Record the columns and paths that the filter uses, so that later writes keep their statistics."""
    documents = document_columns(active)
    plain = ((column, ()) for c in active for column in sorted(evidence_ids(c)) if column not in documents)
    keep.record_used_places(url, [*plain, *document_places(active)])


def _asked(schema: Schema | None, conjuncts: Sequence[Expr]) -> frozenset[int]:
    """Return the ids of the columns whose statistics may decide about ``conjuncts``."""
    ids = frozenset(i for conjunct in conjuncts for i in evidence_ids(conjunct))
    return ids if schema is None else ids | derived_ids(schema, ids)


def segment_paths(snapshot: Snapshot, ids: frozenset[int]) -> PathTable | None:
    """Return path statistics of the document columns ``ids`` per segment; None if absent or unreadable."""
    try:
        return PathTable.of_segments(snapshot.table(UNION, (), None, ids), len(snapshot.segments)) if ids else None
    except TamisError:
        return None


def part_paths(snapshot: Snapshot, parts: pa.Table, ids: frozenset[int]) -> PathTable | None:
    """Like ``segment_paths``, per row of ``parts``."""
    if not ids:
        return None
    mask = np.zeros(len(snapshot.segments), np.bool_)
    mask[integer_column(parts, "segment")] = True
    try:
        return PathTable.of_parts(snapshot.table(PATHS, (), mask, ids), parts)
    except TamisError:
        return None


def _decide(
    active: Sequence[Expr], load: Any, schemas: Mapping[int, Schema], now: tuple[int, int], pieces: int
) -> Decision:
    """Run ``pruning.decide`` over statistics from ``load``; on failure, everything is unknown."""
    try:
        table, paths = load()
        decision = decide(
            active, evidence_of(table, schemas) if paths is None else TableEvidence(table, schemas, paths), now=now
        )
        if len(decision.none) == pieces:
            return decision
        problem = f"statistics of {len(decision.none)} pieces for {pieces}"
    except TamisError as error:  # an unreadable rollup costs speed, never correctness
        problem = str(error)
    except Exception as error:  # noqa: BLE001  # the invariant above; tests turn the warning into a failure
        problem = f"{type(error).__name__}: {error}"
    warnings.warn(f"Statistics could not be used, everything is read: {problem}", RuntimeWarning, stacklevel=2)
    nothing = np.zeros(pieces, dtype=np.bool_)
    why: list[str | None] = [f"statistics could not be used: {problem}"] * len(active)
    return Decision(
        none=nothing,
        all=nothing,
        skipped_by=np.full(pieces, -1, dtype=np.int32),
        why=why,
        statistics=[[] for _ in active],
        failed=True,
    )


def conjunct_text(conjunct: Expr) -> str:
    """Format a conjunct for a report: short, without redundant outer parentheses."""
    text = short_sql(conjunct)
    return text[1:-1] if isinstance(conjunct, Call) and text.startswith("(") and text.endswith(")") else text


class _Tally:
    """Per conjunct, the number of parts it skipped, and the reason if it skipped none."""

    def __init__(self, conjuncts: Sequence[Expr], options: Options) -> None:
        self._conjuncts = conjuncts
        self._off = not options.stats_filter
        self._parts = np.zeros(len(conjuncts), dtype=np.int64)
        self._statistics: list[list[str]] = [[] for _ in conjuncts]
        self._why: list[str | None] = [None] * len(conjuncts)

    def count(self, decision: Decision, weights: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        """Add a decision; ``weights`` is the number of parts per piece."""
        hit = decision.skipped_by >= 0
        self._parts += np.bincount(decision.skipped_by[hit], weights=weights[hit], minlength=len(self._parts)).astype(
            np.int64
        )
        self._statistics = [
            list(dict.fromkeys([*old, *new])) for new, old in zip(decision.statistics, self._statistics, strict=True)
        ]
        self._why = list(decision.why)

    def because(self) -> list[Counts]:
        """Return the conjuncts that skipped, with the reason for the ``rest`` (None if nothing is left)."""
        return [
            Counts(
                conjunct=conjunct_text(conjunct),
                statistic=", ".join(self._statistics[i]),
                parts_skipped=int(self._parts[i]),
                rest=self._why[i],
            )
            for i, conjunct in enumerate(self._conjuncts)
            if self._parts[i]
        ]

    def not_skipped(self, any_data: bool) -> list[Counts]:
        if not any_data:
            return []
        default = "tamis.stats.filter is off" if self._off else "its statistics allow a match everywhere"
        return [
            Counts(conjunct=conjunct_text(conjunct), reason=(None if self._off else self._why[i]) or default)
            for i, conjunct in enumerate(self._conjuncts)
            if not self._parts[i] and not self._is_implied_by_others(conjunct)
        ]

    def _is_implied_by_others(self, conjunct: Expr) -> bool:
        """Test for a presence check on a column that another conjunct compares; Spark adds those itself."""
        if not is_presence_check(conjunct):
            return False
        ((*path,),) = column_paths(conjunct)
        others = (ids for other in self._conjuncts if not is_presence_check(other) for ids in column_paths(other))
        return any(list(ids[: len(path)]) == path for ids in others)
