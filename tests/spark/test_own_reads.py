"""An INSERT that reads its own table conflicts with a commit that changes what it read. Spark plans a MERGE that only inserts so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from tests.spark.capabilities import reads_newest
from tests.spark.conftest import Lake

import tamis
from tamis.spark.catalog.catalog import Catalog
from tamis.spark.write import row_change_job, spark_write

pytestmark = pytest.mark.spark

SOURCE = "(SELECT CAST(id AS INT) AS k FROM range(4, 8))"
MERGE = f"MERGE INTO lake.db.t t USING {SOURCE} s ON t.k = s.k WHEN NOT MATCHED THEN INSERT (k, day) VALUES (s.k, 1)"
MERGE_TWICE = (
    f"MERGE INTO lake.db.t t USING {SOURCE} s ON t.k = s.k WHEN NOT MATCHED AND s.k > 6 THEN INSERT (k, day) "
    "VALUES (s.k, 1) WHEN NOT MATCHED THEN INSERT (k, day) VALUES (s.k, 2)"
)
MERGE_DAY = MERGE.replace("ON t.k = s.k", "ON t.k = s.k AND t.day = 1")
COPY = "INSERT INTO lake.db.t SELECT k + 100, day FROM lake.db.t WHERE day = 1"
MISSING = f"INSERT INTO lake.db.t SELECT s.k, 1 FROM {SOURCE} s WHERE s.k NOT IN (SELECT k FROM lake.db.t)"
NEXT = "INSERT INTO lake.db.t SELECT (SELECT max(k) FROM lake.db.t) + 1, 1"
WITH = "WITH c AS (SELECT * FROM lake.db.t) INSERT INTO lake.db.t SELECT a.k + b.k, 1 FROM c a JOIN c b ON a.k = b.k"
REPLACE = "INSERT INTO lake.db.t REPLACE WHERE day = 9 SELECT k, 9 FROM lake.db.t WHERE day = 1"
OVERWRITE = "INSERT OVERWRITE lake.db.t SELECT k, 2 FROM lake.db.t WHERE day = 1"
READING = (MERGE, MERGE_TWICE, COPY, MISSING, NEXT, WITH, REPLACE, OVERWRITE)

PLAIN = f"INSERT INTO lake.db.t SELECT k, 1 FROM {SOURCE}"
PINNED = "INSERT INTO lake.db.t SELECT k + 100, day FROM lake.db.t VERSION AS OF 1 WHERE day = 1"

Change = Callable[[tamis.Table], Any]


def rows(keys: list[int], day: int) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int32()), "day": pa.array([day] * len(keys), pa.int32())})


def made(lake: Lake) -> tamis.Table:
    """Keys 0 to 4 of day 1, and 50 of day 2, in a part each."""
    lake.sql("CREATE TABLE lake.db.t (k INT, day INT) USING tamis")
    table = tamis.open(lake.folder / "db" / "t")
    table.append(rows([0, 1, 2, 3, 4], 1))
    table.append(rows([50], 2))
    return table


def meanwhile(monkeypatch: pytest.MonkeyPatch, table: tamis.Table, change: Change) -> list[int]:
    """Have ``change`` commit once between a statement's read and its own commit. Returns what will hold its versions."""
    plain, versions = spark_write.write_rows, list[int]()

    def then_changed(*args: Any) -> Any:
        manifests = plain(*args)
        if not versions:
            versions.append(-1)
            change(table)
            versions[0] = table.refresh().version
        return manifests

    monkeypatch.setattr(spark_write, "write_rows", then_changed)
    return versions


