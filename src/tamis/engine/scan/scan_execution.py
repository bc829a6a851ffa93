"""One execution of a plan in this process: batches in order, counters into the report, audits beside it."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from functools import partial

import pyarrow as pa

from tamis.engine.part_reader import ReadCounters, windows
from tamis.engine.scan.parallel_reader import in_order, threads
from tamis.engine.scan.scan_plan import Plan, tell_order
from tamis.engine.scan.skip_audit import read_audited, strict, tell, violation
from tamis.engine.scan.top_k import TopK
from tamis.engine.secondary_index import read_shared
from tamis.errors import TamisError
from tamis.sizes import SIZES
from tamis.storage.files import PartRef
from tamis.world import world

LEAST_BYTES = SIZES.thread_bytes
"""Of a window: opening a part again and evaluating its filter in smaller chunks cost some milliseconds."""


class Execution:
    """Reads a plan's parts once. The report is finished when the rows have ended, failed or been dropped."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._begun: set[str] = set()
        self._wrong: TamisError | None = None
        """What an audit found."""

    def batches(self, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """The rows, ``limit`` of them at most; stops reading as soon as it has them."""
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
            with closing(in_order((partial(self._read, at, ref) for at, ref in enumerate(parts)), min(threads(), len(parts)))) as rows:
                for batch in rows:
                    if left is not None:
                        batch = batch.slice(0, min(left, len(batch)))  # noqa: PLW2901  # the same batch, cut
                        left -= len(batch)
                    if len(batch):
                        yield batch
                    if left == 0:
                        break
            if self._wrong is not None and strict():  # found in parts of which nobody wanted more
                raise self._wrong
        finally:
            self._finish(start)

    def count(self, limit: int | None = None, *, answered: int = 0) -> int:
        """The number of rows, ``limit`` at most. ``answered``: rows that metadata has counted, in parts that the plan left out.

        Counts the rows that are read, not the report's counters: those are complete only when every reader has ended.
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
        """Fewer parts than threads are cut into windows. Not those whose proofs are checked, and not where rows are only counted, or an index is asked for whole parts."""
        wanted, spec = threads(), self._plan.spec
        if len(parts) >= wanted or not (spec.schema.fields or spec.conjuncts) or self._plan.shared:
            return parts
        sizes = dict(zip(self._plan.parts.table["part_id"].to_pylist(), self._plan.parts.weights.tolist(), strict=True))
        weights = [sizes.get(ref.part_id, ref.bytes) for ref in parts]
        total = max(sum(weights), 1)
        return [
            w
            for ref, size in zip(parts, weights, strict=True)
            for w in (
                [ref]
                if ref.part_id in self._plan.proofs or (ref.all_match and not spec.schema.fields)
                else _windows(ref, size, wanted, total)
            )
        ]

    def _read(self, at: int, ref: PartRef) -> Generator[pa.RecordBatch]:
        """One part's rows."""
        counters = ReadCounters()
        self._begun.add(ref.part_id)
        proof = self._plan.proofs.get(ref.part_id)
        try:
            if proof is None:
                yield from read_shared(ref, self._plan.spec, counters, self._plan.shared)
            else:
                yield from read_audited(ref, proof, self._plan.spec, counters, self._violation)
        finally:
            self._plan.report.add(("embedded", at), counters)

    def _violation(self, part: str, problem: str) -> None:
        """Something that was proved is wrong: told loudly, and the right answer given."""
        report = self._plan.report
        report.violate(part, problem)
        self._wrong = violation(report.table, report.filter, part, problem)
        if strict():
            raise self._wrong
        tell(self._wrong)

    def _finish(self, start: float) -> None:
        report = self._plan.report
        report.seconds["read"] = world().monotonic() - start
        unread = self._plan.parts.where(~self._plan.parts.among(self._begun))
        why = "skipped_topk" if self._plan.order else "skipped_limit"
        report.unread(len(unread), int(unread.all_match.sum()), unread.blocks, unread.bytes, why)
        if self._plan.order:
            tell_order(report, self._plan.order, self._plan.limit)
        report.finish()


def _windows(ref: PartRef, size: int, wanted: int, total: int) -> list[PartRef]:
    """As many windows as its share of the ``total`` bytes to read deserves; a window is worth at least ``LEAST_BYTES``."""
    return windows(ref, min(-(-wanted * size // total), size // LEAST_BYTES))
