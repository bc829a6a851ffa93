"""Spark simplifies a plan by the types and nullability that its columns had: a change of these fences the plan.

``n = 3000000000`` is FALSE for an INT, and ``k IS NOT NULL`` is TRUE for a NOT NULL column. What is simplified away
is no column of the scan any more, so the scan alone would not notice, and a plan that is FALSE has no scan at all.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from tests.spark.capabilities import needs_newest
from tests.spark.conftest import Lake

pytestmark = pytest.mark.spark

COLUMNS = {
    "id": ("INT", "1"),
    "n": ("INT", "10"),
    "m": ("INT NOT NULL", "10"),
    "k": ("INT NOT NULL", "10"),
    "s": ("STRUCT<a: INT NOT NULL> NOT NULL", "named_struct('a', 10)"),
    "z": ("STRUCT<a: INT> NOT NULL", "named_struct('a', 10)"),
    "l": ("ARRAY<STRUCT<a: INT NOT NULL>>", "array(named_struct('a', 10))"),
    "f": ("FLOAT", "1"),
    "c": ("DECIMAL(5, 2)", "1"),
    "h": ("SMALLINT", "10"),
    "o": ("STRING", "'x'"),
    "at": ("TIMESTAMP", "TIMESTAMP '2026-01-01 00:00:00Z'"),
    "gone": ("INT NOT NULL", "1"),
}
TYPE, NULL, DROPPED = "FENCED_TYPE_CHANGE", "FENCED_TIGHTEN", "FENCED_READD_DELETED"


class Case(NamedTuple):
    """Changes, the values of a row after them, and queries that Spark simplifies by the columns as they were."""

    condition: str
    changes: list[str]
    values: dict[str, str]
    queries: list[str]


CASES = {
    "a nullable INT": Case(
        TYPE,
        ["ALTER COLUMN n TYPE BIGINT"],
        {"n": "3000000000"},
        ["id WHERE n = 3000000000", "id WHERE n IN (3000000000, 3000000001)", "id WHERE n >= 3000000000"],
    ),
    "an INT": Case(
        TYPE,
        ["ALTER COLUMN m TYPE BIGINT"],
        {"m": "3000000000"},
        ["id WHERE m < 3000000000", "count_if(m < 3000000000)"],
    ),
    "a SMALLINT": Case(TYPE, ["ALTER COLUMN h TYPE INT"], {"h": "70000"}, ["id WHERE h = 70000"]),
    "a FLOAT": Case(TYPE, ["ALTER COLUMN f TYPE DOUBLE"], {"f": "0.1D"}, ["id WHERE f = 0.1D"]),
    "a DECIMAL": Case(TYPE, ["ALTER COLUMN c TYPE DECIMAL(10, 3)"], {"c": "1.255"}, ["id WHERE c = 1.255"]),
    "NULLs": Case(
        NULL,
        ["ALTER COLUMN k DROP NOT NULL"],
        {"k": "NULL"},
        ["id WHERE k IS NOT NULL", "id WHERE k IS NULL", "count(k), count(*)", "sum(nvl2(k, 1, 0))"],
    ),
    "NULLs in a struct": Case(
        NULL,
        ["ALTER COLUMN s.a DROP NOT NULL"],
        {"s": "named_struct('a', CAST(NULL AS INT))"},
        ["id WHERE s.a IS NOT NULL", "count(s.a)"],
    ),
    "a struct of other fields": Case(
        NULL,
        ["ADD COLUMN z.b INT", "DROP COLUMN z.a", "ALTER COLUMN z DROP NOT NULL"],
        {"z": "CAST(NULL AS STRUCT<b: INT>)"},
        ["id WHERE z IS NULL", "count(z)"],
    ),
    "a column that is gone": Case(
        DROPPED, ["DROP COLUMN gone"], {"gone": ""}, ["count(gone)", "id WHERE gone IS NOT NULL"]
    ),
}
HARMLESS = ["RENAME COLUMN o TO other", "ADD COLUMN p INT", "ALTER COLUMN id COMMENT 'key'", "ALTER COLUMN o FIRST"]


@pytest.fixture
def table(lake: Lake) -> Lake:
    lake.sql(f"CREATE TABLE lake.db.t ({', '.join(f'{c} {kind}' for c, (kind, _) in COLUMNS.items())}) USING tamis")
    insert(lake, {})
    return lake


def insert(lake: Lake, values: dict[str, str]) -> None:
    """Append the row of ``COLUMNS`` with other values; an empty text leaves the column out."""
    given = {name: value for name, (_, value) in COLUMNS.items()} | values
    selected = ", ".join(f"{value} AS {name}" for name, value in given.items() if value)
    lake.sql(f"INSERT INTO lake.db.t BY NAME SELECT {selected}")


def query_text(query: str) -> str:
    shown, _, where = query.partition(" WHERE ")
    return f"SELECT {shown} FROM lake.db.t" + (f" WHERE {where}" if where else "")


@pytest.mark.parametrize("name", CASES)
def test_a_prepared_query_is_fenced(table: Lake, name: str) -> None:
    needs_newest(table.spark)
    case = CASES[name]
    frames = {q: table.sql(query_text(q)) for q in case.queries}
    for change in case.changes:
        table.sql(f"ALTER TABLE lake.db.t {change}")
    insert(table, {"id": "2"} | case.values)
    for query, frame in frames.items():
        with pytest.raises(PySparkException) as caught:
            frame.collect()
        assert caught.value.getCondition() == case.condition, query


def test_other_changes_do_not_fence(table: Lake) -> None:
    needs_newest(table.spark)
    queries = [q for case in CASES.values() for q in case.queries]
    frames = {q: table.sql(query_text(q)) for q in queries}
    for change in HARMLESS:
        table.sql(f"ALTER TABLE lake.db.t {change.replace(' o ', ' other ') if 'FIRST' in change else change}")
    insert(table, {"id": "2", "o": "", "other": "'x'", "n": "3", "p": "1"})
    assert {q: list(map(tuple, f.collect())) for q, f in frames.items()} == {
        q: table.rows(query_text(q)) for q in queries
    }
    assert table.rows("SELECT count(*) FROM lake.db.t") == [(2,)]


class Streamed:
    """Queries of a stream from one checkpoint, and the rows that they gave."""

    def __init__(self, lake: Lake, checkpoint: Path, shape: Callable[[Any], Any]) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.failing = False
        self._lake, self._checkpoint, self._shape = lake, checkpoint, shape

    def frame(self) -> Any:
        return self._shape(self._lake.spark.readStream.table(f"{self._lake.name}.db.t"))

    def start(self, frame: Any, mode: str = "append") -> Any:
        writer = frame.writeStream.option("checkpointLocation", str(self._checkpoint)).outputMode(mode)
        return writer.foreachBatch(self._take).start()

    def run(self, frame: Any) -> None:
        """Run a query until it has all rows."""
        query = self.start(frame)
        try:
            query.processAllAvailable()
        finally:
            query.stop()

    def _take(self, rows: Any, batch: int) -> None:
        del batch
        if self.failing:
            raise ValueError("the consumer fails")
        self.rows.extend(map(tuple, rows.collect()))


STREAMS = {
    "a nullable INT": ("n = 3000000000", "id"),
    "an INT": ("m < 3000000000", "id"),
    "a FLOAT": ("f = 0.1D", "id"),
    "NULLs": ("k IS NOT NULL", "id"),
    "NULLs in a struct": ("id > 0", "s.a IS NULL AS missing"),
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.push_cases(3)
def test_a_running_stream_ends(table: Lake, tmp_path: Path, name: str) -> None:
    """It gives no wrong row and does not move past one, also if it repeats a micro-batch of a newer query."""
    case, (where, shown) = CASES[name], STREAMS[name]
    stream = Streamed(table, tmp_path / "ck", lambda frame: frame.where(where).selectExpr(shown))
    old = stream.frame()
    query = stream.start(old)
    query.processAllAvailable()
    stream.rows.clear()
    for change in case.changes:
        table.sql(f"ALTER TABLE lake.db.t {change}")
    insert(table, {"id": "2"} | case.values)
    with pytest.raises(PySparkException, match=case.condition):
        query.processAllAvailable()
    new, stream.failing = stream.frame(), True
    expected = table.rows(f"SELECT {shown} FROM lake.db.t WHERE {where} AND id = 2")
    if expected:  # else the consumer gets an empty frame
        with pytest.raises(PySparkException, match="the consumer fails"):
            stream.run(new)
        stream.failing = False
        with pytest.raises(PySparkException, match=case.condition):
            stream.run(old)
    stream.failing = False
    assert stream.rows == []
    stream.run(stream.frame())
    assert stream.rows == expected


def test_a_running_count_ends(table: Lake, tmp_path: Path) -> None:
    stream = Streamed(table, tmp_path / "ck", lambda frame: frame.selectExpr("count(k) AS keys"))
    query = stream.start(stream.frame(), "complete")
    query.processAllAvailable()
    table.sql("ALTER TABLE lake.db.t ALTER COLUMN k DROP NOT NULL")
    insert(table, {"id": "2", "k": "NULL"})
    with pytest.raises(PySparkException, match=NULL):
        query.processAllAvailable()
    assert set(stream.rows) == {(1,)}


GOING_ON: dict[str, Callable[[Any], Any]] = {
    "a projection of a projection": lambda t: t.withColumn("next", F.expr("id")).where("o IS NOT NULL").select("next"),
    "a watermark": lambda t: t.withWatermark("at", "1 hour").where("id > 0").select("id"),
    "distinct keys": lambda t: t.withWatermark("at", "1 hour").dropDuplicates(["id", "at"]).select("id"),
    "an array": lambda t: t.select("id", F.explode("l")).select("id"),
    "itself": lambda t: t.select("id").union(t.where("id < 0").select("id")),
}


@pytest.mark.parametrize("shape", GOING_ON)
@pytest.mark.push_cases(3)
def test_a_running_stream_goes_on_where_others_change(table: Lake, tmp_path: Path, shape: str) -> None:
    """Neither a column that the query does not refer to, nor one that its later projections leave out, ends it."""
    stream = Streamed(table, tmp_path / "ck", GOING_ON[shape])
    query = stream.start(stream.frame())
    try:
        query.processAllAvailable()
        changes = [c for name, case in CASES.items() if "struct" not in name for c in case.changes]
        for change in [*changes, "ADD COLUMN p INT", "ALTER COLUMN id COMMENT 'key'"]:
            table.sql(f"ALTER TABLE lake.db.t {change}")
        insert(table, {"id": "2", "m": "3000000000", "k": "NULL", "gone": "", "p": "1"})
        query.processAllAvailable()
        assert sorted(stream.rows) == [(1,), (2,)]
    finally:
        query.stop()
