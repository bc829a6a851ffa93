"""Each row of the task tables of the two "Coming from" pages, typed as it stands there.

A row without a case fails ``test_every_row_is_typed``; what a page says is refused is refused by name.
"""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import deltalake
import pyarrow as pa
import pytest
from tests.spark.capabilities import (
    needs_changes,
    needs_filled_columns,
    needs_syntax,
    newer_statements,
    reads_newest,
)
from tests.spark.conftest import Lake

import tamis
from tamis.errors import InvalidInput, SchemaFenced, TamisError

pytestmark = pytest.mark.spark

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("coming-from-delta.md", "coming-from-iceberg.md")
SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("state", pa.string())])
DAYS = [dt.date(2026, 1, 1) + dt.timedelta(days=n) for n in range(3)]


class Shop(NamedTuple):
    """``lake.db.t`` has the ids 0 to 5 of two commits, three days and the state ``open``, and is clustered by day."""

    lake: Lake

    @property
    def path(self) -> str:
        return str(self.lake.folder / "db" / "t")

    @property
    def name(self) -> str:
        return f"{self.lake.name}.db.t"

    def open(self) -> Any:
        return tamis.open(self.path)

    def ids(self, table: str = "t") -> list[int]:
        return sorted(tamis.open(self.lake.folder / "db" / table).scan().to_arrow()["id"].to_pylist())

    def frame(self, *ids: int, more: bool = False) -> Any:
        columns = ["id", "DATE'2026-01-01' AS day", "'new' AS state", *(["1 AS more"] if more else [])]
        return self.lake.spark.createDataFrame([(i,) for i in ids], "id BIGINT").selectExpr(*columns)

    def writer(self, *ids: int, more: bool = False, **options: str) -> Any:
        return self.frame(*ids, more=more).write.format("tamis").options(**options)

    def stream(self, **options: Any) -> Any:
        return self.lake.spark.readStream.format("tamis").options(**options).load(self.path)

    def drained(self, source: Any, checkpoint: str = "checkpoint", **options: Any) -> Any:
        place = str(self.lake.folder / checkpoint)
        return source.writeStream.trigger(availableNow=True).option("checkpointLocation", place).options(**options)

    def fails(self, act: Callable[[], Any], says: str) -> None:
        from pyspark.errors import PySparkException

        with pytest.raises((PySparkException, TamisError)) as caught:
            act()
        assert says in str(caught.value)


def rows_of(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "day": [DAYS[0]] * len(ids), "state": ["new"] * len(ids)}, schema=SCHEMA)


@pytest.fixture
def shop(lake: Lake) -> Shop:
    table = tamis.create(lake.folder / "db" / "t", SCHEMA, cluster_by=["day"])
    for start in (0, 3):
        table.append(
            pa.table({"id": range(start, start + 3), "day": DAYS, "state": ["open"] * 3}, schema=SCHEMA)
        )  # fmt: skip
    return Shop(lake)


def create_in_sql(shop: Shop) -> None:
    shop.lake.sql("CREATE TABLE lake.db.n (id BIGINT, ts TIMESTAMP) USING tamis CLUSTER BY (ts)")
    shop.lake.sql("CREATE OR REPLACE TABLE lake.db.n USING tamis AS SELECT id FROM lake.db.t")
    assert shop.ids("n") == [0, 1, 2, 3, 4, 5]
    with newer_statements(shop.lake.spark):
        shop.lake.sql("CREATE TABLE lake.db.like LIKE lake.db.t")
    assert shop.ids("like") == []


def attach_folder(shop: Shop) -> None:
    tamis.attach(shop.lake.spark, f"{shop.lake.name}b", shop.lake.folder)
    assert shop.lake.spark.table(f"{shop.lake.name}b.db.t").count() == 6
    shop.fails(lambda: shop.lake.sql("CREATE TABLE lake.db.n (id INT) LOCATION '/elsewhere'"), "LOCATION")


def create_in_python(shop: Shop) -> None:
    for n, schema in enumerate(("id BIGINT, ts TIMESTAMP", SCHEMA, shop.frame(1))):
        made = tamis.create(shop.lake.folder / f"made{n}", schema, cluster_by=["id"])
        assert made.scan().count() == 0


def open_by_path(shop: Shop) -> None:
    assert tamis.open(shop.path).scan().count() == 6


