"""The plan: what is left to read after the funnel, as a lazy sequence, and the report so far. Reads metadata only."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import InvalidInput
from tamis.expr import Expr
from tamis.files import PartRef
from tamis.read import ReadSpec
from tamis.scan.funnel import Bools, Sieved, sieve
from tamis.scan.options import Options
from tamis.scan.report import Report
from tamis.state import Snapshot, Store
from tamis.types import Schema
from tamis.world import world


class PartRefs(Sequence[PartRef]):
    """Parts of a manifest as a sequence that makes each ``PartRef`` when it is asked for."""

    def __init__(self, table: pa.Table, all_match: Bools) -> None:
        self.table = table
        """PART_COLUMNS with ``segment`` and ``part``, one row per part; columns of statistics may follow."""
        self.all_match = all_match

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
        row = {name: self.table[name][at].as_py() for name in _REF_COLUMNS}
        return PartRef(**{**row, "blocks": tuple(row["blocks"] or ())}, all_match=bool(self.all_match[at]))

    def __iter__(self) -> Iterator[PartRef]:
        """In order, converted a slice at a time: far cheaper than one by one."""
        for start in range(0, len(self), _SLICE):
            rows = self.table.select(_REF_COLUMNS).slice(start, _SLICE).to_pylist()
            for at, row in enumerate(rows, start):
                yield PartRef(**{**row, "blocks": tuple(row["blocks"] or ())}, all_match=bool(self.all_match[at]))

    def take(self, indices: np.ndarray[Any, np.dtype[np.int64]]) -> PartRefs:
        """The parts at ``indices``, in that order."""
        return PartRefs(self.table.take(pa.array(indices)), self.all_match[indices])

    def where(self, mask: Bools) -> PartRefs:
        """The parts where ``mask`` holds."""
        return PartRefs(self.table.filter(pa.array(mask)), self.all_match[mask])

    @property
    def blocks(self) -> int:
        """How many blocks they have together."""
        return int(pc.sum(pc.list_value_length(self.table["blocks"])).as_py() or 0)

    @property
    def bytes(self) -> int:
        """How many bytes their files have together."""
        return int(self.column("bytes").sum())

    def column(self, name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
        """A whole-number column, NULL as 0."""
        values: np.ndarray[Any, np.dtype[np.int64]] = pc.fill_null(self.table[name], 0).to_numpy().astype(np.int64)
        return values

    def __repr__(self) -> str:
        return f"<{len(self)} parts, {self.bytes} bytes>"


_SLICE = 1024
_REF_COLUMNS = ["part_id", "path", "format", "schema_id", "rows", "bytes", "checksum", "footer_checksum", "blocks", "segment", "part"]


@dataclass(slots=True)
class Plan:
    """What a scan would read. ``parts`` are kept, in (segment, part) order; ``audit`` were proved empty and are read all the same, to check the proof."""

    parts: PartRefs
    report: Report
    spec: ReadSpec
    options: Options
    audit: PartRefs = field(repr=False)

    def tasks(self, target_bytes: int) -> list[list[PartRef]]:
        """The parts in order, cut into runs of about ``target_bytes`` (one part at least)."""
        if not len(self.parts):
            return []
        ends = np.cumsum(self.parts.column("bytes"))
        group = (ends - 1) // max(target_bytes, 1)
        cuts = np.flatnonzero(np.diff(group)) + 1
        refs = list(self.parts)
        return [refs[a:b] for a, b in zip([0, *cuts], [*cuts, len(refs)], strict=True)]

    def guard(self) -> None:
        """Raises ``InvalidInput`` (``SCAN_TOO_LARGE``) where ``tamis.scan.max_bytes`` forbids to read this much. Call before reading."""
        limit, wanted = self.options.scan_max_bytes, self.parts.bytes
        if limit is None or wanted <= limit:
            return
        reasons = [f"{entry['conjunct']} did not skip: {entry['reason']}" for entry in self.report.not_skipped_because]
        why = "; ".join(reasons) or ("the filter's conjuncts left these parts" if self.report.filter else "there is no filter")
        raise InvalidInput(
            f"The scan of {self.report.table} would read {wanted} bytes, over the limit of {limit} ({why}).",
            code="SCAN_TOO_LARGE",
            name="tamis.scan.max_bytes",
            remedy="Narrow the filter, or raise tamis.scan.max_bytes.",
        )

    def __repr__(self) -> str:
        return repr(self.report)

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


def plan(
    snapshot: Snapshot,
    store: Store,
    schema: Schema,  # noqa: ARG001  # part of the contract: indexes resolve their columns by it
    conjuncts: Sequence[Expr],
    selected: Schema,
    options: Options,
    *,
    now: tuple[int, int] | None = None,
    filter_text: str | None = None,
    table: str | None = None,
    limit: int | None = None,
    columns: tuple[str, ...] | None = None,
    errors: str = "raise",
) -> Plan:
    """Runs the funnel. ``schema`` is the reader's full schema, ``selected`` what it asked for, ``now`` the inclusive range of the query's instant (microseconds)."""
    start = world().monotonic()
    lo, hi = now or (instant := world().now_micros(), instant)
    before = snapshot.io.bytes, snapshot.io.requests
    sieved = sieve(snapshot, conjuncts, options, (lo, hi))
    report = Report(
        table or store.url, snapshot.version, filter_text, columns if columns is not None else selected.names, options.read_lazy
    )
    parts = PartRefs(sieved.parts, sieved.all_match).where(sieved.keep)
    parts, limited = _within_limit(parts, limit)
    audit = _sample(sieved, options)
    _fill(report, sieved, parts, limited, audit)
    report.planned(snapshot.io.bytes - before[0], snapshot.io.requests - before[1])
    report.seconds["plan"] = world().monotonic() - start
    spec = ReadSpec(
        url=store.url,
        storage_options=dict(store.options),
        part_schemas={s.schema_id: s for s in snapshot.head.schemas},
        schema=selected,
        conjuncts=tuple(conjuncts),
        errors=errors,
        lazy=options.read_lazy if options.read_lazy in {"on", "off"} else "auto",
        now_micros=hi,
    )
    return Plan(parts, report, spec, options, audit)


def _within_limit(parts: PartRefs, limit: int | None) -> tuple[PartRefs, int]:
    """Without the parts behind the one at which parts that match wholly have given ``limit`` rows; and how many those are."""
    if limit is None or not len(parts):
        return parts, 0
    sure = np.cumsum(np.where(parts.all_match, parts.column("rows"), 0))
    needed = 0 if limit == 0 else min(int(np.searchsorted(sure, limit)) + 1, len(parts))
    return parts[:needed], len(parts) - needed


def _sample(sieved: Sieved, options: Options) -> PartRefs:
    """The skipped parts to read all the same: chosen by a hash of their ids, so that every run of a query checks the same ones."""
    skipped = PartRefs(sieved.parts, np.zeros(len(sieved.keep), dtype=np.bool_)).where(~sieved.keep)
    if not options.audit_percent or not len(skipped):
        return skipped[:0]
    ids = skipped.table["part_id"].to_pylist()
    chosen = np.array([zlib.crc32(i.encode()) % 10_000 < options.audit_percent * 100 for i in ids], dtype=np.bool_)
    within = np.cumsum(np.where(chosen, skipped.column("bytes"), 0)) <= options.audit_max_bytes
    return skipped.take(np.flatnonzero(chosen & within))


def _fill(report: Report, sieved: Sieved, parts: PartRefs, limited: int, audit: PartRefs) -> None:
    report.segments.update(total=sieved.segments_total, skipped=sieved.segments_skipped, by_stats=sieved.segments_skipped)
    report.parts.update(
        total=sieved.parts_total,
        skipped_segment=sieved.parts_skipped_segment,
        skipped_stats=sieved.parts_total - sieved.parts_skipped_segment - int(sieved.keep.sum()),
        skipped_limit=limited,
        kept=len(parts),
        all_match=int(parts.all_match.sum()),
        audited=len(audit),
    )
    report.bytes.update(table=sieved.bytes_table, skipped=sieved.bytes_table - parts.bytes)
    report.blocks["total"] = parts.blocks
    report.rows["total"] = sieved.rows_total
    report.because, report.not_skipped_because = sieved.because, sieved.not_skipped_because
