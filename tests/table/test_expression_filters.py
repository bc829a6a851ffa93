"""Filters as pyarrow and Polars expressions: they mean what their library says, or are refused by name."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from hypothesis import given

import tamis
from tamis.core.expr import Expr, evaluate, short_sql
from tamis.core.types.arrow import from_arrow_schema
from tamis.errors import InvalidInput, NotFound
from tamis.table.expression_filters import ImpliedFilter, columns_of, implied_conjuncts, translated_filter
from tests.table.foreign_filters import (
    EVERY,
    FILTERS,
    NAN,
    ORDERED,
    ROWS,
    SCHEMA,
    UTC,
    VALUES,
    arrow_filter,
    batch_of,
    constants,
    polars_filter,
)

HELD = from_arrow_schema(SCHEMA).assign_ids(0)


def answers(expr: Expr, rows: pa.Table) -> list[bool | None]:
    """True, false or None for each row."""
    batch = {f.id: rows.column(k).combine_chunks() for k, f in enumerate(HELD.fields)}
    out = evaluate(expr, batch, rows.num_rows)
    assert out.failed is None or not out.failed.any()
    found: list[bool | None] = out.values.to_pylist()
    return found


def by_arrow(expression: pc.Expression, rows: pa.Table) -> list[bool | None]:
    """What pyarrow answers for each row, NULL too, which a filter would not tell from false."""
    found: list[bool | None] = ds.dataset(rows).to_table(columns={"x": expression})["x"].to_pylist()
    return found


@given(rows=ROWS, form=FILTERS)
def test_a_pyarrow_filter_answers_as_pyarrow(rows: list[dict[str, Any]], form: Any) -> None:
    table, expression = batch_of(rows), arrow_filter(form)
    assert answers(translated_filter(expression, HELD), table) == by_arrow(expression, table)


@given(rows=ROWS, form=FILTERS)
def test_a_polars_filter_answers_as_polars(rows: list[dict[str, Any]], form: Any) -> None:
    table, expression = batch_of(rows), polars_filter(form)
    expected = pl.from_arrow(table).lazy().select(x=expression).collect()["x"].to_list()
    assert answers(translated_filter(expression, HELD), table) == expected


@pytest.mark.push_cases(3)
@pytest.mark.parametrize("name", VALUES)
def test_every_comparison_of_every_pair_of_values(name: str) -> None:
    """Both libraries, from both sides, also negated."""
    frame = pl.from_arrow(EVERY).lazy()
    signs = ORDERED[:2] if name == "flag" else ORDERED
    for sign, value, flipped in itertools.product(signs, constants(name), [False, True]):
        form = ("compare", name, sign, value, flipped)
        for one in (form, ("not", form)):
            assert answers(translated_filter(arrow_filter(one), HELD), EVERY) == by_arrow(arrow_filter(one), EVERY), one
            polars = polars_filter(one)
            assert answers(translated_filter(polars, HELD), EVERY) == frame.select(x=polars).collect()["x"].to_list(), (
                one
            )


@pytest.mark.parametrize("closed", ["both", "left", "right", "none"])
def test_the_ends_of_between(closed: Any) -> None:
    frame = pl.from_arrow(EVERY).lazy()
    for name, low, high in (("whole", 0, 5), ("text", "A", "ab"), ("double", 0.0, 5.0), ("byte", 5, -1)):
        expression = pl.col(name).is_between(pl.lit(low), pl.lit(high), closed=closed)
        assert (
            answers(translated_filter(expression, HELD), EVERY) == frame.select(x=expression).collect()["x"].to_list()
        )


def test_only_conjuncts_are_implied_one_by_one() -> None:
    a, b, odd = pc.field("whole") > 5, pc.field("other") > 5, pc.add(pc.field("byte"), 1) > 5
    two = ImpliedFilter((*implied_conjuncts(a, HELD).conjuncts, *implied_conjuncts(b, HELD).conjuncts), exact=True)
    assert [short_sql(e) for e in two.conjuncts] == ["(whole > 5L)", "(other > 5)"]
    assert implied_conjuncts(a & b, HELD) == two
    assert implied_conjuncts(a & odd & b, HELD) == replace(two, exact=False)
    assert len(implied_conjuncts(a | b, HELD).conjuncts) == 1
    assert (
        implied_conjuncts(a | odd, HELD)
        == implied_conjuncts(~(a & odd), HELD)
        == implied_conjuncts(odd, HELD)
        == ImpliedFilter((), exact=False)
    )
    assert implied_conjuncts(a & (pc.field("nope") > 1), HELD) == replace(implied_conjuncts(a, HELD), exact=False)
    assert not implied_conjuncts(pc.field("WHOLE") > 5, HELD).exact, "pyarrow finds no such column"


@given(rows=ROWS, form=FILTERS)
def test_what_is_implied_is_true_where_the_filter_is(rows: list[dict[str, Any]], form: Any) -> None:
    table = batch_of(rows)
    known = arrow_filter(form)
    expression = known & (pc.add(pc.field("byte"), 1) < 100) & (pc.field("other") != 5)  # one part has no counterpart
    parts = implied_conjuncts(expression, HELD).conjuncts
    assert parts, "the others are used"
    true = [i for i, answer in enumerate(by_arrow(expression, table)) if answer]
    for part in parts:
        results = answers(part, table)
        assert all(results[i] is True for i in true)


REFUSED: dict[str, tuple[Any, str]] = {
    "a float": (pc.field("float") > 1, "float"),
    "a decimal": (pc.field("money") > decimal.Decimal(1), "money"),
    "a whole number and a fraction": (pc.field("whole") > 1.5, "1.5"),
    "more than the column holds": (pc.field("byte") < 1000, "1000"),
    "text and a number": (pc.field("text") > 5, "text"),
    "a number and text": (pc.field("whole") > "5", "whole"),
    "a local time and an instant": (pc.field("local") > dt.datetime(2020, 1, 1, tzinfo=UTC), "local"),
    "an instant and a local time": (pc.field("instant") > dt.datetime(2020, 1, 1), "instant"),
    "a date and a time": (pc.field("day") > dt.datetime(2020, 1, 1), "day"),
    "finer than a microsecond": (pc.field("local") > pa.scalar(1, pa.timestamp("ns")), "timestamp"),
    "NaN": (pc.field("double") > NAN, "nan"),
    "more than a double holds": (pc.field("double") > 2**53 + 1, str(2**53 + 1)),
    "NULL": (pc.field("whole") == pc.scalar(None), "NULL"),
    "NaN as NULL": (pc.field("double").is_null(nan_is_null=True), "is_null"),
    "a set of doubles": (pc.field("double").isin([0.0]), "double"),
    "a set with other NULLs": (
        pc.is_in(pc.field("whole"), pa.array([1, None]), skip_nulls=True)
        & pc.is_in(pc.field("double"), pa.array([1.0])),
        "is_in",
    ),
    "bytes and NULL in a set, as views": (pc.field("bytes").isin(pa.array([b"a", None], pa.binary_view())), "is_in"),
    "arithmetic": (pc.field("whole") + 1 > 5, "add"),
    "a function": (pc.utf8_upper(pc.field("text")) == "A", "utf8_upper"),
    "a logic that is not SQL's": (pc.and_(pc.field("flag"), pc.field("flag")), "and"),
    "an order of booleans": (pc.field("flag") < True, "booleans"),
    "two kinds of columns": (pc.field("whole") == pc.field("text"), "whole"),
    "two doubles": (pc.field("double") == pc.field("double"), "double"),
    "a field of a struct": (pc.field("pair", "a") > 1, "nested"),
    "no boolean": (pc.field("whole"), "whole"),
    "Polars: a float": (pl.col("float") > 1, "float"),
    "Polars: equal or both NULL": (pl.col("whole").eq_missing(None), "Eq"),
    "Polars: arithmetic": (pl.col("whole") + 1 > 5, "Plus"),
    "Polars: a typed constant beyond the column": (pl.col("byte") > pl.lit(300, pl.Int64), "300"),
    "Polars: an empty set": (pl.col("whole").is_in([]), "IsIn"),
    "Polars: NULL in a set": (pl.col("whole").is_in([1, None], nulls_equal=True), "IsIn"),
    "Polars: bytes in a set": (pl.col("bytes").is_in([b"a"]), "binary"),
    "Polars: bytes and NULL in a set": (pl.col("bytes").is_in([b"a", None]), "IsIn"),
    "Polars: another zone": (
        pl.col("instant") > pl.lit(dt.datetime(2020, 1, 1, tzinfo=ZoneInfo("Europe/Paris"))),
        "Datetime",
    ),
    "Polars: milliseconds": (pl.col("local") > pl.lit(dt.datetime(2020, 1, 1), pl.Datetime("ms")), ""),
    "Polars: a window": (pl.col("whole").max().over("flag") > 1, ""),
    "Polars: an aggregate": (pl.col("whole") == pl.col("whole").max(), ""),
    "Polars: a pattern": (pl.col("^w.*$") > 1, ""),
    "Polars: a Python function": (pl.col("whole").map_elements(bool, pl.Boolean), ""),
    "Polars: no boolean": (pl.col("whole"), "whole"),
}
WIDE = from_arrow_schema(
    pa.schema(
        [
            *SCHEMA,
            ("float", pa.float32()),
            ("money", pa.decimal128(5, 2)),
            ("bytes", pa.binary()),
            ("pair", pa.struct([("a", pa.int64())])),
        ]
    )
).assign_ids(0)


@pytest.mark.parametrize("what", REFUSED)
def test_what_may_differ_is_refused_by_name(what: str) -> None:
    expression, message = REFUSED[what]
    with pytest.raises((InvalidInput, NotFound)) as caught:
        translated_filter(expression, WIDE)
    if what != "Polars: a pattern":  # it is the name of no column
        assert caught.value.code == "UNTRANSLATABLE_FILTER"
        assert message in str(caught.value)
        assert "Spark SQL" in caught.value.remedy


def test_a_column_that_is_not_there_is_named() -> None:
    for expression in (pc.field("nope") > 1, pl.col("nope") > 1):
        with pytest.raises(NotFound, match="nope"):
            translated_filter(expression, HELD)


def test_columns_of_an_expression_with_names_of_any_kind() -> None:
    odd = ["a'\nfield_ref: 'b", "", "`", "literal: '0'", "ü"]
    expression = pc.field(odd[0]) > 1
    for name in odd[1:]:
        expression = expression & pc.add(pc.field(name), 1).is_valid()
    assert columns_of(expression) == set(odd)


@pytest.fixture
def table(tmp_path: Path) -> tamis.Table:
    made = tamis.create(tmp_path / "t", "id BIGINT, name STRING, x DOUBLE")
    for first in range(0, 40, 10):
        ids = range(first, first + 10)
        made.append(
            pa.table({"id": ids, "name": [f"n{i}" for i in ids], "x": [NAN if i % 7 == 0 else i / 2 for i in ids]})
        )
    return made


def test_every_verb_takes_them(table: tamis.Table) -> None:
    assert table.scan(pc.field("id") > 37).to_arrow()["id"].to_pylist() == [38, 39]
    assert table.scan(pl.col("id").is_between(3, 4), ["name"]).to_arrow().to_pylist() == [
        {"name": "n3"},
        {"name": "n4"},
    ]
    report = table.explain(pc.field("id") > 37)
    assert (report.parts["kept"], report.filter) == (1, "(id > 37L)")
    assert table.update({"name": "'new'"}, pc.field("id") == 5).rows_updated == 1
    assert table.delete(pl.col("id") < 10).rows_deleted == 10
    assert table.overwrite(pa.table({"id": [20], "name": ["a"], "x": [0.5]}), pc.field("id") == 20).rows_deleted == 1
    assert [group.parts for group in table.compact(pl.col("id") >= 30, dry_run=True).groups] == []
    assert table.scan().count() == 30


def test_nan_follows_the_library(table: tamis.Table) -> None:
    ids = range(40)
    assert table.scan(pc.field("x") >= 19.0).to_arrow()["id"].to_pylist() == [38, 39]
    above = [i for i in ids if i % 7 == 0 or i >= 38]
    assert table.scan(pl.col("x") >= 19.0).to_arrow()["id"].to_pylist() == above
    assert table.scan("x >= 19").to_arrow()["id"].to_pylist() == above


def test_functions_without_options_are_those_with_the_defaults(tmp_path: Path) -> None:
    data = pa.table({"x": [1.0, None, math.nan]})
    table = tamis.create(tmp_path / "t", data.schema)
    table.append(data)
    for condition in (pc.is_null(pc.field("x")), pc.is_valid(pc.field("x")), pc.invert(pc.is_null(pc.field("x")))):
        expected = str(data.filter(condition).to_pylist())
        assert str(table.scan(condition).to_arrow().to_pylist()) == expected
        assert str(table.to_pyarrow_dataset().to_table(filter=condition).to_pylist()) == expected
    assert table.delete(pc.is_null(pc.field("x"))).rows_deleted == 1
