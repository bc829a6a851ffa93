"""Reads that a verb makes before it changes a table, recorded like a scan's report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tamis.core.types import Schema
from tamis.engine.operations.result import Progress
from tamis.engine.part_reader import ReadCounters, ReadSpec, read_part
from tamis.engine.scan import PartRefs, Plan
from tamis.storage.files import PartRef
from tamis.world import world


def has_match(ref: PartRef, spec: ReadSpec, counters: ReadCounters) -> bool:
    """Test whether some row of the part passes the filter of ``spec``, reading its columns up to the first such row."""
    return any(len(batch) for batch in read_part(ref, replace(spec, schema=Schema(())), counters))


class TrackedRead:
    """One pass over the parts of the plan ``found``; its report is added to ``tamis.reports()``.

    ``progress`` receives all bytes of the table's parts: immediately for parts that need no read, otherwise
    as ``parts`` (default: all found) are read.
    """

    def __init__(self, found: Plan, progress: Progress | None = None, parts: PartRefs | None = None) -> None:
        self.found = found
        self._read: set[str] = set()
        self._began = world().monotonic()
        self._progress = progress
        if progress is not None:
            left = found.parts if parts is None else parts
            progress(
                found.report.bytes["table"] - left.bytes, f"{len(left)} of {found.report.parts['total']} parts to read"
            )

    def rows(self, ref: PartRef, spec: ReadSpec | None = None) -> Iterator[pa.RecordBatch]:
        """Yield a part's rows that pass the filter, under ``spec`` (default: the plan's)."""
        counters = ReadCounters()
        try:
            yield from read_part(ref, spec or self.found.spec, counters)
        finally:
            self.record_cost(ref.part_id, counters)
            if self._progress is not None:
                self._progress(ref.bytes, ref.path)

    def has_match(self, ref: PartRef) -> bool:
        """Call ``has_match`` for a part and the plan's filter, and add its cost to the report.

        A part that has a match is expected to be read again, which counts its blocks and rows.
        """
        counters = ReadCounters()
        found = has_match(ref, self.found.spec, counters)
        if found:
            counters = replace(counters.without_blocks(), rows_total=0, rows_matched=0)
        self._read.add(ref.part_id)
        self.found.report.add(("match", ref.part_id), counters)
        return found

    def record_cost(self, part_id: str, counters: ReadCounters) -> None:
        """Record the cost of reading a part, here or elsewhere."""
        self._read.add(part_id)
        self.found.report.add(("verb", part_id), counters)

    def record_answered(self, parts: PartRefs) -> None:
        """Mark these parts, which match entirely, as answered from metadata."""
        self.found.report.record_answered(len(parts), int(parts.live_rows.sum()))

    def finish(self) -> int:
        """Finish the report. Returns the bytes read from data files and index parts."""
        report = self.found.report
        report.seconds["read"] = world().monotonic() - self._began
        left = self.found.parts.where(
            ~self.found.parts.all_match & ~np.isin(self.found.parts.table["part_id"].to_pylist(), [*self._read])
        )
        report.record_unread(len(left), 0, left.blocks, left.bytes)
        report.finish()
        return int(report.bytes["index"] + report.bytes["leader"] + report.bytes["follower"])
