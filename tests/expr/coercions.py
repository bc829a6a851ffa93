"""Filters whose rows depend on the common type of their operands, and rows that show which type was taken."""

from __future__ import annotations

import decimal

import pyarrow as pa

from tamis.core import expr
from tamis.core.pruning import decide
from tamis.core.types import FLOAT, INTEGER, LONG, STRING, Decimal, Field, Schema
from tamis.core.types.arrow import to_arrow_schema
from tests.pruning.evidence_of import RowsEvidence

KINDS = {"id": LONG, "n": Decimal(38, 30), "m": Decimal(10, 2), "f": FLOAT, "k": INTEGER, "l": LONG, "t": STRING}
SCHEMA = Schema(tuple(Field(name, kind, id=i) for i, (name, kind) in enumerate(KINDS.items(), 1)))
D = decimal.Decimal
ROWS = pa.table(
    {
        "id": [0, 1, 2, 3, 4],
        "n": [D("1E-30"), D("0"), D("12345678.5"), D("-1E-30"), None],
        "m": [D("1.25"), D("1"), D("-1.25"), D("0"), None],
        "f": [16777216.0, 1.5, 0.1, -2.5, None],
        "k": [16777217, 1, 0, 2, None],
        "l": [2**53 + 1, 16777217, 1, -3, None],
        "t": ["1", "2", "3", "4", None],
    },
    to_arrow_schema(SCHEMA),
)
DECIMALS: dict[str, list[int]] = {
    "array(n, 1)[0] = 0": [0, 1, 3],
    "array(n, 1)[0] = 0.000000000000000000000000000001": [0, 1, 3],
    "greatest(n, 0) > 0": [2],
    "least(n, 0) < 0": [],
    "coalesce(n, 1) > 0": [2, 4],
    "coalesce(n, 1L) = 0": [0, 1, 3],
    "CASE WHEN k >= 0 THEN n ELSE 1 END > 0": [2, 4],
    "if(k >= 0, n, 1) = 0": [0, 1, 3],
    "n IN (0, 7)": [0, 1, 3],
    "n IN (0, 7L)": [0, 1, 3],
    "n IN (0, l)": [0, 1, 3],
    "0 IN (n, 7)": [0, 1, 3],
    "n IN (0.000000000000000000000000000001, 7)": [0, 1, 3],
    "n NOT IN (0, 7)": [2],
    "m IN (0, 1)": [1, 3],
    "m IN (1.25, 0)": [0, 3],
    "n = 0": [1],
    "n > 0": [0, 2],
    "n <=> 0": [1],
    "n = CAST(0 AS INT)": [0, 1, 3],
    "n = int(0)": [0, 1, 3],
    "n > CAST(0 AS BIGINT)": [2],
    "n = +0": [0, 1, 3],
    "n = -0": [1],
    "n = -(0)": [0, 1, 3],
    "n = 1 - 1": [0, 1, 3],
    "n = abs(0)": [0, 1, 3],
    "n = length('')": [0, 1, 3],
    "n = 0L": [1],
    "n + CAST(1 AS INT) > 1": [2],
    "n BETWEEN 0 AND 1": [0, 1],
    "CASE n WHEN 0 THEN true END": [1],
    "n + 1 > 1": [2],
    "n = k": [],
}
"""Filters over decimals beside integers, with the ids of the rows that Spark finds in both modes."""
FLOATS: dict[str, tuple[list[int], list[int]]] = {
    "f = k": ([], [0]),
    "k = f": ([], [0]),
    "f < k": ([0, 3], [3]),
    "f <=> k": ([4], [0, 4]),
    "f >= 16777217": ([], [0]),
    "f IN (16777217, 16777218)": ([], [0]),
    "k IN (f, 7)": ([], [0]),
    "k IN (16777216F, 7F)": ([], [0]),
    "l IN (16777216F, 7F)": ([], [1]),
    "f + k > 33554432": ([0], []),
    "l = 9007199254740992F": ([0], [0]),
    "l - 16777216F = 1": ([1], []),
    "coalesce(f, k) = 16777217": ([], [0]),
    "greatest(f, k) = 16777217": ([0], [0]),
    "greatest(f, k) = 16777216": ([], [0]),
    "array(f, k)[1] = 16777216": ([], [0]),
    "array(f, k)[1] > 16777216D": ([0], []),
    "f = 16777217BD": ([], []),
    "k / f = 1": ([], []),
    "try_add(f, k) > 33554432D": ([0], []),
}
"""Filters over FLOAT beside integers, with the ids of the rows that Spark finds with ANSI on and with ANSI off."""


def found(text: str, ansi: bool) -> list[int] | None:
    """Return the ids that the filter finds; None if rows cannot be evaluated here.

    Raises ``AssertionError`` if a row is skipped, or taken without a test, against the evaluation.
    """
    tree = expr.parse(text, SCHEMA, ansi=ansi)
    if not expr.supported(tree):
        return None
    keep, _, _ = expr.filter_mask([tree], {f.id: ROWS.column(f.name) for f in SCHEMA}, len(ROWS))
    pieces = [ROWS.slice(i, 1) for i in range(len(ROWS))]
    decision = decide(expr.conjuncts(tree), RowsEvidence(SCHEMA, pieces), strict=True)
    assert not (decision.none & keep).any()
    assert not (decision.all & ~keep).any()
    ids: list[int] = keep.nonzero()[0].tolist()
    return ids
