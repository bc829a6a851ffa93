"""What pruning concludes from generated columns holds for the rows, and skips where nothing else would."""

from __future__ import annotations

import decimal
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core import expr
from tamis.core.expr.generated_columns import GeneratedColumn, generated_columns
from tamis.core.pruning import decide
from tamis.core.pruning.implied_conjuncts import implied_conjuncts
from tamis.core.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    Field,
    Generation,
    Schema,
    Struct,
)
from tamis.core.types.arrow import to_arrow_schema, to_arrow_type
from tamis.engine.part_writer import conform_batches
from tests.pruning.evidence_of import RowsEvidence
from tests.pruning.trees import SCHEMA, leaf, piece, tree

OWN = 900
"""The column id of the generated column in random cases."""


@dataclass
class DerivedEvidence(RowsEvidence):
    """Evidence that knows generated columns; the columns ``hidden`` have no statistics."""

    columns: list[GeneratedColumn] = field(default_factory=list)
    hidden: frozenset[int] = frozenset()
    holds: Any = None

    def column(self, ids: tuple[int, ...]) -> Any:
        return None if ids[0] in self.hidden else super().column(ids)

    def generated(self) -> list[Any]:
        holds = np.ones(len(self), bool) if self.holds is None else self.holds
        return [(column, holds) for column in self.columns]


def _value(rng: np.random.Generator) -> Any:
    """A random expression that can generate a column."""
    for _ in range(50):
        nodes = [
            n
            for n in tree(rng, int(rng.integers(1, 3))).walk()
            if isinstance(n, expr.Call) and expr.column_paths(n) and not n.type.children
        ]
        plain = [n for n in nodes if not any(isinstance(m, expr.Moving | expr.Element) for m in n.walk())]
        usable = [n for n in plain if expr.is_supported(n) and str(n.type) not in {"variant", "void"}]
        if usable:
            return usable[rng.integers(len(usable))]
    return None


def _with_value(rows: pa.Table, value: expr.Expr) -> pa.Table | None:
    """``rows`` with the generated column; rows on which it fails are left out, as no writer stores them."""
    by_id = {f.id: rows.column(i) for i, f in enumerate(SCHEMA.fields)}
    out = expr.evaluate(value, by_id, rows.num_rows)
    made = rows.append_column("own", pa.chunked_array([out.values.cast(to_arrow_type(value.type))]))
    return made if out.failed is None else made.filter(pa.array(~out.failed))


def _filters(rng: np.random.Generator, value: expr.Expr) -> list[expr.Expr]:
    sources = [n for n in value.walk() if isinstance(n, expr.Column)]
    out = []
    for _ in range(rng.integers(1, 4)):
        about = [value, sources[rng.integers(len(sources))]][rng.integers(2)]
        name = ["eq", "lt", "le", "gt", "ge", "null_safe_eq", "is_null"][rng.integers(7)]
        args = (about,) if name == "is_null" else (about, leaf(rng, about.type))
        made = expr.make_call(name, *args, type=BOOLEAN)
        out.append(made if rng.random() < 0.8 and expr.is_supported(made) else tree(rng, 2))
    return out


@given(st.integers(0, 2**63 - 1))
def test_random_expressions_and_filters(seed: int) -> None:
    rng = np.random.default_rng(seed)
    value = _value(rng)
    if value is None:
        return
    own = Field("own", value.type, True, OWN)
    column = GeneratedColumn(own, expr.Column(own.type, (OWN,), "own"), value)
    schema = Schema((*SCHEMA.fields, own))
    with patch("tamis.core.expr.evaluate.is_approximate", return_value=False):
        pieces = [made for _ in range(8) if (made := _with_value(piece(rng), value)) is not None and len(made)]
        hidden = frozenset(n.ids[0] for n in value.walk() if isinstance(n, expr.Column) and rng.random() < 0.5)
        conjuncts = [c for f in _filters(rng, value) for c in expr.conjuncts_of(f)]
        evidence = DerivedEvidence(schema, pieces, columns=[column], hidden=hidden, listed=bool(rng.integers(2)))
        decision = decide(conjuncts, evidence, strict=True)
        for number, rows in enumerate(pieces):
            batch = {f.id: rows.column(i) for i, f in enumerate(schema.fields)}
            keep, failed, _ = expr.filter_mask(conjuncts, batch, rows.num_rows)
            description = f"{[expr.to_sql(c) for c in conjuncts]}, own = {expr.to_sql(value)}"
            if decision.none[number]:
                assert not keep.any(), f"wrong skip: {description}\n{rows.slice(int(keep.argmax()), 1).to_pylist()}"
                assert not failed.any(), f"hidden error: {description}"
            if decision.all[number]:
                assert keep.all(), f"wrong all: {description}"


