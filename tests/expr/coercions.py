"""Filters whose rows depend on the common type of their operands, and rows that show which type was taken."""

from __future__ import annotations

import decimal

import pyarrow as pa

from tamis.core import expr
from tamis.core.pruning import decide
from tamis.core.types import BOOLEAN, FLOAT, INTEGER, LONG, STRING, Decimal, Field, Schema
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


WIDE_KINDS = {"id": LONG, "w": Decimal(38, 0), "s": Decimal(38, 29), "q": Decimal(20, 0), "t": STRING}
WIDE_SCHEMA = Schema(tuple(Field(name, kind, id=i) for i, (name, kind) in enumerate(WIDE_KINDS.items(), 1)))
_MIDDLE, _ABOVE, _BELOW = (D(f"1.0000000596046447753906{end}") for end in ("25", "2500001", "2499999"))
"""Half way between two floats, and the decimals beside it, for which the nearest double is the same."""
WIDE_ROWS = pa.table(
    {
        "id": list(range(9)),
        "w": [
            D(n)
            for n in (93 * 10**17, -93 * 10**17, 2**63 - 1, 2**63, 2**64, 10**38 - 1, 5, -(2**63) - 1)
        ] + [None],
        "s": [_ABOVE, _MIDDLE, _BELOW, _ABOVE.copy_negate(), D(1), D(0), D("1E-29"), D("999999999.9"), None],
        "q": [D(2**53 + n) for n in range(8)] + [None],
        "t": [str(_ABOVE), str(_MIDDLE), str(2**53 + 2), "3.4028235677973366e38", "1e400", "x", "4", str(2**53), None],
    },
    to_arrow_schema(WIDE_SCHEMA),
)  # fmt: skip
WIDE: dict[str, tuple[list[int], list[int]]] = {
    "s::float > 1": ([0, 7], [0, 7]),
    "s::float = 1": ([1, 2, 4], [1, 2, 4]),
    "float(s) < -1": ([3], [3]),
    "s::float >= 1.0000001F": ([0, 7], [0, 7]),
    "s::double = 1.0000000596046448D": ([0, 1, 2], [0, 1, 2]),
    "s::float = 999999999.9F": ([7], [7]),
    "s::float = 1.00000005960464477539062500001F": ([0], [0]),
    "s::float BETWEEN 1 AND 1.00000001D": ([1, 2, 4], [1, 2, 4]),
    "s::float <> 1": ([0, 3, 5, 6, 7], [0, 3, 5, 6, 7]),
    "try_cast(t AS FLOAT) > 1": ([0, 2, 3, 4, 6, 7], [0, 2, 3, 4, 6, 7]),
    "try_cast(t AS FLOAT) = 1": ([1], [1]),
    "try_cast(t AS FLOAT) = 3.4028234663852886e38D": ([3], [3]),
    "w div 1 < 0": ([0, 3], [0, 3]),
    "w div 1 > 0": ([1, 2, 5, 6, 7], [1, 2, 5, 6, 7]),
    "w div 1 = 0": ([4], [4]),
    "w div 1 = -9146744073709551616": ([0], [0]),
    "w div -1 < 0": ([1, 2, 3, 5, 6, 7], [1, 2, 3, 5, 6, 7]),
    "w div 3 < 0": ([1, 5, 7], [1, 5, 7]),
    "w div q = 0": ([6], [6]),
    "w div 1 BETWEEN -9146744073709551616 AND 5": ([0, 4, 6], [0, 4, 6]),
    "w div 1 IS NULL": ([8], [8]),
    "w div 1 <= 9223372036854775807": ([0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3, 4, 5, 6, 7]),
    "q = '9007199254740993'": ([0, 1], [1]),
    "'9007199254740993' = q": ([0, 1], [1]),
    "q <> '9007199254740993'": ([2, 3, 4, 5, 6, 7], [0, 2, 3, 4, 5, 6, 7]),
    "q > '9007199254740995'": ([6, 7], [4, 5, 6, 7]),
    "q <= '9007199254740994'": ([0, 1, 2], [0, 1, 2]),
    "q <=> '9007199254740993'": ([0, 1], [1]),
    "q BETWEEN '9007199254740993' AND '9007199254740995'": ([0, 1, 2, 3, 4, 5], [1, 2, 3]),
    "q NOT BETWEEN '9007199254740993' AND '9007199254740995'": ([6, 7], [0, 4, 5, 6, 7]),
    "q IN ('9007199254740993')": ([0, 1], [1]),
    "CASE q WHEN '9007199254740993' THEN true END": ([0, 1], [1]),
    "nullif(q, '9007199254740993') IS NULL AND id < 8": ([0, 1], [1]),
    "q = concat('900719925474099', '3')": ([0, 1], [1]),
    "q = ' +9.007199254740993E+15 '": ([0, 1], [1]),
    "q = '2'": ([], []),
    "q <=> '2'": ([], []),
    "w > '5'": ([0, 2, 3, 4, 5], [0, 2, 3, 4, 5]),
    "w < '99999999999999999999999999999999999999'": ([0, 1, 2, 3, 4, 6, 7], [0, 1, 2, 3, 4, 6, 7]),
    "q < '99999999999999999999999999'": ([0, 1, 2, 3, 4, 5, 6, 7], []),
    "s = '1'": ([4], [4]),
    "s > '1'": ([0, 1, 2, 7], [0, 1, 2, 7]),
    "s < '1.0000000596046448'": ([3, 4, 5, 6], [3, 4, 5, 6]),
    "'4' = 4BD": ([0, 1, 2, 3, 4, 5, 6, 7, 8], [0, 1, 2, 3, 4, 5, 6, 7, 8]),
    "q = '9007199254740993.4'": ([2], [1]),
    "q > '9007199254740995.5'": ([6, 7], [5, 6, 7]),
    "q < '9007199254740995.25'": ([0, 1, 2], [0, 1, 2]),
    "q < 'Infinity'": ([0, 1, 2, 3, 4, 5, 6, 7], []),
    "q < '1e400'": ([0, 1, 2, 3, 4, 5, 6, 7], []),
    "q <> 'NaN'": ([0, 1, 2, 3, 4, 5, 6, 7], []),
    "q = '9007199254740993d'": ([0, 1], []),
    "s < 'Infinity'": ([0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3, 4, 5, 6, 7]),
    "q IN ('9007199254740993.0')": ([0, 1], []),
    "w = '5.4'": ([], [6]),
    "w > '5.5'": ([0, 2, 3, 4, 5], [0, 2, 3, 4, 5]),
}
"""Filters over long decimals, with the ids of the rows that Spark finds with ANSI on and with ANSI off."""


