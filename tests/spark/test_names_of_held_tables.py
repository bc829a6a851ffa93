"""Row changes by Spark through a table object: names are those that the object holds, at each attempt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.conftest import Lake

import tamis
from tamis.errors import SchemaMismatch

pytestmark = pytest.mark.spark

Change = Callable[[tamis.Table, Any], Any]
BY_NAME: dict[str, Change] = {
    "delete": lambda t, spark: t.delete("a = 1", spark=spark),
    "update": lambda t, spark: t.update({"b": "0"}, "a = 1", spark=spark),
    "upsert": lambda t, spark: t.upsert(spark.sql("SELECT 1L AS a, 7L AS b"), on="a"),
    "merge": lambda t, spark: (
        t.merge(spark.sql("SELECT 1L AS a, 7L AS b"), "target.a = source.a")
        .when_matched_update({"b": "source.b"})
        .execute()
    ),
}


@pytest.fixture
def table(lake: Lake) -> tamis.Table:
    made = tamis.create(lake.folder / "db" / "t", "a BIGINT, b BIGINT")
    made.append(pa.table({"a": [1, 2], "b": [9, 1]}))
    return made


def swap(path: str) -> None:
    """Give each of the columns the name of the other."""
    for old, new in (("a", "x"), ("b", "a"), ("x", "b")):
        tamis.open(path).alter().rename_column(old, new).commit()


def rows_now(path: str) -> list[tuple[int, int]]:
    found = tamis.open(path).scan().to_arrow()
    return sorted(zip(found["a"].to_pylist(), found["b"].to_pylist(), strict=True))


@pytest.mark.parametrize("change", [name for name in BY_NAME if name != "delete"])  # that finds few rows without Spark
def test_a_second_attempt_does_not_follow_a_rename(
    lake: Lake, table: tamis.Table, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    plain = tamis.spark.write.row_change_job.commit_changes
    attempts: list[int] = []

    def after_a_swap(*args: Any) -> Any:
        attempts.append(len(attempts))
        if len(attempts) == 1:
            swap(table.path)
            tamis.open(table.path).delete("a = 9")  # the first row, which the statement has read
        return plain(*args)

    monkeypatch.setattr("tamis.spark.write.row_level_operations.commit_changes", after_a_swap)
    with pytest.raises(SchemaMismatch, match="renamed since the table was opened") as caught:
        BY_NAME[change](table, lake.spark)
    assert (caught.value.code, attempts) == ("SCHEMA_CHANGED", [0])
    assert rows_now(table.path) == [(1, 2)]


@pytest.mark.parametrize("change", BY_NAME)
def test_the_held_schema_stays(lake: Lake, table: tamis.Table, change: str) -> None:
    tamis.open(table.path).alter().add_column("c", "INT").commit()
    BY_NAME[change](table, lake.spark)
    assert table.schema.names == ["a", "b"]
    assert table.refresh().schema.names == ["a", "b", "c"]


@pytest.mark.parametrize("scanned", [False, True])
def test_an_overwrite_filters_by_the_names_that_are_held(lake: Lake, table: tamis.Table, scanned: bool) -> None:
    held = tamis.open(table.path)
    swap(table.path)
    if scanned:  # it loads the newest version
        assert held.scan("a = 1").to_arrow().to_pylist() == [{"a": 1, "b": 9}]
    held.overwrite(lake.spark.sql("SELECT 1L AS a, 70L AS b"), "a = 1")
    assert rows_now(table.path) == [(1, 2), (70, 1)]


def test_an_overwrite_by_a_column_that_is_gone_is_refused(lake: Lake, table: tamis.Table) -> None:
    tamis.open(table.path).alter().drop_column("a").commit()
    with pytest.raises(tamis.TamisError) as caught:
        table.overwrite(lake.spark.sql("SELECT 3L AS b"), "a = 1", allow_outside=True)
    assert caught.value.code.startswith("FENCED_")
    assert tamis.open(table.path).scan().count() == 2
