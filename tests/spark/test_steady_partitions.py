"""Samples, random splits and row numbers of one DataFrame agree, whichever columns a query of it selects and whoever reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from tests.spark.conftest import Lake

SMALL = {"spark.sql.files.maxPartitionBytes": "20000", "spark.sql.files.openCostInBytes": "1"}
PARTS, ROWS = 6, 300
READERS = ["auto", "on", "off", "native"]


@contextmanager
def settings(spark: Any, given: dict[str, str]) -> Iterator[None]:
    for name, value in given.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in given:
            spark.conf.unset(name)


@pytest.fixture(params=READERS)
def df(lake: Lake, request: pytest.FixtureRequest) -> Iterator[DataFrame]:
    """Several tasks, whose number depends on the columns that are read; some rows are deleted."""
    lake.sql("CREATE TABLE lake.db.t (id BIGINT, k INT, m MAP<STRING, STRING>, s STRING) USING tamis")
    for part in range(PARTS):
        lake.sql(
            "INSERT INTO lake.db.t SELECT id, id % 7, map('k', repeat(md5(string(id)), 5)), md5(concat('s', string(id))) "
            f"FROM range({part * ROWS}, {(part + 1) * ROWS}, 1, 1)"
        )
    lake.sql("DELETE FROM lake.db.t WHERE id % 100 = 7")
    with settings(lake.spark, {**SMALL, "tamis.read.lazy": request.param, "tamis.read.native_bytes": "1"}):
        yield lake.spark.table(f"{lake.name}.db.t")


def ids(df: DataFrame, *columns: str) -> list[int]:
    return sorted(row.id for row in df.select("id", *columns).collect())


def test_a_split_is_disjoint_and_complete(df: DataFrame) -> None:
    train, test = df.randomSplit([0.8, 0.2], seed=1)
    some, others = ids(train, "s"), ids(test, "m", "s")
    assert sorted([*some, *others]) == ids(df)
    assert 0 < len(others) < len(some)
    assert train.count() == len(some)


@pytest.mark.parametrize("where", ["true", "k IN (1, 2, 5)", "id > 450 AND s > '3'"])
@pytest.mark.push_cases(4)
def test_one_sample_has_the_same_rows(df: DataFrame, where: str) -> None:
    sample = df.where(where).sample(0.5, seed=3)
    found = ids(sample)
    assert 0 < len(found) < df.where(where).count()
    assert ids(sample, "m") == ids(sample, "s", "k") == found
    assert sample.count() == len(found)
    assert sum(row["count"] for row in sample.groupBy("k").count().collect()) == len(found)


def test_random_filters_and_row_numbers_agree(df: DataFrame) -> None:
    chosen = df.where(f.rand(5) < 0.5)
    assert ids(chosen) == ids(chosen, "m")
    numbered = df.withColumn("number", f.monotonically_increasing_id())
    every = {row.id: row.number for row in numbered.collect()}
    assert {row.id: row.number for row in numbered.select("id", "number").collect()} == every
    assert {row.id: row.number for row in numbered.select("s", "id", "number").where("id > 900").collect()} == {
        key: number for key, number in every.items() if key > 900
    }


def test_samples_below_joins_and_in_subqueries(lake: Lake, df: DataFrame) -> None:
    sample = df.sample(0.3, seed=9)
    sample.createOrReplaceTempView("sampled")
    joined = df.alias("t").join(sample.alias("u"), f.col("t.id") == f.col("u.id")).select("t.id", "u.m")
    assert sorted(row.id for row in joined.collect()) == ids(sample)
    within = lake.spark.sql("SELECT id FROM sampled WHERE id IN (SELECT id FROM sampled WHERE s IS NOT NULL)")
    assert ids(within) == ids(sample)


def test_other_queries_have_tasks_for_what_they_read(lake: Lake, df: DataFrame) -> None:
    """Fewer columns, fewer tasks; a sample has as many for each."""
    everything, one = (df.select(*columns).rdd.getNumPartitions() for columns in (["id", "k", "m", "s"], ["k"]))
    assert one < everything
    sample = df.sample(0.5, seed=3)
    counts = {sample.select(*columns).rdd.getNumPartitions() for columns in (["id", "k", "m", "s"], ["k"])}
    assert len(counts) == 1
    assert min(counts) > one


def test_an_index_that_has_all_columns_prunes_no_parts_of_its_own(lake: Lake) -> None:
    """Half of the parts have no row in the range; only reading the index alone, for its own columns, pays."""
    lake.sql("CREATE TABLE lake.db.t (id BIGINT, k INT, m MAP<STRING, STRING>) USING tamis")
    for part in range(6):
        k = f"IF({part} % 2 = 0 AND abs(hash(id)) % 400 BETWEEN 100 AND 200, 399, abs(hash(id)) % 400)"
        lake.sql(
            f"INSERT INTO lake.db.t SELECT id, CAST({k} AS INT), map('k', repeat(sha2(string(id), 512), 4)) "
            f"FROM range({part * 4000}, {(part + 1) * 4000}, 1, 1)"
        )
    lake.sql("CALL lake.system.create_index(table => 'db.t', index => 'i', columns => 'k, id')")
    with settings(lake.spark, {**SMALL, "spark.sql.files.maxPartitionBytes": "50000"}):
        plain = lake.spark.table(f"{lake.name}.db.t").where("k BETWEEN 110 AND 190")
        assert plain.select("id").count() > 2_000
        kept = [plain.select(*columns).rdd.getNumPartitions() for columns in (["id"], ["id", "m"])]
        numbered = plain.withColumn("number", f.monotonically_increasing_id())
        every = {row.id: row.number for row in numbered.select("id", "number", "m").collect()}
        assert {row.id: row.number for row in numbered.select("id", "number").collect()} == every
    assert kept[0] < kept[1], "the index prunes parts for its own columns"
