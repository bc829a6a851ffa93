"""INSERT INTO, OVERWRITE and REPLACE WHERE; df.writeTo; table.append(df)."""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.capabilities import needs_filled_columns, needs_syntax

import tamis
from tamis.engine.scan import Options
from tamis.errors import InvalidInput, SchemaMismatch
from tamis.spark.write.spark_write import arrange_rows
from tamis.storage.commit_log import Operation


def content(lake: Any, name: str = "db.t") -> list[tuple[Any, ...]]:
    return sorted(lake.rows(f"SELECT * FROM lake.{name}"), key=str)


@pytest.fixture
def numbers(lake: Any) -> Any:
    lake.sql(
        "CREATE TABLE lake.db.t (a INT NOT NULL, b STRING, c DECIMAL(10,2) DEFAULT 1.5) USING tamis CLUSTER BY (a)"
    )
    lake.sql("INSERT INTO lake.db.t VALUES (3, 'x', 2.5), (1, 'y', 3.5), (2, NULL, NULL)")
    return lake


def test_insert_into(numbers: Any) -> None:
    needs_filled_columns(numbers.spark)
    numbers.sql("INSERT INTO lake.db.t (b, a) VALUES ('z', 4)")
    assert content(numbers) == [
        (1, "y", Decimal("3.50")),
        (2, None, None),
        (3, "x", Decimal("2.50")),
        (4, "z", Decimal("1.50")),
    ]


def test_insert_overwrite(numbers: Any) -> None:
    numbers.sql("INSERT OVERWRITE lake.db.t SELECT a + 10, b, c FROM lake.db.t WHERE a > 1")
    assert content(numbers) == [(12, None, None), (13, "x", Decimal("2.50"))]


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("a = 1", {2, 3}),
        ("b = 'x'", {1, 2}),
        ("a > 0", set()),
        ("a > 5", {1, 2, 3}),
        ("b IS NULL", {1, 3}),
        ("a IN (1, 3) AND c > 3", {2, 3}),
    ],
)
@pytest.mark.push_cases(1)
def test_replace_where(numbers: Any, condition: str, left: set[int]) -> None:
    numbers.sql(f"INSERT INTO lake.db.t REPLACE WHERE {condition} SELECT 9, 'new', 0")
    assert {row[0] for row in content(numbers)} == left | {9}


def test_the_dataframe_writer_overwrites(numbers: Any) -> None:
    from pyspark.sql import functions as f

    new = numbers.spark.sql("SELECT 9 AS a, 'new' AS b, CAST(0 AS DECIMAL(10,2)) AS c")
    new.writeTo(f"{numbers.name}.db.t").overwrite(f.col("a") < 3)
    assert {row[0] for row in content(numbers)} == {3, 9}


@pytest.mark.parametrize(
    ("sql", "condition"),
    [
        ("INSERT INTO lake.db.t SELECT NULL, 'x', 1", "NOT_NULL_ASSERT_VIOLATION"),
        ("INSERT INTO lake.db.t VALUES (1)", "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS"),
        ("INSERT INTO lake.db.t SELECT 99999999999L, 'x', 1", "CAST_OVERFLOW_IN_TABLE_INSERT"),
        ("INSERT INTO lake.db.t SELECT DATE'2020-01-01', 'x', 1", "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST"),
        ("INSERT INTO lake.db.nope VALUES (1)", "TABLE_OR_VIEW_NOT_FOUND"),
    ],
)
@pytest.mark.push_cases(2)
def test_what_spark_refuses_leaves_nothing(numbers: Any, sql: str, condition: str) -> None:
    before = content(numbers)
    numbers.refused(sql, condition)
    assert content(numbers) == before
    assert len(numbers.rows("SELECT * FROM lake.db.t.history")) == 2


@pytest.mark.parametrize(("kept", "why"), [("bb", "no such column"), ("b.a[8]", "no statistics of its own")])
def test_an_option_cannot_keep_what_has_no_statistics(numbers: Any, kept: str, why: str) -> None:
    """The conf's names are for many tables: those of other tables are ignored."""
    frame = numbers.spark.sql("SELECT 4 AS a, 'z' AS b, 1.5BD AS c")
    with pytest.raises(Exception, match=rf"BAD_OPTION\] Option tamis.stats.keep names '{re.escape(kept)}'.*{why}"):
        frame.writeTo(f"{numbers.name}.db.t").option("tamis.stats.keep", f"a, {kept}").append()
    assert len(content(numbers)) == 3
    numbers.spark.conf.set("tamis.stats.keep", f"a, {kept}")
    try:
        frame.writeTo(f"{numbers.name}.db.t").option("tamis.stats.keep", "a, b").append()
        frame.writeTo(f"{numbers.name}.db.t").append()
    finally:
        numbers.spark.conf.unset("tamis.stats.keep")
    assert len(content(numbers)) == 5


