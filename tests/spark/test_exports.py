"""Exports from Spark: after each commit of a driver, and by CALL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.bridges.exported_tables import expected
from tests.bridges.foreign_readers import delta_by_deltalake, iceberg_by_pyiceberg

import tamis


def test_exports_follow_the_commits_of_a_driver(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t (a INT, b STRING) USING tamis TBLPROPERTIES ('tamis.export' = 'iceberg, delta')")
    lake.sql("INSERT INTO lake.db.t VALUES (3, 'x'), (1, 'y'), (2, NULL)")
    path = f"{lake.folder}/db/t"
    assert delta_by_deltalake(path) == iceberg_by_pyiceberg(path) == expected(tamis.open(path))
    lake.sql("DELETE FROM lake.db.t WHERE a = 3")
    assert delta_by_deltalake(path) == iceberg_by_pyiceberg(path) == expected(tamis.open(path))


KEPT = "USING tamis TBLPROPERTIES ('tamis.export' = 'iceberg, delta')"


def current(table: tamis.Table) -> bool:
    """Whether both exports are at the newest version, and hold its rows."""
    rows = expected(table)
    states = [(row["behind"], row["problem"]) for row in table.refresh().exports().to_pylist()]
    return states == [(0, None)] * 2 and delta_by_deltalake(table.path) == iceberg_by_pyiceberg(table.path) == rows


def test_exports_follow_every_statement(lake: Any) -> None:
    lake.sql(f"CREATE TABLE lake.db.t {KEPT} AS SELECT id AS a, CAST(id AS STRING) AS b FROM range(10)")
    table = tamis.open(lake.folder / "db" / "t")
    assert current(table)
    for statement in (
        "INSERT INTO lake.db.t VALUES (30, 'x'), (10, 'y'), (20, NULL)",
        "UPDATE lake.db.t SET b = 'u' WHERE a > 8",
        "MERGE INTO lake.db.t AS t USING (SELECT 1 AS a UNION SELECT 99) AS s ON t.a = s.a"
        " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (a, b) VALUES (s.a, 'm')",
        "ALTER TABLE lake.db.t ADD COLUMN c DATE",
        "INSERT OVERWRITE lake.db.t VALUES (7, 'o', DATE'2020-01-01')",
        "CALL lake.system.compact(table => 'db.t')",
        "CALL lake.system.restore(table => 'db.t', version => 1)",
        "TRUNCATE TABLE lake.db.t",
        f"CREATE OR REPLACE TABLE lake.db.t {KEPT} AS SELECT id, DATE'2021-01-01' AS day FROM range(3)",
    ):
        lake.sql(statement)
        assert current(table), statement


def test_exports_follow_frames_and_streams(lake: Any, tmp_path: Path) -> None:
    lake.sql(f"CREATE TABLE lake.db.t (id LONG) {KEPT}")
    table = tamis.open(lake.folder / "db" / "t")
    lake.spark.range(5).writeTo(f"{lake.name}.db.t").append()
    assert current(table)
    for mode in ("append", "overwrite"):
        lake.spark.range(3).write.format("tamis").mode(mode).save(table.path)
        assert current(table), mode
    lake.spark.range(20, 30).coalesce(1).write.parquet(str(tmp_path / "source"))
    source = lake.spark.readStream.schema("id LONG").parquet(str(tmp_path / "source"))
    place = str(tmp_path / "checkpoint")
    query = source.writeStream.foreachBatch(table.stream_writer()).option("checkpointLocation", place)
    query.trigger(availableNow=True).start().awaitTermination()
    assert tamis.open(table.path).scan().count() == 13
    assert current(table)


def test_a_table_is_exported_by_call(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.db.t (a INT, b STRING) USING tamis")
    lake.sql("INSERT INTO lake.db.t VALUES (3, 'x'), (1, 'y')")
    lake.sql("CALL lake.system.export(table => 'db.t', format => 'delta')")
    lake.sql("CALL lake.system.export(table => 'db.t', format => 'iceberg', format_version => 3)")
    path = f"{lake.folder}/db/t"
    assert delta_by_deltalake(path) == iceberg_by_pyiceberg(path) == expected(tamis.open(path))
