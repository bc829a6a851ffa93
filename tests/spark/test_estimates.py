"""What a cost-based optimiser is told of a scan's columns: true of the rows that are left, or nothing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.spark.jvm_bridge.adapter import bridge_of

pytestmark = pytest.mark.spark

ROWS = 100
DAY = dt.date(2024, 1, 1)


@pytest.fixture(scope="module")
def costed(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Ten parts of a hundred rows, a day each. Every fourth ``some`` is NULL, ``void`` always; ``nan`` is NaN once."""
    root = tmp_path_factory.mktemp("costed")
    tamis.attach(spark, "costed", str(root))
    schema = pa.schema(
        {
            "id": pa.int64(),
            "small": pa.int16(),
            "day": pa.date32(),
            "at": pa.timestamp("us", "UTC"),
            "price": pa.decimal128(8, 2),
            "x": pa.float64(),
        }
        | {
            "nan": pa.float64(),
            "some": pa.int32(),
            "void": pa.int64(),
            "one": pa.int32(),
            "word": pa.string(),
            "yes": pa.bool_(),
        }
    )
    table = tamis.create(root / "db" / "t", schema, cluster_by=["id"])
    for part in range(10):
        ids = range(part * ROWS, (part + 1) * ROWS)
        day = DAY + dt.timedelta(part)
        at = dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC)
        table.append(
            pa.Table.from_pylist(
                [
                    {
                        "id": i,
                        "small": part,
                        "day": day,
                        "at": at,
                        "price": Decimal(i) / 4,
                        "x": i + 0.5,
                        "nan": float("nan") if i == 5 else 1.0,
                    }
                    | {"some": None if i % 4 == 0 else i, "one": 7, "word": f"w{i:070}" if i % 2 else None, "yes": True}
                    for i in ids
                ],
                schema=schema,
            )
        )
    spark.conf.set("spark.sql.cbo.enabled", "true")
    yield "costed.db.t"
    spark.conf.unset("spark.sql.cbo.enabled")


def estimated(spark: Any, text: str) -> dict[str, tuple[Any, ...]]:
    """Of each column of which something is told: least and greatest value, NULLs, distinct values, of the scan alone."""
    leaf = (
        spark.sql(text)._jdf.queryExecution().optimizedPlan().collectLeaves().head().stats().attributeStats().iterator()
    )
    found = {}
    while leaf.hasNext():
        entry = leaf.next()
        stat = entry._2()
        asked = (stat.min(), stat.max(), stat.nullCount(), stat.distinctCount())
        found[entry._1().name()] = tuple(
            None if o.isEmpty() else o.get() if isinstance(o.get(), int | float) else str(o.get()) for o in asked
        )
    return found


def rows(spark: Any, text: str) -> int:
    """How many rows Spark expects of the whole query."""
    return int(str(spark.sql(text)._jdf.queryExecution().optimizedPlan().stats().rowCount().get()))


DAYS = (DAY - dt.date(1970, 1, 1)).days


def test_columns_of_what_is_left(spark: Any, costed: str) -> None:
    assert estimated(spark, f"SELECT * FROM {costed} WHERE id >= 250 AND id < 350") == {
        "id": (200, 399, 0, 200),
        "small": (2, 3, 0, 2),
        "day": (DAYS + 2, DAYS + 3, 0, 2),
        "at": ((DAYS + 2) * 86_400_000_000, (DAYS + 3) * 86_400_000_000, 0, None),
        "price": ("50.00", "99.75", 0, None),
        "x": (200.5, 399.5, 0, None),
        "nan": (1.0, 1.0, 0, 1),
        "some": (201, 399, 50, None),
        "void": (None, None, 200, None),
        "one": (7, 7, 0, 1),
        "word": (None, None, 100, None),
    }
    assert "nan" not in estimated(spark, f"SELECT * FROM {costed}"), "NaN lies beyond the bounds"


