"""Tables on S3 from Spark: where storage options come from, and that nothing shows their values."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from tests.storage.fake_s3 import FakeS3, serve

import tamis

SECRET = "pl4nted-s3cret"
REDACTION = "spark.sql.redaction.options.regex"


@pytest.fixture(autouse=True)
def attached(lake: Any) -> None:
    """``format("tamis")`` exists once a catalog is attached."""


@pytest.fixture
def s3() -> Iterator[tuple[dict[str, Any], type[FakeS3]]]:
    with serve(FakeS3) as server:
        yield server


def options(s3: tuple[dict[str, Any], type[FakeS3]], **more: str) -> dict[str, str]:
    """Storage options as text, in which every value that can be a secret is one."""
    planted = {
        "access_key_id": f"{SECRET}-id",
        "secret_access_key": f"{SECRET}-key",
        "session_token": f"{SECRET}-token",
    }
    return {**{key: str(value).lower() for key, value in s3[0].items()}, **planted, **more}


@contextmanager
def hadoop(spark: Any, keys: dict[str, str], prefix: str = "fs.s3a.") -> Iterator[None]:
    for key, value in keys.items():
        spark.conf.set(prefix + key, value)
    try:
        yield
    finally:
        for key in keys:
            spark.conf.unset(prefix + key)


def shown(df: Any) -> str:
    """All that explains a DataFrame, in every mode."""
    out = io.StringIO()
    with redirect_stdout(out):
        for mode in ("simple", "extended", "formatted", "cost", "codegen"):
            df.explain(mode)
    execution = df._jdf.queryExecution()
    return out.getvalue() + execution.toString() + execution.analyzed().toJSON() + repr(df)


def ui(spark: Any) -> str:
    """What Spark's UI and its event log show of the queries so far: descriptions and plans."""
    spark._jsparkSession.sparkContext().listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()
    found = store.executionsList()
    each = [found.apply(i) for i in range(found.size())]
    return "\n".join(f"{e.description()} {e.details()} {e.physicalPlanDescription()}" for e in each)


def test_nothing_shows_the_options_of_reads_writes_and_streams(
    spark: Any, s3: tuple[dict[str, Any], type[FakeS3]], tmp_path: Path
) -> None:
    given, path, copy = options(s3), "s3a://bucket/lake/t", "s3://bucket/lake/copy"
    session = spark.newSession()
    session.range(5).write.format("tamis").options(**given).save(path)
    session.range(5, 7).write.format("tamis").mode("append").options(**given).save(path)
    df = session.read.format("tamis").options(**given).load(path)
    assert sorted(row.id for row in df.where("id > 3").collect()) == [4, 5, 6]
    session.range(0).write.format("tamis").options(**given).save(copy)
    stream = session.readStream.format("tamis").options(**given).load(path)
    query = stream.writeStream.format("tamis").options(**given).option("checkpointLocation", str(tmp_path / "c"))
    running = query.trigger(availableNow=True).start(copy)
    running.awaitTermination()
    feed = session.read.format("tamis").options(**given, readChangeFeed="true", startingVersion="0").load(path)
    assert feed.count() == 7
    texts = {"ui": ui(spark), "read": shown(df), "feed": shown(feed), "stream": shown(stream)}
    texts["progress"] = str(running.lastProgress) + running._jsq.toString() + running._jsq.explainInternal(True)
    texts["reports"] = "".join(f"{r} {r!r} {r.as_dict()}" for r in tamis.reports())
    texts["checkpoint"] = "".join(
        file.read_text(errors="replace") for file in (tmp_path / "c").rglob("*") if file.is_file()
    )
    assert "tamis" in texts["ui"]
    for name, text in texts.items():
        assert SECRET not in text, name
        assert given["endpoint"] not in text, name
    assert tamis.open(copy, storage_options=given).scan().count() == 7


def test_what_the_user_hides_stays_hidden(lake: Any) -> None:
    from tamis.spark.session import _hide_storage_options

    session = lake.spark.newSession()
    session.conf.set(REDACTION, "(?i)mine")
    _hide_storage_options(session)
    pattern = session.conf.get(REDACTION)
    redacts = lake.spark.sparkContext._jvm.java.util.regex.Pattern.compile(pattern)
    for name in ("MINE", "aws_anything", "account_key", "AZURE_STORAGE_SAS_KEY", "service_account_key", "endpoint"):
        assert redacts.matcher(name).find(), name
    for name in ("path", "versionAsOf", "tamis.index.use", "maxFilesPerTrigger", "monkey"):
        assert not redacts.matcher(name).find(), name
    _hide_storage_options(session)
    assert session.conf.get(REDACTION) == pattern


def test_nothing_shows_the_options_of_a_catalog(spark: Any, s3: tuple[dict[str, Any], type[FakeS3]]) -> None:
    given = options(s3)
    tamis.attach(spark, "remote", "s3://bucket/lake", storage_options=given)
    spark.sql("CREATE NAMESPACE remote.db")
    spark.sql("CREATE TABLE remote.db.t (id BIGINT) USING tamis")
    spark.sql("INSERT INTO remote.db.t VALUES (1), (2)")
    spark.sql("DELETE FROM remote.db.t WHERE id = 1")
    df = spark.table("remote.db.t")
    assert [row.id for row in df.collect()] == [2]
    texts = [shown(df), ui(spark)]
    for statement in (
        "DESCRIBE EXTENDED remote.db.t",
        "DESCRIBE NAMESPACE EXTENDED remote.db",
        "SHOW TBLPROPERTIES remote.db.t",
        "SHOW CREATE TABLE remote.db.t",
        "SELECT * FROM remote.db.t.history",
        "SET -v",
    ):
        texts.append(str(spark.sql(statement).collect()))
    for text in texts:
        assert SECRET not in text
        assert given["endpoint"] not in text


