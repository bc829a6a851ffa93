"""A MERGE whose source is not the same twice: keys and rows come from one computation of it, so that no key is doubled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.conftest import Lake

import tamis
from tamis.core import expr
from tamis.spark.catalog.spark_table import SparkTable
from tamis.spark.jvm_bridge.adapter import bridge_of
from tamis.spark.scan.scan_builder import scan_builder
from tamis.spark.scan.spark_scan import Scan
from tamis.spark.write import dml_by_path
from tamis.spark.write.row_change_job import collect_changes
from tamis.storage.commit_log import load
from tamis.storage.object_store import open_store

pytestmark = pytest.mark.spark
MERGE = "MERGE INTO lake.db.t t USING moving s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"


@pytest.fixture
def made(lake: Lake) -> Lake:
    """Ids 0 to 99 in four parts."""
    table = tamis.create(
        lake.folder / "db" / "t", pa.schema([("id", pa.int64()), ("v", pa.int64())]), cluster_by=["id"]
    )
    for part in range(4):
        table.append(pa.table({"id": range(part * 25, part * 25 + 25), "v": [0] * 25}))
    return lake


def moved(rows: Any, folder: Path) -> list[tuple[int, int]]:
    """Ten ids that lie elsewhere at each computation of a partition: 0 to 9, 25 to 34, 50 to 59, 75 to 84, 0 to 9 …"""
    list(rows)
    runs = len(list(folder.iterdir()))
    (folder / str(runs)).touch()
    return [(runs % 4 * 25 + i, 1) for i in range(10)]


def moving_rdd(lake: Lake, folder: Path) -> Any:
    rdd = lake.spark.sparkContext.parallelize([0], 1).mapPartitions(lambda rows: moved(rows, folder))
    return lake.spark.createDataFrame(rdd, "id long, v long")


def moving_function(lake: Lake, folder: Path) -> Any:
    """Catalyst takes a Python function for deterministic unless it is told otherwise."""
    from pyspark.sql.functions import explode, udf

    function = udf(lambda _: [i for i, _ in moved((), folder)], "array<long>")
    return lake.spark.range(0, 1, 1, 1).select(explode(function("id")).alias("id")).selectExpr("id", "1L AS v")


@pytest.mark.parametrize("source", [moving_rdd, moving_function])
@pytest.mark.parametrize("how", ["sql", "upsert"])
@pytest.mark.push_cases(2)
def test_a_source_that_changes_between_computations_doubles_no_key(
    made: Lake, tmp_path: Path, source: Any, how: str
) -> None:
    folder = tmp_path / "computations"
    folder.mkdir()
    df = source(made, folder)
    if how == "sql":
        df.createOrReplaceTempView("moving")
        made.sql(MERGE)
    else:
        tamis.open(made.folder / "db" / "t").upsert(df, on=["id"])
    ids = [row[0] for row in made.rows("SELECT id FROM lake.db.t")]
    assert len(list(folder.iterdir())) >= 1
    assert len(ids) == len(set(ids)) == 100
    assert made.rows("SELECT count(*) FROM lake.db.t WHERE v = 1") == [(10,)]
    (merge,) = list(tamis.open(made.folder / "db" / "t").history(1).to_pylist())
    assert dict(merge["metrics"])["parts_read"] == 1, "its keys still prune the target"


def doubling_rdd(lake: Lake, folder: Path) -> Any:
    """Distinct keys at the first computation of the partition, and one key twice afterwards."""

    def rows(given: Any) -> list[tuple[int, int]]:
        list(given)
        runs = len(list(folder.iterdir()))
        (folder / str(runs)).touch()
        return [(500, 1), (500 if runs else 501, 1)]

    return lake.spark.createDataFrame(
        lake.spark.sparkContext.parallelize([0], 1).mapPartitions(rows), "id long, v long"
    )


@pytest.mark.parametrize("parts", [4, 1])
def test_the_rows_that_were_tested_for_duplicates_are_those_that_are_merged(
    made: Lake, tmp_path: Path, parts: int
) -> None:
    folder = tmp_path / "computations"
    folder.mkdir()
    table = tamis.open(made.folder / "db" / "t")
    if parts == 1:
        table.compact()
    held = len(made.spark.sparkContext._jsc.getPersistentRDDs())
    table.upsert(doubling_rdd(made, folder), on=["id"])
    assert made.rows("SELECT id FROM lake.db.t WHERE id >= 100 ORDER BY id") == [(500,), (501,)]
    assert len(list(folder.iterdir())) == 1
    assert len(made.spark.sparkContext._jsc.getPersistentRDDs()) <= held


def test_a_table_that_changes_after_the_test_for_duplicates_doubles_no_key(
    made: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each statement over a table of a catalog reads the newest version."""
    made.sql("CREATE TABLE lake.db.staging AS SELECT 500L AS id, 1L AS v")
    check_unique = dml_by_path._check_unique

    def then_appended(*given: Any) -> None:
        check_unique(*given)
        tamis.open(made.folder / "db" / "staging").append(pa.table({"id": [500], "v": [2]}))

    monkeypatch.setattr(dml_by_path, "_check_unique", then_appended)
    tamis.open(made.folder / "db" / "t").upsert(made.sql("SELECT * FROM lake.db.staging"), on=["id"])
    assert made.rows("SELECT id, v FROM lake.db.t WHERE id >= 100") == [(500, 1)]


