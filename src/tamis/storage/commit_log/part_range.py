"""A run of consecutive parts of a snapshot, read like a snapshot that has only these.

A stream reads a table in such ranges. Statistics of a segment that is cut remain those of all its parts,
which may skip less and never too much.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.types import Schema
from tamis.core.types.arrow import integer_column
from tamis.storage.commit_log.snapshot import Snapshot
from tamis.storage.commit_log.version_changes import Bools, Live


class PartRange(Snapshot):
    """The live parts ``first`` (inclusive) to ``end`` (exclusive) of ``whole``, counted in their order.

    ``schemas`` are those of a later version of the table, under which the parts are read.
    """

    def __init__(self, whole: Snapshot, first: int, end: int, schemas: tuple[Schema, ...] | None = None) -> None:
        head = whole.head if schemas is None else replace(whole.head, schemas=schemas)
        super().__init__(whole.store, whole.commit, head)
        self._all = whole
        ends = np.cumsum(integer_column(whole.segments, "parts"))
        end = min(end, int(ends[-1])) if len(ends) else 0
        if first >= end:
            self._low = self._high = self._skip = self._drop = 0
            return
        self._low = int(np.searchsorted(ends, first, side="right"))
        self._high = int(np.searchsorted(ends, end, side="left")) + 1
        before = int(ends[self._low - 1]) if self._low else 0
        self._skip, self._drop = first - before, int(ends[self._high - 1]) - end
        """The number of parts of the first and of the last segment that do not belong to the range."""

    @cached_property
    def segments(self) -> pa.Table:
        """One row per segment; the counts of a cut segment cover only its parts in the range."""
        table = self._all.segments.slice(self._low, self._high - self._low)
        if not (self._skip or self._drop):
            return table
        ends = np.zeros(len(table), dtype=np.bool_)
        ends[[0, -1]] = True
        parts = self.parts(ends)
        segment = parts["segment"].to_numpy()
        live = {
            "parts": np.ones(len(parts), dtype=np.int64),
            "rows": integer_column(parts, "rows") - integer_column(parts, "deleted"),
            "bytes": integer_column(parts, "bytes"),
        }
        for name, values in live.items():
            counted = np.bincount(segment, weights=values, minlength=len(table)).astype(np.int64)
            column = np.where(ends, counted, integer_column(table, name))
            table = table.set_column(table.column_names.index(name), name, pa.array(column))
        return table

    def segment_evidence(self, ids: Collection[int]) -> pa.Table:
        return self._all.segment_evidence(ids).slice(self._low, self._high - self._low)

    def parts(self, mask: Bools | None = None, ids: Collection[int] = ()) -> pa.Table:
        table = self._all.parts(self._chosen(mask), ids)
        segment = table["segment"].to_numpy()
        keep = np.ones(len(table), dtype=np.bool_)
        if self._skip:
            keep[np.flatnonzero(segment == self._low)[: self._skip]] = False
        if self._drop:
            keep[np.flatnonzero(segment == self._high - 1)[-self._drop :]] = False
        return self._shifted(table if keep.all() else table.filter(pa.array(keep)))

    def table(
        self, name: str, facts: Collection[str], mask: Bools | None = None, ids: Collection[int] = ()
    ) -> pa.Table:
        return self._shifted(self._all.table(name, facts, self._chosen(mask), ids))

    @cached_property
    def removed_parts(self) -> pa.Table:
        return self._all.removed_parts

    @cached_property
    def index_segments(self) -> pa.Table:
        return self._all.index_segments

    @cached_property
    def _live(self) -> Live:
        return self._all._live

    def _chosen(self, mask: Bools | None) -> Bools | None:
        """Return a mask over the range's segments as one over the whole snapshot's segments; None selects all."""
        if mask is None and self._high - self._low == len(self._all.segments):
            return None
        chosen = np.zeros(len(self._all.segments), dtype=np.bool_)
        chosen[self._low : self._high] = True if mask is None else mask
        return chosen

    def _shifted(self, table: pa.Table) -> pa.Table:
        moved = pc.subtract(table["segment"], pa.scalar(self._low, pa.int32()))
        return table.set_column(table.column_names.index("segment"), "segment", moved)
