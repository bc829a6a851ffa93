"""Every claim of the catalogue, brute-forced: over dense grids, what a function gives inside a range lies within what is said about the range."""

from __future__ import annotations

import math
from decimal import Decimal as PyDecimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tamis import expr
from tamis.domain.interpret import Interpreter
from tamis.domain.spec import spec_of
from tamis.expr import Column
from tamis.expr.functions.compare import compare
from tamis.expr.values import full, is_true
from tamis.types import Struct
from tamis.types.arrow import to_arrow_type
from tests.domain.evidence_of import RowsEvidence
from tests.domain.trees import FOLDS, SCHEMA
from tests.expr.oracle import bound
from tests.expr.phrases import PHRASES

HALF_HOUR = 1_800_000_000
_AROUND = sorted({f + k * HALF_HOUR // 2 for f in FOLDS for k in range(-110, 110)})
GRIDS: dict[str, list[Any]] = {
    "boolean": [False, True],
    "tinyint": list(range(-128, 128, 3)),
    "smallint": list(range(-300, 300, 7)),
    "integer": [-(2**31), *range(-200, 200, 3), 2**31 - 1],
    "bigint": [-(2**63), -(2**53) - 1, *range(-200, 200, 3), 2**31, 2**53 + 1, 2**63 - 1],
    "float": [-math.inf, *(v / 4 for v in range(-60, 60)), math.inf],
    "double": [-math.inf, -1e300, *(v / 8 for v in range(-60, 60)), 2.0**53, 1e300, math.inf],
    "decimal": [PyDecimal(v).scaleb(-2) for v in range(-999_999, 999_999, 7919)],
    "number": [PyDecimal(v).scaleb(-10) for v in range(-(10**12), 10**12, 10**10 + 7)],
    "string": sorted(
        [
            "",
            "a",
            "aa",
            "ab",
            "abz",
            "ac",
            "b",
            "é",
            "10",
            "9",
            "1.5",
            "2024-01-31",
            "\ud7ff",
            "\U0010ffff",
            "A",
            "AB",
            "Az",
            "Zb",
            "_",
            " a",
            "a ",
            "a\x01",
            "a -b",
            "a!",
            "a-",
            "a-b",
            "a-c",
            "b-0b",
            "bab",
            "bb",
            "abab",
            "abé",
            "abß",
            "aé",
            "x" * 70 + "b",
            "x" * 70 + "d",
        ],
        key=str.encode,
    ),
    "binary": [b"", b"a", b"a\x00", b"ab", b"\xff"],
    "date": list(range(19_600, 20_100)),
    "timestamp": _AROUND,
    "timestamp_ntz": _AROUND,
    "interval": [k * HALF_HOUR * 5 for k in range(-60, 60)],
}
ZONED = ["UTC", "America/St_Johns", "America/Sao_Paulo", "Australia/Lord_Howe", "Pacific/Apia"]


def ranges(column: str, rng: np.random.Generator) -> list[pa.Table]:
    """Pieces that are short and long runs of the grid, all points in between included."""
    grid, out = GRIDS[column[:-1]], []
    empty = {f.name: pa.nulls(1, to_arrow_type(f.type)) for f in SCHEMA.fields}
    field = next(f for f in SCHEMA.fields if f.name == column)
    for _ in range(60):
        start = int(rng.integers(len(grid)))
        stop = start + 1 + int(rng.integers(1, [3, 30, len(grid)][rng.integers(3)] + 1))
        values = pa.array(grid[start:stop], to_arrow_type(field.type))
        columns = [values if n == column else pc.take(a, pa.array([0] * len(values))) for n, a in empty.items()]
        out.append(pa.Table.from_arrays(columns, names=list(empty)))
    return out


def one_column(tree: expr.Expr) -> str | None:
    names = {n.name for n in tree.walk() if isinstance(n, Column)}
    return names.pop() if len(names) == 1 and not isinstance(tree.type, Struct) else None


CASES = [
    (p, z) for z in ZONED for p in PHRASES if one_column(bound(p, z)) and "st." not in p and (z == "UTC" or "timestamp" in p or "date" in p)
]


@pytest.mark.parametrize(("phrase", "zone"), CASES)
def test_what_happens_inside_is_admitted(phrase: str, zone: str) -> None:
    tree = bound(phrase, zone)
    column = one_column(tree)
    assert column is not None
    pieces = ranges(column, np.random.default_rng(5))
    spec = spec_of(Interpreter(RowsEvidence(SCHEMA, pieces))(tree))
    n = len(pieces)
    lo, hi, value, null, fail, nan = (
        full(spec.lo, n),
        full(spec.hi, n),
        *(np.broadcast_to(m, (n,)) for m in (spec.value, spec.null, spec.fail, spec.nan)),
    )
    for i, piece in enumerate(pieces):
        out = expr.evaluate(tree, {f.id: piece.column(k) for k, f in enumerate(SCHEMA.fields)}, piece.num_rows)
        failed = np.zeros(piece.num_rows, bool) if out.failed is None else out.failed
        assert fail[i] or not failed.any(), f"hidden failure in {piece.column(column).to_pylist()}"
        missing = np.asarray(out.values.is_null().to_numpy(zero_copy_only=False)) & ~failed
        assert null[i] or not missing.any()
        real = out.values.drop_null()
        if pa.types.is_floating(real.type):
            assert nan[i] or not is_true(pc.is_nan(real)).any()
            real = real.filter(pc.invert(pc.is_nan(real)))
        assert value[i] or len(real) == 0
        assert not is_true(compare("lt", real, lo[i])).any(), (
            f"below the bound {lo[i]}: {piece.column(column).to_pylist()[:50]} {real.to_pylist()[:50]}"
        )
        assert not is_true(compare("gt", real, hi[i])).any(), (
            f"above the bound {hi[i]}: {piece.column(column).to_pylist()[:50]} {real.to_pylist()[:50]}"
        )
