"""The concrete evaluator gives what Spark gives: values, NULLs and errors, for awkward rows, in several zones, by both modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.core import expr
from tamis.core.expr import Mode
from tests.expr import coercions
from tests.expr.oracle import bound, differences, fails, numbered
from tests.expr.phrases import PHRASES
from tests.pruning.trees import SCHEMA, ZONES, piece, tree
from tests.spark.capabilities import knows_function

pytestmark = pytest.mark.spark


def rows(seed: int, count: int = 12) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.concat_tables([piece(rng, 5) for _ in range(count)])


def in_range(table: pa.Table) -> pa.Table:
    """Without instants that PySpark's own conversion cannot carry."""
    out = table
    for i, f in enumerate(table.schema):
        if pa.types.is_timestamp(f.type):
            values = [
                v if v is None or abs(v) < 2**60 else 2**60
                for v in table.column(i).combine_chunks().view(pa.int64()).to_pylist()
            ]
            out = out.set_column(i, f, pa.array(values, pa.int64()).view(f.type))
    return out


@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns", "Europe/Berlin"])
@pytest.mark.parametrize("ansi", [True, False])
@pytest.mark.push_cases(2)
def test_phrases(spark: Any, zone: str, ansi: bool) -> None:
    mode = Mode.ANSI if ansi else Mode.LEGACY
    phrases = [p for p in PHRASES if not p.startswith("try_to_date") or knows_function(spark, "try_to_date")]
    known = [(p, t) for p in phrases if expr.is_supported(t := bound(p, zone, mode))]
    assert not ansi or [p for p in PHRASES if not expr.is_supported(bound(p, zone, mode))] == []
    assert "\n".join(differences(spark, in_range(rows(1)), known, zone, ansi)) == ""


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.push_cases(3)
def test_random_trees(spark: Any, zone: str) -> None:
    rng = np.random.default_rng(ZONES.index(zone))
    trees = [t for t in (tree(rng, 2, zone=zone, mode=Mode.ANSI) for _ in range(80)) if expr.is_supported(t)]
    assert "\n".join(differences(spark, in_range(rows(2, 6)), [(expr.to_sql(t), t) for t in trees], zone)) == ""


SATURATES = ("floor(", "ceil(", "ceiling(")
"""Beyond BIGINT Spark 4.3 raises and 4.2 gives the nearest BIGINT. We raise as 4.3 does; what may fail is never skipped, so both are served."""


@pytest.mark.merge
def test_what_fails_here_fails_in_spark(spark: Any) -> None:
    table = in_range(rows(3))
    batch = {f.id: table.column(i) for i, f in enumerate(SCHEMA.fields)}
    missing, stored = [], numbered(spark, table)
    assert not fails(spark, stored, 0, "1 + 1", "UTC"), "the question itself does not fail"
    phrases = [phrase for phrase in PHRASES if spark.version >= "4.3" or not phrase.startswith(SATURATES)]
    for phrase in phrases:
        out = expr.evaluate(bound(phrase, "UTC"), batch, table.num_rows)
        if (
            out.failed is not None
            and out.failed.any()
            and not fails(spark, stored, int(out.failed.argmax()), phrase, "UTC")
        ):
            missing.append(f"{phrase}: {out.error} {table.slice(int(out.failed.argmax()), 1).to_pylist()}")
    assert "\n".join(missing) == ""


@pytest.mark.parametrize("ansi", [True, False])
def test_operands_are_coerced_as_spark_does(spark: Any, ansi: bool) -> None:
    """The rows listed for each filter in ``coercions`` are those that Spark finds."""
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    for asked, (table, filters) in enumerate(coercions.tables(ansi)):
        session.createDataFrame(table).createOrReplaceTempView(f"coerced{asked}")
        columns = ", ".join(f"({text}) AS c{i}" for i, text in enumerate(filters))
        truth = session.sql(f"SELECT {columns} FROM coerced{asked} ORDER BY id").toArrow().columns
        spark_finds = {
            text: [i for i, true in enumerate(column.to_pylist()) if true]
            for text, column in zip(filters, truth, strict=True)
        }
        assert spark_finds == filters