def read_and_write_by_path(shop: Shop) -> None:
    shop.writer(7).mode("append").save(shop.path)
    assert shop.lake.spark.read.format("tamis").load(shop.path).count() == 7
    shop.fails(lambda: shop.writer(8, partitionOverwriteMode="dynamic").mode("append").save(shop.path), "artition")
    shop.fails(lambda: shop.writer(8, noSuchOption="1").mode("append").save(shop.path), "nosuchoption")


def refuse_other_schemes(shop: Shop) -> None:
    for scheme in ("dbfs:/x", "hdfs://host/x"):
        with pytest.raises(InvalidInput, match="UNKNOWN_SCHEME"):
            tamis.open(scheme)
    assert shop.ids() == [0, 1, 2, 3, 4, 5]


def copy_by_query(shop: Shop) -> None:
    shop.lake.sql("CREATE TABLE lake.db.n USING tamis CLUSTER BY (day) AS SELECT * FROM lake.db.t")
    assert shop.ids("n") == shop.ids()


def copy_from_pyiceberg(shop: Shop) -> None:
    copy_by_query(shop)
    shop.open().append(pa.RecordBatchReader.from_batches(SCHEMA, rows_of(7).to_batches()))
    assert shop.ids() == [0, 1, 2, 3, 4, 5, 7]


def append_rows(shop: Shop) -> None:
    shop.lake.sql("INSERT INTO lake.db.t VALUES (6, NULL, NULL)")
    shop.writer(7).mode("append").save(shop.path)
    shop.frame(8).writeTo(shop.name).append()
    shop.open().append(rows_of(9))
    assert shop.ids() == list(range(10))


def overwrite_all(shop: Shop) -> None:
    shop.lake.sql("INSERT OVERWRITE lake.db.t VALUES (6, NULL, NULL)")
    assert shop.ids() == [6]
    shop.writer(7).mode("overwrite").save(shop.path)
    assert shop.ids() == [7]


def overwrite_some(shop: Shop) -> None:
    shop.writer(10, replaceWhere="day = '2026-01-01'").mode("overwrite").save(shop.path)
    assert shop.ids() == [1, 2, 4, 5, 10]
    shop.lake.sql("INSERT INTO lake.db.t REPLACE WHERE id = 10 VALUES (11, DATE'2026-01-01', 'x')")
    from pyspark.sql import functions as f

    shop.frame(12).writeTo(shop.name).overwrite(f.col("id") == 11)
    shop.open().overwrite(rows_of(13), "day = '2026-01-01'")
    assert shop.ids() == [1, 2, 4, 5, 13]
    shop.fails(lambda: shop.open().overwrite(rows_of(14), "day = '2026-01-02'"), "OUTSIDE_FILTER")
    shop.open().overwrite(rows_of(14), "day = '2026-01-02'", allow_outside=True)
    assert shop.ids() == [2, 5, 13, 14]
    option = {"replaceWhere": "id = 2"}
    shop.fails(lambda: shop.frame(2).write.options(**option).mode("overwrite").saveAsTable(shop.name), "replaceWhere")
    shop.fails(lambda: shop.frame(2).write.options(**option).insertInto(shop.name, True), "replaceWhere")


def overwrite_dynamically(shop: Shop) -> None:
    shop.fails(lambda: shop.frame(1).writeTo(shop.name).overwritePartitions(), "dynamic")
    shop.lake.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        shop.fails(lambda: shop.lake.sql("INSERT OVERWRITE lake.db.t VALUES (6, NULL, NULL)"), "dynamic")
    finally:
        shop.lake.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert shop.ids() == [0, 1, 2, 3, 4, 5]
    shop.lake.sql("INSERT OVERWRITE lake.db.t VALUES (6, NULL, NULL)")
    assert shop.ids() == [6]


def merge_rows(shop: Shop) -> None:
    shop.lake.sql(
        "MERGE INTO lake.db.t t USING (SELECT 5L AS id, 'm' AS state UNION ALL SELECT 6L, 'm') s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET state = s.state WHEN NOT MATCHED THEN INSERT (id, state) VALUES (s.id, s.state)"
    )
    merge = shop.open().merge(rows_of(6, 7), on="target.id = source.id")
    merge.when_matched_update({"state": "source.state"}).when_not_matched_insert().execute()
    shop.open().upsert(pa.table({"id": [0], "state": ["u"]}), on=["id"])
    found = shop.open().scan().to_arrow().sort_by("id")
    assert found["state"].to_pylist() == ["u", "open", "open", "open", "open", "m", "new", "new"]
    assert found["day"].to_pylist()[0] == DAYS[0]


