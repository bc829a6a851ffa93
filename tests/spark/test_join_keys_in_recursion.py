"""Joins in the body of a recursion have the rows that they have over Parquet, and each step asks by its own keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.new_reports import all_reports, reports_since
from tests.spark.capabilities import needs_recursion

import tamis

pytestmark = pytest.mark.spark

PARTS, ROWS = 6, 4
STEP = "WITH RECURSIVE r(n, d) AS (SELECT id, 0 FROM {t} WHERE id = 1 UNION ALL SELECT t.id, d + 1 FROM {t} t JOIN r ON {keys} WHERE d < 4{more})"
ONE, TWO = "t.id = r.n + 5", "t.g = (r.n % 5) AND t.id = r.n + 5"
INSIDE = " AND t.id IN (SELECT a.id FROM {t} a JOIN {t} b ON a.id = b.id AND a.g = b.g WHERE b.g = 1)"


@pytest.fixture(scope="module")
def steps(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """``steps.db.t`` of six parts with growing ids, and the view ``steps_plain`` of the same rows."""
    needs_recursion(spark)
    folder = tmp_path_factory.mktemp("steps")
    tamis.attach(spark, "steps", folder / "lake")
    spark.sql("CREATE NAMESPACE steps.db")
    spark.sql("CREATE TABLE steps.db.t (id INT, g INT) USING tamis")
    rows = spark.range(PARTS * ROWS).selectExpr("CAST(id AS INT) id", "CAST(id % 5 AS INT) g")
    rows.repartitionByRange(PARTS, "id").writeTo("steps.db.t").append()
    rows.write.parquet(str(folder / "plain"))
    spark.read.parquet(str(folder / "plain")).createOrReplaceTempView("steps_plain")
    yield spark
    spark.catalog.dropTempView("steps_plain")


def _rows(spark: Any, query: str, table: str, keys: str = TWO, more: str = "") -> list[Any]:
    return sorted(spark.sql(query.format(t=table, keys=keys, more=more.format(t=table))).collect())


@pytest.mark.parametrize("keys", [ONE, TWO], ids=["one", "two"])
@pytest.mark.parametrize("largest", ["10MB", "-1"], ids=["broadcast", "sorted"])
def test_a_recursion_may_join_on_keys(steps: Any, keys: str, largest: str) -> None:
    steps.conf.set("spark.sql.autoBroadcastJoinThreshold", largest)
    try:
        found = _rows(steps, STEP + " SELECT * FROM r", "steps.db.t", keys)
    finally:
        steps.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    assert found == [(1, 0), (6, 1), (11, 2), (16, 3), (21, 4)]


def test_each_step_asks_by_its_own_keys(steps: Any) -> None:
    before = all_reports()
    _rows(steps, STEP + " SELECT * FROM r", "steps.db.t")
    new = [r for r in reports_since(before) if r.table == "steps.db.t"]
    assert [r.parts["skipped_join"] for r in new].count(PARTS - 1) == 4


@pytest.mark.parametrize(
    ("more", "query"),
    [
        ("", "SELECT u.* FROM {t} u JOIN r ON u.id = r.n AND u.g = r.n % 5"),
        (INSIDE, "SELECT u.* FROM {t} u JOIN r ON u.id = r.n AND u.g = r.n % 5 WHERE d < 3"),
        (INSIDE, "SELECT u.* FROM {t} u WHERE id IN (SELECT n FROM r WHERE d < 3)"),
        ("", "SELECT (SELECT count(*) FROM r) AS steps, u.id FROM {t} u WHERE id < 3"),
    ],
    ids=["joined", "nested", "in", "scalar"],
)
@pytest.mark.push_cases(2)
def test_a_recursion_may_be_joined_and_lie_in_a_subquery(steps: Any, more: str, query: str) -> None:
    query = f"{STEP} {query}"
    assert _rows(steps, query, "steps.db.t", more=more) == _rows(steps, query, "steps_plain", more=more) != []
