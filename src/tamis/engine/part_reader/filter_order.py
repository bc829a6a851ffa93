"""The conjuncts of a filter over one batch after another, the cheap and selective ones first.

Law: rows and errors are those of the written order, in which false or NULL stops the later conjuncts. Conjuncts next to each other that can fail on no row, whatever
its values, change neither when they change places. One that can fail keeps its place among the others: moved forward it would meet rows that it must not see, and one moved
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
from tamis.world import world

Mask = np.ndarray[Any, np.dtype[np.bool_]]

NARROW = 0.25
"""Share of rows still alive from which the rest is cut down to them: gathering a column costs about what a comparison of it does."""
_FORGET = 0.5
"""What past batches count for beside the newest."""


@dataclass(slots=True)
class _Seen:
    """What running a conjunct has cost, and how many of the rows alive before it were alive after it."""

    rows: float = 0.0
    seconds: float = 0.0
    entered: float = 0.0
    left: float = 0.0

    @property
    def rank(self) -> float:
        """Seconds for each row that it drops: the order by this is the cheapest for conjuncts that do not depend on each other. Unseen ones come first, to be seen."""
        if not self.rows:
            return 0.0
        return self.seconds / self.rows / max(1.0 - self.left / max(self.entered, 1.0), 1e-9)

    def add(self, rows: int, seconds: float, entered: int, left: int) -> None:
        self.rows, self.seconds = self.rows * _FORGET + rows, self.seconds * _FORGET + seconds
        self.entered, self.left = self.entered * _FORGET + entered, self.left * _FORGET + left


class Conjunction:
    """A filter's conjuncts and what was seen of them. Not for several threads at once."""

    def __init__(self, conjuncts: Sequence[Expr], now_micros: int | None) -> None:
        self._conjuncts, self._now = tuple(conjuncts), now_micros
        self._seen = [_Seen() for _ in conjuncts]
        self._columns = [{ids[0] for ids in columns(c)} for c in conjuncts]
        self._runs = _runs(self._conjuncts) if len(conjuncts) > 1 else [[at] for at in range(len(conjuncts))]

    def order(self) -> list[int]:
        """The conjuncts' places in the order in which they run next."""
        return [at for run in self._runs for at in sorted(run, key=lambda at: self._seen[at].rank)]

    def mask(self, arrays: Mapping[int, pa.Array], length: int) -> tuple[Mask, Mask, str | None]:
        """As ``expr.filter_mask``: rows for which every conjunct is true, rows that fail, and the first error's message."""
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
    """Neighbours that may change places."""
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
    """Whether it may fail on a row of which nothing is known. Not knowing is yes."""
    nothing = TableEvidence(pa.table({"rows": pa.nulls(1, pa.int64()), "schema_id": pa.nulls(1, pa.int32())}), {})
    return bool(may_fail([conjunct], nothing)[0].any())
