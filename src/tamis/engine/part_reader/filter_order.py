"""Adaptive order of a filter's conjuncts over successive batches, cheap and selective ones first.

Invariant: rows and errors are those of the written order, in which false or NULL stops evaluation. Adjacent
conjuncts that can raise on no row, whatever its values, may be swapped without changing either. A conjunct
that can raise keeps its place: moved forward, it would see rows that it must not see; and a conjunct moved
before it would hide its error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.expr import Expr, columns, filter_mask
from tamis.core.pruning.decide import may_fail
from tamis.core.stats import TableEvidence
from tamis.cost_model import COSTS
from tamis.world import world

Mask = np.ndarray[Any, np.dtype[np.bool_]]

NARROW = COSTS.filter_compacted_share
"""Share of live rows at which columns are compacted; gathering a column costs about as much as a comparison.
"""
_FORGET = 0.5
"""Weight of past batches relative to the newest."""


@dataclass(slots=True)
class _Seen:
    """The observed cost of a conjunct, and how many live rows entered and left it."""

    rows: float = 0.0
    seconds: float = 0.0
    entered: float = 0.0
    left: float = 0.0

    @property
    def rank(self) -> float:
        """Seconds per dropped row: sorting by it is optimal for independent conjuncts.

        Unmeasured ones come first.
        """
        if not self.rows:
            return 0.0
        return self.seconds / self.rows / max(1.0 - self.left / max(self.entered, 1.0), 1e-9)

    def add(self, rows: int, seconds: float, entered: int, left: int) -> None:
        self.rows, self.seconds = self.rows * _FORGET + rows, self.seconds * _FORGET + seconds
        self.entered, self.left = self.entered * _FORGET + entered, self.left * _FORGET + left


class Conjunction:
    """A filter's conjuncts and their observed costs. Not thread-safe."""

    def __init__(self, conjuncts: Sequence[Expr], now_micros: int | None) -> None:
        self._conjuncts, self._now = tuple(conjuncts), now_micros
        self._seen = [_Seen() for _ in conjuncts]
        self._columns = [{ids[0] for ids in columns(c)} for c in conjuncts]
        self._runs = _runs(self._conjuncts) if len(conjuncts) > 1 else [[at] for at in range(len(conjuncts))]

    def order(self) -> list[int]:
        """Return the indices of the conjuncts in the order of the next run."""
        return [at for run in self._runs for at in sorted(run, key=lambda at: self._seen[at].rank)]

    def mask(self, arrays: Mapping[int, pa.Array], length: int) -> tuple[Mask, Mask, str | None]:
        """Like ``expr.filter_mask``: return the rows where all are true, the failed rows, the first error."""
        order = self.order()
        where: np.ndarray[Any, np.dtype[np.int64]] = np.arange(length)
        live, failed, error = np.ones(length, bool), np.zeros(length, bool), None
        for step, at in enumerate(order, 1):
            start, entered = world().monotonic(), int(np.count_nonzero(live))
            true, broken, said = filter_mask(self._conjuncts[at : at + 1], arrays, len(where), now_micros=self._now)
            broken &= live
            if broken.any():
                failed[where[broken]], error = True, error or said
            live &= true
            left = int(np.count_nonzero(live))
            self._seen[at].add(len(where), world().monotonic() - start, entered, left)
            if not left:
                break
            if step < len(order) and left <= NARROW * len(where):
                indices = pa.array(np.flatnonzero(live))
                needed = set().union(*(self._columns[rest] for rest in order[step:]))
                arrays = {i: arrays[i].take(indices) for i in needed}
                where, live = where[live], np.ones(left, bool)
        keep = np.zeros(length, bool)
        keep[where[live]] = True
        return keep, failed, error


def _runs(conjuncts: Sequence[Expr]) -> list[list[int]]:
    """Group adjacent conjuncts that may be swapped."""
    runs: list[list[int]] = []
    movable = False
    for at, conjunct in enumerate(conjuncts):
        fixed = can_fail(conjunct)
        if movable and not fixed:
            runs[-1].append(at)
        else:
            runs.append([at])
        movable = not fixed
    return runs


def can_fail(conjunct: Expr) -> bool:
    """Test whether a conjunct may raise on some row; True if unknown."""
    nothing = TableEvidence(pa.table({"rows": pa.nulls(1, pa.int64()), "schema_id": pa.nulls(1, pa.int32())}), {})
    return bool(may_fail([conjunct], nothing)[0].any())
