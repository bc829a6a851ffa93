"""Spark finds no rest, in any mode, where the whole quotient of decimals has digits behind its 39th; and rounds once."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.core import expr
from tamis.core.pruning import decide
from tamis.core.types import Decimal as DecimalType
from tamis.core.types import Field, Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.errors import InvalidInput
from tests.pruning.evidence_of import RowsEvidence

SCHEMA = Schema(
    tuple(
        Field(name, DecimalType(38, scale), id=i) for i, (name, scale) in enumerate((("x", 0), ("y", 38), ("z", 1)), 1)
    )
)
LONG = "98765432109876543210987654321098765432"
POSSIBLE = [("5", "0.3"), (LONG, "0.3"), ("100000000000000000000", "1E-25"), ("12345678901234567890", "1E-38")]
"""The last two have quotients of more than 39 digits, which are zeros behind the 20th."""
IMPOSSIBLE = [(LONG, "3E-38"), (LONG, "0.0003"), (f"-{LONG}", "0.0003")]
REST = ("x % y", "pmod(x, y)", "x div y")


def rows(pairs: list[tuple[str, str]]) -> pa.Table:
    return pa.table(
        {
            "x": [Decimal(x) for x, _ in pairs],
            "y": [Decimal(y) for _, y in pairs],
            "z": [Decimal("0.3") for _ in pairs],
        },
        to_arrow_schema(SCHEMA),
    )


def table(folder: Path, pairs: list[tuple[str, str]]) -> tamis.Table:
    made = tamis.create(folder, to_arrow_schema(SCHEMA))
    for pair in pairs:
        made.append(rows([pair]))
    return made


@pytest.mark.parametrize("ansi", [True, False])
def test_they_fail_in_every_mode(tmp_path: Path, ansi: bool) -> None:
    made = table(tmp_path / "t", IMPOSSIBLE)
    for text in (*REST, "try_mod(x, y)"):
        with pytest.raises(InvalidInput, match="Division impossible"):
            made.scan(f"{text} = 7", options={"ansi": ansi}).to_arrow()


@pytest.mark.parametrize("ansi", [True, False])
def test_others_have_a_rest(tmp_path: Path, ansi: bool) -> None:
    made = table(tmp_path / "t", POSSIBLE)
    for text, count in (("x % y = 0.2", 2), ("try_mod(x, y) = 0", 2), ("pmod(x, y) = 0.2", 2), ("x % z = 0.2", 2)):
        assert made.scan(text, options={"ansi": ansi}).to_arrow().num_rows == count, text


@pytest.mark.parametrize("ansi", [True, False])
@pytest.mark.parametrize("text", ["{} = 7", "{} IS NULL", "x < 0 AND {} = 7", "{} = 7 AND x < 0"])
def test_no_piece_is_skipped_on_which_spark_may_fail(text: str, ansi: bool) -> None:
    pieces = [rows([pair]) for pair in (*IMPOSSIBLE, *POSSIBLE)]
    for rest in (*REST, "try_mod(x, y)"):
        tree = expr.parse_predicate(text.format(rest), SCHEMA, ansi=ansi)
        found = decide(expr.conjuncts_of(tree), RowsEvidence(SCHEMA, pieces), strict=True)
        reached = [i for i, (x, _) in enumerate(IMPOSSIBLE) if not text.startswith("x <") or x.startswith("-")]
        assert not found.none[reached].any(), rest
        assert not found.all.any(), rest


def test_what_cannot_be_impossible_is_still_skipped() -> None:
    pieces = [rows([("5", "0.3")]), rows([("6", "0.3")])]
    for text in ("try_mod(x, z) = 0.2", "x % z = 0.2", "x div z = 16", "x % y = 0.2", "x div y = 16"):
        found = decide([expr.parse_predicate(text, SCHEMA)], RowsEvidence(SCHEMA, pieces), strict=True)
        assert found.none.tolist() == [False, True], text


def test_products_and_quotients_are_rounded_once() -> None:
    """Digits behind the 39th do not raise the last one that is kept: these values are Spark's."""
    kinds = {"m": DecimalType(38, 18), "k": DecimalType(38, 18), "a": DecimalType(38, 38), "b": DecimalType(3, 0)}
    schema = Schema(tuple(Field(name, kind, id=i) for i, (name, kind) in enumerate(kinds.items(), 1)))
    texts = ["2337571097047670.039210815939270895", "2801145893710467.744717556094398883", "1E-38", "22"]
    batch = {
        f.id: pa.array([Decimal(text)], arrow.type)
        for f, arrow, text in zip(schema, to_arrow_schema(schema), texts, strict=True)
    }
    for text, value in (("m * k", "6547877679751354220990927609459.343301"), ("a / b", "0E-38")):
        out = expr.evaluate(expr.parse_value(text, schema, zone="UTC", ansi=True), batch, 1)
        assert out.values.to_pylist() == [Decimal(value)], text


@pytest.mark.parametrize(
    ("first", "second", "text", "value"),
    [
        ((37, 37), (38, 38), "x * y", "0.25"),
        ((38, 37), (37, 37), "x * y", "0.25"),
        ((37, 30), (38, 30), "x * y", "0.25"),
        ((38, 38), (38, 38), "x * y", "0.25"),
        ((38, 38), (38, 38), "cast(x AS DECIMAL(38,0))", "1"),
        ((38, 38), (38, 38), "cast(-x AS DECIMAL(38,0))", "-1"),
    ],
)
def test_results_of_which_the_limit_has_too_many_digits(
    first: tuple[int, int], second: tuple[int, int], text: str, value: str
) -> None:
    schema = Schema((Field("x", DecimalType(*first), id=1), Field("y", DecimalType(*second), id=2)))
    batch = {i: pa.array([Decimal("0.5")], f.type) for i, f in enumerate(to_arrow_schema(schema), 1)}
    out = expr.evaluate(expr.parse_value(text, schema, zone="UTC", ansi=True), batch, 1)
    assert out.values.to_pylist() == [Decimal(value)]


@pytest.mark.spark
@pytest.mark.parametrize("ansi", [True, False])
def test_spark_fails_on_the_same_rows(spark: Any, tmp_path: Path, ansi: bool) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    made = table(tmp_path / "lake" / "db" / "t", [*POSSIBLE, *IMPOSSIBLE])
    pq.write_table(made.scan().to_arrow(), tmp_path / "plain.parquet")
    session.read.parquet(str(tmp_path / "plain.parquet")).createOrReplaceTempView("divided")
    tamis.attach(session, f"rest_{ansi}".lower(), tmp_path / "lake")
    for source in ("divided", f"rest_{ansi}.db.t".lower()):
        for text in ("x % y", "pmod(x, y)", "try_mod(x, y)"):
            for x, y in IMPOSSIBLE:
                with pytest.raises(Exception, match="Division impossible"):
                    session.sql(f"SELECT x FROM {source} WHERE x = {x} AND y = {Decimal(y):f} AND {text} = 7").collect()
            possible = session.sql(f"SELECT x FROM {source} WHERE x <> {LONG} AND x > 0 AND {text} = 0").collect()
            assert len(possible) == 2, (source, text)
