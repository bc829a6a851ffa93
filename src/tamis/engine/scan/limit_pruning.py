"""Which of the parts that the funnel left a LIMIT needs, with an order and without; from metadata alone.

Laws: without an order, parts whose rows all match and which have enough live rows are enough. With one, a part may be left out when it is proved that
enough live rows of others come no later than any of its own, and that the filter fails on none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr import Expr
from tamis.core.pruning import decide
from tamis.core.stats import TableEvidence
from tamis.core.types import Schema
from tamis.engine.part_writer.clustering_order import comparable
from tamis.engine.scan.scan_order import Key, Order, at_least

if TYPE_CHECKING:
    from tamis.core.pruning.evidence import ColumnEvidence
    from tamis.engine.scan.scan_plan import PartRefs

Bools = np.ndarray[Any, np.dtype[np.bool_]]
Numbers = np.ndarray[Any, np.dtype[np.int64]]


def enough(parts: PartRefs, limit: int) -> Bools:
    """The parts to read for ``limit`` rows, any rows: all of them, unless parts that match wholly have as many. Then the first of these; fewer, larger ones where that saves parts."""
    sure = np.where(parts.all_match, parts.live_rows, 0)
    chosen = np.ones(len(parts), dtype=np.bool_)
    if int(sure.sum()) < limit:
        return chosen
    places = np.flatnonzero(sure)
    first = places[: _reached(sure[places], limit)]
    largest = places[np.argsort(-sure[places], kind="stable")]
    largest = largest[: _reached(sure[largest], limit)]
    chosen[:] = False
    chosen[first if len(first) == len(largest) or parts.all_match.all() else largest] = True
    return chosen


def _reached(rows: Numbers, limit: int) -> int:
    """How many of these, from the first on, have ``limit`` rows."""
    return 0 if limit == 0 else int(np.searchsorted(np.cumsum(rows), limit)) + 1


class Ranked:
    """Kept parts under an order: which may hold rows that come early, and which cannot matter any more."""

    def __init__(
        self, parts: PartRefs, conjuncts: Sequence[Expr], order: Order, schemas: Mapping[int, Schema], now: tuple[int, int]
    ) -> None:
        self._parts, self._conjuncts, self._order, self._schemas, self._now = parts, tuple(conjuncts), order, schemas, now
        self._evidence = TableEvidence(parts.table, schemas)
        found = self._evidence.column(order[0].column.ids)
        self._first = None if found is None or found.type != order[0].column.type else found

    def bound(self, limit: int) -> Expr | None:
        """What is true of each row that may be among the first ``limit``, as far as statistics of parts that match wholly say; None where they say nothing."""
        if self._first is None or limit == 0:
            return None
        by, e = self._order[0], self._first
        worst = e.lo if by.descending else e.hi
        rows = _no_worse(by, e, self._parts.live_rows)
        usable = np.flatnonzero(self._parts.all_match & np.asarray(worst.is_valid()) & (rows > 0))
        values = worst.take(pa.array(usable))
        best_first = pc.sort_indices(comparable(values), sort_keys=[("", "descending" if by.descending else "ascending")]).to_numpy()
        needed = _reached(rows[usable][best_first], limit)
        return at_least(by, values[int(best_first[needed - 1])]) if needed <= len(usable) else None

    def left_out(self, bound: Expr, places: Numbers | None = None) -> Bools:
        """Of the parts (at ``places``; None: all) those without a row for which ``bound`` is true or the filter fails."""
        sure, evidence = self._parts.all_match, self._evidence
        if places is not None:
            sure, evidence = sure[places], TableEvidence(self._parts.table.take(pa.array(places)), self._schemas)
        none = decide((*self._conjuncts, bound), evidence, now=self._now, reasons=False).none
        if sure.any() and self._conjuncts:  # of these the filter is known to be true
            none = none | (sure & decide((bound,), evidence, now=self._now, reasons=False).none)
        return none

    def best_first(self) -> Numbers:
        """Places of the parts, those that may hold the earliest rows first; those of which nothing is known last, as they are read anyway."""
        by, e = self._order[0], self._first
        if e is None:
            return np.arange(len(self._parts))
        best = e.hi if by.descending else e.lo
        classes = np.where(np.asarray(best.is_valid()), 2, 3)
        if by.descending:
            classes = np.where(np.asarray(pc.fill_null(pc.not_equal(e.nans, 0), True)), 1, classes)
        if by.nulls_first:
            classes = np.where(np.asarray(pc.fill_null(pc.not_equal(e.nulls, 0), True)), 0, classes)
        table = pa.table({"class": classes, "best": comparable(best)})
        found: Numbers = pc.sort_indices(
            table, [("class", "ascending"), ("best", "descending" if by.descending else "ascending")]
        ).to_numpy()
        return found.astype(np.int64)


def _no_worse(by: Key, e: ColumnEvidence, live: Numbers) -> Numbers:
    """Live rows per part that surely come no later than its worst bound: NULLs and NaNs lie outside of bounds. Deleted rows may all have been others."""
    rows = pa.array(live)
    if not by.nulls_first:
        rows = pc.subtract(rows, e.nulls)
    if not by.descending:
        rows = pc.subtract(rows, e.nans)
    sure: Numbers = pc.fill_null(rows, 0).to_numpy(zero_copy_only=False)
    return sure
