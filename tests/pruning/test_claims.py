"""Every claim of the catalogue, brute-forced: over dense grids, what a function gives inside a range lies within what is said about the range."""

from __future__ import annotations

import math
from decimal import Decimal as PyDecimal
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tamis.core import expr
from tamis.core.expr import Call, Column, Mode
from tamis.core.expr.arrow_values import full_length, is_true
from tamis.core.expr.functions.logic.comparisons import compare_values
from tamis.core.expr.registry import Claim, function_entry
from tamis.core.pruning.interpreter import Interpreter
from tamis.core.pruning.value_spec import spec_of
from tamis.core.types import Struct
from tamis.core.types.arrow import to_arrow_type
from tests.expr.oracle import bound
from tests.expr.phrases import PHRASES
from tests.pruning.evidence_of import RowsEvidence
from tests.pruning.trees import FOLDS, SCHEMA

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


def columns_of(tree: expr.Expr) -> list[str]:
    return sorted({n.name for n in tree.walk() if isinstance(n, Column)})


def boxes(columns: list[str], rng: np.random.Generator) -> list[pa.Table]:
    """Pieces that are all combinations of short runs of the columns' grids, single values among them."""
    out = []
    fields = {f.name: to_arrow_type(f.type) for f in SCHEMA.fields}
    for _ in range(24):
        runs = []
        for column in columns:
            grid = GRIDS[column[:-1]]
            size = int([1, 2, 4, 8][rng.integers(4)])
            step = int(rng.integers(1, max(2, len(grid) // size)))
            start = int(rng.integers(len(grid)))
            runs.append([grid[(start + k * step) % len(grid)] for k in range(size)])
        rows = list(product(*runs))
        values = {name: pa.array([row[at] for row in rows], fields[name]) for at, name in enumerate(columns)}
        out.append(pa.table({name: values.get(name, pa.nulls(len(rows), kind)) for name, kind in fields.items()}))
    return out


MODES = (Mode.ANSI, Mode.LEGACY)
CASES = [
    (p, z, m)
    for z in ZONED
    for p in PHRASES
    if one_column(bound(p, z)) and "st." not in p and (z == "UTC" or "timestamp" in p or "date" in p)
    for m in MODES
    if m is Mode.ANSI or bound(p, z, m) != bound(p, z)
]
SEVERAL = [
    (p, z, m)
    for z in ("UTC", "America/St_Johns")
    for p in PHRASES
    if 1 < len(columns_of(bound(p, z))) < 4
    and all(name[:-1] in GRIDS for name in columns_of(bound(p, z)))
    and (z == "UTC" or "timestamp" in p)
    for m in MODES
    if expr.is_supported(bound(p, z, m)) and (m is Mode.ANSI or bound(p, z, m) != bound(p, z))
]


@pytest.mark.push_cases(367)
@pytest.mark.parametrize(("phrase", "zone", "mode"), CASES)
def test_what_happens_inside_is_admitted(phrase: str, zone: str, mode: Mode) -> None:
    tree = bound(phrase, zone, mode)
    column = one_column(tree)
    assert column is not None
    admitted(tree, ranges(column, np.random.default_rng(5)))


@pytest.mark.push_cases(48)
@pytest.mark.parametrize(("phrase", "zone", "mode"), SEVERAL)
def test_so_it_is_of_several_arguments(phrase: str, zone: str, mode: Mode) -> None:
    """Each argument over runs of its grid beside each other one's, and beside single values of them."""
    tree = bound(phrase, zone, mode)
    admitted(tree, boxes(columns_of(tree), np.random.default_rng(6)))


def test_every_claimed_argument_has_a_grid() -> None:
    """What a phrase of the grids leaves constant is claimed of nothing."""
    seen: dict[str, set[int]] = {}
    claimed: dict[str, set[int]] = {}
    for phrase, zone, mode in {*CASES, *SEVERAL}:
        for node in bound(phrase, zone, mode).walk():
            if isinstance(node, Call):
                moving = {at for at, arg in enumerate(node.args) if any(isinstance(n, Column) for n in arg.walk())}
                seen.setdefault(node.function, set()).update(moving)
                claims = function_entry(node.function).claims
                found = claims(node) if claims else ()
                claimed.setdefault(node.function, set()).update(
                    at for at, claim in enumerate(found) if claim is not Claim.FIXED
                )
    lacking = {(name, at) for name, places in claimed.items() for at in places - seen.get(name, set())}
    assert lacking <= CONSTANT, lacking - CONSTANT
    assert {name for name, places in claimed.items() if places} >= {
        f.name for f in expr.all_entries() if f.claims
    } - NO_PHRASE


CONSTANT = {
    *((name, at) for name in ("make_timestamp", "make_timestamp_ntz") for at in (0, 1, 3, 5)),
    ("make_ym_interval", 0),
    ("date_add", 1),
    ("interval_subtract", 1),
    ("greatest", 2),
    ("least", 2),
}
"""Arguments that are claimed to move one way and are constants in every phrase: random trees alone look at them (``test_soundness``)."""
NO_PHRASE = {
    *("acos", "asin", "atan", "atanh", "cbrt", "cosh", "degrees", "expm1", "log1p", "radians", "sinh", "tanh"),
    "exp",
    "ln",
    "log2",
    "log10",
    "raised",
    "months_add",
    "months_subtract",
    "exists",
    "forall",
}
"""Entries with claims that no phrase names: not computed here as Java does, of a type that no column has, or tests with a variable of their own."""


def admitted(tree: expr.Expr, pieces: list[pa.Table]) -> None:
    """Raises where what the tree gives for a row of a piece is not within what the interpreter says of the piece."""
    spec = spec_of(Interpreter(RowsEvidence(SCHEMA, pieces))(tree))
    n, whole = len(pieces), pa.concat_tables(pieces).combine_chunks()
    at = np.repeat(np.arange(n), [piece.num_rows for piece in pieces])
    lo, hi = (
        pc.take(b.combine_chunks() if isinstance(b, pa.ChunkedArray) else b, pa.array(at))
        for b in (full_length(spec.lo, n), full_length(spec.hi, n))
    )
    value, null, fail, nan = (np.broadcast_to(m, (n,))[at] for m in (spec.value, spec.null, spec.fail, spec.nan))
    out = expr.evaluate(tree, {f.id: whole.column(k) for k, f in enumerate(SCHEMA.fields)}, len(at))
    failed = np.zeros(len(at), bool) if out.failed is None else out.failed
    names = columns_of(tree)

    def none(wrong: Any, what: str) -> None:
        if wrong.any():
            first = int(wrong.argmax())
            piece = pieces[at[first]].select(names).to_pydict()
            raise AssertionError(
                f"{what}: {whole.slice(first, 1).select(names).to_pylist()} gives {values[first]}, bounds {lo[first]} to {hi[first]}, in {str(piece)[:2_000]}"
            )

    values = out.values.combine_chunks() if isinstance(out.values, pa.ChunkedArray) else out.values
    none(failed & ~fail, "hidden failure")
    missing = np.asarray(values.is_null().to_numpy(zero_copy_only=False)) & ~failed
    none(missing & ~null, "hidden NULL")
    real = ~missing & ~failed
    if pa.types.is_floating(values.type):
        is_nan = is_true(pc.is_nan(values))
        none(real & is_nan & ~nan, "hidden NaN")
        real &= ~is_nan
    none(real & ~value, "a value where there is none")
    none(real & is_true(compare_values("lt", values, lo)), "below the bound")
    none(real & is_true(compare_values("gt", values, hi)), "above the bound")
