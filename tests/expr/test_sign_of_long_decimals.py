"""Spark rounds a decimal of more than 34 digits when it changes its sign, and fails if the result is too long."""

from __future__ import annotations

import decimal
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.errors import InvalidInput

JAVA = decimal.Context(prec=34, rounding=decimal.ROUND_HALF_EVEN)
DIGITS = "12345678901234567890123456789012345678"
EDGES = [10**34 - 1, 10**34, 10**34 + 5, 10**34 + 15, 10**35 - 1, 10**35 - 6, 10**36 - 1, 10**37 + 500, int(DIGITS)]
TYPES = [(38, 0), (38, 10), (38, 38), (35, 0), (36, 2), (37, 37), (34, 4)]


def values_of(precision: int, scale: int) -> list[Decimal]:
    """Values of each length from 33 digits on, of both signs, whose results fit."""
    chosen = np.random.default_rng(precision * 100 + scale)
    lengths = [digits for digits in range(33, precision + 1) for _ in range(8)]
    texts = ["".join(map(str, [1, *chosen.integers(0, 10, digits - 1)])) for digits in lengths]
    found = [*EDGES, *map(int, texts)]
    fitting = [one for one in found if abs(JAVA.plus(Decimal(one))) < 10**precision]
    return [sign * Decimal(one).scaleb(-scale) for one in fitting for sign in (1, -1)] + [Decimal(0)]


def data_of(precision: int, scale: int) -> pa.Table:
    values = values_of(precision, scale)
    with decimal.localcontext(decimal.Context(prec=100)):
        return pa.table({"i": range(len(values)), "d": pa.array(values, pa.decimal128(precision, scale))})


def literal(value: Decimal) -> str:
    return f"{value:f}"


def negated(value: Decimal) -> Decimal:
    return JAVA.minus(value)


def absolute(value: Decimal) -> Decimal:
    return negated(value) if value < 0 else value


RULES = {"-d": negated, "abs(d)": absolute}


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "scale"), TYPES)
@pytest.mark.push_cases(3)
def test_filters_find_the_rounded_values(tmp_path: Path, precision: int, scale: int) -> None:
    data = data_of(precision, scale)
    table = tamis.create(tmp_path / "t", data.schema)
    for start in range(0, len(data), 7):
        table.append(data.slice(start, 7))
    values = data["d"].to_pylist()
    for name, rule in RULES.items():
        for value in values[::9]:
            for operator, holds in (("=", lambda a, b: a == b), (">=", lambda a, b: a >= b), ("<", lambda a, b: a < b)):
                wanted = [i for i, one in enumerate(values) if holds(rule(one), rule(value))]
                found = table.scan(f"{name} {operator} {literal(rule(value))}").to_arrow()["i"].to_pylist()
                assert sorted(found) == wanted, (name, operator, value)


def test_parts_are_skipped_by_it(tmp_path: Path) -> None:
    data = pa.table({"d": pa.array([Decimal(n) * 10**36 for n in range(1, 41)], pa.decimal128(38, 0))})
    table = tamis.create(tmp_path / "t", data.schema)
    for start in range(0, 40, 4):
        table.append(data.slice(start, 4))
    for text in ("-d < -35000000000000000000000000000000000000", "abs(d) > 35000000000000000000000000000000000000"):
        scan = table.scan(text)
        assert len(scan.to_arrow()) == 5
        assert scan.report.parts.kept == 2


def test_a_result_that_is_too_long_fails_in_every_mode(tmp_path: Path) -> None:
    data = pa.table({"d": pa.array([Decimal(7), Decimal(10**38 - 1), None], pa.decimal128(38, 0))})
    table = tamis.create(tmp_path / "t", data.schema)
    table.append(data)
    for mode in (True, False):
        for text in ("-d < 0", "abs(-d) > 0"):
            with pytest.raises(InvalidInput, match="NUMERIC_VALUE_OUT_OF_RANGE"):
                table.scan(text, options={"ansi": mode}).to_arrow()
    assert len(table.scan("abs(d) > 0").to_arrow()) == 2
    assert len(table.scan(f"d = {10**38 - 1}").to_arrow()) == 1


def test_a_literal_keeps_its_digits(tmp_path: Path) -> None:
    data = pa.table({"d": pa.array([Decimal(f"-{DIGITS}"), negated(Decimal(DIGITS))], pa.decimal128(38, 0))})
    table = tamis.create(tmp_path / "t", data.schema)
    table.append(data)
    assert table.scan(f"d = -{DIGITS}").to_arrow()["d"].to_pylist() == [Decimal(f"-{DIGITS}")]


@pytest.mark.spark
@pytest.mark.parametrize(("precision", "scale"), [(38, 0), (38, 10), (35, 0)])
def test_spark_finds_the_same(spark: Any, tmp_path: Path, precision: int, scale: int) -> None:
    data = data_of(precision, scale)
    table = tamis.create(tmp_path / "lake" / "db" / "t", data.schema)
    for start in range(0, len(data), 7):
        table.append(data.slice(start, 7))
    pq.write_table(data, tmp_path / "plain.parquet")
    catalog = f"signs_{precision}_{scale}"
    tamis.attach(spark, catalog, tmp_path / "lake")
    values = data["d"].to_pylist()
    for text in (f"{name} = {literal(rule(values[at]))}" for at in (1, 20, -2) for name, rule in RULES.items()):
        plain = spark.read.parquet(str(tmp_path / "plain.parquet")).where(text).collect()
        assert sorted(plain) == sorted(spark.sql(f"SELECT * FROM {catalog}.db.t WHERE {text}").collect()), text
        assert sorted(row.i for row in plain) == sorted(table.scan(text).to_arrow()["i"].to_pylist()), text
