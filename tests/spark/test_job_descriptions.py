"""Tamis's own jobs carry a description: what is done, and to which table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException
from tests.spark.conftest import Lake

pytestmark = pytest.mark.spark


@pytest.fixture
def new(spark: Any) -> Iterator[Callable[[], set[str | None]]]:
    """The descriptions of the jobs since the last call."""
    context = spark.sparkContext._jsc.sc()
    seen: set[int] = set()

    def since() -> set[str | None]:
        context.listenerBus().waitUntilEmpty(30_000)
        jobs = context.statusStore().jobsList(None)
        found = [jobs.apply(i) for i in range(jobs.size())]
        fresh = [job for job in found if job.jobId() not in seen]
        seen.update(job.jobId() for job in found)
        return {job.description().get() if job.description().isDefined() else None for job in fresh}

    since()
    yield since
    spark.sparkContext.setLocalProperty("spark.job.description", None)


def test_jobs_name_the_verb_and_the_table(lake: Lake, new: Callable[[], set[str | None]]) -> None:
    lake.sql("CREATE TABLE lake.db.t (id BIGINT, s STRING) USING tamis")
    url = lake.sql("DESCRIBE EXTENDED lake.db.t").where("col_name = 'Location'").first().data_type.removeprefix("file:")
    new()
    for _ in range(2):
        lake.sql("INSERT INTO lake.db.t SELECT id, cast(id AS string) FROM range(100)")
    assert new() == {f"Tamis: write rows to {url}"}
    lake.sql("UPDATE lake.db.t SET s = 'b' WHERE id = 7")
    assert f"Tamis: update rows of {url}" in new()
    lake.sql("OPTIMIZE lake.db.t")
    assert new() == {f"Tamis: compact {url}"}
    lake.sql("SELECT * FROM lake.db.t WHERE id < 3 AND s <> 'x'").collect()
    assert not any("Tamis" in str(description) for description in new())


def test_a_description_of_the_user_stays(lake: Lake, new: Callable[[], set[str | None]]) -> None:
    lake.sql("CREATE TABLE lake.db.t (id BIGINT) USING tamis")
    lake.spark.sparkContext.setJobDescription("nightly load")
    lake.sql("INSERT INTO lake.db.t SELECT id FROM range(100)")
    assert new() == {"nightly load"}
    assert lake.spark.sparkContext.getLocalProperty("spark.job.description") == "nightly load"


def test_a_job_that_fails_leaves_no_description(lake: Lake) -> None:
    lake.sql("CREATE TABLE lake.db.t (id BIGINT) USING tamis")
    with pytest.raises(PySparkException):
        lake.sql("INSERT INTO lake.db.t SELECT id DIV (id - 1) FROM range(3)")
    assert lake.spark.sparkContext.getLocalProperty("spark.job.description") is None
