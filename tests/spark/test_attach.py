"""One call, and the catalog is there: in this session, in later ones, in foreachBatch's."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import tamis
from tamis.errors import AlreadyExists, InvalidInput


def test_again_with_the_same_folder_is_nothing(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t (a INT) USING tamis")
    tamis.attach(lake.spark, lake.name, lake.folder)
    tamis.attach(lake.spark, lake.name, str(lake.folder) + "/")
    assert lake.rows("SHOW TABLES IN lake.db") == [("db", "t", False)]


def test_another_folder_under_the_name_is_refused(lake: Any, tmp_path: Path) -> None:
    with pytest.raises(AlreadyExists) as caught:
        tamis.attach(lake.spark, lake.name, tmp_path / "elsewhere")
    assert caught.value.code == "CATALOG_EXISTS"
    assert str(lake.folder) in caught.value.message


@pytest.mark.parametrize("name", ["", " ", "a.b", "spark_catalog", "a`b", 7])
def test_a_bad_name_is_refused(spark: Any, tmp_path: Path, name: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        tamis.attach(spark, name, tmp_path)
    assert caught.value.code == "BAD_NAME"


@pytest.mark.parametrize("below", ["", "inner"])
def test_a_warehouse_that_is_a_file_is_refused(spark: Any, tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(InvalidInput) as caught:
        tamis.attach(spark, f"filed{below}", tmp_path / "file" / below)
    assert caught.value.code == "NOT_A_FOLDER"
    assert str(tmp_path / "file") in caught.value.message
    tamis.attach(spark, f"filed{below}", tmp_path / "folder")


def test_what_is_no_session_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is not a SparkSession"):
        tamis.attach("spark", "lake", tmp_path)


def test_spark_connect_is_told_the_way(tmp_path: Path) -> None:
    session = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(InvalidInput, match="tamis spark connect --warehouse") as caught:
        tamis.attach(session, "lake", tmp_path)
    assert caught.value.code == "SPARK_CONNECT"
    assert "spark.dataSource.register(TamisDataSource)" in str(caught.value)


def test_unknown_storage_option_is_refused_by_name(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="bogus"):
        tamis.attach(spark, "optioned", tmp_path, storage_options={"bogus": "1"})


def test_a_session_made_afterwards_knows_the_catalog(lake: Any) -> None:
    other = lake.spark.newSession()
    other.sql(f"CREATE TABLE {lake.name}.db.t (a INT) USING tamis")
    assert lake.rows("SHOW TABLES IN lake.db") == [("db", "t", False)]


def test_the_session_of_foreach_batch_knows_the_catalog(lake: Any, tmp_path: Path) -> None:
    lake.sql("CREATE TABLE lake.db.t (id BIGINT) USING tamis")
    for _ in range(2):
        lake.spark.range(10).write.mode("append").parquet(str(tmp_path / "source"))

    def write(df: Any, _: int) -> None:
        df.writeTo(f"{lake.name}.db.t").append()

    stream = lake.spark.readStream.schema("id bigint").option("maxFilesPerTrigger", 2).parquet(str(tmp_path / "source"))
    query = (
        stream.writeStream.foreachBatch(write)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert query.exception() is None
    assert [row[0] for row in lake.rows("SELECT operation FROM lake.db.t.history")] == ["append", "append", "create"]


def test_workers_run_the_drivers_python(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    context = lake.spark.sparkContext
    monkeypatch.setattr(context, "pythonExec", "python-of-nobody")
    monkeypatch.setenv("PYSPARK_PYTHON", "chosen")
    tamis.attach(lake.spark, lake.name, lake.folder)
    assert context.pythonExec == "python-of-nobody"
    monkeypatch.delenv("PYSPARK_PYTHON")
    tamis.attach(lake.spark, lake.name, lake.folder)
    assert context.pythonExec == "python-of-nobody"  # set by the user
    context.pythonExec = "python3"  # what PySpark sets where it was told nothing
    tamis.attach(lake.spark, lake.name, lake.folder)
    assert context.pythonExec == sys.executable
