"""One piece of rows, and what is decided about it from its own statistics."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tamis.core import expr
from tamis.core.pruning import decide
from tests.pruning.evidence_of import RowsEvidence
from tests.pruning.trees import ARROW, SCHEMA

NAN, INF = float("nan"), float("inf")


def rows(**columns: list[Any]) -> pa.Table:
    """Rows with the given columns; the others are NULL."""
    count = len(next(iter(columns.values())))
    return pa.Table.from_arrays([pa.array(columns.get(f.name, [None] * count), f.type) for f in ARROW], schema=ARROW)


def decided(text: str, piece: pa.Table, zone: str = "UTC") -> str:
    """``none``, ``all`` or ``some``."""
    decision = decide(
        expr.conjuncts_of(expr.parse_predicate(text, SCHEMA, zone=zone)), RowsEvidence(SCHEMA, [piece]), strict=True
    )
    return "none" if decision.none[0] else "all" if decision.all[0] else "some"


FAILS, TRUE, FALSE, NULLED = "integer0 / integer1 > 0", "integer0 = 1", "integer0 = 2", "smallint0 = 1"

ONE = rows(integer0=[1, 1], integer1=[0, 0])

DAY = 19_723  # 2024-01-01
