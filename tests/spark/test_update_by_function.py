"""UPDATE, DELETE and MERGE whose condition calls a Python function: Spark adds its values as further columns."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType
from tests.spark.conftest import Lake

import tamis

pytestmark = pytest.mark.spark

ROWS = [(k, k % 7, "a") for k in range(20)]


@pytest.fixture
def table(lake: Lake) -> Iterator[Lake]:
    lake.spark.udf.register("same", lambda x: x, IntegerType())
    lake.sql("CREATE TABLE lake.db.t (k INT, v INT, s STRING) USING tamis CLUSTER BY (k)")
    lake.sql("INSERT INTO lake.db.t SELECT CAST(id AS INT), CAST(id % 7 AS INT), 'a' FROM range(20)")
    yield lake
    lake.sql("DROP TEMPORARY FUNCTION same")


def after(lake: Lake) -> list[tuple[object, ...]]:
    return lake.rows("SELECT * FROM lake.db.t ORDER BY k")


@pytest.mark.parametrize(
    ("condition", "changed"),
    [
        ("same(v) < 3", lambda k, v: v < 3),
        ("same(v) < 3 AND k > 2", lambda k, v: v < 3 and k > 2),
        ("same(v) < 3 OR same(k) = 9", lambda k, v: v < 3 or k == 9),
        ("same(v) IN (SELECT 1)", lambda k, v: v == 1),
    ],
)
def test_update(table: Lake, condition: str, changed: object) -> None:
    assert callable(changed)
    table.sql(f"UPDATE lake.db.t SET s = concat(s, '!') WHERE {condition}")
    assert after(table) == [(k, v, "a!" if changed(k, v) else s) for k, v, s in ROWS]


def test_update_of_a_column_named_as_spark_names_the_values(table: Lake) -> None:
    table.sql("ALTER TABLE lake.db.t ADD COLUMN pythonUDF0 INT")
    table.sql("UPDATE lake.db.t SET pythonUDF0 = k + 100 WHERE same(v) = 6")
    assert after(table) == [(*row, row[0] + 100 if row[1] == 6 else None) for row in ROWS]


def test_update_of_a_table_clustered_by_a_generated_column(lake: Lake, table: Lake) -> None:
    lake.sql(
        "CREATE TABLE lake.db.g (k INT, v INT, half BIGINT GENERATED ALWAYS AS (k DIV 2)) USING tamis CLUSTER BY (half)"
    )
    given = pa.table({"k": [k for k, _, _ in ROWS], "v": [v for _, v, _ in ROWS]})
    tamis.open(lake.folder / "db" / "g").append(given)
    table.sql("UPDATE lake.db.g SET k = k + 40 WHERE same(v) = 6")
    moved = [(k + 40 if v == 6 else k, v) for k, v, _ in ROWS]
    assert lake.rows("SELECT * FROM lake.db.g ORDER BY k") == sorted((k, v, k // 2) for k, v in moved)


def test_delete_and_merge(table: Lake) -> None:
    table.sql("DELETE FROM lake.db.t WHERE same(v) = 1 OR same(k) = 3")
    left = [row for row in ROWS if row[1] != 1 and row[0] != 3]
    assert after(table) == left
    table.sql(
        "MERGE INTO lake.db.t t USING (SELECT CAST(id AS INT) AS k FROM range(6)) s ON t.k = s.k AND same(t.v) < 5 "
        "WHEN MATCHED AND same(t.v) = 2 THEN UPDATE SET s = 'm' WHEN NOT MATCHED AND same(s.k) = 5 THEN INSERT (k, v) VALUES (s.k, 0)"
    )
    merged = [(k, v, "m" if k == 2 else s) for k, v, s in left]
    assert sorted(after(table), key=str) == sorted([*merged, (5, 0, None)], key=str)
