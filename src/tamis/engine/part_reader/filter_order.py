"""A filter over successive batches: its legs in the order that was seen to be cheapest, each on undecided rows.

Invariant: rows and errors are those of the written order (``core.expr.short_circuit``).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tamis.core.expr import Expr, ShortCircuit
from tamis.core.expr import can_fail as has_partial
from tamis.core.pruning.decide import may_fail
from tamis.core.stats import TableEvidence


def ordered_conjunction(conjuncts: Sequence[Expr], now_micros: int | None) -> ShortCircuit:
    """Return what evaluates a filter's conjuncts, batch after batch. Not thread-safe."""
    return ShortCircuit(conjuncts, now_micros, can_fail)


def can_fail(leg: Expr) -> bool:
    """Test whether a conjunct, or a leg of an AND or OR, may raise on some row; True if unknown."""
    if not has_partial(leg):
        return False
    nothing = TableEvidence(pa.table({"rows": pa.nulls(1, pa.int64()), "schema_id": pa.nulls(1, pa.int32())}), {})
    return bool(may_fail([leg], nothing)[0].any())