WIDE_LEGACY: dict[str, list[int]] = {
    "q = 'x'": [],
    "q <=> 'x'": [8],
    "NOT (q <=> 'x')": [0, 1, 2, 3, 4, 5, 6, 7],
    "q = t": [2],
    "t = q": [2],
    "q <=> t": [2, 8],
    "q < t": [],
    "t > 3BD": [6],
    "t > 30BD": [],
    "t = 4.0BD": [6],
    "t < 4BD": [0, 1],
    "s = 'x'": [],
    "1e0BD < t": [6],
}
"""Filters over long decimals, with the ids of the rows that Spark finds with ANSI off; with ANSI on they fail."""


MIXED_KINDS = {
    "id": LONG,
    "i": INTEGER,
    "d": Decimal(3, 1),
    "p": Decimal(10, 6),
    "b": BOOLEAN,
    "s": STRING,
    "t": STRING,
}
MIXED_SCHEMA = Schema(tuple(Field(name, kind, id=i) for i, (name, kind) in enumerate(MIXED_KINDS.items(), 1)))
MIXED_ROWS = pa.table(
    {
        "id": [0, 1, 2, 3, 4],
        "i": [2, 3, 4, None, None],
        "d": [D("2.0"), D("0.3"), D("4.0"), None, None],
        "p": [D("1"), D("2.5"), D("3.000001"), None, None],
        "b": [None, None, False, True, None],
        "s": ["2.04", "0.33", "4", "0.36", None],
        "t": ["true", "abc", "no", None, ""],
    },
    to_arrow_schema(MIXED_SCHEMA),
)
MIXED: dict[str, tuple[list[int], list[int]]] = {
    "i IN (1.5, '2.04')": ([], []),
    "i IN ('2.04', 1.5)": ([0], []),
    "i IN (1.5, 2, '2.04')": ([0], [0]),
    "i IN (id, 1.5, '2.04')": ([], []),
    "i IN ('2.04', id, 1.5)": ([0], []),
    "d IN (2, '2.04')": ([0], []),
    "s IN (2, 2.0)": ([0], []),
    "s IN (2.0, 2)": ([], []),
    "s IN (2, 2.0, '7')": ([], []),
    "s IN (2, 2.0, '2.04')": ([0], [0]),
    "CASE WHEN b THEN 1 WHEN NOT b THEN 2.5 ELSE s END = 0.33": ([1], [1]),
    "CASE WHEN b THEN s WHEN NOT b THEN 1 ELSE 2.5 END = 0.4": ([3], []),
    "coalesce(i, d, s) = 0.36": ([3], [3]),
    "coalesce(i, s, d) = 0.4": ([3], []),
    "coalesce(d, s, i) = 0.36": ([3], [3]),
    "p / 3Y = 0.33333333": ([], []),
    "p / 3Y = 0.3333333333": ([0], [0]),
    "p / -3Y = -0.3333333333": ([0], [0]),
    "p / 3S = 0.33333333": ([0], [0]),
    "p / 3 = 0.33333333": ([0], [0]),
    "p IN (1Y, 2Y) OR p = 1Y": ([0], [0]),
}
"""Filters over numbers beside texts and TINYINT, with the ids of the rows that Spark finds, ANSI on and ANSI off."""