def delete_and_update(shop: Shop) -> None:
    shop.lake.sql("DELETE FROM lake.db.t WHERE id = 0")
    shop.lake.sql("UPDATE lake.db.t SET state = 'x' WHERE id = 1")
    shop.open().delete("id = 2")
    shop.open().update({"state": "'y'"}, "id = 3")
    with pytest.raises(InvalidInput, match="all_rows"):
        shop.open().delete()
    assert shop.ids() == [1, 3, 4, 5]
    assert shop.open().scan().to_arrow().sort_by("id")["state"].to_pylist() == ["x", "y", "open", "open"]
    shop.open().delete(all_rows=True)
    assert shop.ids() == []


def keep_files_of_deletes(shop: Shop) -> None:
    before = set(Path(shop.path, "data").iterdir())
    shop.open().delete("id = 1")
    assert set(Path(shop.path, "data").iterdir()) == before
    shop.open().compact()
    assert sum(part["rows"] for part in shop.open().metadata("parts").to_pylist()) == 5


def write_stream(shop: Shop) -> None:
    shop.drained(shop.stream()).toTable(f"{shop.lake.name}.db.n").awaitTermination()
    assert shop.ids("n") == shop.ids()
    target = tamis.create(shop.lake.folder / "db" / "m", SCHEMA)
    writer = target.stream_writer(query="copy")
    shop.drained(shop.stream(), "other").foreachBatch(writer).start().awaitTermination()
    assert shop.ids("m") == shop.ids()
    grouped = shop.stream().groupBy("day").count()
    complete = shop.drained(grouped, "third").format("tamis").outputMode("complete")
    shop.fails(lambda: complete.start(shop.path).awaitTermination(), "ppend")


def repeat_batches(shop: Shop) -> None:
    target = tamis.create(shop.lake.folder / "db" / "n", SCHEMA)
    for _ in range(2):
        target.stream_writer(query="name")(shop.frame(1), 7)
    assert shop.ids("n") == [1]


def delete_beside_a_delete(shop: Shop) -> None:
    one, other = shop.open(), shop.open()
    one.delete("id = 0")
    other.delete("id = 1")
    assert shop.ids() == [2, 3, 4, 5]


def travel_in_time(shop: Shop) -> None:
    for frame in (
        shop.lake.sql("SELECT * FROM lake.db.t VERSION AS OF 1"),
        shop.lake.spark.read.option("versionAsOf", 1).table(shop.name),
        shop.lake.spark.read.format("tamis").option("versionAsOf", 1).load(shop.path),
    ):
        assert frame.count() == 3
    assert shop.lake.sql("SELECT * FROM lake.db.t TIMESTAMP AS OF '2999-01-01'").count() == 6
    assert tamis.open(shop.path, version=1).scan().count() == 3
    for option in ("snapshot-id", "as-of-timestamp", "branch", "tag"):
        reader = shop.lake.spark.read.format("tamis").option(option, "1")
        shop.fails(partial(reader.load, shop.path), "timestampAsOf" if "timestamp" in option else "versionAsOf")


def read_changes(shop: Shop) -> None:
    shop.open().update({"state": "'x'"}, "id = 5")
    kinds = ["delete", "insert"]
    assert sorted(shop.open().changes(2).to_arrow()["_change_type"].to_pylist()) == kinds
    by_call = shop.lake.sql("CALL lake.system.changes(table => 'db.t', from_version => 2)")
    assert sorted(row["_change_type"] for row in by_call.collect()) == kinds
    feed = {"readChangeFeed": "true", "startingVersion": "3", "endingVersion": "3"}
    assert shop.lake.spark.read.format("tamis").options(**feed).load(shop.path).count() == 2
    keyed = shop.lake.spark.read.format("tamis").options(**feed, keyColumns="id").load(shop.path)
    images = ["update_postimage", "update_preimage"]
    assert sorted(row["_change_type"] for row in keyed.collect()) == images
    shop.fails(
        lambda: shop.lake.spark.readStream.format("tamis").options(readChangeFeed="true").load(shop.path), "hange"
    )
    needs_changes(shop.lake.spark)
    assert shop.lake.sql(f"SELECT * FROM table_changes('{shop.name}', 3)").count() == 2
    assert shop.lake.sql(f"SELECT * FROM table_changes('{shop.name}', 3, NULL, 'id')").count() == 2
    assert shop.lake.sql("SELECT * FROM lake.db.t CHANGES FROM VERSION 3").count() == 2