CHANGES: dict[str, Change] = {
    "append": lambda t: t.append(rows([5], 1)),
    "delete": lambda t: t.delete("k = 4"),
    "update": lambda t: t.update({"k": "k + 1"}, "k = 4"),
    "overwrite": lambda t: t.overwrite(rows([5, 6], 1)),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("statement", READING)
@pytest.mark.push_cases(16)
def test_a_commit_that_changes_what_was_read_is_a_conflict(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, statement: str, change: str
) -> None:
    table = made(lake)
    versions = meanwhile(monkeypatch, table, CHANGES[change])
    with pytest.raises(Exception, match=r"CONFLICT_(READ|REMOVED|ROWS)"):
        lake.sql(statement)
    assert versions == [table.refresh().version]


@pytest.mark.parametrize(
    ("statement", "change"),
    [
        (PLAIN, CHANGES["append"]),
        (PLAIN, CHANGES["delete"]),
        (PLAIN, CHANGES["overwrite"]),
        (PINNED, CHANGES["delete"]),
        (MERGE, lambda t: t.compact()),
        (MERGE_DAY, lambda t: t.append(rows([5], 2))),
        (MERGE_DAY, lambda t: t.delete("k = 50")),
        (COPY, lambda t: t.append(rows([5], 2))),
        (REPLACE.replace("WHERE day = 1", "VERSION AS OF 1"), lambda t: t.append(rows([5], 1))),
    ],
)
def test_other_commits_are_none(lake: Lake, monkeypatch: pytest.MonkeyPatch, statement: str, change: Change) -> None:
    table = made(lake)
    versions = meanwhile(monkeypatch, table, change)
    lake.sql(statement)
    assert table.refresh().version == versions[0] + 1


CHANGES_BY_SUBQUERY = (
    "UPDATE lake.db.t SET day = (SELECT max(day) FROM lake.db.t) + 1 WHERE k = 0",
    "DELETE FROM lake.db.t WHERE k = 0 AND EXISTS (SELECT 1 FROM lake.db.t o WHERE o.k = 50)",
    "MERGE INTO lake.db.t t USING (SELECT max(day) AS day FROM lake.db.t) s ON t.k = 0 WHEN MATCHED THEN UPDATE SET day = s.day",
)


@pytest.mark.parametrize("statement", CHANGES_BY_SUBQUERY)
@pytest.mark.parametrize("change", [lambda t: t.append(rows([60], 7)), lambda t: t.delete("k = 50")])
def test_what_a_subquery_reads_counts(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, statement: str, change: Change
) -> None:
    table = made(lake)
    plain, seen = row_change_job.commit_changes, list[int]()

    def after_a_commit(*args: Any) -> Any:
        change(table)
        seen.append(table.refresh().version)
        return plain(*args)

    monkeypatch.setattr("tamis.spark.write.row_level_operations.commit_changes", after_a_commit)
    lake.refused(statement, "CONFLICT_READ")
    assert seen == [table.refresh().version]


AVERAGE = "(SELECT avg(k) FROM lake.db.t)"
BESIDE = {
    "delete": (f"DELETE FROM lake.db.t WHERE k > {AVERAGE}", [0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 50]),
    "update": (
        f"UPDATE lake.db.t SET k = -k WHERE k > {AVERAGE}",
        [0, 1, 2, 3, 4, -50],
        [0, 1, 2, 3, 4, 50, -900, -901],
    ),
    "merge": (
        "MERGE INTO lake.db.t t USING (SELECT avg(k) AS a FROM lake.db.t) s ON t.k > s.a WHEN MATCHED THEN DELETE",
        [0, 1, 2, 3, 4],
        [0, 1, 2, 3, 4, 50],
    ),
}


@pytest.mark.parametrize("load", range(4))
@pytest.mark.parametrize("verb", BESIDE)
def test_a_commit_while_a_statement_is_analyzed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, verb: str, load: int
) -> None:
    """Spark loads the table for the target and for the subquery: between two loads, keys are added of which some would match.

    The rows are those of one order of the two, or the statement fails; it does not succeed without an effect.
    """
    table, (statement, first, last) = made(lake), BESIDE[verb]
    plain, loads = Catalog.open, [0]

    def opened(*args: Any, **options: Any) -> Any:
        found = plain(*args, **options)
        loads[0] += 1
        if loads[0] == load + 1:
            tamis.open(table.path).append(rows([900, 901], 1))
        return found

    monkeypatch.setattr(Catalog, "open", opened)
    outcomes = [sorted([*first, 900, 901]), sorted(last)]
    try:
        lake.sql(statement)
    except PySparkException as error:
        if error.getCondition() != "CONFLICT_READ":
            raise
        outcomes = [[0, 1, 2, 3, 4, 50, 900, 901]]
    if loads[0] <= load:
        outcomes.append(sorted(first))
    assert sorted(table.refresh().scan().to_arrow()["k"].to_pylist()) in outcomes


