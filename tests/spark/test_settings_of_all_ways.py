"""Settings that count on one way of writing or reading count on the others, or are refused there."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.spark.conftest import Lake

import tamis

pytestmark = pytest.mark.spark


@pytest.fixture
def indexed(lake: Lake) -> Any:
    """``lake.db.t`` of two parts, with an index."""
    table = tamis.create(lake.folder / "db" / "t", pa.schema([("id", pa.int64()), ("v", pa.int64())]))
    for part in range(2):
        table.append(pa.table({"id": range(part * 10, part * 10 + 10), "v": [0] * 10}))
    table.create_index("by_id", "id")
    return table


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lake.db.t SET v = 1 WHERE id % 10 = 3",
        "MERGE INTO lake.db.t t USING (SELECT 3L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 1",
    ],
)
def test_a_session_defers_index_builds_of_row_changes(lake: Lake, indexed: Any, statement: str) -> None:
    lake.spark.conf.set("tamis.index.build", "deferred")
    try:
        lake.sql(statement)
    finally:
        lake.spark.conf.unset("tamis.index.build")
    (index,) = tamis.open(indexed.path).indexes()
    assert index.missing
    lake.sql(statement.replace("v = 1", "v = 2"))
    (index,) = tamis.open(indexed.path).indexes()
    assert not index.missing


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM lake.db.t.history WITH ('tamis.bogus' = 'x')",
        "SELECT * FROM lake.db.t.parts WITH ('tamis.scan.max_bytes' = '1MB')",
    ],
)
def test_metadata_tables_refuse_settings(lake: Lake, indexed: Any, query: str) -> None:
    with pytest.raises(Exception, match=r"does not take tamis\..*Leave it out"):
        lake.sql(query).collect()


def test_change_feeds_refuse_settings(lake: Lake, indexed: Any) -> None:
    feed = lake.spark.read.format("tamis").option("readChangeFeed", "true").option("startingVersion", "1")
    assert feed.load(str(indexed.path)).count() == 20
    with pytest.raises(Exception, match=r"does not take tamis\.scan\.max_bytes"):
        feed.option("tamis.scan.max_bytes", "1MB").load(str(indexed.path)).count()


def test_names_that_differ_by_case_are_refused_by_path(lake: Lake) -> None:
    lake.spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        rows = lake.spark.sql("SELECT 1 AS a, 2 AS A")
        with pytest.raises(Exception, match="DUPLICATE_COLUMN"):
            rows.write.format("tamis").save(str(lake.folder / "both"))
    finally:
        lake.spark.conf.unset("spark.sql.caseSensitive")


def test_overwrite_schema_follows_the_policy(lake: Lake, indexed: Any) -> None:
    indexed.alter().set_properties({"tamis.schema.policy": "forward"}).commit()
    rows = lake.spark.sql("SELECT 1L AS other")
    with pytest.raises(Exception, match="FORWARD_ONLY"):
        rows.write.format("tamis").mode("overwrite").option("overwriteSchema", "true").save(str(indexed.path))
    assert tamis.open(indexed.path).scan().count() == 20


def test_row_changes_report_no_audit_that_was_not_made(tmp_path: Any) -> None:
    table = tamis.create(tmp_path / "t", pa.schema([("n", pa.int64())]), properties={"tamis.audit.percent": "100"})
    for part in range(3):
        table.append(pa.table({"n": range(part * 10, part * 10 + 10)}))
    assert table.scan("n < 15").count() == 15
    assert tamis.reports(1)[0].parts["audited"] > 0
    table.delete("n < 15")
    assert tamis.reports(1)[0].parts["audited"] == 0