MIXED_LEGACY: dict[str, list[int]] = {
    "t IS TRUE": [0],
    "t IS NOT TRUE": [1, 2, 3, 4],
    "t IS FALSE": [2],
    "t IS NOT FALSE": [0, 1, 3, 4],
}
"""Filters over texts as truth values, with the ids of the rows that Spark finds, ANSI off; else they fail."""


def tables(ansi: bool) -> list[tuple[pa.Table, dict[str, list[int]]]]:
    """Return each table with its filters and the ids of the rows that Spark finds."""
    floats, wide, mixed = ({text: ids[not ansi] for text, ids in some.items()} for some in (FLOATS, WIDE, MIXED))
    legacy = ({}, {}) if ansi else (WIDE_LEGACY, MIXED_LEGACY)
    return [(ROWS, {**DECIMALS, **floats}), (WIDE_ROWS, {**wide, **legacy[0]}), (MIXED_ROWS, {**mixed, **legacy[1]})]


def found(text: str, ansi: bool, schema: Schema = SCHEMA, rows: pa.Table = ROWS) -> list[int] | None:
    """Return the ids that the filter finds; None if rows cannot be evaluated here.

    Raises ``AssertionError`` if a row is skipped, or taken without a test, against the evaluation.
    """
    tree = expr.parse_predicate(text, schema, ansi=ansi)
    if not expr.is_supported(tree):
        return None
    keep, _, _ = expr.filter_mask([tree], {f.id: rows.column(f.name) for f in schema}, len(rows))
    for size in (1, 2, len(rows)):
        starts = range(0, len(rows), size)
        evidence = RowsEvidence(schema, [rows.slice(start, size) for start in starts])
        decision = decide(expr.conjuncts_of(tree), evidence, strict=True)
        kept = [keep[start : start + size] for start in starts]
        assert not any(none and some.any() for none, some in zip(decision.none, kept, strict=True)), size
        assert all(some.all() for all_, some in zip(decision.all, kept, strict=True) if all_), size
    ids: list[int] = keep.nonzero()[0].tolist()
    return ids