@given(st.integers(0, 2**63 - 1))
def test_what_is_implied_is_true_of_every_row_that_matches(seed: int) -> None:
    rng = np.random.default_rng(seed)
    value = _value(rng)
    if value is None:
        return
    own = Field("own", value.type, True, OWN)
    column = GeneratedColumn(own, expr.Column(own.type, (OWN,), "own"), value)
    schema = Schema((*SCHEMA.fields, own))
    filters = [c for f in _filters(rng, value) for c in expr.conjuncts_of(f)]
    with (
        patch("tamis.core.expr.evaluate.is_approximate", return_value=False),
        patch("tamis.core.pruning.implied_conjuncts.generated_columns", return_value=(column,)),
    ):
        implied = implied_conjuncts(filters, schema, (0, 2**60))
        for rows in (made for _ in range(4) if (made := _with_value(piece(rng), value)) is not None and len(made)):
            batch = {f.id: rows.column(i) for i, f in enumerate(schema.fields)}
            for one in implied:
                if not expr.is_supported(one.conjunct):
                    continue
                given, _, _ = expr.filter_mask(filters[: one.origin + 1], batch, rows.num_rows)
                holds, _, _ = expr.filter_mask([one.conjunct], batch, rows.num_rows)
                implication = f"{[expr.to_sql(c) for c in filters]} implies {expr.to_sql(one.conjunct)}"
                assert not (given & ~holds).any(), f"{implication}, own = {expr.to_sql(value)}"


def _table(expression: str, kind: Any, source: Any, zone: str = "UTC") -> Schema:
    how = Generation(expression, zone)
    return Schema((Field("x", source, True, 1), Field("own", kind, True, 2, generated=how)))


