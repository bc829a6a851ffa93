"""Type what you know: what users of Spark write first, in SQL and with DataFrames, and what comes of it.

Each case finds ``lake.db.t`` with the ids 0, 1, 2 and nothing else; it ends with an answer, with the ids of a table, or with an error that names what is wrong.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from tests.spark.capabilities import needs_filled_columns, needs_views, newer_statements
from tests.spark.conftest import Lake

import tamis


class Ids(NamedTuple):
    """The rows that a table has afterwards, as its reader without Spark sees them."""

    ids: list[int | None]
    table: str = "t"


class Refused(NamedTuple):
    condition: str
    says: str


Call = Callable[["Known"], Any]


class Known(NamedTuple):
    """What a case works with: the catalog, and a DataFrame of the ids 7 and 8."""

    lake: Lake
    df: Any

    def path(self, table: str) -> str:
        return str(self.lake.folder / "db" / table)

    def name(self, table: str) -> str:
        return f"{self.lake.name}.db.{table}"

    def save(self, table: str, *, mode: str = "errorifexists", **options: str) -> None:
        self.df.write.mode(mode).options(**options).saveAsTable(self.name(table))

    def save_path(self, table: str, *, mode: str = "errorifexists", **options: str) -> None:
        self.df.write.format("tamis").mode(mode).options(**options).save(self.path(table))

    def wider(self) -> Any:
        return self.df.withColumn("more", column("id")).write.format("tamis")

    def to(self, table: str) -> Any:
        return self.df.writeTo(self.name(table))

    def read(self, **options: Any) -> Any:
        return self.lake.spark.read.options(**options)

    def load(self, **options: Any) -> list[int]:
        return ids(self.read(**options).format("tamis").load(self.path("t")))

    def stream(self, start: Callable[[Any], Any], checkpoint: str = "ck") -> None:
        """Runs the table as a stream into what ``start`` makes of a writer, until nothing is left."""
        source = self.lake.spark.readStream.format("tamis").load(self.path("t"))
        writer = source.writeStream.trigger(availableNow=True).option(
            "checkpointLocation", str(self.lake.folder / checkpoint)
        )
        query = start(writer)
        query.awaitTermination()

    def twice(self) -> None:
        """A stream that ends after its commit and before Spark's: the epoch comes again."""
        self.stream(lambda w: w.toTable(self.name("new")))
        for mark in (self.lake.folder / "ck" / "commits").iterdir():
            mark.unlink()
        self.stream(lambda w: w.toTable(self.name("new")))


def ids(df: Any) -> list[int]:
    return sorted(row.id for row in df.collect())


def cached(k: Known) -> Any:
    """What the cache answers before and after a write."""
    k.lake.sql("CACHE TABLE lake.db.t")
    before = k.lake.rows("SELECT max(id) FROM lake.db.t")
    k.lake.sql("INSERT INTO lake.db.t VALUES (7, 'n')")
    after = k.lake.rows("SELECT max(id) FROM lake.db.t")
    k.lake.sql("UNCACHE TABLE lake.db.t")
    k.lake.spark.catalog.clearCache()  # Spark 4.0 keeps the rows of the version before
    return [before, after]


def clustered(k: Known) -> Any:
    k.df.write.format("tamis").clusterBy("id").save(k.path("new"))
    return [tamis.open(k.path("new")).detail().column("clustering_columns")[0].as_py(), stored(k, "new")]


def column(name: str) -> Any:
    from pyspark.sql import functions as f

    return f.col(name)


