"""CHECK constraints in Spark: its grammar, its writes, and ours where Spark tests nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from tests.cli.conftest import Run, run  # noqa: F401  # a fixture
from tests.spark.capabilities import needs_syntax

import tamis
from tamis.errors import Conflict, SchemaMismatch, TamisError
from tamis.spark.catalog.loaded_table import LoadedTable
from tamis.spark.connect import TamisDataSource

DDL = "ALTER TABLE lake.db.t ADD CONSTRAINT c CHECK (a > 0)"
VIOLATED = {"CHECK_CONSTRAINT_VIOLATION", "CHECK_VIOLATION"}
"""Spark's own condition, and ours."""


@pytest.fixture
def held(lake: Any) -> Any:
    """``lake.db.t`` has the rows 1 to 4 and a CHECK on the price."""
    lake.sql("CREATE TABLE lake.db.t (id BIGINT, price DOUBLE) USING tamis")
    lake.sql("INSERT INTO lake.db.t SELECT id, 1.0D FROM range(1, 5)")
    lake.sql("CALL lake.system.add_constraint(table => 'db.t', name => 'sane', check => 'price >= 0 AND id < 1000')")
    return lake


@pytest.fixture(params=["Spark tests too", "alone"])
def ours(held: Any, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """``held``, also where Spark does not see the constraint, as no Spark before 4.1 does."""
    if request.param == "alone":
        monkeypatch.setattr(LoadedTable, "constraints", lambda _: [])
    return held


def table(lake: Any, name: str = "t") -> tamis.Table:
    return tamis.open(lake.folder / "db" / name)


def expressions(lake: Any, name: str = "t") -> list[str]:
    return [row["expression"] for row in table(lake, name).constraints().to_pylist()]


def refused(write: Callable[[], object]) -> str:
    """Return the error of a write that violates the constraint."""
    with pytest.raises((PySparkException, TamisError)) as caught:
        write()
    error: Any = caught.value
    assert (error.code if isinstance(error, TamisError) else error.getCondition()) in VIOLATED, str(error)
    return str(error)


SQL = {
    "insert": "INSERT INTO lake.db.t VALUES (9, -1.0)",
    "insert overwrite": "INSERT OVERWRITE lake.db.t VALUES (9, -1.0)",
    "replace where": "INSERT INTO lake.db.t REPLACE WHERE id = 1 VALUES (1, -1.0)",
    "update": "UPDATE lake.db.t SET price = -1.0 WHERE id = 1",
    "merge: update": "MERGE INTO lake.db.t t USING (SELECT 1 AS id) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET price = -1.0",
    "merge: insert": "MERGE INTO lake.db.t t USING (SELECT 9 AS id) s ON t.id = s.id "
    "WHEN NOT MATCHED THEN INSERT (id, price) VALUES (s.id, -1.0)",
}


@pytest.mark.parametrize("statement", SQL)
@pytest.mark.push_cases(2)
def test_every_statement_is_refused(ours: Any, statement: str) -> None:
    text = refused(lambda: ours.sql(SQL[statement]).collect())
    assert "sane" in text
    assert "-1.0" in text
    assert table(ours).version == 2
    assert ours.rows("SELECT id, price FROM lake.db.t ORDER BY id") == [(i, 1.0) for i in range(1, 5)]


def test_statements_that_fit_are_made(held: Any) -> None:
    for text in SQL.values():
        held.sql(text.replace("-1.0", "7.0"))
    held.sql("INSERT INTO lake.db.t VALUES (9, NULL)")
    assert table(held).version == 8  # the last one matches


def wrong(lake: Any) -> Any:
    return lake.spark.sql("SELECT 9L AS id, -1.0D AS price")


FRAMES: dict[str, Callable[[Any], object]] = {
    "writeTo.append": lambda of: wrong(of).writeTo(f"{of.name}.db.t").append(),
    "writeTo.overwrite": lambda of: wrong(of).writeTo(f"{of.name}.db.t").overwrite(_id() >= 0),
    "insertInto": lambda of: wrong(of).write.insertInto(f"{of.name}.db.t"),
    "saveAsTable append": lambda of: wrong(of).write.mode("append").saveAsTable(f"{of.name}.db.t"),
    "save by path": lambda of: wrong(of).write.format("tamis").mode("append").save(str(of.folder / "db" / "t")),
    "overwrite by path": lambda of: wrong(of).write.format("tamis").mode("overwrite").save(str(of.folder / "db" / "t")),
    "table.append": lambda of: table(of).append(wrong(of)),
    "table.overwrite": lambda of: table(of).overwrite(wrong(of)),
    "table.upsert": lambda of: table(of).upsert(wrong(of), on="id"),
}


def _id() -> Any:
    from pyspark.sql import functions as f

    return f.col("id")


@pytest.mark.parametrize("write", FRAMES)
@pytest.mark.push_cases(2)
def test_every_write_of_a_dataframe_is_refused(ours: Any, write: str) -> None:
    refused(lambda: FRAMES[write](ours))
    assert (table(ours).version, table(ours).scan().count()) == (2, 4)


def batches(lake: Any, folder: Path) -> Any:
    """A stream of the ids in the files of ``folder``, with a price of 1 - id."""
    return lake.spark.readStream.schema("id BIGINT").csv(str(folder)).selectExpr("id", "1.0D - id AS price")


@pytest.mark.parametrize("way", ["toTable", "foreachBatch"])
@pytest.mark.push_cases(2)
def test_a_stream_stops_at_a_wrong_row(ours: Any, tmp_path: Path, way: str) -> None:
    files = tmp_path / "files"
    files.mkdir()

    def run_stream() -> None:
        asked = batches(ours, files).writeStream.trigger(availableNow=True)
        asked = asked.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = (
            asked.toTable(f"{ours.name}.db.t")
            if way == "toTable"
            else asked.foreachBatch(table(ours).stream_writer()).start()
        )
        query.awaitTermination()

    (files / "a.csv").write_text("1\n0\n")
    run_stream()
    assert table(ours).scan().count() == 6
    (files / "b.csv").write_text("0\n2\n")
    with pytest.raises(PySparkException, match=r"CHECK_(CONSTRAINT_)?VIOLATION"):
        run_stream()
    assert table(ours).scan().count() == 6


def test_a_data_source_without_a_jvm_tests_too(held: Any) -> None:
    from pyspark.sql.types import DoubleType, LongType, StructField, StructType

    struct = StructType([StructField("id", LongType()), StructField("price", DoubleType())])
    source = TamisDataSource({"path": str(held.folder / "db" / "t")})
    rows = [pa.record_batch([pa.array([9]), pa.array([price])], ["id", "price"]) for price in (-1.0, 2.0)]
    with pytest.raises(SchemaMismatch, match="'sane'"):
        source.writer(struct, False).write(iter(rows))
    writer = source.writer(struct, False)
    message = writer.write(iter(rows[1:]))
    table(held).alter().add_check("late", "price < 2").commit()
    with pytest.raises(Conflict) as caught:
        writer.commit([message])
    assert caught.value.code == "CONFLICT_CONSTRAINT"
    assert table(held).scan().count() == 4


def test_files_with_wrong_rows_are_not_ingested(held: Any, run: Run, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "rows.csv").write_text("id,price\n8,5.0\n9,-1.0\n")
    done = run("ingest", table(held).path, tmp_path / "inbox")
    assert (done.code, "sane" in done.err, table(held).scan().count()) == (1, True, 4)


def test_rules_of_the_session_change_nothing(held: Any) -> None:
    """Without ANSI, Spark takes a division by zero for NULL, which would pass."""
    table(held).alter().add_check("ratio", "1 / (id - 900) < 5").commit()
    before = held.spark.conf.get("spark.sql.ansi.enabled")
    held.spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(PySparkException, match="CHECK_FAILED"):
            held.sql("INSERT INTO lake.db.t VALUES (900, 1.0)")
    finally:
        held.spark.conf.set("spark.sql.ansi.enabled", before)
    assert table(held).scan().count() == 4


def test_generated_columns_are_tested_with_their_values(lake: Any) -> None:
    """In Spark's plan they are NULL, or what they were before an update."""
    made = tamis.create(
        lake.folder / "db" / "g",
        "id BIGINT, twice BIGINT GENERATED ALWAYS AS (id * 2), n BIGINT GENERATED ALWAYS AS IDENTITY",
    )
    made.alter().add_check("c", "twice IS NOT NULL AND twice = id * 2 AND twice < 20").add_check(
        "d", "n IS NOT NULL"
    ).commit()
    lake.spark.sql("SELECT 1L AS id, CAST(NULL AS BIGINT) AS twice, CAST(NULL AS BIGINT) AS n").writeTo(
        f"{lake.name}.db.g"
    ).append()
    lake.sql("UPDATE lake.db.g SET id = 5")
    assert lake.rows("SELECT * FROM lake.db.g") == [(5, 10, 1)]
    for text in ("UPDATE lake.db.g SET id = 10", "INSERT INTO lake.db.g VALUES (10, NULL, NULL)"):
        assert "twice = 20" in lake.refused(text, "CHECK_VIOLATION")


@pytest.mark.parametrize(
    ("kept", "after"), [("n BIGINT GENERATED ALWAYS AS IDENTITY", 1), ("n BIGINT GENERATED ALWAYS AS (id * 2)", 6)]
)
def test_values_that_are_not_deterministic_leave_computed_columns(lake: Any, kept: str, after: int) -> None:
    """Spark then tests a CHECK above the new rows, not below them."""
    made = tamis.create(lake.folder / "db" / "g", f"id BIGINT, token STRING, {kept}")
    made.alter().add_check("c", "id > 0").commit()
    lake.spark.sql("SELECT 1L AS id, 'a' AS token, CAST(NULL AS BIGINT) AS n").writeTo(f"{lake.name}.db.g").append()
    lake.sql("UPDATE lake.db.g SET token = uuid()")
    lake.sql("UPDATE lake.db.g SET token = uuid(), id = id + 2")
    assert lake.rows("SELECT id, n, length(token) FROM lake.db.g") == [(3, after, 36)]
    with pytest.raises(PySparkException, match="id > 0"):
        lake.sql("UPDATE lake.db.g SET token = uuid(), id = -id")


def test_compaction_and_deletes_go_on(held: Any) -> None:
    held.sql("INSERT INTO lake.db.t VALUES (9, 2.0)")
    held.sql("OPTIMIZE lake.db.t FULL")
    held.sql("DELETE FROM lake.db.t WHERE id = 1")
    assert held.rows("SELECT count(*) FROM lake.db.t") == [(4,)]
    assert table(held).snapshot.parts().num_rows == 1


def test_procedures(held: Any) -> None:
    call = "CALL lake.system.add_constraint(table => 'db.t', name => "
    assert "price = 1.0" in held.refused(call + "'high', check => 'price > 1')", "CHECK_VIOLATION")
    held.refused(call + "'x', check => 'id > 0', unique => 'id')", "BAD_CONSTRAINT")
    done = held.sql(call + "'pk', primary_key => 'id, price')").collect()[0]
    assert list(done["changes"]) == ["constraint pk added: PRIMARY KEY (id, price) NOT ENFORCED"]
    held.sql(call + "'u', unique => 'id')")
    listed = held.sql("CALL lake.system.constraints('db.t')").collect()
    assert [(row["name"], row["kind"]) for row in listed] == [
        ("sane", "CHECK"),
        ("pk", "PRIMARY KEY"),
        ("u", "UNIQUE"),
    ]
    held.sql("CALL lake.system.drop_constraint('db.t', 'SANE')")
    held.refused("CALL lake.system.drop_constraint('db.t', 'sane')", "CONSTRAINT_NOT_FOUND")
    held.sql("CALL lake.system.drop_constraint('db.t', 'sane', true)")
    held.sql("INSERT INTO lake.db.t VALUES (9, -1.0)")


# --- Spark's own grammar ---


def test_create_table(lake: Any) -> None:
    needs_syntax(lake.spark, DDL)
    lake.sql("CREATE TABLE lake.db.o (k INT PRIMARY KEY) USING tamis")
    lake.sql(
        "CREATE TABLE lake.db.t (id BIGINT PRIMARY KEY, price DOUBLE CHECK (price >= 0), n INT, `a.b` INT, "
        "CONSTRAINT low CHECK (id < 1000), CONSTRAINT u UNIQUE (n, `a.b`) NOT ENFORCED RELY, "
        "CONSTRAINT f FOREIGN KEY (n) REFERENCES lake.db.o (k)) USING tamis"
    )
    found = {row["name"]: row["definition"] for row in table(lake).constraints().to_pylist()}
    named = {name: text for name, text in found.items() if name in {"low", "u", "f"}}
    assert named == {
        "low": "CHECK (id < 1000) ENFORCED",
        "u": "UNIQUE (n, `a.b`) NOT ENFORCED RELY",
        "f": "FOREIGN KEY (n) REFERENCES lake.db.o (k) NOT ENFORCED".replace("lake.", f"{lake.name}."),
    }
    assert sorted(set(found.values()) - set(named.values())) == [
        "CHECK (price >= 0) ENFORCED",
        "PRIMARY KEY (id) NOT ENFORCED",
    ]
    described = {row[0]: row[1] for row in lake.rows("DESCRIBE EXTENDED lake.db.t")}
    assert described["low"].startswith("CHECK (id < 1000) ENFORCED")
    shown = lake.rows("SHOW CREATE TABLE lake.db.t")[0][0]
    lake.sql("DROP TABLE lake.db.t")
    lake.spark.sql(shown)
    assert {row["name"]: row["definition"] for row in table(lake).constraints().to_pylist()} == found
    assert lake.rows("SHOW CREATE TABLE lake.db.t")[0][0] == shown
    assert len(lake.rows("SELECT * FROM lake.db.t.constraints")) == 5


def test_alter_table(held: Any) -> None:
    needs_syntax(held.spark, DDL)
    held.sql("ALTER TABLE lake.db.t ADD CONSTRAINT high CHECK (id > 0) ENFORCED")
    held.refused("ALTER TABLE lake.db.t ADD CONSTRAINT c CHECK (id > 1)", "NEW_CHECK_CONSTRAINT_VIOLATION")
    held.refused("ALTER TABLE lake.db.t ADD CONSTRAINT HIGH CHECK (id > -1)", "CONSTRAINT_EXISTS")
    held.refused("ALTER TABLE lake.db.t ADD CONSTRAINT s CHECK (id > 0) NOT ENFORCED", _NO_SUCH)
    held.sql("ALTER TABLE lake.db.t ADD COLUMN day DATE")
    held.refused("ALTER TABLE lake.db.t ADD CONSTRAINT c CHECK (day < current_date())", "BAD_CONSTRAINT")
    held.sql("ALTER TABLE lake.db.t ADD CONSTRAINT pk PRIMARY KEY (id) NOT ENFORCED")
    held.sql("ALTER TABLE lake.db.t RENAME COLUMN price TO cost")
    assert expressions(held) == ["cost >= 0 AND id < 1000", "id > 0", None]
    refused(lambda: held.sql("INSERT INTO lake.db.t VALUES (9, -1.0, NULL)"))
    held.refused("ALTER TABLE lake.db.t DROP COLUMN cost", "CONSTRAINED_COLUMN")
    held.sql("ALTER TABLE lake.db.t DROP CONSTRAINT Sane")
    held.refused("ALTER TABLE lake.db.t DROP CONSTRAINT sane", "CONSTRAINT_NOT_FOUND")
    held.sql("ALTER TABLE lake.db.t DROP CONSTRAINT IF EXISTS sane")
    held.sql("ALTER TABLE lake.db.t DROP COLUMN cost")
    assert expressions(held) == ["id > 0", None]


_NO_SUCH = "UNSUPPORTED_CONSTRAINT_CHARACTERISTIC"


def test_new_columns_by_path_keep_the_constraints(held: Any) -> None:
    table(held).alter().add_primary_key("pk", "id").commit()
    path = str(held.folder / "db" / "t")

    def write(text: str) -> None:
        frame = held.spark.sql(text)
        frame.write.format("tamis").mode("overwrite").option("overwriteSchema", "true").save(path)

    refused(lambda: write("SELECT 9 AS id, -1.0D AS price, 'x' AS more"))
    with pytest.raises((PySparkException, TamisError), match="has a constraint on it: price"):
        write("SELECT 9 AS id")
    write("SELECT 9 AS id, 2 AS price, 'x' AS more")
    assert [(row["name"], row["columns"]) for row in table(held).constraints().to_pylist()] == [
        ("sane", ["price", "id"]),
        ("pk", ["id"]),
    ]
    refused(lambda: held.sql("INSERT INTO lake.db.t VALUES (9, -1, 'x')"))


def test_replaced_tables_have_the_constraints_of_the_new_definition(held: Any) -> None:
    needs_syntax(held.spark, DDL)
    held.sql("CREATE OR REPLACE TABLE lake.db.t (id INT, CONSTRAINT five CHECK (id > 5)) USING tamis")
    assert expressions(held) == ["id > 5"]
    refused(lambda: held.sql("INSERT INTO lake.db.t VALUES (5)"))
    held.sql("CREATE OR REPLACE TABLE lake.db.t USING tamis AS SELECT 1 AS id")
    assert (expressions(held), table(held).detail()["writer_features"][0].as_py()) == ([], [])
