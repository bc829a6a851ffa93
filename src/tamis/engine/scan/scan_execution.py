"""Local execution of a plan: batches in order, counters into the report, audits alongside."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from contextlib import closing
from functools import partial

import pyarrow as pa

from tamis.engine.part_reader import ReadCounters, ScanScattering, read_part, split_windows
from tamis.engine.scan.column_widths import read_share
from tamis.engine.scan.parallel_reader import AHEAD_BYTES, read_in_order, reader_threads
from tamis.engine.scan.scan_plan import Plan, report_order
from tamis.engine.scan.skip_audit import audit_is_strict, audit_violation, log_violation, read_audited
from tamis.engine.scan.top_k import TopK
from tamis.engine.secondary_index import read_shared
from tamis.errors import TamisError, error_code
from tamis.sizes import SIZES
from tamis.storage.files import PartRef
from tamis.world import world

LEAST_BYTES = SIZES.thread_bytes
"""Minimum size of a window in the file: reopening a part and filtering in smaller chunks costs some milliseconds."""
WINDOW_BYTES = SIZES.window_bytes
"""Usual bytes read from one window, so few that the next windows fit into the read-ahead while it is drained."""


class Execution:
    """One read of a plan's parts. The report is finished when the rows are exhausted, fail or are dropped."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._begun: set[str] = set()
        self._read_part = partial(read_part, scattering=ScanScattering())
        self._wrong: TamisError | None = None
        """An audit violation."""

    def batches(self, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows, at most ``limit``; stops reading as soon as it has them."""
        left = limit
        start = world().monotonic()
        try:
            if left == 0:
                return
            if self._plan.order:
                yield from self._best()
                return
            parts = self._order()
            if limit is None:
                parts = self._cut(parts)
            work = (partial(self._read, at, ref) for at, ref in enumerate(parts))
            ahead = AHEAD_BYTES if limit is None else 0  # a scan with a limit must not read ahead
            with closing(read_in_order(work, min(reader_threads(self._plan.spec.url), len(parts)), ahead)) as rows:
                for batch in rows:
                    if left is not None:
                        batch = batch.slice(0, min(left, len(batch)))  # noqa: PLW2901  # the same batch, cut
                        left -= len(batch)
                    if len(batch):
                        yield batch
                    if left == 0:
                        break
            if self._wrong is not None and audit_is_strict():  # found in parts that the consumer did not finish
                raise self._wrong
        except Exception as error:
            self._plan.report.error = error_code(error)
            raise
        finally:
            self._finish(start)

    def count(self, limit: int | None = None, *, answered: int = 0) -> int:
        """Count the rows, at most ``limit``, including ``answered`` rows of parts counted from metadata.

        Counts the rows as they are read instead of the report's counters, which are complete only when every
        reader has ended.
        """
        left = None if limit is None else max(limit - answered, 0)
        read = sum(len(batch) for batch in self.batches(left))
        return answered + read if limit is None else min(answered + read, limit)

    def _best(self) -> Iterator[pa.RecordBatch]:
        search = TopK(self._plan, self._violation)
        try:
            yield from search.batches()
        finally:
            ids = self._plan.parts.table["part_id"]
            self._begun.update(ids.take(pa.array([at for at in search.read if at < len(ids)], pa.int64())).to_pylist())

    def _order(self) -> list[PartRef]:
        parts = [*self._plan.parts, *self._plan.audit]
        return sorted(parts, key=lambda ref: (ref.segment, ref.part)) if len(self._plan.audit) else parts

    def _cut(self, parts: list[PartRef]) -> list[PartRef]:
        """Split parts into windows if there are fewer parts than threads, or large ones.

        Not split: audited parts, parts whose rows are only counted, and all parts of a plan with shared index
        lookups, which cover whole parts.
        """
        wanted, spec = reader_threads(self._plan.spec.url), self._plan.spec
        if not parts or not (spec.schema.fields or spec.conjuncts) or self._plan.shared:
            return parts
        share = self._read_share()
        if len(parts) >= wanted and int(self._plan.parts.weights.max(initial=0)) * share < 2 * WINDOW_BYTES:
            return parts
        sizes = dict(zip(self._plan.parts.table["part_id"].to_pylist(), self._plan.parts.weights.tolist(), strict=True))
        weights = [sizes.get(ref.part_id, ref.bytes) for ref in parts]
        each = max(sum(weights) // wanted, 1) if len(parts) < wanted else WINDOW_BYTES / share
        return [
            w
            for ref, size in zip(parts, weights, strict=True)
            for w in (
                [ref]
                if ref.part_id in self._plan.proofs or (ref.all_match and not spec.schema.fields)
                else _windows(ref, size, min(each, WINDOW_BYTES / share))
            )
        ]

    def _read_share(self) -> float:
        """Return the share of the parts' bytes that is likely to be read; it is small for narrow or lazy scans."""
        spec = self._plan.spec
        newest = spec.part_schemas[max(spec.part_schemas)]
        return read_share(spec.schema, spec.conjuncts, newest, lazy=spec.lazy != "off")

    def _read(self, at: int, ref: PartRef) -> Generator[pa.RecordBatch]:
        """Yield one part's rows."""
        counters = ReadCounters()
        self._begun.add(ref.part_id)
        proof = self._plan.proofs.get(ref.part_id)
        try:
            if proof is None:
                yield from read_shared(ref, self._plan.spec, counters, self._plan.shared, self._read_part)
            else:
                yield from read_audited(ref, proof, self._plan.spec, counters, self._violation)
        finally:
            self._plan.report.add(("embedded", at), counters)

    def _violation(self, part: str, problem: str) -> None:
        """Record a wrong proof: raise or log it. The rows are correct either way."""
        report = self._plan.report
        report.record_violation(part, problem)
        self._wrong = audit_violation(report.table, report.filter, part, problem)
        if audit_is_strict():
            raise self._wrong
        log_violation(self._wrong)

    def _finish(self, start: float) -> None:
        report = self._plan.report
        report.seconds["read"] = world().monotonic() - start
        unread = self._plan.parts.where(~self._plan.parts.id_mask(self._begun))
        why = "skipped_topk" if self._plan.order else "skipped_limit"
        report.record_unread(len(unread), int(unread.all_match.sum()), unread.blocks, unread.bytes, why)
        if self._plan.order:
            report_order(report, self._plan.order, self._plan.limit)
        report.finish()


def _windows(ref: PartRef, size: int, window_bytes: float) -> list[PartRef]:
    """Split a part into windows of about ``window_bytes`` in the file, and of at least ``LEAST_BYTES``."""
    return split_windows(ref, min(math.ceil(size / window_bytes), size // LEAST_BYTES))