def test_char_and_varchar_lengths(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t (c CHAR(4), v VARCHAR(3)) USING tamis")
    lake.sql("INSERT INTO lake.db.t VALUES ('ab', 'xyz')")
    assert content(lake) == [("ab  ", "xyz")]
    lake.refused("INSERT INTO lake.db.t VALUES ('abcde', 'x')", "EXCEED_LIMIT_LENGTH")
    lake.refused("INSERT INTO lake.db.t VALUES ('a', 'toolong')", "EXCEED_LIMIT_LENGTH")


def test_rows_are_clustered(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t (k BIGINT, v STRING) USING tamis CLUSTER BY (k)")
    lake.sql("INSERT INTO lake.db.t SELECT (id * 7919) % 10007, 'v' FROM range(0, 10007, 1, 4)")
    parts = [
        (row["statistics"]["k"]["lo"], row["statistics"]["k"]["hi"])
        for row in lake.sql("SELECT statistics FROM lake.db.t.parts").collect()
    ]
    assert parts
    assert all(one[1] < two[0] for one, two in zip(sorted(parts), sorted(parts)[1:], strict=False))
    ordered = tamis.open(lake.folder / "db" / "t").scan().to_arrow()["k"].to_pylist()
    assert len(ordered) == 10007
    assert sum(1 for a, b in itertools.pairwise(ordered) if a > b) < len(parts)


def test_rows_are_clustered_without_adaptive_execution(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t (k BIGINT) USING tamis CLUSTER BY (k)")
    other = lake.spark.newSession()
    other.conf.set("spark.sql.adaptive.enabled", "false")
    other.sql(f"INSERT INTO {lake.name}.db.t SELECT (id * 7919) % 10007 FROM range(0, 10007, 1, 4)")
    assert tamis.open(lake.folder / "db" / "t").scan().to_arrow()["k"].to_pylist() == list(range(10007))


def test_partitions_without_adaptive_execution(lake: Any) -> None:
    """Spark's estimates for a join and for an RDD are no reason for thousands of tasks."""
    lake.sql("CREATE TABLE lake.db.t (k BIGINT) USING tamis CLUSTER BY (k)")
    table = tamis.open(lake.folder / "db" / "t")
    other = lake.spark.newSession()
    other.conf.set("spark.sql.adaptive.enabled", "false")
    other.conf.set("spark.sql.shuffle.partitions", "7")

    def count(df: Any) -> int:
        options = Options.resolve(None, {"tamis.write.part_bytes": "64KB"}, {})
        found: int = arrange_rows(df, table.snapshot.head, options)._jdf.queryExecution().toRdd().getNumPartitions()
        return found

    side = other.range(500).withColumnRenamed("id", "k")
    assert count(side.crossJoin(other.range(500))) <= 2
    assert count(other.createDataFrame(lake.spark.sparkContext.parallelize([(1,), (2,)]), "k BIGINT")) <= 7


def test_append_of_a_dataframe_answers_with_numbers(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t (a BIGINT, b STRING) USING tamis")
    table = tamis.open(lake.folder / "db" / "t")
    result = table.append(lake.spark.sql("SELECT 'x' AS b, id AS a FROM range(100)"))
    assert (result.version, result.rows_inserted) == (1, 100)
    assert result.parts_added >= 1
    result = table.overwrite(lake.spark.sql("SELECT 'y' AS b, 7L AS a"), "a < 50")
    assert (result.version, result.rows_inserted, result.rows_deleted) == (2, 1, 50)
    assert lake.rows("SELECT count(*), count_if(b = 'y') FROM lake.db.t") == [(51, 1)]
    with pytest.raises(InvalidInput) as caught:
        table.overwrite(lake.spark.sql("SELECT 'z' AS b, 8L AS a"), "a = 7")
    assert (caught.value.code, "a = 8" in caught.value.message) == ("OUTSIDE_FILTER", True)
    lake.sql("ALTER TABLE lake.db.t SET TBLPROPERTIES ('tamis.write.outside_filter' = 'refuse')")
    assert "a = 9" in lake.refused(
        "INSERT INTO lake.db.t REPLACE WHERE a = 7 VALUES (7, 'v'), (9, 'w')", "OUTSIDE_FILTER"
    )
    lake.sql("ALTER TABLE lake.db.t UNSET TBLPROPERTIES ('tamis.write.outside_filter')")
    assert table.overwrite(lake.spark.sql("SELECT 'z' AS b, 8L AS a"), "a = 7", allow_outside=True).rows_deleted == 1
    assert (
        table.overwrite(lake.spark.sql("SELECT 'z' AS b, 8L AS a WHERE 1 = 0"), "a = 70 AND b = 'no'").version
        == table.version
    )
    with pytest.raises(SchemaMismatch):
        table.append(lake.spark.range(3))


@pytest.mark.parametrize(
    ("select", "name"),
    [
        ("SELECT DATE'2020-01-01' AS n, named_struct('x', 1) AS s", "n"),
        ("SELECT 1L AS n, named_struct('x', DATE'2020-01-01') AS s", "s.x"),
        ("SELECT 1L AS n, named_struct('y', 1) AS s", "s.x"),
        ("SELECT 1L AS n, named_struct('x', 1, 'z', 2) AS s", "z"),
        ("SELECT 1L AS n, named_struct('x', 1) AS s, 2 AS `ex.tra`", "ex.tra"),
        ("SELECT 1L AS n, 2L AS N, named_struct('x', 1) AS s", "N"),
    ],
)
def test_data_that_does_not_fit_names_the_column(lake: Any, select: str, name: str) -> None:
    lake.sql("CREATE TABLE lake.db.t (n BIGINT, s STRUCT<x: INT>) USING tamis")
    with pytest.raises(SchemaMismatch) as caught:
        tamis.open(lake.folder / "db" / "t").append(lake.spark.sql(select))
    assert caught.value.name == name


def test_the_first_dataframe_brings_the_schema(lake: Any, tmp_path: Any) -> None:
    table = tamis.create(tmp_path / "t", cluster_by=["id"])
    table.append(lake.spark.range(10).selectExpr("id", "struct(id AS x) AS s"))
    assert table.schema.names == ["id", "s"]
    assert table.scan().to_arrow().num_rows == 10


@pytest.fixture
def with_times(spark: Any) -> Iterator[None]:
    before = spark.conf.get("spark.sql.timeType.enabled", None)
    spark.conf.set("spark.sql.timeType.enabled", "true")
    yield
    spark.conf.unset("spark.sql.timeType.enabled") if before is None else spark.conf.set(
        "spark.sql.timeType.enabled", before
    )


@pytest.mark.usefixtures("with_times")
def test_every_type_comes_back(lake: Any) -> None:
    needs_syntax(lake.spark, "SELECT TIME'10:00:00'")
    values = (
        "true, 1Y, 2S, 3, 4L, CAST('NaN' AS FLOAT), -0.0D, 1.25BD, '', 'ab', 'xyz', 'Q', X'00FF', DATE'0001-01-01', TIME'23:59:59.999999', "
        "TIMESTAMP'1500-02-28 12:00:00.000001', TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', INTERVAL '-1 02:03:04.000005' DAY TO SECOND, "
        "INTERVAL '1:02' HOUR TO MINUTE, named_struct('a', 1, 'b', array('x', NULL)), array(array(1), NULL), map('k', 1, 'l', NULL)"
    )
    lake.sql(
        "CREATE TABLE lake.db.t (b BOOLEAN, i1 TINYINT, i2 SMALLINT, i4 INT, i8 BIGINT, f FLOAT, d DOUBLE, n DECIMAL(12,3), s STRING, ch CHAR(4), vc VARCHAR(3), "
        "cl STRING COLLATE UTF8_LCASE, x BINARY, dt DATE, tm TIME(6), ts TIMESTAMP, tn TIMESTAMP_NTZ, iv INTERVAL DAY TO SECOND, ih INTERVAL HOUR TO MINUTE, "
        "st STRUCT<a: INT, b: ARRAY<STRING>>, ar ARRAY<ARRAY<INT>>, mp MAP<STRING, INT>, v VARIANT) USING tamis"
    )
    nothing = ", ".join(["NULL"] * 23)
    variant = 'parse_json(\'{"a": [1, "two", null]}\')'
    lake.sql(f"INSERT INTO lake.db.t SELECT {values}, {variant}")
    lake.sql(f"INSERT INTO lake.db.t SELECT {nothing}")
    columns = "* EXCEPT (v, ch, tm), rtrim(ch) AS ch, CAST(tm AS STRING) AS tm, to_json(v) AS v"
    found = lake.rows(f"SELECT {columns} FROM lake.db.t WHERE b")
    names = [row[0] for row in lake.rows("DESCRIBE lake.db.t")]
    assert lake.rows("SELECT count(*) FROM lake.db.t WHERE b IS NULL AND v IS NULL AND st IS NULL AND tm IS NULL") == [
        (1,)
    ]
    row = dict(zip([*(n for n in names if n not in {"v", "ch", "tm"}), "ch", "tm", "v"], found[0], strict=True))
    assert str(row.pop("f")) == "nan"
    assert str(row.pop("d")) == "-0.0"
    assert row == {
        "b": True, "i1": 1, "i2": 2, "i4": 3, "i8": 4, "n": Decimal("1.250"), "s": "", "vc": "xyz", "cl": "Q", "x": bytearray(b"\0\xff"),
        "dt": dt.date(1, 1, 1), "ts": dt.datetime(1500, 2, 28, 12, 0, 0, 1), "tn": dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
        "iv": -dt.timedelta(days=1, hours=2, minutes=3, seconds=4, microseconds=5), "ih": dt.timedelta(hours=1, minutes=2),
        "st": (1, ["x", None]), "ar": [[1], None], "mp": {"k": 1, "l": None}, "ch": "ab", "tm": "23:59:59.999999", "v": '{"a":[1,"two",null]}',
    }  # fmt: skip


def test_retried_tasks_leave_no_rows(lake: Any) -> None:
    """Two tasks that write the same rows: what is committed is what one of them returned."""
    lake.sql("CREATE TABLE lake.db.t (id BIGINT) USING tamis")
    from tamis.spark.executors import write_task
    from tamis.spark.jvm_bridge.adapter import bridge_of
    from tamis.spark.write.session_frames import write_switches
    from tamis.spark.write.spark_write import commit_rows, write_rows

    table = tamis.open(lake.folder / "db" / "t")
    options = write_switches(lake.spark, bridge_of(lake.spark), {}, table.snapshot.head)
    abandoned = write_rows(lake.spark.range(10), table.store, table.snapshot.head, options)
    taken = write_rows(lake.spark.range(10), table.store, table.snapshot.head, options)
    assert abandoned
    assert write_task.from_ipc(write_task.to_ipc(taken[0])).equals(taken[0])
    commit_rows(table.store, table.snapshot, table.snapshot.head, taken, Operation("append"))
    assert lake.rows("SELECT count(*) FROM lake.db.t") == [(10,)]
    assert len(list((lake.folder / "db" / "t" / "data").iterdir())) == len(taken) + len(abandoned)


def test_empty_inserts(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t (id BIGINT) USING tamis CLUSTER BY (id)")
    lake.sql("INSERT INTO lake.db.t SELECT id FROM range(10) WHERE id > 100")
    assert lake.rows("SELECT count(*) FROM lake.db.t") == [(0,)]
    table = tamis.open(lake.folder / "db" / "t")
    assert table.append(pa.table({"id": pa.array([], pa.int64())})).rows_inserted == 0


def test_an_overwrite_records_the_sessions_zone_and_mode(numbers: Any) -> None:
    """Spark's path and the embedded one build the same commit."""
    from tamis.storage.commit_log import load
    from tamis.storage.object_store import open_store

    numbers.spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        numbers.sql("INSERT INTO lake.db.t REPLACE WHERE a = 3 SELECT 3, 'new', 0")
        path = numbers.folder / "db" / "t"
        by_spark = load(open_store(path)).commit
        tamis.open(path).overwrite(numbers.spark.sql("SELECT 3 AS a, 'by path' AS b, 1.5 AS c"), "a = 3")
        by_path = load(open_store(path)).commit
    finally:
        numbers.spark.conf.unset("spark.sql.session.timeZone")
    tamis.open(path).overwrite(pa.table({"a": [3], "b": ["x"], "c": [Decimal("1.00")]}), "a = 3")
    embedded = load(open_store(path)).commit
    assert by_spark.reads is not None
    assert embedded.reads is not None
    assert by_spark.reads == dataclasses.replace(embedded.reads, zone="Europe/Berlin")
    assert by_spark.operation.parameters == embedded.operation.parameters
    assert by_path.reads == by_spark.reads, "a DataFrame brings its session's zone"
