"""Writes without Spark's limit on the bytes of a batch: which ones, how large their batches get, and what a wide row does."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.capabilities import measures_batches
from tests.spark.conftest import Lake

import tamis
from tamis.engine.scan import Options
from tamis.spark.write import row_change_job, spark_write
from tamis.spark.write.narrow_rows import BATCH_ROWS, MAX_ROW_BYTES, mark_wide_rows, write_without_byte_limit

LIMIT = "spark.sql.execution.arrow.maxBytesPerBatch"
WIDE = f"repeat('x', {MAX_ROW_BYTES + 1})"

pytestmark = pytest.mark.usefixtures("measured")


@pytest.fixture
def measured(spark: Any) -> None:
    if not measures_batches(spark):
        pytest.skip(f"Spark {spark.version} does not compute the bytes of each row")


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a job ran with the limit, and without."""
    found: Counter[str] = Counter()
    map_rows = spark_write.map_rows

    def counted(df: Any, function: Any, result: str, *, narrow: bool = False) -> Any:
        found["narrow" if narrow else "limited"] += 1
        return map_rows(df, function, result, narrow=narrow)

    for module in (spark_write, row_change_job):
        monkeypatch.setattr(module, "map_rows", counted)
    return found


@contextmanager
def no_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


def data_files(lake: Lake, name: str) -> set[str]:
    return {path.name for path in (lake.folder / "db" / name / "data").rglob("*.parquet")}


def referenced(lake: Lake, name: str) -> set[str]:
    paths = lake.rows(f"SELECT path FROM lake.db.{name}.parts")
    return {Path(path).name for (path,) in paths}


