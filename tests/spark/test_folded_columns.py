"""Spark simplifies a plan by the types and nullability that its columns had: a change of these fences the plan.

``n = 3000000000`` is FALSE for an INT, and ``k IS NOT NULL`` is TRUE for a NOT NULL column. What is simplified away
is no column of the scan any more, so the scan alone would not notice, and a plan that is FALSE has no scan at all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from tests.spark.capabilities import needs_newest
from tests.spark.conftest import Lake

pytestmark = pytest.mark.spark

DECLARED = (
    "id INT, n INT, m INT NOT NULL, k INT NOT NULL, s STRUCT<a: INT NOT NULL> NOT NULL, f FLOAT, c DECIMAL(5, 2), "
    "h SMALLINT, o STRING, gone INT NOT NULL"
)
FIRST = "INSERT INTO lake.db.t SELECT 1, 10, 10, 10, named_struct('a', 10), 1, 1, 10, 'x', 1"
CHANGES = {
    "type": [
        "ALTER COLUMN n TYPE BIGINT",
        "ALTER COLUMN m TYPE BIGINT",
        "ALTER COLUMN f TYPE DOUBLE",
        "ALTER COLUMN c TYPE DECIMAL(10, 3)",
        "ALTER COLUMN h TYPE INT",
    ],
    "null": ["ALTER COLUMN k DROP NOT NULL", "ALTER COLUMN s.a DROP NOT NULL"],
    "harmless": ["DROP COLUMN gone", "RENAME COLUMN o TO other", "ADD COLUMN p INT", "ALTER COLUMN id COMMENT 'key'"],
}
QUERIES = {
    "type": [
        "n = 3000000000",
        "n IN (3000000000, 3000000001)",
        "n >= 3000000000",
        "m < 3000000000",
        "f = 0.1D",
        "c = 1.255",
        "h = 70000",
    ],
    "null": ["k IS NOT NULL", "k IS NULL", "s.a IS NOT NULL"],
}
SECOND = {
    "type": "INSERT INTO lake.db.t SELECT 2, 3000000000, 3000000000, 1, named_struct('a', 1), 0.1D, 1.255, 70000, 'x', 1",
    "null": "INSERT INTO lake.db.t SELECT 2, 1, 1, NULL, named_struct('a', CAST(NULL AS INT)), 1, 1, 1, 'x', 1",
}
SHOWN = {
    "type": ["count_if(m < 3000000000)", "count(m)"],
    "null": ["count(k), count(*)", "count(s.a)", "sum(nvl2(k, 1, 0))"],
}


@pytest.fixture
def table(lake: Lake) -> Lake:
    lake.sql(f"CREATE TABLE lake.db.t ({DECLARED}) USING tamis")
    lake.sql(FIRST)
    return lake


def prepared(lake: Lake, kind: str) -> dict[str, Any]:
    """Queries that are analyzed and not run, by their texts."""
    texts = [f"SELECT id FROM lake.db.t WHERE {where}" for where in QUERIES[kind]]
    texts += [f"SELECT {shown} FROM lake.db.t" for shown in SHOWN[kind]]
    return {text: lake.spark.sql(text.replace("lake.", f"{lake.name}.")) for text in texts}


@pytest.mark.parametrize("kind", ["type", "null"])
def test_a_prepared_query_is_fenced_or_right(table: Lake, kind: str) -> None:
    needs_newest(table.spark)
    queries = prepared(table, kind)
    for change in CHANGES[kind]:
        table.sql(f"ALTER TABLE lake.db.t {change}")
    table.sql(SECOND[kind])
    for text, frame in queries.items():
        with pytest.raises(PySparkException) as caught:
            frame.collect()
        assert caught.value.getCondition() == {"type": "FENCED_TYPE_CHANGE", "null": "FENCED_TIGHTEN"}[kind], text
        table.rows(text)  # made anew, it runs


def test_other_changes_do_not_fence(table: Lake) -> None:
    queries = prepared(table, "type") | prepared(table, "null")
    before = {text: table.rows(text) for text in queries}
    for change in CHANGES["harmless"]:
        table.sql(f"ALTER TABLE lake.db.t {change}")
    assert {text: list(map(tuple, frame.collect())) for text, frame in queries.items()} == before


@pytest.mark.parametrize(
    ("kind", "where", "columns"),
    [
        ("type", "n = 3000000000", "id"),
        ("type", "m < 3000000000", "id"),
        ("type", "f = 0.1D", "id"),
        ("null", "k IS NOT NULL", "id"),
        ("null", "id > 0", "id, k IS NULL AS missing"),
        ("null", "id > 0", "count(s.a) AS rows"),
    ],
)
@pytest.mark.push_cases(4)
def test_a_running_stream_ends(table: Lake, tmp_path: Path, kind: str, where: str, columns: str) -> None:
    """It gives no wrong row, and does not move past one: the query that is made anew finds it."""
    found: list[tuple[Any, ...]] = []

    def started() -> Any:
        frame = table.spark.readStream.table(f"{table.name}.db.t").where(where).selectExpr(*columns.split(", "))
        writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "ck"))
        if "count" in columns:
            writer = writer.outputMode("complete")
        return writer.foreachBatch(lambda rows, _: found.extend(map(tuple, rows.collect()))).start()

    query = started()
    query.processAllAvailable()
    for change in CHANGES[kind]:
        table.sql(f"ALTER TABLE lake.db.t {change}")
    table.sql(SECOND[kind])
    found.clear()
    with pytest.raises(PySparkException, match={"type": "FENCED_TYPE_CHANGE", "null": "FENCED_TIGHTEN"}[kind]):
        query.processAllAvailable()
    if "count" in columns:  # it may have shown its state again, which is of the old schema
        assert set(found) <= {(1,)}
        return
    assert found == []
    query = started()
    query.processAllAvailable()
    query.stop()
    assert found == table.rows(f"SELECT {columns} FROM lake.db.t WHERE {where} AND id = 2")


def test_a_running_stream_goes_on_where_others_change(table: Lake, tmp_path: Path) -> None:
    """Neither a column that the query does not refer to, nor one that its later projections leave out, ends it."""
    frame = table.spark.readStream.table(f"{table.name}.db.t").withColumn("next", F.expr("id + 1"))
    frame = frame.where("o IS NOT NULL").select("next")
    found: list[int] = []
    query = (
        frame.writeStream.option("checkpointLocation", str(tmp_path / "ck"))
        .foreachBatch(lambda rows, _: found.extend(row[0] for row in rows.collect()))
        .start()
    )
    try:
        query.processAllAvailable()
        for change in CHANGES["type"] + CHANGES["null"] + CHANGES["harmless"]:
            table.sql(f"ALTER TABLE lake.db.t {change}")
        table.sql(
            "INSERT INTO lake.db.t SELECT 2, 1, 3000000000, NULL, named_struct('a', CAST(NULL AS INT)), 1, 1, 1, 'x', 1"
        )
        query.processAllAvailable()
        assert found == [2, 3]
    finally:
        query.stop()
