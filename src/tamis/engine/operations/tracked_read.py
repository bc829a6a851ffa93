"""What a verb reads of a table before it changes it: the parts of a plan, and what that cost, told as a scan's report is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tamis.engine.operations.result import Progress
from tamis.engine.part_reader import ReadCounters, ReadSpec, read_part
from tamis.engine.scan import PartRefs, Plan
from tamis.storage.files import PartRef
from tamis.world import world


class Looking:
    """One pass over the parts of ``found``. Afterwards its report stands in ``tamis.reports()``, like that of any scan.

    ``progress`` is told of all bytes of the table's parts: at once of those that need not be read, of ``parts`` (all that were found) as they are.
    """

    def __init__(self, found: Plan, progress: Progress | None = None, parts: PartRefs | None = None) -> None:
        self.found = found
        self._read: set[str] = set()
        self._began = world().monotonic()
        self._progress = progress
        if progress is not None:
            left = found.parts if parts is None else parts
            progress(found.report.bytes["table"] - left.bytes, f"{len(left)} of {found.report.parts['total']} parts to read")

    def rows(self, ref: PartRef, spec: ReadSpec | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a part that the filter keeps, as ``spec`` (the plan's own) wants them."""
        counters = ReadCounters()
        try:
            yield from read_part(ref, spec or self.found.spec, counters)
        finally:
            self.take(ref.part_id, counters)
            if self._progress is not None:
                self._progress(ref.bytes, ref.path)

    def take(self, part_id: str, counters: ReadCounters) -> None:
        """Notes what reading a part cost, here or elsewhere."""
        self._read.add(part_id)
        self.found.report.add(("verb", part_id), counters)

    def answered(self, parts: PartRefs) -> None:
        """These parts match wholly: metadata is enough."""
        self.found.report.answer(len(parts), int(parts.live_rows.sum()))

    def finish(self) -> int:
        """Closes the report. Gives the bytes of data files and index parts that were read."""
        report = self.found.report
        report.seconds["read"] = world().monotonic() - self._began
        left = self.found.parts.where(~self.found.parts.all_match & ~np.isin(self.found.parts.table["part_id"].to_pylist(), [*self._read]))
        report.unread(len(left), 0, left.blocks, left.bytes)
        report.finish()
        return int(report.bytes["index"] + report.bytes["leader"] + report.bytes["follower"])