def statements(name: str, body: str) -> Iterator[str]:
    """Every statement that hands rows to workers; ``body`` is the text that it writes."""
    yield f"INSERT INTO lake.db.{name} SELECT id, {body} FROM range(10)"
    yield f"UPDATE lake.db.{name} SET body = {body} WHERE id % 2 = 0"
    yield f"INSERT OVERWRITE lake.db.{name} SELECT id, {body} FROM range(20)"
    yield (
        f"MERGE INTO lake.db.{name} t USING (SELECT id, {body} AS body FROM range(15, 30)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    yield f"INSERT INTO lake.db.{name} REPLACE WHERE id > 25 SELECT id + 26, {body} FROM range(3)"
    yield f"CREATE OR REPLACE TABLE lake.db.{name} USING tamis AS SELECT id, {body} AS body FROM range(7)"


def test_statements_write_narrow_rows_without_the_limit(lake: Lake, jobs: Counter[str]) -> None:
    lake.sql("CREATE TABLE lake.db.t (id BIGINT, body STRING) USING tamis")
    for number, statement in enumerate(statements("t", "CAST(id AS STRING)"), 1):
        with no_warning():
            lake.sql(statement)
        assert jobs == {"narrow": number}, statement
    assert lake.rows("SELECT * FROM lake.db.t ORDER BY id") == [(i, str(i)) for i in range(7)]


def test_frames_write_narrow_rows_without_the_limit(lake: Lake, jobs: Counter[str], tmp_path: Path) -> None:
    df = lake.spark.range(100).selectExpr("id", "CAST(id AS STRING) AS body")
    df.writeTo(f"{lake.name}.db.t").using("tamis").create()
    df.writeTo(f"{lake.name}.db.t").append()
    df.write.format("tamis").save(str(tmp_path / "path"))
    tamis.open(tmp_path / "path").append(df)
    assert jobs == {"narrow": 4}
    assert lake.spark.read.format("tamis").load(str(tmp_path / "path")).count() == 200


def test_a_wide_row_in_any_statement_is_written_once(lake: Lake, jobs: Counter[str]) -> None:
    text = "x" * (MAX_ROW_BYTES + 1)
    lake.sql("CREATE TABLE lake.db.plain (id BIGINT, body STRING) USING tamis")
    for statement in statements("plain", "CAST(id AS STRING)"):
        lake.sql(statement)
    for chosen in range(6):
        name = f"t{chosen}"
        lake.sql(f"CREATE TABLE lake.db.{name} (id BIGINT, body STRING) USING tamis")
        jobs.clear()
        for number, statement in enumerate(statements(name, "CAST(id AS STRING)")):
            if number != chosen:
                lake.sql(statement)
                continue
            wide = next(
                s
                for at, s in enumerate(statements(name, f"IF(id % 7 = 2, {WIDE}, CAST(id AS STRING))"))
                if at == chosen
            )
            with pytest.warns(UserWarning, match="runs again, in smaller batches"):
                lake.sql(wide)
            found = lake.rows(f"SELECT id, body FROM lake.db.{name} ORDER BY id")
            assert text in {body for _, body in found}
            assert all(body in {text, str(i), str(i - 26)} for i, body in found)
        assert jobs["limited"] >= 1
        same = "SELECT count(*), count(DISTINCT id), max(id) FROM lake.db."
        assert lake.rows(same + name) == lake.rows(same + "plain")


def test_a_wide_row_leaves_no_files_and_is_remembered(lake: Lake, jobs: Counter[str]) -> None:
    lake.sql("CREATE TABLE lake.db.t (id BIGINT, body STRING) USING tamis")
    query = f"SELECT id, IF(id = 39999, {WIDE}, CAST(id AS STRING)) FROM range(0, 40000, 1, 4)"
    with pytest.warns(UserWarning, match=r"db/t runs again, in smaller batches, because a row has more than"):
        lake.sql(f"INSERT INTO lake.db.t {query}")
    assert jobs == {"narrow": 1, "limited": 1}
    assert lake.rows("SELECT count(*), sum(id), max(length(body)) FROM lake.db.t") == [
        (40000, 39999 * 20000, MAX_ROW_BYTES + 1)
    ]
    assert data_files(lake, "t") == referenced(lake, "t") != set()
    with no_warning():
        lake.sql(f"INSERT INTO lake.db.t {query}")
    assert jobs == {"narrow": 1, "limited": 2}


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT OVERWRITE lake.db.t SELECT id, IF(id = 299999, {wide}, sha2(CAST(id AS STRING), 256)) FROM range(0, 300000, 1, 1)",
        "UPDATE lake.db.t SET body = IF(id = 299999, {wide}, body)",
        "MERGE INTO lake.db.t t USING (SELECT id, IF(id = 309999, {wide}, 'a') AS body FROM range(0, 310000, 1, 1)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    ],
    ids=["overwrite", "update", "merge"],
)
def test_files_that_a_task_has_written_before_a_wide_row_go(lake: Lake, jobs: Counter[str], statement: str) -> None:
    lake.sql(
        "CREATE TABLE lake.db.t (id BIGINT, body STRING) USING tamis TBLPROPERTIES ('tamis.write.part_bytes' = '20000')"
    )
    lake.sql("INSERT INTO lake.db.t SELECT id, sha2(CAST(id AS STRING), 256) FROM range(0, 300000, 1, 1)")
    before, jobs["narrow"] = data_files(lake, "t"), 0
    assert len(before) > 3
    with pytest.warns(UserWarning, match="runs again"):
        lake.sql(statement.format(wide=WIDE))
    assert jobs == {"narrow": 1, "limited": 1}
    assert data_files(lake, "t") - before <= referenced(lake, "t")
    assert lake.rows("SELECT max(length(body)) FROM lake.db.t") == [(MAX_ROW_BYTES + 1,)]


@pytest.mark.parametrize("row", [0, 500_000, 999_999])
def test_a_worker_stops_at_a_wide_row_wherever_it_is(lake: Lake, jobs: Counter[str], row: int) -> None:
    lake.sql("CREATE TABLE lake.db.t (id BIGINT, body STRING) USING tamis")
    with pytest.warns(UserWarning, match="runs again"):
        lake.sql(f"INSERT INTO lake.db.t SELECT id, IF(id = {row}, {WIDE}, 'a') FROM range(0, 1000000, 1, 1)")
    assert jobs == {"narrow": 1, "limited": 1}
    assert lake.rows("SELECT count(*), count(DISTINCT id), sum(length(body)) FROM lake.db.t") == [
        (1_000_000, 1_000_000, 1_000_000 + MAX_ROW_BYTES)
    ]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("BINARY", f"CAST({WIDE} AS BINARY)"),
        ("STRING COLLATE UTF8_LCASE", WIDE),
        ("VARCHAR(1000000)", WIDE),
        ("STRUCT<a: INT, `b.c`: STRUCT<d: STRING>>", f"named_struct('a', 1, 'b.c', named_struct('d', {WIDE}))"),
        ("ARRAY<STRING>", f"array('a', NULL, {WIDE})"),
        ("ARRAY<BOOLEAN>", f"array_repeat(true, {MAX_ROW_BYTES})"),
        ("ARRAY<STRUCT<n: INT, `b.c`: STRING>>", f"array(NULL, named_struct('n', 1, 'b.c', {WIDE}))"),
        ("ARRAY<STRING>", f"array_repeat('', {MAX_ROW_BYTES})"),
        ("STRUCT<a: ARRAY<DATE>>", f"named_struct('a', array_repeat(DATE'2026-01-01', {MAX_ROW_BYTES}))"),
    ],
)
def test_wide_values_of_each_type_are_found(lake: Lake, jobs: Counter[str], kind: str, value: str) -> None:
    lake.sql(f"CREATE TABLE lake.db.t (id BIGINT, `a.b` {kind}) USING tamis")
    lake.sql("INSERT INTO lake.db.t VALUES (1, NULL)")
    assert jobs == {"narrow": 1}
    with pytest.warns(UserWarning, match="runs again"):
        lake.sql(f"INSERT INTO lake.db.t SELECT 2, {value}")
    assert lake.rows(f"SELECT id, `a.b` = {value} FROM lake.db.t ORDER BY id") == [(1, None), (2, True)]


