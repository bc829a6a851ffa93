"""A cached table has the rows of its newest version, whatever made it in this process."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

import tamis
from tamis.spark.catalog.spark_caches import _recache
from tamis.spark.jvm_bridge.adapter import Bridge


def path(lake: Any) -> str:
    return str(lake.folder / "db" / "t")


def rows_of(lake: Any, low: int, high: int) -> Any:
    return lake.spark.range(low, high).selectExpr("id AS a")


CHANGES: dict[str, tuple[Callable[[Any], Any], int]] = {
    "RESTORE": (lambda lake: lake.sql("RESTORE lake.db.t TO VERSION AS OF 1"), 3),
    "CALL restore": (lambda lake: lake.sql("CALL lake.system.restore('db.t', 1)"), 3),
    "restore": (lambda lake: tamis.open(path(lake)).restore(1), 3),
    "OPTIMIZE": (lambda lake: lake.sql("OPTIMIZE lake.db.t"), 7),
    "compact": (lambda lake: tamis.open(path(lake)).compact(), 7),
    "INSERT": (lambda lake: lake.sql("INSERT INTO lake.db.t VALUES (99)"), 8),
    "append to a path": (lambda lake: rows_of(lake, 50, 52).write.format("tamis").mode("append").save(path(lake)), 9),
    "overwrite a path": (
        lambda lake: rows_of(lake, 50, 52).write.format("tamis").mode("overwrite").save(path(lake)),
        2,
    ),
    "append": (lambda lake: tamis.open(path(lake)).append(pa.table({"a": [77]})), 8),
    "delete": (lambda lake: tamis.open(path(lake)).delete("a < 2"), 5),
    "append a DataFrame": (lambda lake: tamis.open(path(lake)).append(rows_of(lake, 50, 52)), 9),
}


@pytest.mark.parametrize("how", ["append", "RESTORE"])
def test_a_cached_metadata_table_keeps_no_other_cache_as_it_was(lake: Any, how: str) -> None:
    """Cached after the table, it comes before it in Spark's list."""
    lake.sql("CREATE TABLE lake.db.t (a BIGINT) USING tamis")
    table = tamis.open(path(lake))
    table.append(pa.table({"a": [0, 1, 2]}))
    table.append(pa.table({"a": [3, 4, 5, 6]}))
    lake.sql("CACHE TABLE lake.db.t")
    lake.sql(f"CACHE TABLE log AS SELECT * FROM {lake.name}.db.t.history")
    try:
        assert lake.rows("SELECT count(*) FROM lake.db.t") == [(7,)]
        change, left = CHANGES[how]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            change(lake)
        assert lake.rows("SELECT count(*) FROM lake.db.t") == [(left,)]
    finally:
        lake.spark.catalog.clearCache()
        lake.spark.catalog.dropTempView("log")


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.push_cases(2)
def test_a_cached_table_has_the_rows_of_now(lake: Any, how: str) -> None:
    lake.sql("CREATE TABLE lake.db.t (a BIGINT) USING tamis")
    table = tamis.open(path(lake))
    table.append(pa.table({"a": [0, 1, 2]}))
    table.append(pa.table({"a": [3, 4]}))
    table.append(pa.table({"a": [5, 6]}))
    change, left = CHANGES[how]
    lake.sql("CREATE TABLE lake.db.other AS SELECT 1 AS b")
    lake.sql("CACHE TABLE lake.db.t")
    lake.sql("CACHE TABLE lake.db.other")
    lake.sql(f"CACHE TABLE few AS SELECT a FROM {lake.name}.db.t WHERE a IN (SELECT a FROM {lake.name}.db.t)")
    try:
        assert lake.rows("SELECT count(*) FROM lake.db.t") == [(7,)]
        change(lake)
        assert len(tamis.open(path(lake)).scan().to_arrow()) == left
        assert len(lake.rows("SELECT a FROM lake.db.t")) == left
        assert lake.rows("SELECT count(*) FROM lake.db.t") == [(left,)]
        assert len(lake.rows("SELECT a FROM few")) == left
        assert lake.spark.catalog.isCached(f"{lake.name}.db.other")
        assert lake.rows("SELECT b FROM lake.db.other") == [(1,)]
    finally:
        lake.spark.catalog.clearCache()
        lake.spark.catalog.dropTempView("few")


@pytest.mark.parametrize("error", [Py4JError("no Caches"), PySparkException("[PART_MISSING] …")])
def test_a_commit_outlives_what_watches_it(lake: Any, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """PySpark makes an error of its own of those that Spark names, such as of a cached scan that fails."""

    def refusing(_: Bridge, name: str) -> Any:
        raise error

    lake.sql("CREATE TABLE lake.db.t (a BIGINT) USING tamis")
    monkeypatch.setattr(Bridge, "helper", refusing)
    with pytest.warns(RuntimeWarning, match="REFRESH TABLE"):
        tamis.open(path(lake)).append(pa.table({"a": [1]}))
    assert tamis.open(path(lake)).scan().count() == 1


@pytest.mark.parametrize("answer", [["one"], [[], []], 7], ids=str)
def test_wrong_answers_of_java_do_not_fail_a_commit(tmp_path: Path, answer: Any) -> None:
    """After Ctrl-C in a call to Java, Py4J may take the answer of an earlier call for that of a later one."""

    class Interrupted:
        def helper(self, name: str) -> Any:
            return SimpleNamespace(relations=lambda: answer)

        def target_of_key(self, key: Any) -> Any:
            return {}.get(key)

    store = tamis.create(tmp_path / "t", pa.schema([("a", pa.int64())]))._store
    with pytest.warns(RuntimeWarning, match="REFRESH TABLE"):
        _recache(cast("Bridge", Interrupted()), store)