def name_files(shop: Shop) -> None:
    wanted = ("file_path", "file_name", "file_size", "row_index")
    found = shop.lake.rows(f"SELECT {', '.join(f'_metadata.{name}' for name in wanted)} FROM lake.db.t WHERE id = 4")
    assert len(found) == 1
    assert found[0][1] in found[0][0]
    assert found[0][3] == 1


def read_stream(shop: Shop) -> None:
    def count(checkpoint: str, **options: Any) -> int:
        got: list[int] = []
        source = shop.drained(shop.stream(**options), checkpoint)
        source.foreachBatch(lambda batch, _: got.append(batch.count())).start().awaitTermination()
        return sum(got)

    assert count("a", startingVersion=2, maxFilesPerTrigger=1) == 3
    assert count("b", startingTimestamp="2001-01-01", maxBytesPerTrigger="1m") == 6
    shop.open().delete("id = 0")
    assert count("c", startingVersion=1, skipChangeCommits="true") in {5, 6}
    shop.fails(lambda: count("d", startingVersion=1), "skipChangeCommits")
    shop.fails(lambda: shop.stream(ignoreChanges="true"), "ignoreChanges")


def read_without_spark(shop: Shop) -> None:
    assert tamis.open(shop.path).scan("day = '2026-01-03'").to_arrow()["id"].to_pylist() == [2, 5]


def scan_in_python(shop: Shop) -> None:
    scan = shop.open().scan(row_filter="id > 0", selected_fields=("id",), version=2, limit=2, order_by=["id"])
    assert scan.to_arrow()["id"].to_pylist() == [1, 2]
    assert len(shop.open().scan().to_pandas()) == len(shop.open().scan().to_polars()) == 6
    assert len(shop.open().scan().to_duckdb().fetchall()) == shop.open().scan().count() == 6