WRITES: dict[str, tuple[str | Call, Any]] = {
    # --- DataFrameWriter, by name ---
    "saveAsTable": (lambda k: k.save("new"), Ids([7, 8], "new")),
    "saveAsTable error": (lambda k: k.save("t"), Refused("TABLE_OR_VIEW_ALREADY_EXISTS", "`t`")),
    "saveAsTable append": (lambda k: k.save("t", mode="append"), Ids([0, 1, 2, 7, 8])),
    "saveAsTable overwrite": (lambda k: k.save("t", mode="overwrite"), Ids([7, 8])),
    "saveAsTable ignore": (lambda k: k.save("t", mode="ignore"), Ids([0, 1, 2])),
    "saveAsTable tamis": (lambda k: k.df.write.format("tamis").saveAsTable(k.name("new")), Ids([7, 8], "new")),
    "saveAsTable csv": (
        lambda k: k.df.write.format("csv").saveAsTable(k.name("new")),
        Refused("UNSUPPORTED_STATEMENT", "USING csv"),
    ),
    "saveAsTable partitionBy": (
        lambda k: k.df.write.partitionBy("id").saveAsTable(k.name("new")),
        Refused("UNSUPPORTED_STATEMENT", "CLUSTER BY"),
    ),
    "saveAsTable replaceWhere": (
        lambda k: k.save("t", mode="overwrite", replaceWhere="id = 1"),
        Refused("BAD_OPTION", "replaceWhere"),
    ),
    "insertInto": (lambda k: k.df.write.insertInto(k.name("t")), Ids([0, 1, 2, 7, 8])),
    "insertInto overwrite": (lambda k: k.df.write.insertInto(k.name("t"), overwrite=True), Ids([7, 8])),
    "insertInto replaceWhere": (
        lambda k: k.df.write.option("replaceWhere", "id = 1").insertInto(k.name("t"), overwrite=True),
        Refused("BAD_OPTION", "replaceWhere"),
    ),
    # --- DataFrameWriterV2 ---
    "writeTo create": (lambda k: k.to("new").create(), Ids([7, 8], "new")),
    "writeTo create again": (lambda k: k.to("t").create(), Refused("TABLE_OR_VIEW_ALREADY_EXISTS", "`t`")),
    "writeTo createOrReplace": (lambda k: k.to("t").using("tamis").createOrReplace(), Ids([7, 8])),
    "writeTo replace": (lambda k: k.to("t").replace(), Ids([7, 8])),
    "writeTo replace nothing": (lambda k: k.to("new").replace(), Refused("TABLE_OR_VIEW_NOT_FOUND", "`new`")),
    "writeTo append": (lambda k: k.to("t").append(), Ids([0, 1, 2, 7, 8])),
    "writeTo overwrite": (lambda k: k.to("t").overwrite(column("id") < 2), Ids([2, 7, 8])),
    "writeTo overwritePartitions": (
        lambda k: k.to("t").overwritePartitions(),
        Refused("UNSUPPORTED_FEATURE.TABLE_OPERATION", "dynamic"),
    ),
    "writeTo partitionedBy": (
        lambda k: k.to("new").partitionedBy(column("id")).create(),
        Refused("UNSUPPORTED_STATEMENT", "CLUSTER BY"),
    ),
    "writeTo clusterBy": (lambda k: k.to("new").clusterBy("id").create(), Ids([7, 8], "new")),
    # --- by path ---
    "save": (lambda k: k.save_path("new"), Ids([7, 8], "new")),
    "save error": (lambda k: k.save_path("t"), Refused("TABLE_EXISTS", "append")),
    "save append": (lambda k: k.save_path("t", mode="append"), Ids([0, 1, 2, 7, 8])),
    "save overwrite": (lambda k: k.save_path("t", mode="overwrite"), Ids([7, 8])),
    "save replaceWhere": (
        lambda k: k.save_path("t", mode="overwrite", replaceWhere="id = 1"),
        Refused("OUTSIDE_FILTER", "id = 1"),
    ),
    "save ignore": (lambda k: k.save_path("t", mode="ignore"), Ids([0, 1, 2])),
    "save partitionBy": (
        lambda k: k.df.write.format("tamis").partitionBy("id").save(k.path("new")),
        Refused("UNSUPPORTED_STATEMENT", "clusterBy"),
    ),
    "save clusterBy": (clustered, [["id"], [7, 8]]),
    "save mergeSchema": (
        lambda k: k.wider().mode("append").option("mergeSchema", "true").save(k.path("t")),
        Ids([0, 1, 2, 7, 8]),
    ),
    "save wider": (lambda k: k.wider().mode("append").save(k.path("t")), Refused("DATA_MISMATCH", "`more`")),
    "save option": (
        lambda k: k.save_path("new", **{"tamis.write.part_bytes": "1MB"}),
        Refused("BAD_OPTION", "tamis.write.part_bytes"),
    ),
    # --- streams ---
    "toTable": (lambda k: k.twice(), Ids([0, 1, 2], "new")),
    "start": (lambda k: k.stream(lambda w: w.format("tamis").start(k.path("t"))), Ids([0, 0, 1, 1, 2, 2])),
    # --- SQL ---
    "INSERT too few": (
        "INSERT INTO lake.db.t VALUES (7)",
        Refused("INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS", "`id`, `s`"),
    ),
    "INSERT BY NAME": ("INSERT INTO lake.db.t BY NAME SELECT 'n' AS s, 7L AS id", Ids([0, 1, 2, 7])),
    "INSERT BY wrong NAME": (
        "INSERT INTO lake.db.t BY NAME SELECT 7L AS idd",
        Refused("INCOMPATIBLE_DATA_FOR_TABLE.EXTRA_COLUMNS", "`idd`"),
    ),
    "INSERT dotted": (
        "CREATE TABLE lake.db.new (id BIGINT, `a.b` STRING, `c``d` INT); INSERT INTO lake.db.new VALUES (7, 'n', 1); UPDATE lake.db.new SET `a.b` = 'm'",
        Ids([7], "new"),
    ),
    "TRUNCATE": ("TRUNCATE TABLE lake.db.t", Ids([])),
    "CTAS parquet": ("CREATE TABLE lake.db.new USING parquet AS SELECT 7L AS id", Ids([7], "new")),
    "CREATE orc": ("CREATE TABLE lake.db.new (id BIGINT) USING orc", Refused("UNSUPPORTED_STATEMENT", "USING orc")),
    "CREATE PARTITIONED": (
        "CREATE TABLE lake.db.new (id BIGINT, d DATE) PARTITIONED BY (d)",
        Refused("UNSUPPORTED_STATEMENT", "CLUSTER BY"),
    ),
    "CREATE LOCATION": (
        "CREATE TABLE lake.db.new (id BIGINT) LOCATION '/elsewhere'",
        Refused("UNSUPPORTED_STATEMENT", "LOCATION"),
    ),
    "CALL NULL": ("CALL lake.system.vacuum(table => 'db.t', dry_run => NULL)", Refused("BAD_OPTION", "dry_run")),
    "CALL NULL version": (
        "CALL lake.system.restore(table => 'db.t', version => NULL)",
        Refused("BAD_OPTION", "version"),
    ),
}

