"""One execution of a plan in this process: batches in order, counters into the report, audits beside it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from tamis.files import PartRef
from tamis.read import ReadCounters, read_part
from tamis.scan.plan import Plan
from tamis.scan.reader import in_order, threads
from tamis.scan.report import Counts
from tamis.world import world


class Execution:
    """Reads a plan's parts once. The report is finished when the rows have ended, failed or been dropped."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._begun: set[str] = set()

    def batches(self, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """The rows, ``limit`` of them at most; stops reading as soon as it has them."""
        left = limit
        start = world().monotonic()
        try:
            if left == 0:
                return
            parts = self._order()
            for batch in in_order(
                (partial(self._read, at, ref, audited) for at, (ref, audited) in enumerate(parts)), min(threads(), len(parts))
            ):
                if left is not None:
                    batch = batch.slice(0, min(left, len(batch)))  # noqa: PLW2901  # the same batch, cut
                    left -= len(batch)
                if len(batch):
                    yield batch
                if left == 0:
                    return
        finally:
            self._finish(start)

    def count(self, limit: int | None = None) -> int:
        """The number of rows, those that the plan answered from metadata included."""
        for _ in self.batches():
            pass
        matched = int(self._plan.report.rows["matched"])
        return matched if limit is None else min(matched, limit)

    def _order(self) -> list[tuple[PartRef, bool]]:
        parts = [(ref, False) for ref in self._plan.parts]
        if len(self._plan.audit):
            parts = sorted([*parts, *((ref, True) for ref in self._plan.audit)], key=lambda item: (item[0].segment, item[0].part))
        return parts

    def _read(self, at: int, ref: PartRef, audited: bool) -> Iterator[pa.RecordBatch]:
        """One part's rows. A row or an error in an audited part shows that skipping it was wrong: told loudly, and the right answer given."""
        counters = ReadCounters()
        self._begun.add(ref.part_id)
        problem = ""
        try:
            for batch in read_part(ref, self._plan.spec, counters):
                problem = problem or (f"{len(batch)} rows match" if len(batch) else "")
                yield batch
        except Exception as error:
            problem = str(error)
            raise
        finally:
            self._plan.report.add(("embedded", at), counters)
            if audited and (problem or counters.rows_matched):
                self._violation(ref, problem or f"{counters.rows_matched} rows match")

    def _violation(self, ref: PartRef, problem: str) -> None:
        report = self._plan.report
        report.violations.append(Counts(part=ref.part_id, filter=report.filter, problem=problem))
        warnings.warn(
            f"AUDIT: part {ref.part_id} of {report.table} was skipped by {report.filter!r}, and should not have been: {problem}. The rows are right. "
            "Set tamis.stats.filter=off and report this.",
            RuntimeWarning,
            stacklevel=2,
        )

    def _finish(self, start: float) -> None:
        report = self._plan.report
        report.seconds["read"] = world().monotonic() - start
        ids = self._plan.parts.table["part_id"]
        unread = self._plan.parts.where(pc.invert(pc.is_in(ids, pa.array(list(self._begun), pa.string()))).to_numpy())
        report.unread(len(unread), int(unread.all_match.sum()), unread.blocks, unread.bytes)
        report.finish()
