"""Pruning by LIMIT, with or without an order, among the kept parts; from metadata alone.

Invariants: without an order, parts whose rows all match and which have enough live rows suffice. With one, a
part may be dropped if enough live rows of other parts provably sort no later than any of its rows, and the
filter provably raises on none of its rows.
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
from tamis.core.types.arrow import sortable_array
from tamis.engine.scan.scan_order import Key, Order, at_least

if TYPE_CHECKING:
    from tamis.core.pruning.evidence import ColumnEvidence
    from tamis.engine.scan.scan_plan import PartRefs

Bools = np.ndarray[Any, np.dtype[np.bool_]]
Numbers = np.ndarray[Any, np.dtype[np.int64]]


def enough_parts(parts: PartRefs, limit: int) -> Bools:
    """Return a mask of the parts to read for any ``limit`` rows.

    All parts, unless those that match entirely have enough rows; then the first of these, or fewer, larger
    ones if that saves parts.
    """
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
    """Return how many leading entries of ``rows`` sum to ``limit``."""
    return 0 if limit == 0 else int(np.searchsorted(np.cumsum(rows), limit)) + 1


class RankedParts:
    """Kept parts under an order: which may hold early rows, and which can be dropped."""

    def __init__(
        self,
        parts: PartRefs,
        conjuncts: Sequence[Expr],
        order: Order,
        schemas: Mapping[int, Schema],
        now: tuple[int, int],
    ) -> None:
        self._parts, self._conjuncts, self._order, self._schemas, self._now = (
            parts,
            tuple(conjuncts),
            order,
            schemas,
            now,
        )
        self._evidence = TableEvidence(parts.table, schemas)
        found = self._evidence.column(order[0].column.ids)
        self._first = None if found is None or found.type != order[0].column.type else found

    def bound(self, limit: int) -> Expr | None:
        """Return a predicate true of every row among the first ``limit``; None without a bound.

        Only parts that match entirely contribute.
        """
        if self._first is None or limit == 0:
            return None
        by, e = self._order[0], self._first
        worst = e.lo if by.descending else e.hi
        rows = _no_worse(by, e, self._parts.live_rows)
        usable = np.flatnonzero(self._parts.all_match & np.asarray(worst.is_valid()) & (rows > 0))
        values = worst.take(pa.array(usable))
        best_first = pc.sort_indices(
            sortable_array(values), sort_keys=[("", "descending" if by.descending else "ascending")]
        ).to_numpy()
        needed = _reached(rows[usable][best_first], limit)
        return at_least(by, values[int(best_first[needed - 1])]) if needed <= len(usable) else None

    def cannot_qualify(self, bound: Expr, places: Numbers | None = None) -> Bools:
        """Return a mask of the parts (at ``places``; None: all) that the bound excludes.

        No row of theirs satisfies ``bound`` or makes the filter raise.
        """
        sure, evidence = self._parts.all_match, self._evidence
        if places is not None:
            sure, evidence = sure[places], TableEvidence(self._parts.table.take(pa.array(places)), self._schemas)
        none = decide((*self._conjuncts, bound), evidence, now=self._now, reasons=False).none
        if sure.any() and self._conjuncts:  # the filter is known to be true in these
            none = none | (sure & decide((bound,), evidence, now=self._now, reasons=False).none)
        return none

    def best_first(self) -> Numbers:
        """Return part indices, those that may hold the earliest rows first.

        Parts without a bound come last: they are read anyway.
        """
        by, e = self._order[0], self._first
        if e is None:
            return np.arange(len(self._parts))
        best = e.hi if by.descending else e.lo
        classes = np.where(np.asarray(best.is_valid()), 2, 3)
        if by.descending:
            classes = np.where(np.asarray(pc.fill_null(pc.not_equal(e.nans, 0), True)), 1, classes)
        if by.nulls_first:
            classes = np.where(np.asarray(pc.fill_null(pc.not_equal(e.nulls, 0), True)), 0, classes)
        table = pa.table({"class": classes, "best": sortable_array(best)})
        found: Numbers = pc.sort_indices(
            table, [("class", "ascending"), ("best", "descending" if by.descending else "ascending")]
        ).to_numpy()
        return found.astype(np.int64)


def _no_worse(by: Key, e: ColumnEvidence, live: Numbers) -> Numbers:
    """Count live rows per part that surely sort no later than its worst bound.

    NULLs and NaNs are outside the bounds. Any of them may be live: all deleted rows may have had other
    values.
    """
    rows = pa.array(live)
    if not by.nulls_first:
        rows = pc.subtract(rows, e.nulls)
    if not by.descending:
        rows = pc.subtract(rows, e.nans)
    sure: Numbers = pc.fill_null(rows, 0).to_numpy(zero_copy_only=False)
    return sure