READS: dict[str, tuple[str | Call, Any]] = {
    "format table": (lambda k: ids(k.read().format("tamis").table(k.name("t"))), [0, 1, 2]),
    "versionAsOf": (lambda k: ids(k.read(versionAsOf=0).table(k.name("t"))), []),
    "timestampAsOf": (lambda k: ids(k.read(timestampAsOf="2999-01-01").table(k.name("t"))), [0, 1, 2]),
    "timestampAsOf before": (
        lambda k: ids(k.read(timestampAsOf="1999-01-01").table(k.name("t"))),
        Refused("VERSION_NOT_FOUND", "1999"),
    ),
    "load": (lambda k: k.load(), [0, 1, 2]),
    "load filtered": (lambda k: k.read().format("tamis").load(k.path("t")).where("id > 0").count(), 2),
    "load in another session": (
        lambda k: ids(k.lake.spark.newSession().read.format("tamis").load(k.path("t"))),
        [0, 1, 2],
    ),
    "load version": (lambda k: k.load(version=0), []),
    "load versionAsOf": (lambda k: k.load(versionAsOf=1), [0, 1, 2]),
    "load versionAsOf odd": (lambda k: k.load(versionAsOf="main"), Refused("BAD_VERSION", "main")),
    "load timestampAsOf": (lambda k: k.load(timestampAsOf="2999-01-01"), [0, 1, 2]),
    "load both": (lambda k: k.load(versionAsOf=1, timestampAsOf="2999-01-01"), Refused("TWO_VERSIONS", "timestamp")),
    "load power of two": (lambda k: k.load(versionAsOf="²"), Refused("BAD_VERSION", "²")),
    "load nothing": (lambda k: k.read().format("tamis").load(k.path("new")), Refused("TABLE_NOT_FOUND", "new")),
    "load several": (
        lambda k: k.read().format("tamis").load([k.path("t"), k.path("t")]),
        Refused("BAD_OPTION", "Several paths"),
    ),
    "load nowhere": (lambda k: k.read().format("tamis").load(), Refused("BAD_OPTION", "path")),
    "listTables": (lambda k: [t.name for t in k.lake.spark.catalog.listTables(f"{k.lake.name}.db")], ["t"]),
    "listColumns": (lambda k: [c.name for c in k.lake.spark.catalog.listColumns(k.name("t"))], ["id", "s"]),
    "tableExists": (lambda k: [k.lake.spark.catalog.tableExists(k.name(t)) for t in ("t", "new")], [True, False]),
    "CTE": ("WITH c AS (SELECT * FROM lake.db.t WHERE id > 0) SELECT id FROM c ORDER BY id", [(1,), (2,)]),
    "TEMP VIEW": (
        "CREATE OR REPLACE TEMP VIEW habit AS SELECT id FROM lake.db.t WHERE id > 1; SELECT * FROM habit",
        [(2,)],
    ),
    "CREATE LIKE": (
        "CREATE TABLE lake.db.new (id BIGINT) TBLPROPERTIES ('k' = 'v'); CREATE TABLE lake.db.like LIKE lake.db.new; SHOW TBLPROPERTIES lake.db.like",
        [("k", "v"), ("tamis.format", "parquet")],
    ),
    "VIEW": ("CREATE VIEW lake.db.v AS SELECT id FROM lake.db.t WHERE id > 1; SELECT * FROM lake.db.v", [(2,)]),
    "CACHE": (cached, [[(2,)], [(7,)]]),
    "OPTIMIZE": ("OPTIMIZE lake.db.t", Ids([0, 1, 2])),
    "ANALYZE": (
        "ANALYZE TABLE lake.db.t COMPUTE STATISTICS",
        Refused("NOT_SUPPORTED_COMMAND_FOR_V2_TABLE", "ANALYZE TABLE"),
    ),
    "MSCK": ("MSCK REPAIR TABLE lake.db.t", Refused("NOT_SUPPORTED_COMMAND_FOR_V2_TABLE", "MSCK REPAIR TABLE")),
    "SHOW PARTITIONS": (
        "SHOW PARTITIONS lake.db.t",
        Refused("INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED", "`t`"),
    ),
    "SHOW TABLES": ("SHOW TABLES IN lake.db", [("db", "t", False)]),
    "SHOW COLUMNS": ("SHOW COLUMNS IN lake.db.t", [("id",), ("s",)]),
    "SHOW TBLPROPERTIES": ("SHOW TBLPROPERTIES lake.db.t", [("tamis.format", "parquet")]),
    "SHOW CREATE TABLE": (lambda k: "USING tamis" in k.lake.rows("SHOW CREATE TABLE lake.db.t")[0][0], True),
    "DESCRIBE": ("DESCRIBE lake.db.t", [("id", "bigint", None), ("s", "string", None)]),
    "DESCRIBE EXTENDED": (lambda k: ("Provider", "tamis", "") in k.lake.rows("DESCRIBE EXTENDED lake.db.t"), True),
    "DESCRIBE HISTORY": ("DESCRIBE HISTORY lake.db.t", Ids([0, 1, 2])),
    "history": ("SELECT operation FROM lake.db.t.history ORDER BY version", [("create",), ("append",)]),
}