@pytest.mark.parametrize("wrong", [{"access_key_id": "wrong"}, {"endpoint": "http://127.0.0.1:1"}, {"timeout": SECRET}])
def test_no_error_shows_a_value(spark: Any, s3: tuple[dict[str, Any], type[FakeS3]], wrong: dict[str, str]) -> None:
    given, path = options(s3), "s3://bucket/t"
    tamis.create(path, pa.schema([("id", pa.int64())]), storage_options=given)
    bad = {**given, **wrong}
    for call in (
        lambda: spark.read.format("tamis").options(**bad).load(path),
        lambda: spark.range(1).write.format("tamis").mode("append").options(**bad).save(path),
        lambda: spark.readStream.format("tamis").options(**bad).load(path),
    ):
        with pytest.raises(PySparkException) as caught:
            call()
        text = f"{caught.value} {caught.value!r} {getattr(caught.value, '_stackTrace', '')}"
        assert caught.value.getCondition() in {"ACCESS_DENIED", "STORE_UNAVAILABLE", "BAD_OPTION"}
        assert SECRET not in text
        assert bad["endpoint"] not in text


def test_a_task_that_cannot_reach_the_store_shows_no_value(
    spark: Any, s3: tuple[dict[str, Any], type[FakeS3]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The traceback of a Python worker arrives in the driver's error."""
    given, path = options(s3), "s3://bucket/t"
    tamis.create(path, pa.schema([("id", pa.int64())]), storage_options=given).append(pa.table({"id": [1]}))
    df = spark.read.format("tamis").options(**given).load(path)
    answer = FakeS3.do_GET

    def deny(handler: FakeS3) -> None:
        handler.refuse(403, f"{SECRET}-id") if "/data/" in handler.path else answer(handler)

    monkeypatch.setattr(s3[1], "do_GET", deny, raising=False)
    with pytest.raises(PySparkException) as caught:
        df.collect()
    text = f"{caught.value} {getattr(caught.value, '_stackTrace', '')}"
    assert "ACCESS_DENIED" in text
    assert SECRET not in text
    assert given["endpoint"] not in text


def test_the_sessions_hadoop_keys_reach_the_store(spark: Any, s3: tuple[dict[str, Any], type[FakeS3]]) -> None:
    given = s3[0]
    keys = {
        "access.key": given["access_key_id"],
        "secret.key": given["secret_access_key"],
        "endpoint": given["endpoint"].removeprefix("http://"),
        "connection.ssl.enabled": "false",
        "endpoint.region": given["region"],
        "path.style.access": "true",
    }
    with hadoop(spark, keys, "spark.hadoop.fs.s3a."):
        tamis.attach(spark, "hadoop_keyed", "s3a://bucket/keyed")
        spark.sql("CREATE NAMESPACE hadoop_keyed.db")
        spark.range(3).writeTo("hadoop_keyed.db.t").create()
        assert spark.read.format("tamis").load("s3a://bucket/keyed/db/t").count() == 3
        assert tamis.open("s3://bucket/keyed/db/t", storage_options=given).scan().count() == 3
        wrong = {"access_key_id": "wrong", "secret_access_key": "x"}
        with pytest.raises(PySparkException, match="ACCESS_DENIED"):
            spark.read.format("tamis").options(**wrong).load("s3a://bucket/keyed/db/t")
    with hadoop(spark, {**keys, "access.key": "wrong", "endpoint": "127.0.0.1:1"}):
        read = spark.read.format("tamis").options(**options(s3))
        assert read.load("s3://bucket/keyed/db/t").count() == 3, "explicit options win"
    assert spark.table("hadoop_keyed.db.t").count() == 3, "a catalog keeps what it was attached with"


def test_storage_options_of_a_local_path_are_refused(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t (id BIGINT) USING tamis")
    reader = lake.spark.read.format("tamis").option("secret_access_key", SECRET)
    with pytest.raises(PySparkException) as caught:
        reader.load(f"file:{lake.folder}/db/t")
    assert caught.value.getCondition() == "UNKNOWN_OPTION"
    assert SECRET not in str(caught.value)
    assert lake.spark.read.format("tamis").load(f"file:{lake.folder}/db/t").count() == 0


@pytest.mark.parametrize("path", ["dbfs:/t", "hdfs:/t", "wasbs:/t", "wasbs://c@a.blob.core.windows.net/t"])
def test_other_file_systems_are_refused_by_name(lake: Any, path: str) -> None:
    for call in (
        lambda: lake.spark.read.format("tamis").load(path),
        lambda: lake.spark.range(1).write.format("tamis").save(path),
    ):
        with pytest.raises(PySparkException) as caught:
            call()
        assert caught.value.getCondition() == "UNKNOWN_SCHEME"
