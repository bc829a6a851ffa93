"""The algebra of candidates against sets: what is known and empty holds nothing, what is not known holds everything."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tamis.engine.secondary_index.candidate_rows import Candidates

PARTS, ROWS = 4, 6
EVERY = {(part, row) for part in range(PARTS) for row in range(ROWS)}
HITS = st.tuples(st.lists(st.booleans(), min_size=PARTS, max_size=PARTS), st.sets(st.sampled_from(sorted(EVERY))))


def made(given_: tuple[list[bool], set[tuple[int, int]]]) -> Candidates:
    known, hits = given_
    of_known = sorted(hit for hit in hits if known[hit[0]])
    parts, rows = (np.array([hit[at] for hit in of_known], dtype=np.int64) for at in (0, 1))
    return Candidates.from_hits(np.array(known), parts, rows)


def rows(candidates: Candidates) -> set[tuple[int, int]]:
    """All rows that may match."""
    return {(p, r) for p, r in EVERY if not candidates.known[p] or r in candidates.rows.get(p, ())}


@given(HITS, HITS)
def test_and_or(a: tuple[list[bool], set[tuple[int, int]]], b: tuple[list[bool], set[tuple[int, int]]]) -> None:
    left, right = made(a), made(b)
    assert rows(left & right) == rows(left) & rows(right)
    assert rows(left | right) == rows(left) | rows(right)
    assert {p for p in range(PARTS) if left.empty[p]} == {
        p for p in range(PARTS) if not any((p, r) in rows(left) for r in range(ROWS))
    }