def test_plans_expect_what_is_there(spark: Any, costed: str) -> None:
    assert rows(spark, f"SELECT * FROM {costed} WHERE id >= 250 AND id < 350") == pytest.approx(100, abs=5)
    assert rows(spark, f"SELECT * FROM {costed} WHERE day = DATE'2024-01-04' AND one = 7") == 100
    assert rows(spark, f"SELECT * FROM {costed} WHERE some IS NULL") == 250
    assert rows(spark, f"SELECT * FROM {costed} WHERE yes") == 1_000
    assert rows(spark, f"SELECT * FROM {costed} WHERE word > 'w'") > 0
    assert rows(spark, f"SELECT * FROM {costed} WHERE nan > 0") > 0
    assert "rowCount=100" in spark.sql(
        f"SELECT * FROM {costed} WHERE id >= 200 AND id < 300"
    )._jdf.queryExecution().explainString(spark._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("cost"))


def test_of_types_over_which_spark_fails_nothing_is_told(spark: Any, costed: str) -> None:
    spark.sql(
        "CREATE TABLE costed.db.others (n INT, local TIMESTAMP_NTZ, word STRING COLLATE UTF8_LCASE, v VARCHAR(3), c CHAR(3)) USING tamis"
    )
    spark.sql(
        "INSERT INTO costed.db.others SELECT id, TIMESTAMP_NTZ'2024-01-01 00:00:00' + id * INTERVAL 1 DAY, concat('K', id), 'v', 'c' FROM range(10)"
    )
    assert set(estimated(spark, "SELECT * FROM costed.db.others")) == {"n", "v", "c"}
    for condition, expected in (
        ("local > TIMESTAMP_NTZ'2024-01-08 00:00:00'", 2),
        ("local IN (TIMESTAMP_NTZ'2024-01-08 00:00:00') OR local <=> NULL", 1),
        ("word > 'k5'", 4),
        ("word IN ('k5', 'k6')", 2),
        ("v >= 'v' AND c < 'd'", 10),
    ):
        found = spark.sql(
            f"SELECT n FROM (SELECT * FROM costed.db.others WHERE {condition}) JOIN (SELECT n FROM costed.db.others) USING (n)"
        )
        assert len(found.collect()) == expected
        assert int(str(found._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())) > 0, condition


def test_deleted_rows_and_what_is_not_known(spark: Any, costed: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("costs")
    tamis.attach(spark, "costs", str(root))
    table = tamis.create(root / "db" / "d")
    table.append(pa.table({"k": pa.array(range(100), pa.int32()), "n": pa.array([None] * 50 + [3] * 50, pa.int32())}))
    table.delete("k < 30 OR k > 60")
    assert estimated(spark, "SELECT * FROM costs.db.d") == {"k": (0, 99, 0, None), "n": (3, 3, 15, 1)}, (
        "bounds of deleted rows count"
    )
    table.delete("true")
    assert estimated(spark, "SELECT * FROM costs.db.d") == {}
    trimmed = tamis.create(root / "db" / "trimmed", properties={"tamis.stats.budget_bytes": 2})
    trimmed.append(pa.table({"i": [1, 9], "s": ["a", "b"]}))
    assert "i" not in estimated(spark, "SELECT * FROM costs.db.trimmed"), (
        "a column without bounds would count as NULL throughout"
    )
    assert rows(spark, "SELECT * FROM costs.db.trimmed WHERE i > 0") > 0


def test_only_for_a_cost_based_optimiser_statistics_are_read(spark: Any, costed: str) -> None:
    def read() -> bool:
        leaf = spark.sql(f"SELECT * FROM {costed}")._jdf.queryExecution().optimizedPlan().collectLeaves().head()
        return any(name[:1].isdigit() for name in bridge_of(spark).target(leaf.scan()).plan.parts.table.column_names)

    assert read()
    spark.conf.set("spark.sql.cbo.enabled", "false")
    try:
        assert not read()
    finally:
        spark.conf.set("spark.sql.cbo.enabled", "true")