@pytest.mark.parametrize("grouped", [False, True])
def test_a_source_of_older_rows_of_the_table_itself_is_computed_again(
    made: Lake, monkeypatch: pytest.MonkeyPatch, *, grouped: bool
) -> None:
    """Another commit lands between the computation and the MERGE: the new values depend on what it wrote."""
    check_unique, checks = dml_by_path._check_unique, []
    table = tamis.open(made.folder / "db" / "t")

    def then_updated(*given: Any) -> None:
        check_unique(*given)
        checks.append(given)
        if len(checks) == 1:
            tamis.open(made.folder / "db" / "t").update({"v": "100"}, "id = 7")

    monkeypatch.setattr(dml_by_path, "_check_unique", then_updated)
    source = made.sql("SELECT * FROM lake.db.t").where("id = 7")
    source = source.groupBy("id").agg({"v": "max"}).toDF("id", "v") if grouped else source
    table.upsert(source.selectExpr("id", "v + 1 AS v"), on=["id"])
    assert made.rows("SELECT v FROM lake.db.t WHERE id = 7") == [(101,)]
    assert len(checks) == 2


@pytest.mark.parametrize("offset", [80, 200])
def test_a_commit_during_the_merge_of_a_held_source_starts_it_again(
    made: Lake, monkeypatch: pytest.MonkeyPatch, offset: int
) -> None:
    """The source read other rows of the table than those that its keys match; or all of its rows are new."""
    attempts: list[Any] = []

    def after_update(*given: Any, **named: Any) -> Any:
        found = collect_changes(*given, **named)
        attempts.append(given)
        if len(attempts) == 1:
            tamis.open(made.folder / "db" / "t").update({"v": "100"}, "id = 3")
        return found

    monkeypatch.setattr("tamis.spark.write.row_level_operations.collect_changes", after_update)
    source = made.sql(f"SELECT id + {offset} AS id, v + 1 AS v FROM lake.db.t WHERE id < 10")
    tamis.open(made.folder / "db" / "t").upsert(source, on=["id"])
    assert made.rows(f"SELECT v FROM lake.db.t WHERE id = {offset} + 3") == [(101,)]
    assert len(attempts) == 2


