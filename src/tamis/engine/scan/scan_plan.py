"""The scan plan: the parts left after the funnel, as a lazy sequence, and the initial report.

Metadata only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr import Expr
from tamis.core.types import Schema
from tamis.core.types.arrow import integer_column
from tamis.engine.part_reader import ReadSpec
from tamis.engine.scan.funnel import Bools, FunnelOutcome, run_funnel
from tamis.engine.scan.index_stage import prune_by_index, report_lookup
from tamis.engine.scan.limit_pruning import RankedParts, enough_parts
from tamis.engine.scan.report.scan_report import Counts, Report
from tamis.engine.scan.scan_guards import check_size
from tamis.engine.scan.scan_options import Options
from tamis.engine.scan.scan_order import Order, order_text
from tamis.engine.scan.skip_audit import Proof, audit_sample
from tamis.engine.secondary_index import IndexUse, SharedLookup
from tamis.sizes import SIZES
from tamis.storage.commit_log import EXTERNAL_COLUMNS, Snapshot
from tamis.storage.files import PAGE_ROWS, PartRef
from tamis.storage.object_store import Store
from tamis.world import world


class PartRefs(Sequence[PartRef]):
    """A sequence over manifest rows that creates each ``PartRef`` on access."""

    def __init__(self, table: pa.Table, all_match: Bools) -> None:
        self.table = table
        """``Snapshot.parts``: one row per part, possibly with statistics columns."""
        self.all_match = all_match

    @property
    def _names(self) -> list[str]:
        more = [name for name in (*EXTERNAL_COLUMNS, "candidates") if name in self.table.column_names]
        return [*_REF_COLUMNS, *more]

    def __len__(self) -> int:
        return len(self.table)

    @overload
    def __getitem__(self, index: int) -> PartRef: ...
    @overload
    def __getitem__(self, index: slice) -> PartRefs: ...
    def __getitem__(self, index: int | slice) -> PartRef | PartRefs:
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        at = range(len(self))[index]
        row = {name: self.table[name][at].as_py() for name in self._names}
        return PartRef(**{**row, "blocks": tuple(row["blocks"] or ())}, all_match=bool(self.all_match[at]))

    def __iter__(self) -> Iterator[PartRef]:
        """Convert a slice at a time, which is far cheaper than row by row."""
        for start in range(0, len(self), _SLICE):
            rows = self.table.select(self._names).slice(start, _SLICE).to_pylist()
            for at, row in enumerate(rows, start):
                yield PartRef(**{**row, "blocks": tuple(row["blocks"] or ())}, all_match=bool(self.all_match[at]))

    def take(self, indices: np.ndarray[Any, np.dtype[np.int64]]) -> PartRefs:
        """Select the parts at ``indices``, in that order."""
        return PartRefs(self.table.take(pa.array(indices)), self.all_match[indices])

    def where(self, mask: Bools) -> PartRefs:
        """Select the parts where ``mask`` is true."""
        if mask.all():
            return self  # so that evidence decoded from its table is found again
        if not mask.any():
            return PartRefs(self.table.slice(0, 0), self.all_match[:0])
        return PartRefs(self.table.filter(pa.array(mask)), self.all_match[mask])

    def exclude(self, part_ids: Iterable[str]) -> PartRefs:
        """Leave out the parts with these ids."""
        return self.where(~self.id_mask(part_ids))

    @property
    def blocks(self) -> int:
        """The total number of blocks."""
        return int(pc.sum(pc.list_value_length(self.table["blocks"])).as_py() or 0)

    @property
    def bytes(self) -> int:
        """The total size of the files in bytes."""
        return int(self.column("bytes").sum())

    @property
    def weights(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Estimated bytes to read per part; if an index left few rows, only the pages that may hold them."""
        sizes = self.column("bytes")
        if "candidate_rows" not in self.table.column_names:
            return sizes
        share = np.minimum(self.column("candidate_rows") * PAGE_ROWS / np.maximum(self.column("rows"), 1), 1.0)
        read: np.ndarray[Any, np.dtype[np.int64]] = np.maximum((sizes * share).astype(np.int64), 1)
        return read

    @property
    def live_rows(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The number of rows per part that are not deleted."""
        return self.column("rows") - self.column("deleted")

    def id_mask(self, part_ids: Iterable[str]) -> Bools:
        """Return a mask of the parts with these ids."""
        found: Bools = pc.is_in(self.table["part_id"], pa.array(list(part_ids), pa.string())).to_numpy()
        return found

    def column(self, name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return an integer column, NULL as 0."""
        return integer_column(self.table, name)

    def __repr__(self) -> str:
        return f"<{len(self)} parts, {self.bytes} bytes>"


_SLICE = SIZES.plan_slice_parts
_REF_COLUMNS = [
    "part_id",
    "path",
    "format",
    "schema_id",
    "rows",
    "bytes",
    "checksum",
    "footer_checksum",
    "blocks",
    "segment",
    "part",
    "deletion",
]


@dataclass(slots=True)
class Plan:
    """What a scan will read.

    ``parts`` were kept, in (segment, part) order. ``audit`` were proved empty and are read anyway, to check
    the proof. ``proofs`` maps the ids of all sampled parts, kept ones included, to the claim to check.
    """

    parts: PartRefs
    report: Report
    spec: ReadSpec
    options: Options
    audit: PartRefs = field(repr=False)
    proofs: Mapping[str, Proof] = field(default_factory=dict, repr=False)
    order: Order = ()
    """The sort order; only the first ``limit`` rows are wanted."""
    limit: int | None = None
    shared: tuple[SharedLookup, ...] = field(default=(), repr=False)
    """Index lookups deferred to the part readers; skipping them is safe."""
    complete: bool = True
    """Whether all statistics and indexes that were asked could be read: if not, planning again may skip more."""

    def tasks(self, target_bytes: int) -> list[list[PartRef]]:
        """Split the parts, in order, into groups of about ``target_bytes`` (at least one part each)."""
        if not len(self.parts):
            return []
        ends = np.cumsum(self.parts.column("bytes"))
        group = (ends - 1) // max(target_bytes, 1)
        cuts = np.flatnonzero(np.diff(group)) + 1
        refs = list(self.parts)
        return [refs[a:b] for a, b in zip([0, *cuts], [*cuts, len(refs)], strict=True)]

    def guard(self) -> None:
        """Raise ``InvalidInput`` (``SCAN_TOO_LARGE``) if the plan exceeds ``tamis.scan.max_bytes``.

        Call before reading.
        """
        check_size(self.report, self.parts.bytes, self.options.scan_max_bytes)

    def __repr__(self) -> str:
        return repr(self.report)

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What a plan is made for: the rows and columns wanted of a snapshot, and how to name them in the report."""

    conjuncts: Sequence[Expr]
    selected: Schema
    options: Options
    now: tuple[int, int] | None = None
    """The inclusive range of the query's instant, in microseconds; None: the present."""
    limit: int | None = None
    order: Order = ()
    measured: frozenset[int] = frozenset()
    """Ids of columns whose statistics will be needed after planning."""
    errors: str = "raise"
    """As in ``ReadSpec``."""
    table: str | None = None
    filter_text: str | None = None
    covering: bool = True
    """As in ``IndexUse``."""
    columns: tuple[str, ...] | None = None
    """The columns as the report names them; None: the names of ``selected``."""


def plan_scan(snapshot: Snapshot, store: Store, request: PlanRequest) -> Plan:
    """Run the funnel."""
    start = world().monotonic()
    lo, hi = request.now or (instant := world().now_micros(), instant)
    conjuncts, selected, options = request.conjuncts, request.selected, request.options
    limit, order = request.limit, request.order
    before = snapshot.io.bytes, snapshot.io.requests
    outcome = run_funnel(
        snapshot, conjuncts, options, (lo, hi), request.measured.union(*(by.column.ids for by in order))
    )
    use = IndexUse(
        options.index_use,
        options.stats_filter,
        request.errors,
        request.covering and not order,  # a search for the first rows needs their positions
        None if order else limit,
    )
    lookup = prune_by_index(snapshot, store, conjuncts, selected, outcome, use, (lo, hi))
    report = Report(
        request.table or store.url,
        snapshot.version,
        request.filter_text,
        request.columns if request.columns is not None else selected.names,
        options.read_lazy,
    )
    audit, proofs = _audit(outcome, options, filtered=bool(conjuncts))
    parts = PartRefs(outcome.parts, outcome.all_match).where(outcome.keep)
    needed = _needed(parts, limit, order, conjuncts, snapshot, options, (lo, hi), proofs)
    _fill(report, outcome, parts, needed, audit, order)
    parts = parts.where(needed)
    if order:
        report_order(report, order, limit)
    report_lookup(report, lookup)
    report.record_planning(snapshot.io.bytes - before[0], snapshot.io.requests - before[1])
    report.seconds["plan"] = world().monotonic() - start
    spec = ReadSpec(
        url=store.url,
        storage_options=dict(store.options),
        part_schemas={s.schema_id: s for s in snapshot.head.schemas},
        schema=selected,
        conjuncts=tuple(conjuncts),
        errors=request.errors,
        lazy=options.read_lazy if options.read_lazy in {"on", "off"} else "auto",
        block_statistics=options.stats_filter,
        now_micros=hi,
        sources=snapshot.head.sources,
    )
    complete = outcome.complete and lookup.complete
    return Plan(parts, report, spec, options, audit, proofs, order, limit, lookup.shared, complete)


def _needed(
    parts: PartRefs,
    limit: int | None,
    order: Order,
    conjuncts: Sequence[Expr],
    snapshot: Snapshot,
    options: Options,
    now: tuple[int, int],
    proofs: Mapping[str, Proof],
) -> Bools:
    """Return a mask of the kept parts that the limit needs, judged by metadata, plus the audited ones."""
    every = np.ones(len(parts), dtype=np.bool_)
    if limit is None or not len(parts):
        return every
    if limit == 0 or not order:
        return enough_parts(parts, limit) if options.scan_limits or limit == 0 else every
    if not (options.scan_topk and options.stats_filter):
        return every
    ranked = RankedParts(parts, conjuncts, order, {s.schema_id: s for s in snapshot.head.schemas}, now)
    bound = ranked.bound(limit)
    if bound is None:
        return every
    audited = (
        np.array([part in proofs for part in parts.table["part_id"].to_pylist()], dtype=np.bool_) if proofs else ~every
    )
    return ~ranked.cannot_qualify(bound) | audited


def report_order(report: Report, order: Order, limit: int | None) -> None:
    """Record in the report what the order and limit have skipped so far."""
    said, skipped = order_text(order, limit), report.parts["skipped_topk"]
    report.because = [entry for entry in report.because if entry["conjunct"] != said]
    report.not_skipped_because = [entry for entry in report.not_skipped_because if entry["conjunct"] != said]
    if skipped:
        report.because.append(Counts(conjunct=said, statistic=order[0].column.name, parts_skipped=skipped, rest=None))
    elif report.parts["kept"] > 1:
        why = "their bounds leave room for rows that come as early, before any row is read"
        report.not_skipped_because.append(Counts(conjunct=said, reason=why))


def _audit(outcome: FunnelOutcome, options: Options, *, filtered: bool) -> tuple[PartRefs, dict[str, Proof]]:
    """Choose skipped parts to read anyway, and the claims to check on the whole sample.

    Kept parts are sampled second, within the rest of the budget. A sampled part loses its ``all_match`` mark,
    so that its rows are tested.
    """
    if not options.audit_percent or not filtered:
        return PartRefs(outcome.parts.slice(0, 0), np.zeros(0, dtype=np.bool_)), {}
    every = PartRefs(outcome.parts, np.zeros(len(outcome.keep), dtype=np.bool_))
    ids, sizes, budget = every.table["part_id"].to_pylist(), every.column("bytes"), options.audit_max_bytes
    chosen = np.zeros(len(ids), dtype=np.bool_)
    for group in (~outcome.keep, outcome.keep):
        at = np.flatnonzero(group)
        chosen[at] = audit_sample(
            [ids[i] for i in at], sizes[at], options.audit_percent, budget - int(sizes[chosen].sum())
        )
    proofs = {
        ids[i]: Proof.NONE if not outcome.keep[i] else Proof.ALL if outcome.all_match[i] else Proof.BLOCKS
        for i in np.flatnonzero(chosen)
    }
    outcome.all_match = outcome.all_match & ~chosen
    return every.where(chosen & ~outcome.keep), proofs


def _fill(report: Report, outcome: FunnelOutcome, kept: PartRefs, needed: Bools, audit: PartRefs, order: Order) -> None:
    parts, beyond = kept.where(needed), int((~needed).sum())
    by_index = outcome.segments_by_index
    report.segments.update(
        total=outcome.segments_total,
        skipped=outcome.segments_skipped + by_index,
        by_stats=outcome.segments_skipped,
        by_index=by_index,
    )
    report.parts.update(
        total=outcome.parts_total,
        skipped_segment=outcome.parts_skipped_segment,
        skipped_stats=outcome.parts_total
        - outcome.parts_skipped_segment
        - outcome.parts_skipped_index
        - int(outcome.keep.sum()),
        skipped_index=outcome.parts_skipped_index,
        skipped_limit=0 if order else beyond,
        skipped_topk=beyond if order else 0,
        kept=len(parts),
        all_match=int(parts.all_match.sum()),
        audited=len(audit),
    )
    report.bytes.update(table=outcome.bytes_table, skipped=outcome.bytes_table - parts.bytes)
    report.blocks["total"] = parts.blocks
    report.rows["total"] = outcome.rows_total
    report.because, report.not_skipped_because = outcome.because, outcome.not_skipped_because