@pytest.mark.parametrize(
    "value",
    [
        f"map('a', {WIDE}, 'b', NULL)",
        f"map({WIDE}, 'a')",
        f"map_from_arrays(transform(sequence(1, {MAX_ROW_BYTES // 20}), i -> CAST(i AS STRING)), array_repeat('', {MAX_ROW_BYTES // 20}))",
    ],
)
def test_wide_maps_are_found(lake: Lake, jobs: Counter[str], value: str) -> None:
    lake.sql("CREATE TABLE lake.db.t (id BIGINT, m MAP<STRING, STRING>) USING tamis")
    lake.sql("INSERT INTO lake.db.t VALUES (1, NULL), (3, map()), (4, map('k', 'v'))")
    assert jobs == {"narrow": 1}
    with pytest.warns(UserWarning, match="runs again"):
        lake.sql(f"INSERT INTO lake.db.t SELECT 2, {value}")
    same = f"SELECT id, m['k'], map_entries(m) = map_entries({value}) FROM lake.db.t ORDER BY id"
    assert lake.rows(same) == [(1, None, None), (2, None, True), (3, None, False), (4, "v", False)]


def test_many_values_make_a_row_wide(lake: Lake, jobs: Counter[str]) -> None:
    lake.sql("CREATE TABLE lake.db.t (a STRING, b STRING, c BINARY) USING tamis")
    third = f"repeat('é', {MAX_ROW_BYTES // 6 + 1})"  # of two bytes each
    with pytest.warns(UserWarning, match="runs again"):
        lake.sql(f"INSERT INTO lake.db.t SELECT {third}, {third}, CAST({third} AS BINARY)")
    assert lake.rows(f"SELECT a = {third}, b = {third}, c = CAST({third} AS BINARY) FROM lake.db.t") == [(True,) * 3]


def test_no_batch_outgrows_the_bound(lake: Lake) -> None:
    size = MAX_ROW_BYTES - 64
    lake.sql("CREATE TABLE lake.db.t (id BIGINT, body STRING) USING tamis")
    df = lake.spark.range(0, 3 * BATCH_ROWS, 1, 1).selectExpr("id", f"repeat('x', {size}) AS body")

    def sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"rows": pa.array([batch.num_rows]), "bytes": pa.array([batch.nbytes])})

    def write(rows: Any, narrow: bool) -> list[Any]:
        assert narrow
        return [
            tuple(row) for row in spark_write.map_rows(rows, sizes, "rows BIGINT, bytes BIGINT", narrow=True).collect()
        ]

    head = tamis.open(lake.folder / "db" / "t")._snapshot.head
    found = write_without_byte_limit(df, "t", head, Options(), write)
    assert [rows for rows, _ in found] == [BATCH_ROWS] * 3
    assert max(size for _, size in found) < BATCH_ROWS * (MAX_ROW_BYTES + 16) <= 65 * 2**20


def test_a_huge_row_never_reaches_a_batch_of_a_narrow_job(lake: Lake) -> None:
    df = lake.spark.range(0, 64, 1, 1).selectExpr("id", "repeat('x', 3000000) AS body")

    def sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch(
                {"wide": pa.array([sum(batch.column(2).to_pylist())]), "bytes": pa.array([batch.nbytes])}
            )

    marked, _ = mark_wide_rows(df, sizes)
    ((wide, size),) = marked.mapInArrow(sizes, "wide BIGINT, bytes BIGINT").collect()
    assert wide == 64
    assert size < 2_000


