"""Generated columns by Spark: its grammar creates them, all of its writes compute them, its filters prune by them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType, TimestampType
from tests.spark.capabilities import needs_filled_columns

import tamis
from tamis.spark.connect import TamisDataSource
from tamis.spark.jvm_bridge.adapter import bridge_of
from tamis.storage.commit_log import load

ZONE = "Asia/Tokyo"
COLUMNS = "id BIGINT, ts TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(ts AS DATE)) COMMENT 'of Tokyo'"


@pytest.fixture
def zoned(lake: Any) -> Any:
    """A table that was created in Tokyo, used by a session in UTC."""
    lake.spark.conf.set("spark.sql.session.timeZone", ZONE)
    try:
        lake.sql(f"CREATE TABLE lake.db.t ({COLUMNS}) USING tamis")
        lake.sql(f"CREATE TABLE lake.db.sorted ({COLUMNS}) USING tamis CLUSTER BY (day)")
    finally:
        lake.spark.conf.set("spark.sql.session.timeZone", "UTC")
    return lake


def table(lake: Any, name: str = "t") -> tamis.Table:
    return tamis.open(lake.folder / "db" / name)


def right(lake: Any, name: str = "t") -> int:
    """Check every row, by hand; return the number of rows."""
    found = table(lake, name).scan().to_arrow().to_pylist()
    for row in found:
        local = None if row["ts"] is None else (row["ts"].astimezone(dt.timezone(dt.timedelta(hours=9)))).date()
        assert row["day"] == local, row
    return len(found)


def frame(lake: Any, *ids: int) -> Any:
    """Rows without a value for the generated column."""
    null_day = ", CAST(NULL AS DATE) AS day"
    values = ", ".join(f"({i})" for i in ids)
    at = "timestamp'2026-01-01 20:00:00' + make_dt_interval(CAST(id AS INT))"
    return lake.spark.sql(f"SELECT id, {at} AS ts{null_day} FROM VALUES {values} AS v(id)").selectExpr(
        "CAST(id AS BIGINT) AS id", "* EXCEPT (id)"
    )


@pytest.mark.parametrize("name", ["t", "sorted"])
@pytest.mark.push_cases(1)
def test_every_statement_computes_them(zoned: Any, name: str) -> None:
    full = f"{zoned.name}.db.{name}"
    zoned.sql(f"INSERT INTO lake.db.{name} VALUES (1, timestamp'2026-01-01 20:00:00', NULL), (2, NULL, NULL)")
    zoned.sql(f"INSERT INTO lake.db.{name} VALUES (3, timestamp'2026-01-01 20:00:00', DATE'2026-01-02')")
    zoned.sql(
        f"INSERT INTO lake.db.{name} BY NAME SELECT CAST(NULL AS DATE) AS day, timestamp'2026-01-05 01:00:00' AS ts, 4L AS id"
    )
    frame(zoned, 5, 6).writeTo(full).append()
    frame(zoned, 7).write.format("tamis").mode("append").saveAsTable(full)
    assert right(zoned, name) == 7
    zoned.sql(f"UPDATE lake.db.{name} SET ts = ts + INTERVAL 30 HOURS WHERE id IN (1, 4)")
    zoned.sql(f"UPDATE lake.db.{name} SET id = id + 10 WHERE day = '2026-01-02'")
    assert right(zoned, name) == 7
    frame(zoned, 2, 5, 50).createOrReplaceTempView("news")
    zoned.sql(
        f"MERGE INTO lake.db.{name} t USING news s ON t.id = s.id WHEN MATCHED AND s.id = 2 THEN UPDATE SET ts = s.ts "
        "WHEN MATCHED THEN UPDATE SET ts = s.ts, day = CAST(s.ts + INTERVAL 9 HOURS AS DATE) "
        "WHEN NOT MATCHED THEN INSERT (id, ts) VALUES (s.id, s.ts) "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET ts = t.ts - INTERVAL 1 DAY"
    )
    assert right(zoned, name) == 8
    zoned.sql(f"DELETE FROM lake.db.{name} WHERE id % 2 = 0 AND hash(id) <> 0")
    left = right(zoned, name)
    assert 0 < left < 8
    frame(zoned, 60).writeTo(full).overwrite(_true())
    assert right(zoned, name) == 1
    frame(zoned, 61, 62).write.insertInto(full)
    assert right(zoned, name) == 3
    if name == "sorted":
        assert all(table(zoned, name).metadata("parts")["ordered"].to_pylist())


def _true() -> Any:
    from pyspark.sql import functions as f

    return f.lit(True)


def test_a_statement_may_leave_the_column_out(zoned: Any) -> None:
    needs_filled_columns(zoned.spark)
    zoned.sql("INSERT INTO lake.db.t (id, ts) VALUES (1, timestamp'2026-01-01 20:00:00')")
    zoned.sql("INSERT INTO lake.db.t BY NAME SELECT timestamp'2026-01-05 01:00:00' AS ts, 4L AS id")
    frame(zoned, 5, 6).drop("day").writeTo(f"{zoned.name}.db.t").append()
    table(zoned).append(frame(zoned, 7).drop("day"))
    assert right(zoned) == 5


def test_python_verbs_with_frames_compute_them(zoned: Any) -> None:
    held = table(zoned, "sorted")
    held.append(frame(zoned, 1, 2, 3))
    held.update({"ts": "ts + INTERVAL 1 DAY"}, "id = 1", spark=zoned.spark)
    held.upsert(frame(zoned, 2, 4), on="id")
    assert right(zoned, "sorted") == 4
    held.overwrite(frame(zoned, 9), "id = 1", allow_outside=True)
    held.compact(spark=zoned.spark)
    assert right(zoned, "sorted") == 4


def test_streams_and_the_data_source_compute_them(zoned: Any, tmp_path: Path) -> None:
    source, full = tmp_path / "source", f"{zoned.name}.db.sorted"
    frame(zoned, 1, 2, 3).write.parquet(str(source))
    query = (
        zoned.spark.readStream.schema("id BIGINT, ts TIMESTAMP, day DATE")
        .parquet(str(source))
        .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .toTable(full)
    )
    query.awaitTermination()
    assert right(zoned, "sorted") == 3
    struct = StructType([StructField("id", LongType()), StructField("ts", TimestampType())])
    writer = TamisDataSource({"path": str(zoned.folder / "db" / "sorted")}).writer(struct, overwrite=False)
    at = dt.datetime(2026, 1, 1, 20, tzinfo=dt.UTC)
    writer.commit([writer.write(iter([pa.record_batch([pa.array([9]), pa.array([at])], ["id", "ts"])]))])
    assert right(zoned, "sorted") == 4


@pytest.mark.push_cases(1)
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO lake.db.t VALUES (3, timestamp'2026-01-01 20:00:00', DATE'2026-01-01')",
        "UPDATE lake.db.t SET day = DATE'2026-01-01'",
        "MERGE INTO lake.db.t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET day = DATE'2026-01-01'",
    ],
)
def test_another_value_is_refused(zoned: Any, statement: str) -> None:
    zoned.sql("INSERT INTO lake.db.t VALUES (1, timestamp'2026-01-01 20:00:00', NULL)")
    message = zoned.refused(statement, "GENERATED_VALUE")
    assert "2026-01-02" in message
    assert "2026-01-01" in message
    assert right(zoned) == 1


def test_the_same_value_may_be_assigned(zoned: Any) -> None:
    zoned.sql("INSERT INTO lake.db.t VALUES (1, timestamp'2026-01-01 20:00:00', NULL)")
    zoned.sql("UPDATE lake.db.t SET day = DATE'2026-01-04', ts = timestamp'2026-01-03 20:00:00'")
    assert right(zoned) == 1


def test_a_filter_of_spark_prunes_by_the_column(zoned: Any) -> None:
    zoned.sql("ALTER TABLE lake.db.t SET TBLPROPERTIES ('tamis.stats.budget_bytes' = '1', 'tamis.stats.keep' = 'day')")
    for day in range(1, 7):
        zoned.sql(f"INSERT INTO lake.db.t VALUES ({day}, timestamp'2026-01-0{day} 20:00:00', NULL)")
    assert zoned.rows("SELECT id FROM lake.db.t WHERE ts >= '2026-01-05 20:00:00' ORDER BY id") == [(5,), (6,)]
    report = tamis.reports(1)[0]
    assert report.parts["kept"] == 2
    assert "day" in report.because[0]["statistic"]
    zoned.spark.conf.set("spark.sql.session.timeZone", ZONE)
    try:
        assert zoned.rows("SELECT id FROM lake.db.t WHERE CAST(ts AS DATE) = DATE'2026-01-04'") == [(3,)]
    finally:
        zoned.spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert tamis.reports(1)[0].parts["kept"] == 1


def test_spark_shows_what_creates_the_same_table(zoned: Any) -> None:
    ((text,),) = zoned.rows("SHOW CREATE TABLE lake.db.sorted")
    zoned.sql("DROP TABLE lake.db.sorted")
    zoned.sql(text.replace(f"{zoned.name}.", "lake."))
    if bridge_of(zoned.spark).has_method("org.apache.spark.sql.connector.catalog.TableCatalog", "createTableLike", 3):
        zoned.sql("CREATE TABLE lake.db.alike LIKE lake.db.t")
    else:
        zoned.sql(text.replace(f"{zoned.name}.db.sorted", "lake.db.alike"))
    zoned.sql("CREATE TABLE lake.db.copied USING tamis AS SELECT * FROM lake.db.t")
    ways = {n: load(table(zoned, n).store).head.schema for n in ("t", "sorted", "alike", "copied")}
    how = {name: schema.fields[2].generated for name, schema in ways.items() if schema is not None}
    assert how["t"] is not None
    assert how["t"].zone == ZONE
    assert how["sorted"] == how["alike"] == how["t"]
    assert how["copied"] is None, "a query gives plain columns"
    described = {row[0]: row[1] for row in zoned.rows("DESCRIBE EXTENDED lake.db.t")}
    assert "CAST(ts AS DATE)" in described["Table Properties"]


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ("a INT, b INT GENERATED ALWAYS AS (hash(a))", "GENERATED_COLUMN"),
        ("s STRING, b TIMESTAMP GENERATED ALWAYS AS (CAST(s AS TIMESTAMP))", "GENERATED_COLUMN"),
        ("s STRING, b VARCHAR(3) GENERATED ALWAYS AS (upper(s))", "GENERATED_COLUMN"),
        ("a INT, b INT GENERATED ALWAYS AS (rand())", "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
    ],
)
def test_an_expression_that_cannot_hold_is_refused(lake: Any, columns: str, code: str) -> None:
    with pytest.raises(Exception, match=code):
        lake.sql(f"CREATE TABLE lake.db.t ({columns}) USING tamis")


def test_new_columns_by_path_keep_them_or_are_refused(zoned: Any) -> None:
    path = str(zoned.folder / "db" / "sorted")

    def write(df: Any) -> None:
        df.write.format("tamis").mode("overwrite").option("overwriteSchema", "true").save(path)

    frame(zoned, 1, 2).writeTo(f"{zoned.name}.db.sorted").append()
    given = frame(zoned, 3, 4, 5)
    write(given.withColumn("more", given.id))
    assert right(zoned, "sorted") == 3
    assert table(zoned, "sorted").detail()["writer_features"].to_pylist() == [["generated-columns"]]
    frame(zoned, 6).selectExpr("*", "id AS more").writeTo(f"{zoned.name}.db.sorted").append()
    assert right(zoned, "sorted") == 4
    version = table(zoned, "sorted").version
    for df, why in (
        (given.selectExpr("id", "day"), "no 'ts'"),
        (given.selectExpr("id", "CAST(ts AS DATE) AS ts", "day"), "date for 'ts'"),
        (given.selectExpr("id", "ts", "'x' AS day"), "string"),
        (given.selectExpr("id", "ts", "DATE'2020-01-01' AS day"), "GENERATED_VALUE"),
    ):
        with pytest.raises(Exception, match=rf"(?s)'?day'?.*{why}|{why}.*'day'"):
            write(df)
    assert table(zoned, "sorted").version == version
    given.drop("day").write.format("tamis").mode("overwrite").option("overwriteSchema", "true").clusterBy("id").save(
        path
    )
    assert table(zoned, "sorted").detail()["writer_features"].to_pylist() == [[]]


def test_it_gets_no_default_and_none_is_added(zoned: Any) -> None:
    zoned.refused("ALTER TABLE lake.db.t ALTER COLUMN day SET DEFAULT DATE'2026-01-01'", "GENERATED_COLUMN")
    for column in ("n INT GENERATED ALWAYS AS (id)", "n BIGINT GENERATED ALWAYS AS IDENTITY"):
        with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
            zoned.sql(f"ALTER TABLE lake.db.t ADD COLUMN {column}")
    zoned.sql("ALTER TABLE lake.db.t ALTER COLUMN day DROP DEFAULT")
    frame(zoned, 1, 2).writeTo(f"{zoned.name}.db.t").append()
    assert right(zoned) == 2


def test_what_it_reads_is_not_renamed(zoned: Any) -> None:
    zoned.refused("ALTER TABLE lake.db.t RENAME COLUMN ts TO at", "GENERATED_SOURCE")
    zoned.refused("ALTER TABLE lake.db.t SET TBLPROPERTIES ('tamis.generated.id' = '{}')", "UNKNOWN_OPTION")
    zoned.sql("ALTER TABLE lake.db.t RENAME COLUMN day TO `the.day`")
    zoned.sql("INSERT INTO lake.db.t VALUES (1, timestamp'2026-01-01 20:00:00', NULL)")
    assert zoned.rows("SELECT `the.day` FROM lake.db.t") == [(dt.date(2026, 1, 2),)]