DAY = 86_400_000_000
TS = ("CAST(x AS DATE)", DATE, TIMESTAMP, [k * DAY + DAY // 2 for k in range(6)])
TEXT = ("substring(x, 1, 1)", STRING, STRING, ["apple", "berry", "cherry", "date", "elder", "fig"])
NUMBER = ("x % 3", INTEGER, INTEGER, [0, 1, 2, 3, 4, 5])
CASES = [
    (TS, "x >= TIMESTAMP'1970-01-04 00:00:00Z'", 3),
    (TS, "x < TIMESTAMP'1970-01-03 12:00:00Z'", 3),
    (TS, "x = TIMESTAMP'1970-01-02 12:00:00Z'", 5),
    (TS, "x IN (TIMESTAMP'1970-01-02 12:00:00Z', TIMESTAMP'1970-01-03 12:00:00Z')", 4),
    (TS, "x BETWEEN TIMESTAMP'1970-01-02 12:00:00Z' AND TIMESTAMP'1970-01-03 12:00:00Z'", 4),
    (TS, "CAST(x AS DATE) = DATE'1970-01-02'", 5),
    (TS, "NOT (CAST(x AS DATE) <> DATE'1970-01-02')", 5),
    (TS, "to_date(x) = DATE'1970-01-02' OR CAST(x AS DATE) = DATE'1970-01-05'", 4),
    (TS, "year(x) = 1970", 0),
    (TEXT, "x = 'cherry'", 5),
    (TEXT, "x LIKE 'b%'", 0),
    (TEXT, "substring(x, 1, 1) IN ('a', 'f')", 4),
    (TEXT, "x <> 'apple'", 0),
    (NUMBER, "x = 4", 4),
    (NUMBER, "x > 4", 0),
    (NUMBER, "x % 3 = 2", 4),
    (NUMBER, "x = 4 AND 10 / x > 0", 4),
    (NUMBER, "10 / (x - 4) > 0 AND x = 4", 0),
]


def _pieces(schema: Schema, values: list[Any]) -> list[pa.Table]:
    kind = to_arrow_type(schema.fields[0].type)
    out = []
    for value in values:
        rows = pa.table({"x": pa.array([value], pa.int64() if pa.types.is_timestamp(kind) else kind).cast(kind)})
        out.append(pa.Table.from_batches(list(conform_batches(rows, schema))))
    return out


@pytest.mark.parametrize(("case", "text", "skipped"), CASES)
def test_a_filter_on_the_source_prunes_by_the_column(case: Any, text: str, skipped: int) -> None:
    """The source has no statistics at all: what is skipped is skipped by the generated column."""
    schema = _table(*case[:3])
    columns = list(generated_columns(schema))
    evidence = DerivedEvidence(schema, _pieces(schema, case[3]), columns=columns, hidden=frozenset({1}))
    conjuncts = expr.conjuncts_of(expr.parse_predicate(text, schema))
    decision = decide(conjuncts, evidence, strict=True)
    assert decision.none.sum() == skipped
    assert not skipped or ["own"] in decision.statistics
    known_to_none = replace(evidence, holds=np.zeros(len(evidence), bool))
    assert not decide(conjuncts, known_to_none, strict=True).none.any(), "a piece without the column was skipped"


def test_the_session_of_the_query_does_not_stand_for_that_of_the_column() -> None:
    """Eight in the evening in UTC is another day in Tokyo: the same words mean another expression there."""
    schema = _table("CAST(x AS DATE)", DATE, TIMESTAMP, "Asia/Tokyo")
    pieces = _pieces(schema, [k * DAY + 20 * DAY // 24 for k in range(6)])
    evidence = DerivedEvidence(schema, pieces, columns=list(generated_columns(schema)), hidden=frozenset({1}))
    assert pieces[0]["own"][0].as_py().isoformat() == "1970-01-02"
    for zone, skipped in (("UTC", 0), ("Asia/Tokyo", 5)):
        here = expr.parse_predicate("CAST(x AS DATE) = DATE'1970-01-02'", schema, zone=zone)
        assert decide([here], evidence, strict=True).none.sum() == skipped
    found = decide([expr.parse_predicate("x = TIMESTAMP'1970-01-01 20:00:00Z'", schema)], evidence, strict=True).none
    assert found.tolist() == [False, True, True, True, True, True]


def test_an_expression_that_case_tables_decide_is_not_taken_for_the_column() -> None:
    """Releases of Java map some letters to other cases than the writer did."""
    schema = _table("upper(x)", STRING, STRING)
    assert not generated_columns(schema)[0].portable
    pieces = _pieces(schema, ["a", "b"])
    evidence = DerivedEvidence(schema, pieces, columns=list(generated_columns(schema)), hidden=frozenset({1}))
    assert not decide([expr.parse_predicate("upper(x) = 'A'", schema)], evidence, strict=True).none.any()
    assert decide([expr.parse_predicate("x = 'a'", schema)], evidence, strict=True).none.tolist() == [False, True]


@pytest.mark.parametrize(("digits", "certain"), [(34, True), (35, False)])
@pytest.mark.parametrize("expression", ["-x", "abs(x)", "round(-x, 0)"])
def test_the_sign_of_a_long_decimal_is_not_taken_for_the_column(expression: str, digits: int, certain: bool) -> None:
    """Older releases stored it exactly, and Spark rounds it."""
    schema = _table(expression, Decimal(38, 0), Decimal(digits, 0))
    assert generated_columns(schema)[0].certain is certain


@pytest.mark.parametrize(
    ("expression", "kind", "source", "certain"),
    [
        ("x % CAST(1 AS DECIMAL(38,1))", Decimal(38, 1), Decimal(38, 0), True),
        ("x % CAST(1 AS DECIMAL(38,2))", Decimal(38, 2), Decimal(38, 0), False),
        ("x div CAST(1 AS DECIMAL(38,2))", LONG, Decimal(38, 0), False),
        ("x / 3Y", Decimal(14, 10), Decimal(10, 6), False),
        ("x / 3", Decimal(12, 8), Decimal(10, 6), True),
        ("x / 365", Decimal(14, 10), Decimal(10, 6), True),
        ("coalesce(1, 2.5, x)", DOUBLE, STRING, False),
        ("coalesce(x, 2.5, '7')", DOUBLE, INTEGER, False),
        ("x IN (1.5, '2.04')", BOOLEAN, INTEGER, False),
        ("x IN (2, 2.0)", BOOLEAN, STRING, False),
        ("coalesce(x, 2.5)", Decimal(11, 1), INTEGER, True),
        ("x IN (1, 2)", BOOLEAN, INTEGER, True),
        ("cast(x + (x - DATE'2024-01-01') AS STRING)", STRING, DATE, False),
        ("x + INTERVAL '1' DAY", DATE, DATE, True),
        ("cast(x AS DOUBLE)", DOUBLE, STRING, True),
        ("x IN ('a', 'b')", BOOLEAN, STRING, True),
        ("cast(x AS INT)", INTEGER, Decimal(38, 18), False),
        ("from_json(x, 'a STRUCT<b: INT>').a.b", INTEGER, STRING, False),
        ("from_json(x, 'a INT').a", INTEGER, STRING, True),
        ("to_date(x, 'yyyy-MM-dd')", DATE, TIMESTAMP_NTZ, False),
        ("unix_seconds(x)", LONG, TIMESTAMP_NTZ, False),
        ("cast(x AS DATE)", DATE, TIMESTAMP_NTZ, True),
        ("unix_seconds(x)", LONG, TIMESTAMP, True),
        ("cast(x AS INT)", INTEGER, TIMESTAMP, True),
    ],
)
def test_what_older_releases_computed_otherwise_is_not_taken_for_the_column(
    expression: str, kind: Any, source: Any, certain: bool
) -> None:
    assert generated_columns(_table(expression, kind, source))[0].certain is certain


def test_a_value_of_an_older_release_hides_no_row() -> None:
    """Spark rounds the negative of this number to 34 digits; it was stored with all of them."""
    number = decimal.Decimal("12345678901234567890123456789012345678")
    schema = _table("-x", Decimal(38, 0), Decimal(38, 0))
    old = pa.table({"x": [number], "own": [-number]}, to_arrow_schema(schema))
    evidence = DerivedEvidence(schema, [old], columns=list(generated_columns(schema)))
    equal = expr.parse_predicate(f"x = {number}", schema)
    assert not decide([equal], evidence, strict=True).none.any()
    assert implied_conjuncts([equal], schema, (0, 0)) == ()
    other = expr.parse_predicate("x = 5", schema)
    assert decide([other], evidence, strict=True).none.all()


def test_what_may_be_null_is_not_implied_to_be_within_bounds() -> None:
    """A month lies between 1 and 12, but that of NULL is NULL."""
    schema = _table("month(x)", INTEGER, TIMESTAMP)
    open_ = expr.parse_predicate("coalesce(x, TIMESTAMP'2026-01-01 00:00:00Z') IS NOT NULL", schema)
    assert implied_conjuncts([open_], schema, (0, 0)) == ()
    closed = expr.parse_predicate("x > TIMESTAMP'2026-01-01 00:00:00Z'", schema)
    assert [expr.to_sql(one.conjunct) for one in implied_conjuncts([closed], schema, (0, 0))] == [
        "(own >= 1)",
        "(own <= 12)",
    ]


def test_another_field_of_the_same_struct_is_another_source() -> None:
    how = Generation("st.a % 3")
    inner = Struct((Field("a", INTEGER, True, 11), Field("b", INTEGER, True, 12)))
    schema = Schema((Field("st", inner, True, 1), Field("own", INTEGER, True, 2, generated=how)))
    rows = pa.table({"st": pa.array([{"a": 1, "b": 2}], to_arrow_type(inner))})
    pieces = [pa.Table.from_batches(list(conform_batches(rows, schema)))]
    evidence = DerivedEvidence(schema, pieces, columns=list(generated_columns(schema)), hidden=frozenset({1}))
    for text, skipped in (("st.a % 3 = 2", True), ("st.b % 3 = 2", False), ("st.a = 2", True), ("st.b = 2", False)):
        assert decide([expr.parse_predicate(text, schema)], evidence, strict=True).none.tolist() == [skipped]


@pytest.mark.parametrize(
    ("text", "none"),
    [
        ("x > 5 AND x = 6", False),
        ("x < 5 AND x = 4", False),
        ("x > 5 AND x < 7 AND x = 6", False),
        ("x > 5 AND x = 5", True),
        ("x > 5 AND x < 6", True),
        ("x > 2147483646 AND x = 2147483647", False),
        ("x < -2147483647 AND x = -2147483648", False),
    ],
)
def test_a_strict_comparison_excludes_its_bound_and_no_more(text: str, none: bool) -> None:
    schema = Schema((Field("x", INTEGER, True, 1),))
    evidence = DerivedEvidence(schema, [pa.table({"x": pa.array([6], pa.int32())})], hidden=frozenset({1}))
    decision = decide(expr.conjuncts_of(expr.parse_predicate(text, schema)), evidence, strict=True)
    assert decision.none.tolist() == [none]