def test_huge_rows_are_written(lake: Lake) -> None:
    """Rows of 9 MB, more of them than fit a batch of Spark's 64 MiB.

    Not larger: a task that exhausts the heap of 2 GB ends the JVM, and with it the session of all tests that follow.
    """
    lake.sql("CREATE TABLE lake.db.t (id BIGINT, body STRING) USING tamis")
    with pytest.warns(UserWarning, match="runs again"):
        lake.sql("INSERT INTO lake.db.t SELECT id, repeat(CAST(id AS STRING), 9000000) FROM range(0, 10, 1, 1)")
    scanned = tamis.open(lake.folder / "db" / "t").scan().to_arrow().sort_by("id")
    assert [(set(body), len(body)) for body in scanned["body"].to_pylist()] == [
        ({str(i)}, 9_000_000) for i in range(10)
    ]


def test_the_refusal_of_a_row_goes_before_width(lake: Lake, jobs: Counter[str]) -> None:
    lake.sql(
        "CREATE TABLE lake.db.t (id BIGINT, body STRING) USING tamis "
        "TBLPROPERTIES ('tamis.write.outside_filter' = 'refuse')"
    )
    query = f"SELECT id, IF(id = 0, {WIDE}, 'a') FROM range(0, 10, 1, 2)"
    lake.refused(f"INSERT INTO lake.db.t REPLACE WHERE id < 5 {query}", "OUTSIDE_FILTER")
    assert jobs == {"narrow": 1}
    assert data_files(lake, "t") == set()


KEPT = {
    "a variant": "SELECT id, parse_json('1') AS v FROM range(3)",
    "a variant in a struct": "SELECT id, named_struct('a', parse_json('1')) AS v FROM range(3)",
    "an array of arrays": "SELECT id, array(array(id)) AS a FROM range(3)",
    "an array of binaries": "SELECT id, array(X'00') AS a FROM range(3)",
    "an array in a map": "SELECT id, map('a', array(id)) AS a FROM range(3)",
    "many columns": f"SELECT {', '.join(f'id AS c{i}' for i in range(101))} FROM range(3)",
    "many fields": "SELECT named_struct(" + ", ".join(f"'f{i}', 'a'" for i in range(101)) + ") AS s FROM range(3)",
    "many numbers": "SELECT named_struct(" + ", ".join(f"'f{i}', id" for i in range(401)) + ") AS s FROM range(3)",
    "a pandas function": "SELECT id, plus_one(id) FROM range(3)",
    "a pandas function in a subquery": "SELECT id FROM range(3) WHERE id < (SELECT max(plus_one(id)) FROM range(3))",
    "a table function of Python": "SELECT id, a FROM range(3), LATERAL three(id)",
}
"""Queries that Spark's limit stays in force for."""


@pytest.mark.parametrize("why", KEPT)
def test_the_limit_stays_where_it_has_to(lake: Lake, jobs: Counter[str], why: str) -> None:
    from pyspark.sql.functions import pandas_udf, udtf

    lake.spark.udf.register("plus_one", pandas_udf(lambda s: s + 1, "bigint"))

    class Three:
        def eval(self, value: int) -> Iterator[tuple[int]]:
            yield (value,)

    lake.spark.udtf.register("three", udtf(Three, returnType="a: bigint"))
    lake.sql(f"CREATE TABLE lake.db.t USING tamis AS {KEPT[why]}")
    assert jobs == {"limited": 1}
    assert lake.rows("SELECT count(*) FROM lake.db.t") == [(3,)]


def test_the_limit_stays_where_a_frame_says_so(lake: Lake, jobs: Counter[str]) -> None:
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    def same(batches: Any) -> Any:
        yield from batches

    df = lake.spark.range(3).selectExpr("id", "'a' AS body")
    df.writeTo(f"{lake.name}.db.t").using("tamis").create()
    jobs.clear()
    seen = Observation()
    df.observe(seen, f.count(f.lit(1)).alias("rows")).writeTo(f"{lake.name}.db.t").append()
    assert seen.get == {"rows": 3}
    df.mapInArrow(same, df.schema).writeTo(f"{lake.name}.db.t").append()
    df.mapInPandas(same, df.schema).writeTo(f"{lake.name}.db.t").append()
    assert jobs == {"limited": 3}
    assert lake.rows("SELECT count(*) FROM lake.db.t") == [(12,)]