def test_a_subquery_of_another_version_or_table_does_not(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(lake)
    lake.sql("CREATE TABLE lake.db.other AS SELECT * FROM lake.db.t")
    plain = row_change_job.commit_changes

    def after_a_commit(*args: Any) -> Any:
        table.append(rows([60], 7))
        return plain(*args)

    monkeypatch.setattr("tamis.spark.write.row_level_operations.commit_changes", after_a_commit)
    for version in (1, 2, table.version):
        lake.sql(f"UPDATE lake.db.t SET day = (SELECT max(day) FROM lake.db.t VERSION AS OF {version}) WHERE k = 0")
    lake.sql("UPDATE lake.db.t SET day = (SELECT max(day) FROM lake.db.other) WHERE k = 0")
    assert lake.rows("SELECT day FROM lake.db.t WHERE k = 0") == [(2,)]


def test_two_merges_that_only_insert_leave_each_key_once(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(lake)
    versions = meanwhile(monkeypatch, table, lambda _: lake.sql(MERGE))
    assert "None of its changes" in lake.refused(MERGE, "CONFLICT_READ")
    assert len(versions) == 1
    lake.sql(MERGE)
    assert lake.rows("SELECT k FROM lake.db.t WHERE day = 1 ORDER BY k") == [(k,) for k in range(8)]


def test_appends_by_path_do_so_too(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(lake)
    path = str(table.path)
    own = lake.spark.read.format("tamis").load(path).where("day = 1")
    versions = meanwhile(monkeypatch, table, CHANGES["append"])
    with pytest.raises(Exception, match="CONFLICT_READ"):
        own.write.format("tamis").mode("append").save(path)
    assert versions == [table.refresh().version]


WRITES: dict[str, Callable[[Any, tamis.Table], Any]] = {
    "append": lambda df, t: df.write.format("tamis").mode("append").save(t.path),
    "overwrite": lambda df, t: df.write.format("tamis").mode("overwrite").save(t.path),
    "overwrite columns": lambda df, t: (
        df.write.format("tamis").mode("overwrite").option("overwriteSchema", "true").save(t.path)
    ),
    "overwrite a day": lambda df, t: t.refresh().overwrite(df.where("day = 1"), "day = 1"),
    "merge": lambda df, t: (
        t.refresh().merge(df, on="target.k = source.k").when_matched_update({"day": "source.day + 1"}).execute()
    ),
}


def linked(table: tamis.Table) -> str:
    """Another path of the table, by a symbolic link."""
    link = Path(table.path).parent / "linked"
    if not link.exists():
        link.symlink_to(table.path)
    return str(link)


READS: dict[str, Callable[[Any, tamis.Table], Any]] = {
    "path": lambda spark, t: spark.read.format("tamis").load(t.path),
    "link": lambda spark, t: spark.read.format("tamis").load(linked(t)),
    "embedded scan": lambda spark, t: t.scan().to_spark(spark),
    "cached scan": lambda spark, t: t.scan().to_spark(spark).cache(),
    "scan of a link": lambda spark, t: tamis.open(linked(t)).scan("k < 100").to_spark(spark),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("read", READS)
@pytest.mark.push_cases(9)
def test_rows_of_an_older_version_do_not_replace_newer_ones(lake: Lake, read: str, write: str) -> None:
    """Frames by path keep the version of their analysis, on every Spark, and embedded scans that of their plan."""
    table = made(lake)
    old = READS[read](lake.spark, table)
    table.append(rows([9], 1))
    with pytest.raises(Exception, match=r"CONFLICT_READ.*make the DataFrame again"):
        WRITES[write](old.where("k >= 0"), table)
    assert table.refresh().scan("k = 9").count() == 1
    WRITES[write](READS[read](lake.spark, table.refresh()).where("k >= 0"), table)
    lake.spark.catalog.clearCache()


def test_a_scan_of_a_version_may_be_written_back(lake: Lake) -> None:
    """Whoever asks for a version knows that it is old."""
    table = made(lake)
    old = [table.scan(version=2).to_spark(lake.spark), tamis.open(table.path, version=2).scan().to_spark(lake.spark)]
    table.append(rows([9], 1))
    for df in old:
        assert table.refresh().append(df.where("k = 50")).rows_inserted == 1
    other = tamis.create(lake.folder / "db" / "other", table.schema)
    scan = table.refresh().scan().to_spark(lake.spark)
    table.append(rows([10], 1))
    assert other.append(scan).rows_inserted == 9


def test_a_scan_beside_a_commit_is_a_conflict(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an INSERT or a MERGE reads by an embedded scan counts as what it reads in SQL."""
    table = made(lake)
    df = table.scan("day = 1").to_spark(lake.spark)
    versions = meanwhile(monkeypatch, table, CHANGES["delete"])
    with pytest.raises(Exception, match="CONFLICT_READ"):
        df.writeTo(f"{lake.name}.db.t").append()
    assert versions == [table.refresh().version]


def test_a_table_that_is_replaced_by_its_rows_keeps_newer_ones(lake: Lake) -> None:
    """``writeTo`` analyzes the DataFrame again, on every Spark."""
    table = made(lake)
    old = lake.spark.read.format("tamis").load(table.path)
    table.append(rows([9], 1))
    old.writeTo(f"{lake.name}.db.t").using("tamis").createOrReplace()
    assert table.refresh().scan("k = 9").count() == 1


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("read", ["path", "embedded scan"])
@pytest.mark.push_cases(6)
def test_what_changes_no_row_leaves_frames_as_they_are(lake: Lake, read: str, write: str) -> None:
    table = made(lake)
    old = READS[read](lake.spark, table).where("k >= 0")
    before = table.refresh().version
    table.append(rows([9], 1).slice(0, 0))
    table.compact()
    lake.sql("ALTER TABLE lake.db.t SET TBLPROPERTIES ('owner.note' = 'x')")
    assert table.refresh().version > before
    WRITES[write](old, table)


def test_cached_rows_count_as_those_of_their_version(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(lake)
    query, plain = f"SELECT max(day) AS day FROM {lake.name}.db.t", row_change_job.commit_changes
    newest = lake.spark.sql(query).cache()
    newest.createOrReplaceTempView("newest")
    assert newest.collect()[0].day == 2

    def after_a_commit(*args: Any) -> Any:
        table.append(rows([60], 7))
        return plain(*args)

    with monkeypatch.context() as patched:
        patched.setattr("tamis.spark.write.row_level_operations.commit_changes", after_a_commit)
        statement = "MERGE INTO lake.db.t t USING newest s ON t.k = 0 WHEN MATCHED THEN UPDATE SET day = s.day"
        lake.refused(statement, "CONFLICT_READ")
    newest.unpersist()
    lake.spark.sql(query).createOrReplaceTempView("newest")
    lake.sql(statement)
    assert lake.rows("SELECT day FROM lake.db.t WHERE k = 0") == [(7,)]


def test_a_frame_of_a_catalog_may_be_used_again(lake: Lake) -> None:
    """A newer Spark reads the newest version each time; Spark 4.0 reads that of the frame, and its rows would be doubled."""
    made(lake)
    known = lake.spark.table(f"{lake.name}.db.t").select("k")
    for start in (4, 6, 5):
        batch = lake.spark.range(start, start + 3).selectExpr("CAST(id AS INT) AS k", "1 AS day")
        missing = batch.join(known, "k", "left_anti").select("k", "day")
        if start != 4 and not reads_newest(lake.spark):
            with pytest.raises(Exception, match="CONFLICT_READ"):
                missing.writeTo(f"{lake.name}.db.t").append()
            return
        missing.writeTo(f"{lake.name}.db.t").append()
    assert lake.rows("SELECT k FROM lake.db.t WHERE day = 1 ORDER BY k") == [(k,) for k in range(9)]


def test_a_merge_in_python_is_repeated_after_a_conflict(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(lake)
    source = lake.spark.sql("SELECT CAST(id AS INT) AS k, 1 AS day FROM range(4, 8)")
    versions = meanwhile(monkeypatch, table, CHANGES["append"])
    done = tamis.open(table.path).merge(source, on="target.k = source.k").when_not_matched_insert().execute()
    assert (done.version, done.rows_inserted) == (versions[0] + 1, 2)
    assert lake.rows("SELECT k FROM lake.db.t WHERE day = 1 ORDER BY k") == [(k,) for k in range(8)]
