"""Candidate rows: which rows of which parts may match, as far as indexes know.

Invariant: a part's candidates include every row that matches (or on which the filter raises); in a part that
is not known, every row is a candidate.
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
    """Candidates over a plan's parts.

    ``known`` marks the parts with known candidates; ``rows`` holds the candidates of known parts that have
    any.
    """

    known: Bools
    rows: dict[int, BitMap] = field(default_factory=dict)

    @staticmethod
    def from_hits(known: Bools, parts: Ints, rows: Ints) -> Candidates:
        """Build from unordered hits, given as parallel arrays of parts and rows."""
        order = np.argsort(parts, kind="stable")
        parts, rows = parts[order], rows[order]
        ids, starts = np.unique(parts, return_index=True)
        groups = np.split(rows, starts[1:]) if len(ids) else []
        return Candidates(
            known, {int(i): BitMap(group.astype(np.uint32)) for i, group in zip(ids, groups, strict=True)}
        )

    @staticmethod
    def unknown(count: int) -> Candidates:
        """Return candidates where no part is known."""
        return Candidates(np.zeros(count, dtype=np.bool_))

    def __and__(self, other: Candidates) -> Candidates:
        both = self.known & other.known
        rows = {i: r for i, r in self.rows.items() if not both[i]} | {
            i: r for i, r in other.rows.items() if not both[i]
        }
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
        """A mask of the known parts without a candidate."""
        out = self.known.copy()
        out[list(self.rows)] = False
        return out