@pytest.fixture(scope="module")
def attached(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    folder = tmp_path_factory.mktemp("habits") / "warehouse"
    tamis.attach(spark, "habits", folder)
    yield Lake(spark, "habits", folder)
    spark.sql("DROP VIEW IF EXISTS habit")


@pytest.fixture
def known(attached: Lake) -> Known:
    """The warehouse anew, by hand: only what a case types runs in Spark."""
    from pyspark.sql import functions as f

    shutil.rmtree(attached.folder, ignore_errors=True)
    Path(attached.folder / "db").mkdir(parents=True)
    made = tamis.create(attached.folder / "db" / "t", pa.schema([("id", pa.int64()), ("s", pa.string())]))
    made.append(pa.table({"id": [0, 1, 2], "s": ["a", "b", "c"]}))
    return Known(attached, attached.spark.range(7, 9).coalesce(1).withColumn("s", f.lit("n")))


@pytest.mark.parametrize("habit", [*WRITES, *READS])
@pytest.mark.push_cases(9)
def test_what_is_typed_first(known: Known, habit: str) -> None:
    from pyspark.errors import PySparkException

    if habit == "VIEW":
        needs_views(known.lake.spark)
    if habit == "INSERT BY wrong NAME":
        needs_filled_columns(known.lake.spark)
    act, outcome = (WRITES | READS)[habit]
    if isinstance(outcome, Refused):
        with pytest.raises(PySparkException) as caught:
            done(known, act)
        assert caught.value.getCondition() == outcome.condition, str(caught.value)
        assert outcome.says in str(caught.value)
        assert stored(known, "t") == [0, 1, 2]
    elif isinstance(outcome, Ids):
        done(known, act)
        assert stored(known, outcome.table) == outcome.ids
    else:
        with newer_statements(known.lake.spark):
            assert done(known, act) == outcome


def test_the_sessions_default_source_is_no_choice(known: Known) -> None:
    known.lake.spark.conf.set("spark.sql.sources.default", "orc")
    try:
        known.save("new")
        text = known.lake.refused("CREATE TABLE lake.db.other (id INT) USING parquet", "UNSUPPORTED_STATEMENT")
    finally:
        known.lake.spark.conf.unset("spark.sql.sources.default")
    assert "USING parquet" in text
    assert stored(known, "new") == [7, 8]


def done(known: Known, act: str | Call) -> Any:
    if not isinstance(act, str):
        return act(known)
    answers = [known.lake.rows(statement) for statement in act.split("; ")]
    return answers[-1]


def stored(known: Known, table: str) -> list[int | None]:
    found = tamis.open(known.path(table)).scan(selected_fields=["id"]).to_arrow()
    return sorted(found.column("id").to_pylist())