def show_skipped(shop: Shop) -> None:
    shop.lake.rows("SELECT * FROM lake.db.t WHERE id > 4")
    assert tamis.reports()[-1].parts.kept == 1
    assert "parts" in shop.lake.rows("EXPLAIN SELECT * FROM lake.db.t WHERE id > 4")[0][0]
    completed = subprocess.run(
        [sys.executable, "-m", "tamis.cli.entry", "explain", shop.path, "id > 4"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert completed.returncode == 0, completed.stderr
    assert shop.open().explain("id > 4").parts.kept == 1
    assert len(shop.open().scan("id > 4").plan().parts) == 1


def list_metadata(shop: Shop) -> None:
    for name in ("snapshots", "parts", "segments", "history", "columns", "schemas"):
        assert shop.lake.rows(f"SELECT * FROM lake.db.t.{name}")
    for name in ("indexes", "constraints"):
        assert shop.lake.rows(f"SELECT * FROM lake.db.t.{name}") == []


def partition(shop: Shop) -> None:
    shop.fails(lambda: shop.lake.sql("CREATE TABLE lake.db.n (d DATE) USING tamis PARTITIONED BY (d)"), "CLUSTER BY")
    shop.lake.sql("CREATE TABLE lake.db.n (ts TIMESTAMP) USING tamis CLUSTER BY (ts)")
    for year in (2025, 2026):
        shop.lake.sql(f"INSERT INTO lake.db.n VALUES (TIMESTAMP'{year}-05-05 00:00:00')")
    found = tamis.open(shop.lake.folder / "db" / "n").explain("year(ts) = 2026")
    assert found.parts.skipped_stats + found.segments.by_stats >= 1


def change_clustering(shop: Shop) -> None:
    shop.lake.sql("ALTER TABLE lake.db.t CLUSTER BY (id)")
    assert shop.open().detail()["clustering_columns"].to_pylist() == [["id"]]
    shop.open().alter().cluster_by(["state"]).commit()
    assert shop.open().detail()["clustering_columns"].to_pylist() == [["state"]]


def compact_parts(shop: Shop) -> None:
    def parts_after(act: Callable[[], Any]) -> int:
        for n in range(8):  # two small parts are not worth a rewrite
            shop.open().append(rows_of(n))
        act()
        return len(shop.open().metadata("parts"))

    assert parts_after(lambda: shop.open().compact(dry_run=True)) == 10
    assert parts_after(lambda: shop.lake.sql("OPTIMIZE lake.db.t WHERE state >= 'new'")) == 1
    assert parts_after(lambda: shop.lake.sql("CALL lake.system.compact(table => 'db.t')")) == 1
    assert parts_after(lambda: shop.open().compact()) == 1


def z_order(shop: Shop) -> None:
    shop.lake.sql("OPTIMIZE lake.db.t ZORDER BY (id, state)")
    shop.open().append(rows_of(7))
    shop.open().compact(cluster_by=["id", "state"], curve="zorder")
    shop.lake.sql("CALL lake.system.compact(table => 'db.t', cluster_by => 'id, state', curve => 'zorder')")
    assert shop.ids() == [0, 1, 2, 3, 4, 5, 7]


def collect_statistics(shop: Shop) -> None:
    shop.lake.sql(
        "ALTER TABLE lake.db.t SET TBLPROPERTIES ('tamis.stats.budget_bytes' = '4096', 'tamis.stats.keep' = 'id')"
    )
    shop.fails(lambda: shop.lake.sql("ANALYZE TABLE lake.db.t COMPUTE STATISTICS"), "ANALYZE TABLE")
    assert shop.open().explain("state = 'closed'").parts.kept == 0


def index_a_column(shop: Shop) -> None:
    shop.lake.sql("CREATE INDEX i ON lake.db.t (state)")
    assert [index.name for index in shop.open().indexes()] == ["i"]


def merge_schema(shop: Shop) -> None:
    shop.writer(6, more=True, mergeSchema="true").mode("append").save(shop.path)
    shop.open().append(pa.table({"id": [7], "extra": ["e"]}), merge_schema=True)
    assert shop.open().schema.names == ["id", "day", "state", "more", "extra"]
    needs_filled_columns(shop.lake.spark)  # Spark's own error comes first there
    shop.fails(lambda: shop.frame(8).writeTo(shop.name).option("mergeSchema", "true").append(), "mergeSchema")
    statement = "INSERT WITH SCHEMA EVOLUTION INTO lake.db.t BY NAME SELECT 9L AS id, 'x' AS last"
    needs_syntax(shop.lake.spark, statement)
    shop.lake.sql(statement)
    assert shop.open().schema.names[-1] == "last"


def change_columns(shop: Shop) -> None:
    shop.lake.sql("ALTER TABLE lake.db.t RENAME COLUMN state TO status")
    shop.lake.sql("ALTER TABLE lake.db.t DROP COLUMN day")
    shop.open().alter().rename_column("status", "word").commit()
    assert shop.lake.rows("SELECT * FROM lake.db.t WHERE id = 1") == [(1, "open")]


def widen_type(shop: Shop) -> None:
    shop.lake.sql("CREATE TABLE lake.db.n (a INT, f FLOAT, d DECIMAL(5,2), day DATE) USING tamis")
    shop.lake.sql("INSERT INTO lake.db.n VALUES (1, 1.5, 2.25, DATE'2026-01-01')")
    for column, wider in {"a": "BIGINT", "f": "DOUBLE", "d": "DECIMAL(9,2)", "day": "TIMESTAMP_NTZ"}.items():
        shop.lake.sql(f"ALTER TABLE lake.db.n ALTER COLUMN {column} TYPE {wider}")
    from decimal import Decimal

    assert shop.lake.rows("SELECT * FROM lake.db.n") == [(1, 1.5, Decimal("2.25"), dt.datetime(2026, 1, 1))]


def replace_schema(shop: Shop) -> None:
    shop.writer(6, more=True, overwriteSchema="true").mode("overwrite").save(shop.path)
    assert shop.open().schema.names == ["id", "day", "state", "more"]
    frame = shop.frame(7).drop("state").write.option("overwriteSchema", "true").mode("overwrite")
    frame.saveAsTable(shop.name)
    assert shop.open().schema.names == ["id", "day"]
    shop.lake.sql("CREATE OR REPLACE TABLE lake.db.t AS SELECT 8L AS id")
    assert shop.ids() == [8]


def default_values(shop: Shop) -> None:
    shop.lake.sql("ALTER TABLE lake.db.t ADD COLUMN n INT DEFAULT 7")
    assert set(shop.open().scan().to_arrow()["n"].to_pylist()) == {7}


def fence_old_reader(shop: Shop) -> None:
    old = shop.lake.spark.table(shop.name)
    scan = shop.open()
    shop.lake.sql("ALTER TABLE lake.db.t DROP COLUMN state")
    shop.lake.sql("ALTER TABLE lake.db.t ADD COLUMN state INT")
    assert "state" in scan.schema.names
    if reads_newest(shop.lake.spark):
        shop.fails(old.collect, "FENCED_READD_DELETED")
    else:
        assert {row["state"] for row in old.collect()} == {"open"}  # the rows of its version
    with pytest.raises(SchemaFenced):
        scan.scan("state = 'open'").to_arrow()


def vacuum_files(shop: Shop) -> None:
    shop.lake.sql("VACUUM lake.db.t RETAIN 168 HOURS")
    shop.lake.sql("CALL lake.system.vacuum(table => 'db.t')")
    shop.open().vacuum("7d", dry_run=False)
    shop.fails(lambda: shop.lake.sql("VACUUM lake.db.t RETAIN 1 HOURS"), "below_retention")
    shop.lake.sql("CALL lake.system.vacuum(table => 'db.t', retention => '1h', below_retention => true)")
    assert shop.ids() == [0, 1, 2, 3, 4, 5]


def keep_log(shop: Shop) -> None:
    for n in range(20):
        shop.open().append(rows_of(100 + n))
    shop.open().vacuum("0s", dry_run=False, below_retention=True)
    assert len(list(Path(shop.path, "_tamis", "log").iterdir())) == shop.open().version + 1
    assert list(Path(shop.path, "_tamis", "rollup").iterdir())
    assert shop.open().scan().count() == 26


def restore_version(shop: Shop) -> None:
    shop.lake.sql("RESTORE lake.db.t TO VERSION AS OF 1")
    assert shop.ids() == [0, 1, 2]
    shop.open().restore(2)
    assert shop.ids() == [0, 1, 2, 3, 4, 5]
    shop.lake.sql("CALL lake.system.restore(table => 'db.t', version => 1)")
    assert shop.ids() == [0, 1, 2]


def show_history(shop: Shop) -> None:
    assert shop.lake.sql("DESCRIBE HISTORY lake.db.t").count() == 3
    assert shop.lake.sql("SELECT * FROM lake.db.t.history").count() == 3


def verify_files(shop: Shop) -> None:
    assert shop.open().verify().ok
    shop.lake.sql("CALL lake.system.verify(table => 'db.t')")
    completed = subprocess.run(
        [sys.executable, "-m", "tamis.cli.entry", "verify", shop.path], check=False, capture_output=True, text=True
    )
    assert completed.returncode == 0, completed.stderr


def _run(shop: Shop, statement: str) -> None:
    shop.lake.sql(statement).collect()


def follow_where_it_lies(shop: Shop) -> None:
    source = shop.lake.folder / "elsewhere"
    deltalake.write_deltalake(source, pa.table({"id": [1, 2]}))
    tamis.adopt(source, shop.lake.folder / "db" / "followed", follow=True)
    deltalake.write_deltalake(source, pa.table({"id": [3]}), mode="append")
    done = shop.lake.sql("CALL lake.system.sync('db.followed')").collect()[0].asDict()
    assert (done["commits"], done["source_version"]) == (1, "1")
    assert shop.ids("followed") == [1, 2, 3]
    name = f"{shop.lake.name}.db.followed"
    assert [r["id"] for r in shop.lake.sql(f"SELECT id FROM {name} WHERE id > 1 ORDER BY id").collect()] == [2, 3]
    for statement in (
        f"INSERT INTO {name} VALUES (4)",
        f"DELETE FROM {name} WHERE id = 1",
        f"UPDATE {name} SET id = 9 WHERE id = 1",
        f"MERGE INTO {name} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
        f"ALTER TABLE {name} ADD COLUMN more INT",
        f"TRUNCATE TABLE {name}",
        "CALL lake.system.compact('db.followed')",
    ):
        shop.fails(partial(_run, shop, statement), "FOLLOWING_TABLE")
    assert shop.ids("followed") == [1, 2, 3]


def analyze_adopted_files(shop: Shop) -> None:
    source = shop.lake.folder / "elsewhere"
    deltalake.write_deltalake(source, pa.table({"id": [1, 2], "body": ['{"a": 1}', '{"a": 2}']}))
    shop.lake.sql(f"CALL lake.system.adopt('{source}', 'db.adopted')").collect()
    done = shop.lake.sql("CALL lake.system.analyze('db.adopted')").collect()[0].asDict()
    assert (done["parts"], done["later"]) == (1, 0)
    assert tamis.open(shop.lake.folder / "db" / "adopted").explain("get_json_object(body, '$.a') = '3'").parts.kept == 0


def typed_elsewhere(shop: Shop) -> None:
    """Installation and object stores: a newcomer types them in a new environment, and their own tests run them."""
    assert tamis.__version__
    assert shop.ids() == [0, 1, 2, 3, 4, 5]


CASES: dict[str, Callable[[Shop], None]] = {
    "install": typed_elsewhere,
    "choose a catalog": attach_folder,
    "create a table": create_in_sql,
    "create from Python": create_in_python,
    "open by path": open_by_path,
    "open from Python": open_by_path,
    "read and write by path": read_and_write_by_path,
    "reach an object store": refuse_other_schemes,
    "convert a table": copy_by_query,
    "bring a table over": copy_from_pyiceberg,
    "use a table where it lies": follow_where_it_lies,
    "know more about adopted files": analyze_adopted_files,
    "append": append_rows,
    "overwrite all": overwrite_all,
    "overwrite some rows": overwrite_some,
    "overwrite by filter": overwrite_some,
    "overwrite partitions dynamically": overwrite_dynamically,
    "merge": merge_rows,
    "upsert": merge_rows,
    "delete, update": delete_and_update,
    "deletion vectors": keep_files_of_deletes,
    "copy-on-write or merge-on-read": keep_files_of_deletes,
    "write a stream": write_stream,
    "idempotent batches": repeat_batches,
    "concurrent writers": delete_beside_a_delete,
    "isolation": delete_beside_a_delete,
    "time travel": travel_in_time,
    "change data feed": read_changes,
    "changes": read_changes,
    "the file of a row": name_files,
    "read as a stream": read_stream,
    "read without Spark": read_without_spark,
    "scan in Python": scan_in_python,
    "see what was skipped": show_skipped,
    "what a scan would read": show_skipped,
    "metadata tables": list_metadata,
    "partition": partition,
    "cluster": change_clustering,
    "sort": change_clustering,
    "change the layout": change_clustering,
    "compact": compact_parts,
    "Z-order": z_order,
    "collect statistics": collect_statistics,
    "find single rows by another column": index_a_column,
    "Bloom filters": index_a_column,
    "add or widen columns while writing": merge_schema,
    "merge schemas while writing": merge_schema,
    "rename, drop": change_columns,
    "add, drop, rename, reorder": change_columns,
    "widen a type": widen_type,
    "widen": widen_type,
    "a reader with an older schema": fence_old_reader,
    "replace the schema": replace_schema,
    "default values": default_values,
    "defaults": default_values,
    "remove old files": vacuum_files,
    "expire snapshots, remove orphans": vacuum_files,
    "clean up the log": keep_log,
    "checkpoint": keep_log,
    "rewrite manifests": keep_log,
    "restore": restore_version,
    "roll back": restore_version,
    "history": show_history,
    "check the files": verify_files,
}


def tasks(page: str) -> list[str]:
    """The first cells of the rows of a page's task tables."""
    lines = (DOCS / page).read_text().splitlines()
    found = [re.split(r"(?<!\\)\|", line)[1].strip() for line in lines if line.startswith("| ")]
    return [task for task in found if task not in {"task", "---"}]


@pytest.mark.parametrize("page", PAGES)
def test_every_row_is_typed(page: str) -> None:
    assert sorted(set(tasks(page)) - set(CASES)) == []
    assert len(tasks(page)) > 20


def test_no_case_is_left_over() -> None:
    assert set(CASES) == {task for page in PAGES for task in tasks(page)}


@pytest.mark.parametrize("case", [pytest.param(f, id=f.__name__) for f in dict.fromkeys(CASES.values())])
@pytest.mark.push_cases(6)
def test_a_row_does_what_it_says(shop: Shop, case: Callable[[Shop], None]) -> None:
    case(shop)
