"""Abstract ⊇ concrete: what is decided from statistics holds for the rows they were taken from.

Random trees over every function of the catalogue, awkward rows, statistics of several looseness; then the concrete evaluator is the judge:
no row of a *none* piece is true or failing, every row of an *all* piece is true.
"""

from __future__ import annotations

import zlib
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core import expr
from tamis.core.pruning import decide
from tests.pruning.evidence_of import RowsEvidence
from tests.pruning.trees import SCHEMA, piece, tree

LOOSE = [
    {"drop": frozenset(), "widen": 0},
    {"drop": frozenset({"nulls"}), "widen": 0, "listed": True},
    {"drop": frozenset({"bounds"}), "widen": 0},
    {"drop": frozenset({"lo"}), "widen": 3, "listed": True},
    {"drop": frozenset({"hi", "nans"}), "widen": 0},
    {"drop": frozenset(), "widen": 5},
    {"drop": frozenset({"bounds"}), "widen": 0, "listed": True},
    {"drop": frozenset(), "widen": 0, "listed": True},
]
NAMES = [f.name for f in expr.all_entries()]


def judge(filters: list[expr.Expr], pieces: list, loose: dict, seed: int) -> int:  # type: ignore[type-arg]
    """Raise where rows contradict a decision; return how many pieces were decided."""
    evidence = RowsEvidence(SCHEMA, pieces, loose["drop"], loose["widen"], seed, loose.get("listed", False))
    conjuncts = [c for f in filters for c in expr.conjuncts_of(f)]
    decision = decide(conjuncts, evidence, strict=True)
    for number, rows in enumerate(pieces):
        if not (decision.none[number] or decision.all[number]):
            continue
        batch = {f.id: rows.column(i) for i, f in enumerate(SCHEMA.fields)}
        with patch("tamis.core.expr.evaluate.is_approximate", return_value=False):  # rows by this machine's logarithms
            keep, failed, error = expr.filter_mask(conjuncts, batch, rows.num_rows)
        filter_text = " AND ".join(expr.to_sql(c) for c in conjuncts)
        if decision.none[number]:
            assert not keep.any(), (
                f"wrong skip: {filter_text}\n{conjuncts}\n{rows.slice(int(keep.argmax()), 1).to_pylist()}"
            )
            assert not failed.any(), (
                f"hidden error {error}: {filter_text}\n{conjuncts}\n{rows.slice(int(failed.argmax()), 1).to_pylist()}"
            )
        if decision.all[number]:
            assert keep.all(), (
                f"wrong all: {filter_text}\n{conjuncts}\n{rows.slice(int((~keep).argmax()), 1).to_pylist()}"
            )
    return int((decision.none | decision.all).sum())


@pytest.mark.push_cases(56)
@pytest.mark.parametrize("name", NAMES)
def test_every_function_alone(name: str) -> None:
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    decided = 0
    for round_ in range(12):
        pieces = [piece(rng) for _ in range(12)]
        decided += judge([tree(rng, 1, name)], pieces, LOOSE[round_ % len(LOOSE)], round_)
    assert decided > 0, "never decides anything: the test could not fail"


@pytest.mark.slow
@given(st.integers(0, 2**63 - 1))
def test_random_trees(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pieces = [piece(rng) for _ in range(10)]
    for _ in range(3):
        judge([tree(rng, 3) for _ in range(rng.integers(1, 4))], pieces, LOOSE[rng.integers(len(LOOSE))], seed)