def test_the_limit_stays_by_property_and_setting(
    lake: Lake, jobs: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.sql("CREATE TABLE lake.db.t (id BIGINT) USING tamis TBLPROPERTIES ('tamis.write.wide_rows' = 'true')")
    lake.sql("CREATE TABLE lake.db.u (id BIGINT) USING tamis")
    lake.sql("INSERT INTO lake.db.t VALUES (1)")
    assert jobs == {"limited": 1}
    lake.spark.conf.set(LIMIT, "1m")
    try:
        lake.sql("INSERT INTO lake.db.u VALUES (1)")
    finally:
        lake.spark.conf.unset(LIMIT)
    assert jobs == {"limited": 2}
    lake.sql("INSERT INTO lake.db.u VALUES (1)")
    assert jobs == {"limited": 2, "narrow": 1}


def test_the_limit_stays_where_rows_are_sorted_by_a_generated_column(lake: Lake, jobs: Counter[str]) -> None:
    lake.sql(
        "CREATE TABLE lake.db.t (id BIGINT, at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE))) "
        "USING tamis CLUSTER BY (day)"
    )
    lake.sql("INSERT INTO lake.db.t (id, at) SELECT id, TIMESTAMP'2026-01-01' FROM range(3)")
    assert jobs == {"limited": 1}


def test_the_limit_stays_in_a_stream(lake: Lake, jobs: Counter[str], tmp_path: Path) -> None:
    lake.spark.range(5).write.parquet(str(tmp_path / "source"))
    lake.sql("CREATE TABLE lake.db.t (id BIGINT) USING tamis")
    stream = lake.spark.readStream.schema("id BIGINT").parquet(str(tmp_path / "source"))

    def append(df: Any, epoch: int) -> None:  # Spark gives it
        df.writeTo(f"{lake.name}.db.t").append()

    query = stream.writeStream.foreachBatch(append).option("checkpointLocation", str(tmp_path / "c"))
    query.trigger(availableNow=True).start().awaitTermination()
    assert lake.rows("SELECT count(*) FROM lake.db.t") == [(5,)]
    assert jobs == {"limited": 1}


def test_a_write_leaves_the_session_of_rdds(lake: Lake) -> None:
    """PySpark binds ``RDD.toDF`` to the session that was made last."""
    lake.sql("CREATE TABLE lake.db.t (id BIGINT) USING tamis")
    other = lake.spark.newSession()
    try:
        lake.sql("INSERT INTO lake.db.t VALUES (1)")
        lake.sql("DELETE FROM lake.db.t WHERE id IN (SELECT id FROM range(3))")
        rows = lake.spark.sparkContext.parallelize([(1, "a")]).toDF(["id", "body"])
        assert rows.sparkSession._jsparkSession.equals(other._jsparkSession)
    finally:
        type(lake.spark)(lake.spark.sparkContext, lake.spark._jsparkSession)  # binds it again


def test_warnings_as_errors_do_not_fail_a_write(lake: Lake, jobs: Counter[str]) -> None:
    lake.sql("CREATE TABLE lake.db.t (id BIGINT, body STRING) USING tamis")
    with no_warning():
        lake.sql(f"INSERT INTO lake.db.t SELECT 1, {WIDE}")
    assert jobs == {"narrow": 1, "limited": 1}
    assert lake.rows("SELECT length(body) FROM lake.db.t") == [(MAX_ROW_BYTES + 1,)]


def test_the_session_of_the_user_does_not_change(lake: Lake, jobs: Counter[str]) -> None:
    before = dict(lake.spark.sparkContext._conf.getAll()), lake.spark.conf.get(LIMIT)
    session = lake.spark._jvm.org.apache.spark.sql.classic.SparkSession
    lake.spark.range(3).createOrReplaceTempView("three")
    lake.sql("CREATE TABLE lake.db.t (id BIGINT) USING tamis")
    lake.sql("INSERT INTO lake.db.t SELECT * FROM three")
    assert jobs == {"narrow": 1}
    assert (dict(lake.spark.sparkContext._conf.getAll()), lake.spark.conf.get(LIMIT)) == before
    assert not lake.spark._jsparkSession.sessionState().conf().contains(LIMIT)
    rows = lake.spark.sparkContext.parallelize([(1, "a")]).toDF(["id", "body"])
    assert rows.sparkSession._jsparkSession.equals(lake.spark._jsparkSession)
    active = session.getActiveSession()
    assert active.isEmpty() or active.get().equals(lake.spark._jsparkSession)
