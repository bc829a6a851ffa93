"""Options of readers and writers: each does what it says or is refused by name, wherever it is given."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.capabilities import needs_state_options
from tests.spark.conftest import Lake

import tamis
from tamis.errors import InvalidInput
from tamis.spark.options.foreign_options import FOREIGN, ON_BY_DEFAULT
from tamis.spark.options.source_options import OPTIONS, SPARK, Use, read_options, refuse_settings

EVERYWHERE = frozenset(Use)


def refused(given: dict[str, str], *uses: Use, by_path: bool = False) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        read_options(given, uses or EVERYWHERE, by_path=by_path)
    assert caught.value.remedy
    return caught.value


# --- the table, without Spark ---


@pytest.mark.parametrize(
    ("given", "near"),
    [("readChangeFed", "readChangeFeed"), ("startingversoin", "startingVersion"), ("acess_key_id", "access_key_id")],
)
def test_a_misspelled_name_gets_the_nearest_one(given: str, near: str) -> None:
    error = refused({given: "1"})
    assert (error.code, error.name) == ("UNKNOWN_OPTION", given)
    assert f"Did you mean {near}?" in error.remedy


def test_a_name_like_no_other_gets_the_list() -> None:
    remedy = refused({"zzz": "1"}, Use.READ_STREAM).remedy
    assert "maxFilesPerTrigger" in remedy
    assert "mergeSchema" not in remedy, "options of other places"


@pytest.mark.parametrize("name", [option.name for option in FOREIGN.values()])
def test_options_of_other_formats_are_refused_with_what_does_the_same(name: str) -> None:
    error = refused({name: "7"}, by_path=True)
    assert (error.code, error.name) == ("BAD_OPTION", name)
    if name.lower() in ON_BY_DEFAULT:  # false asks for something
        with pytest.raises(InvalidInput):
            read_options({name: "false"}, (), by_path=True)
    else:
        assert read_options({name: "false"}, (), by_path=True) == {}, "it turns on nothing"


@pytest.mark.parametrize("name", [*SPARK, "paths", "__partition_columns", "tamis.read.lazy"])
def test_what_spark_adds_passes(name: str) -> None:
    assert read_options({name: "x"}, (), by_path=False) == {}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_an_option_is_valid_where_the_table_says_and_nowhere_else(option: Any) -> None:
    text = next(text for text in ("true", "1", "parquet") if accepted(option, text))
    for use in Use:
        if use in option.uses:
            assert list(read_options({option.name.upper(): text}, {use}, by_path=True)) == [option.name.lower()]
        else:
            error = refused({option.name: text}, use, by_path=True)
            assert (error.code, error.name) == ("BAD_OPTION", option.name)
            assert use in error.message


def accepted(option: Any, text: str) -> bool:
    try:
        option.read(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("maxFilesPerTrigger", "0"),
        ("maxFilesPerTrigger", "²"),
        ("maxBytesPerTrigger", "many"),
        ("skipChangeCommits", "yes"),
        ("readChangeFeed", "1"),
        ("startingVersion", "-1"),
        ("endingVersion", "latest"),
    ],
)
def test_a_bad_value_is_named_with_what_is_valid(name: str, text: str) -> None:
    error = refused({name: text})
    assert (error.code, error.name) == ("BAD_OPTION", name)
    assert error.remedy.startswith("Give ")


def test_two_names_of_an_option_have_one_value() -> None:
    error = refused({"version": "3", "versionAsOf": "5"}, Use.READ)
    assert (error.code, "versionAsOf and version are one option" in error.message) == ("BAD_OPTION", True)
    assert read_options({"version": "3", "versionAsOf": " 3"}, {Use.READ}, by_path=True) == {"versionasof": "3"}


def test_storage_options_are_for_paths() -> None:
    assert read_options({"aws_secret_access_key": "x"}, (), by_path=True) == {}
    error = refused({"aws_secret_access_key": "s3cret"})
    assert error.code == "BAD_OPTION"
    assert "attach" in error.remedy
    assert "s3cret" not in str(error)


def test_settings_are_refused_where_they_would_do_nothing() -> None:
    refuse_settings({"tamis.format": "orc", "path": "x"}, "A write")
    with pytest.raises(InvalidInput, match=r"A write does not take tamis\.read\.lazy"):
        refuse_settings({"tamis.read.lazy": "on"}, "A write")


# --- in Spark ---


class Given:
    """A reader or writer of the table ``t`` with the ids 0, 1, 2, and options."""

    def __init__(self, lake: Lake, folder: Path) -> None:
        self.lake, self.folder = lake, folder
        self.name, self.path = f"{lake.name}.db.t", str(lake.folder / "db" / "t")
        self.df = lake.spark.range(7, 9).coalesce(1)

    def read(self, options: dict[str, str], *, path: bool = False) -> Any:
        reader = self.lake.spark.read.options(**options)
        return reader.format("tamis").load(self.path) if path else reader.table(self.name)

    def stream(self, options: dict[str, str], *, path: bool = False, into: Callable[[Any], Any] | None = None) -> Any:
        """The ids that a stream of the table reads, or what ``into`` starts."""
        reader = self.lake.spark.readStream.options(**(options if into is None else {}))
        source = reader.format("tamis").load(self.path) if path else reader.table(self.name)
        seen: list[int] = []
        writer = source.select("id").writeStream.trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(self.folder / f"c{len(list(self.folder.iterdir()))}"))
        if into is None:
            query = writer.foreachBatch(lambda df, _: seen.extend(row.id for row in df.collect())).start()
        else:
            query = into(writer.options(**options))
        query.awaitTermination()
        return sorted(seen)

    def save(self, options: dict[str, str], mode: str = "append", df: Any = None) -> None:
        (self.df if df is None else df).write.format("tamis").mode(mode).options(**options).save(self.path)


@pytest.fixture
def given(lake: Lake, tmp_path: Path) -> Given:
    lake.sql("CREATE TABLE lake.db.t (id BIGINT) USING tamis")
    lake.sql("INSERT INTO lake.db.t SELECT id FROM range(0, 3, 1, 1)")
    (tmp_path / "checkpoints").mkdir()
    return Given(lake, tmp_path / "checkpoints")


def listed(options: dict[str, str]) -> str:
    return ", ".join(f"'{key}' = '{value}'" for key, value in options.items())


PLACES: dict[str, Callable[[Given, dict[str, str]], Any]] = {
    "read table": lambda g, o: g.read(o).collect(),
    "read path": lambda g, o: g.read(o, path=True).collect(),
    "read metadata": lambda g, o: g.lake.spark.read.options(**o).table(f"{g.name}.history").collect(),
    "sql": lambda g, o: g.lake.spark.sql(f"SELECT * FROM {g.name} WITH ({listed(o)})").collect(),
    "readStream table": lambda g, o: g.stream(o),
    "readStream path": lambda g, o: g.stream(o, path=True),
    "save": lambda g, o: g.save(o),
    "saveAsTable new": lambda g, o: g.df.write.options(**o).saveAsTable(f"{g.lake.name}.db.new"),
    "saveAsTable append": lambda g, o: g.df.write.mode("append").options(**o).saveAsTable(g.name),
    "insertInto": lambda g, o: g.df.write.options(**o).insertInto(g.name),
    "writeTo append": lambda g, o: g.df.writeTo(g.name).options(**o).append(),
    "writeTo create": lambda g, o: g.df.writeTo(f"{g.lake.name}.db.new").options(**o).create(),
    "writeStream path": lambda g, o: g.stream(o, into=lambda w: w.format("tamis").start(g.path)),
    "toTable": lambda g, o: g.stream(o, into=lambda w: w.toTable(g.name)),
    "CREATE OPTIONS": lambda g, o: g.lake.spark.sql(
        f"CREATE TABLE {g.lake.name}.db.new (id INT) USING tamis OPTIONS ({listed(o)})"
    ),
}


def condition(call: Callable[[], Any]) -> str:
    """The condition and the text that a call in Spark ends with."""
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.push_cases(2)
def test_an_unknown_option_is_an_error_everywhere(given: Given, place: str) -> None:
    text = condition(lambda: PLACES[place](given, {"readChangeFed": "true"}))
    assert "UNKNOWN_OPTION" in text
    assert "'readchangefed'" in text.lower()
    assert not given.lake.spark.catalog.tableExists(f"{given.lake.name}.db.new")
    assert tamis.open(given.path).version == 1


@pytest.mark.parametrize(
    ("place", "options", "says"),
    [
        ("read metadata", {"readChangeFeed": "true"}, "CALL"),
        ("insertInto", {"readChangeFeed": "true"}, "CALL"),
        ("read table", {"readChangeData": "true", "startingVersion": "0", "mergeSchema": "true"}, "mergeSchema"),
        ("read path", {"keyColumns": "id"}, "readChangeFeed"),
        ("read table", {"startingVersion": "1"}, "startingVersion"),
        ("read table", {"maxFilesPerTrigger": "1"}, "maxFilesPerTrigger"),
        ("read table", {"version": "0"}, "VERSION AS OF"),
        ("read table", {"timestamp": "2020-01-01"}, "TIMESTAMP AS OF"),
        ("read path", {"startingVersion": "1"}, "startingVersion"),
        ("read path", {"ignoreDeletes": "true"}, "ignoreDeletes"),
        ("read path", {"mergeSchema": "true"}, "mergeSchema"),
        ("read path", {"snapshot-id": "7"}, "versionAsOf"),
        ("read table", {"secret_access_key": "x"}, "attach"),
        ("readStream path", {"versionAsOf": "1"}, "startingVersion"),
        (
            "readStream path",
            {"readChangeFeed": "true", "startingVersion": "1"},
            "Streaming reads of the change feed are not supported",
        ),
        ("readStream table", {"ignoreChanges": "true"}, "skipChangeCommits"),
        ("saveAsTable append", {"mergeSchema": "true"}, "SCHEMA EVOLUTION"),
        ("insertInto", {"overwriteSchema": "true"}, "overwriteSchema"),
        ("writeTo append", {"compression": "gzip"}, "compression"),
        ("save", {"overwriteSchema": "true"}, 'mode("overwrite")'),
        ("save", {"replaceWhere": "id = 1"}, 'mode("overwrite")'),
        ("save", {"tamis.format": "orc"}, "parquet"),
        ("toTable", {"mergeSchema": "true"}, "mergeSchema"),
        ("toTable", {"tamis.write.part_bytes": "1MB"}, "conf"),
        ("writeStream path", {"txnAppId": "a"}, "stream_writer"),
        ("CREATE OPTIONS", {"secret_access_key": "x"}, "attach"),
    ],
)
@pytest.mark.push_cases(3)
def test_an_option_without_effect_is_refused(given: Given, place: str, options: dict[str, str], says: str) -> None:
    if "readChangeData" in options:
        needs_state_options(given.lake.spark)
    text = condition(lambda: PLACES[place](given, options))
    assert says in text
    assert "BAD_OPTION" in text
    assert tamis.open(given.path).version == 1


def test_a_version_in_sql_options_is_applied_or_refused(given: Given) -> None:
    """A Spark that does not look for it there would get the newest rows."""
    from pyspark.errors import PySparkException

    def answer() -> Any:
        try:
            return PLACES["sql"](given, {"versionAsOf": "0"})
        except PySparkException as error:
            return error.getCondition()

    assert answer() in ([], "BAD_OPTION")


def test_switches_that_are_off_and_options_of_creation_pass(given: Given) -> None:
    given.df.write.option("mergeSchema", "true").option("ignoreChanges", "false").saveAsTable(
        f"{given.lake.name}.db.new"
    )
    given.df.write.mode("overwrite").option("overwriteSchema", "true").saveAsTable(f"{given.lake.name}.db.new")
    assert tamis.open(given.lake.folder / "db" / "new").properties == {}, "options are no properties"
    text = condition(
        lambda: given.df.write.mode("overwrite").option("overwriteSchema", "false").saveAsTable(given.name)
    )
    assert "INSERT OVERWRITE" in text
    given.lake.sql(
        "CREATE TABLE lake.db.o (id INT) USING tamis OPTIONS ('mergeSchema' = 'true', 'tamis.read.lazy' = 'on')"
    )
    assert tamis.open(given.lake.folder / "db" / "o").properties == {"tamis.read.lazy": "on"}


# --- change feed ---


def feed(given: Given, **options: Any) -> Any:
    return given.read({"readChangeFeed": "true", **{k: str(v) for k, v in options.items()}}, path=True)


def rows(df: Any) -> list[tuple[Any, ...]]:
    return sorted((row._commit_version, row._change_type, row.id) for row in df.collect())


def called(given: Given, first: int) -> list[tuple[Any, ...]]:
    found = given.lake.sql(f"CALL lake.system.changes(table => 'db.t', from_version => {first})")
    return rows(found)


def test_the_change_feed_is_that_of_the_procedure(given: Given) -> None:
    given.lake.sql("DELETE FROM lake.db.t WHERE id = 1")
    given.lake.sql("UPDATE lake.db.t SET id = 9 WHERE id = 2")
    given.lake.sql("OPTIMIZE lake.db.t")
    given.lake.sql("INSERT OVERWRITE lake.db.t SELECT id FROM range(9, 11)")
    every = feed(given, startingVersion=0)
    assert every.columns == ["id", "_change_type", "_commit_version", "_commit_timestamp"]
    assert rows(every) == called(given, 0), "version 0 has no rows"
    assert rows(every) == [
        *[(1, "insert", n) for n in (0, 1, 2)],
        (2, "delete", 1),
        *[(3, "delete", 2), (3, "insert", 9)],
        *[(5, "delete", 0), (5, "insert", 10)],
    ], "9 was copied by the last commit, and OPTIMIZE changed nothing"
    assert rows(feed(given, startingVersion=2, endingVersion=3)) == [r for r in rows(every) if r[0] in {2, 3}]
    assert rows(every.where("_change_type = 'delete' AND id < 2")) == [(2, "delete", 1), (5, "delete", 0)]
    assert every.groupBy("_change_type").count().count() == 2
    assert every.count() == 8


def test_a_feed_from_version_0_has_the_rows_of_the_creation(given: Given) -> None:
    path = given.path + "2"
    given.df.write.format("tamis").save(path)
    df = given.lake.spark.read.format("tamis").options(readChangeData="true", startingVersion="0").load(path)
    assert rows(df) == [(0, "insert", 7), (0, "insert", 8)]


def test_a_feed_is_bounded_by_times_in_the_sessions_zone(given: Given) -> None:
    given.lake.sql("INSERT INTO lake.db.t VALUES (50)")
    stamps = [s.as_py() for s in tamis.open(given.path).history()["timestamp"]][::-1]
    first, second = stamps[1], stamps[2]
    assert rows(feed(given, startingTimestamp=second.isoformat())) == [(2, "insert", 50)]
    assert {r[0] for r in rows(feed(given, startingVersion=0, endingTimestamp=first.isoformat()))} == {1}
    assert len(rows(feed(given, startingTimestamp="1999-01-01"))) == 4
    given.lake.spark.conf.set("spark.sql.session.timeZone", "+10:00")
    try:
        local = datetime.fromtimestamp(second.timestamp() + 36_000).isoformat()  # local on purpose
        assert rows(feed(given, startingTimestamp=local)) == [(2, "insert", 50)]
        assert given.stream({"startingTimestamp": local}) == [50]
    finally:
        given.lake.spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.push_cases(4)
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "startingVersion or startingTimestamp"),
        ({"startingVersion": "1", "startingTimestamp": "2020-01-01"}, "startingVersion or startingTimestamp"),
        ({"startingVersion": "latest"}, "latest"),
        ({"startingVersion": "9"}, "after version 1"),
        ({"startingVersion": "1", "endingVersion": "0"}, "after version 0"),
        ({"startingVersion": "1", "endingVersion": "9"}, "VERSION_NOT_FOUND"),
        ({"startingVersion": "1", "endingVersion": "1", "endingTimestamp": "2999-01-01"}, "Give one of them"),
        ({"startingVersion": "1", "versionAsOf": "1"}, "versionAsOf"),
        ({"startingTimestamp": "yesterday"}, "BAD_TIMESTAMP"),
        ({"startingVersion": "1", "skipChangeCommits": "true"}, "skipChangeCommits"),
        ({"startingVersion": "1", "maxFilesPerTrigger": "1"}, "maxFilesPerTrigger"),
    ],
)
def test_a_feed_without_a_range_is_refused(given: Given, options: dict[str, str], says: str) -> None:
    assert says in condition(lambda: feed(given, **options))


def test_a_feed_is_divided_among_tasks_by_parts_but_not_within_a_commit_that_replaces(given: Given) -> None:
    given.lake.spark.conf.set("spark.sql.files.maxPartitionBytes", "1")
    try:
        given.lake.sql("INSERT INTO lake.db.t SELECT id FROM range(20, 24, 1, 2)")
        given.lake.sql("INSERT OVERWRITE lake.db.t SELECT id FROM range(20, 24, 1, 2)")
        assert feed(given, startingVersion=2, endingVersion=2).rdd.getNumPartitions() == 2
        replaced = feed(given, startingVersion=3)
        assert replaced.rdd.getNumPartitions() == 1
        assert rows(replaced) == [(3, "delete", n) for n in (0, 1, 2)], "20 to 23 were only copied"
        assert rows(feed(given, startingVersion=1)) == called(given, 0)
    finally:
        given.lake.spark.conf.unset("spark.sql.files.maxPartitionBytes")


def test_a_feed_has_the_newest_columns(given: Given) -> None:
    given.lake.sql("ALTER TABLE lake.db.t ADD COLUMN more STRING DEFAULT 'm'")
    given.lake.sql("DELETE FROM lake.db.t WHERE id = 0")
    found = feed(given, startingVersion=1)
    assert found.columns[:2] == ["id", "more"]
    assert {row.more for row in found.collect()} == {"m"}


# --- streams ---


def test_ignored_deletes_are_left_out_and_changes_are_not(given: Given) -> None:
    given.lake.sql("DELETE FROM lake.db.t WHERE id = 1")
    given.lake.sql("INSERT INTO lake.db.t VALUES (5)")
    since = {"startingVersion": "1"}
    assert "CHANGED_SOURCE" in condition(lambda: given.stream(since))
    assert given.stream({**since, "ignoreDeletes": "true"}) == [0, 1, 2, 5]
    given.lake.sql("UPDATE lake.db.t SET id = 6 WHERE id = 5")
    assert "CHANGED_SOURCE" in condition(lambda: given.stream({**since, "ignoreDeletes": "true"}))
    assert given.stream({**since, "skipChangeCommits": "true"}) == [0, 1, 2, 5]


# --- schemas ---


def test_overwrite_schema_replaces_rows_and_columns_in_one_commit(given: Given) -> None:
    from pyspark.sql import functions as f

    given.lake.sql(
        "CREATE OR REPLACE TABLE lake.db.t (id BIGINT, old INT) CLUSTER BY (id) COMMENT 'c' TBLPROPERTIES ('k' = 'v')"
    )
    before = tamis.open(given.path)
    version, table_id = before.version, before.detail()["id"]
    wider = given.df.select(f.col("id").cast("string").alias("id"), f.lit(1.5).alias("new"))
    given.save({"overwriteSchema": "true"}, "overwrite", wider)
    after = tamis.open(given.path)
    assert after.version == version + 1
    assert after.history(1)["operation"][0].as_py() == "replace"
    assert after.schema.names == ["id", "new"]
    assert sorted(after.scan().to_arrow()["id"].to_pylist()) == ["7", "8"]
    assert after.properties == {"k": "v"}
    assert after.detail()["clustering_columns"][0].as_py() == ["id"]
    assert after.detail()["id"] == table_id
    assert given.read({"versionAsOf": str(version)}, path=True).columns == ["id", "old"]
    assert sorted(row.id for row in given.read({}).collect()) == ["7", "8"]


def test_overwrite_schema_needs_its_clustering_columns(given: Given) -> None:
    given.lake.sql("CREATE OR REPLACE TABLE lake.db.t (a INT, b INT) CLUSTER BY (b)")
    version = tamis.open(given.path).version
    options = {"overwriteSchema": "true"}
    assert "clusterBy" in condition(lambda: given.save(options, "overwrite"))
    assert tamis.open(given.path).version == version
    given.df.write.format("tamis").mode("overwrite").options(**options).clusterBy("id").save(given.path)
    assert tamis.open(given.path).detail()["clustering_columns"][0].as_py() == ["id"]
    for other in ({"replaceWhere": "id = 1"}, {"mergeSchema": "true"}):
        save = functools.partial(given.save, {**options, **other}, "overwrite")
        assert "overwriteSchema" in condition(save)


def test_overwrite_schema_does_not_lose_a_concurrent_append(given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    from tamis.spark.write import spark_write

    write, path = spark_write.write_rows, given.path

    def meddle(*arguments: Any) -> Any:
        written = write(*arguments)
        tamis.open(path).append(pa.table({"id": [77]}))
        return written

    monkeypatch.setattr(spark_write, "write_rows", meddle)
    assert "CONFLICT" in condition(lambda: given.save({"overwriteSchema": "true"}, "overwrite")).upper()
    assert 77 in tamis.open(path).scan().to_arrow()["id"].to_pylist()


def test_merge_schema_of_an_overwrite_adds_columns(given: Given) -> None:
    from pyspark.sql import functions as f

    given.save({"mergeSchema": "true"}, "overwrite", given.df.withColumn("more", f.lit("m")))
    assert tamis.open(given.path).scan().to_arrow().to_pylist() == [{"id": n, "more": "m"} for n in (7, 8)]


def test_replace_where_is_checked_when_it_creates_the_table(given: Given) -> None:
    path = given.path + "2"
    writer = given.df.write.format("tamis").mode("overwrite")
    assert "OUTSIDE_FILTER" in condition(lambda: writer.option("replaceWhere", "id = 7").save(path))
    assert not Path(path, "_tamis").exists()
    writer.option("replaceWhere", "id > 6").save(path)
    assert tamis.open(path).scan().count() == 2