def test_files_that_are_replaced_meanwhile(made: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tamis.spark.write import merge_pruning

    path = str(tmp_path / "staged")
    made.spark.range(10).selectExpr("id", "1L AS v").write.parquet(path)
    values = merge_pruning._values

    def replaced(keys: Any) -> Any:
        found = values(keys)
        made.spark.range(50, 60).selectExpr("id", "1L AS v").write.mode("overwrite").parquet(path)
        return found

    monkeypatch.setattr(merge_pruning, "_values", replaced)
    made.spark.read.parquet(path).createOrReplaceTempView("moving")
    made.sql(MERGE)
    ids = [row[0] for row in made.rows("SELECT id FROM lake.db.t")]
    assert len(ids) == len(set(ids)) == 100
    assert sorted(row[0] for row in made.rows("SELECT id FROM lake.db.t WHERE v = 1")) == list(range(10))


def lose_rows(made: Lake, monkeypatch: pytest.MonkeyPatch, *, times: int, before_keys: bool = False) -> None:
    """Let Spark forget the blocks of the source's rows once its keys are known, or before, as if their executor were gone."""
    from tamis.spark.write import merge_pruning

    values, losses = merge_pruning._values, iter(range(times))

    def forget() -> None:
        if next(losses, None) is not None:
            for rdd in dict(made.spark.sparkContext._jsc.getPersistentRDDs()).values():
                rdd.unpersist(True)

    def lost(keys: Any) -> Any:
        if before_keys:
            forget()
            return values(keys)
        found = values(keys)
        forget()
        return found

    monkeypatch.setattr(merge_pruning, "_values", lost)


def run_merge(made: Lake, source: Any, how: str) -> None:
    if how == "sql":
        source.createOrReplaceTempView("moving")
        made.sql(MERGE)
    else:
        tamis.open(made.folder / "db" / "t").upsert(source, on=["id"])


@pytest.mark.parametrize(
    ("how", "times", "before_keys"), [("sql", 1, False), ("sql", 1, True), ("sql", 3, False), ("upsert", 3, False)]
)
def test_a_source_whose_rows_are_lost_is_computed_again(
    made: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, times: int, before_keys: bool
) -> None:
    """Each computation has other keys: rows of one must not meet a target that was pruned by those of another."""
    folder = tmp_path / "computations"
    folder.mkdir()
    lose_rows(made, monkeypatch, times=times, before_keys=before_keys)
    held = len(made.spark.sparkContext._jsc.getPersistentRDDs())
    run_merge(made, moving_rdd(made, folder), how)
    assert len(made.spark.sparkContext._jsc.getPersistentRDDs()) <= held, "no attempt keeps its rows"
    last = len(list(folder.iterdir())) - 1
    assert last == times
    ids = [row[0] for row in made.rows("SELECT id FROM lake.db.t")]
    assert len(ids) == len(set(ids)) == 100
    changed = sorted(row[0] for row in made.rows("SELECT id FROM lake.db.t WHERE v = 1"))
    assert changed == list(range(last % 4 * 25, last % 4 * 25 + 10))
    (merge,) = list(tamis.open(made.folder / "db" / "t").history(1).to_pylist())
    assert dict(merge["metrics"])["parts_read"] == 1, "the keys of the last computation prune the target"


def test_a_later_source_may_have_too_many_keys(made: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tamis.spark.write import merge_pruning

    folder = tmp_path / "computations"
    folder.mkdir()
    lose_rows(made, monkeypatch, times=1)
    lost, calls = merge_pruning._values, []

    def no_keys_later(keys: Any) -> Any:
        calls.append(lost(keys))
        return calls[0] if len(calls) == 1 else None

    monkeypatch.setattr(merge_pruning, "_values", no_keys_later)
    run_merge(made, moving_rdd(made, folder), "sql")
    ids = [row[0] for row in made.rows("SELECT id FROM lake.db.t")]
    assert len(calls) == 2
    assert len(ids) == len(set(ids)) == 100
    assert sorted(row[0] for row in made.rows("SELECT id FROM lake.db.t WHERE v = 1")) == list(range(25, 35))


@pytest.mark.parametrize("how", ["sql", "upsert"])
def test_a_source_that_is_lost_each_time_is_named(
    made: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    folder = tmp_path / "computations"
    folder.mkdir()
    source = moving_rdd(made, folder)
    with monkeypatch.context() as patch:
        lose_rows(made, patch, times=100)
        with pytest.raises(Exception, match=r"SOURCE_ROWS_LOST.*Run the statement again") as caught:
            run_merge(made, source, how)
    assert how == "sql" or isinstance(caught.value, tamis.Conflict)
    assert len(list(folder.iterdir())) == 4
    assert made.rows("SELECT count(*) FROM lake.db.t WHERE v = 1") == [(0,)]
    assert tamis.open(made.folder / "db" / "t").version == 4


def test_rows_that_the_user_has_checkpointed_are_not_computed_again(
    made: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tamis.spark.write import merge_pruning

    folder = tmp_path / "computations"
    folder.mkdir()
    prune_target, attempts = merge_pruning.prune_target, []

    def counted(*given: Any) -> Any:
        attempts.append(given)
        return prune_target(*given)

    monkeypatch.setattr(merge_pruning, "prune_target", counted)
    source = moving_rdd(made, folder).localCheckpoint()
    for rdd in dict(made.spark.sparkContext._jsc.getPersistentRDDs()).values():
        rdd.unpersist(True)
    with pytest.raises(Exception, match=r"SOURCE_ROWS_LOST.*checkpoint it again"):
        run_merge(made, source, "sql")
    assert len(attempts) == 1


def test_another_error_of_the_source_is_raised_as_it_is(made: Lake, tmp_path: Path) -> None:
    from pyspark.sql.functions import udf

    folder = tmp_path / "computations"
    folder.mkdir()

    def fail() -> Any:
        moved((), folder)
        raise ValueError("CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND is the name of an error of Spark")

    source = (
        made.spark.range(0, 1, 1, 1).select(udf(lambda _: fail(), "long")("id").alias("id")).selectExpr("id", "1L AS v")
    )
    with pytest.raises(Exception, match=r"is the name of an error of Spark"):
        run_merge(made, source, "sql")
    assert len(list(folder.iterdir())) == 1


def test_several_source_rows_may_delete_the_same_row(made: Lake) -> None:
    """Spark allows it where an unconditional DELETE is the only clause of matched rows; so does the embedded merge."""
    made.sql(
        "MERGE INTO lake.db.t t USING (SELECT explode(array(3, 3, 60)) AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    )
    assert made.rows("SELECT count(*) FROM lake.db.t WHERE id IN (3, 60)") == [(0,)]
    assert made.rows("SELECT count(*) FROM lake.db.t") == [(98,)]
    (merge,) = list(tamis.open(made.folder / "db" / "t").history(1).to_pylist())
    assert dict(merge["metrics"])["rows_deleted"] == 2
    made.refused(
        "MERGE INTO lake.db.t t USING (SELECT explode(array(4, 4)) AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 1",
        "MERGE_CARDINALITY_VIOLATION",
    )


def test_a_scan_that_is_narrowed_later_describes_the_narrow_plan(lake: Lake) -> None:
    """What Java knows of a scan when it is made must not be what narrowing changes."""
    lake.sql("CREATE TABLE lake.db.narrowed AS SELECT id AS n FROM range(10)")
    owner, store = bridge_of(lake.spark), open_store(lake.folder / "db" / "narrowed")
    table, built = SparkTable(owner, store, load(store), ("lake", "db", "narrowed")), list[Scan]()
    no_options = owner.new("org.apache.spark.sql.util.CaseInsensitiveStringMap", owner.map({}))
    made = scan_builder(owner, table, no_options, built).build()
    built[0].apply_join_keys((expr.parse_predicate("n > 5", table.logical_schema),))
    assert "n > 5" in made.description()
