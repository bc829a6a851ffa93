"""Which rows of which parts may match, as far as indexes know.

Law: a set of candidates of a part holds every row of it that matches (or on which the filter fails); of a part that is not known, every row may be one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pyroaring import BitMap

Bools = np.ndarray[Any, np.dtype[np.bool_]]
Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(slots=True)
class Candidates:
    """Over the parts of a plan: ``known`` says of which the candidates are known; ``rows`` holds those of known parts that have any."""

    known: Bools
    rows: dict[int, BitMap] = field(default_factory=dict)

    @staticmethod
    def of(known: Bools, parts: Ints, rows: Ints) -> Candidates:
        """From hits, a part and a row each, in any order."""
        order = np.argsort(parts, kind="stable")
        parts, rows = parts[order], rows[order]
        ids, starts = np.unique(parts, return_index=True)
        groups = np.split(rows, starts[1:]) if len(ids) else []
        return Candidates(known, {int(i): BitMap(group.astype(np.uint32)) for i, group in zip(ids, groups, strict=True)})

    @staticmethod
    def nothing(count: int) -> Candidates:
        """No part is known."""
        return Candidates(np.zeros(count, dtype=np.bool_))

    def __and__(self, other: Candidates) -> Candidates:
        both = self.known & other.known
        rows = {i: r for i, r in self.rows.items() if not both[i]} | {i: r for i, r in other.rows.items() if not both[i]}
        for i in self.rows.keys() & other.rows.keys():
            if left := self.rows[i] & other.rows[i]:
                rows[i] = left
        return Candidates(self.known | other.known, rows)

    def __or__(self, other: Candidates) -> Candidates:
        both = self.known & other.known
        rows = {i: r for i, r in self.rows.items() if both[i]}
        for i, r in other.rows.items():
            if both[i]:
                rows[i] = rows[i] | r if i in rows else r
        return Candidates(both, rows)

    @property
    def hits(self) -> int:
        return sum(len(r) for r in self.rows.values())

    @property
    def empty(self) -> Bools:
        """Known parts without a candidate."""
        out = self.known.copy()
        out[list(self.rows)] = False
        return out
