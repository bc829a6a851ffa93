"""Pages of files that Spark wrote: an embedded scan of few rows fetches these, and finds what plain Spark finds."""

from __future__ import annotations

from typing import Any

import pytest
from tests.spark.conftest import Lake

import tamis
from tamis.storage.files.parquet.foreign_part import ForeignParquetPart
from tamis.storage.files.parquet.page_excerpt import Excerpt

ROWS = 70_000
"""Rows of a file, which has four pages of most columns."""
COLUMNS = """
    SELECT id k, CAST(id AS int) i, IF(id % 5 = 0, NULL, id / 3) x, CAST(id AS float) f, id % 3 = 0 flag,
        concat('word ', id % 7) word, repeat(concat(id, ' '), 1 + CAST(id % 40 AS int)) text, CAST(CAST(id AS string) AS binary) bytes,
        CAST(id AS decimal(9, 2)) small, CAST(id AS decimal(18, 4)) middle, CAST(id AS decimal(38, 2)) large,
        date_add(DATE'1990-01-01', CAST(id % 9999 AS int)) day, timestamp_seconds(id * 1000) at,
        CAST(timestamp_seconds(id * 1000) AS timestamp_ntz) local, CAST(NULL AS string) none, CAST(id % 100 AS tinyint) tiny
"""
FLAT = 16


@pytest.mark.parametrize(
    ("times", "legacy", "codec"),
    [("INT96", "true", "snappy"), ("TIMESTAMP_MICROS", "false", "zstd"), ("TIMESTAMP_MILLIS", "false", "none")],
)
def test_few_rows_of_files_that_spark_wrote(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, times: str, legacy: str, codec: str
) -> None:
    place = str(lake.folder.parent / "source")
    settings = {"spark.sql.parquet.outputTimestampType": times, "spark.sql.parquet.writeLegacyFormat": legacy}
    before = {key: lake.spark.conf.get(key) for key in settings}
    for key, value in settings.items():
        lake.spark.conf.set(key, value)
    try:
        writer = lake.spark.sql(f"{COLUMNS} FROM range(0, {ROWS}, 1, 1)").write.option("compression", codec)
        writer.option("parquet.bloom.filter.enabled#word", str(codec == "zstd").lower()).parquet(place)
    finally:
        for key, value in before.items():
            lake.spark.conf.set(key, value)
    table = tamis.adopt(place, lake.folder / "db" / "t")
    assert isinstance(table, tamis.Table)
    read: list[int] = []
    original = ForeignParquetPart._from_pages

    def from_pages(part: ForeignParquetPart, plan: Excerpt, fetched: Any) -> Any:
        found = original(part, plan, fetched)
        read.append(len(plan.leaves) if found is not None else 0)
        return found

    monkeypatch.setattr(ForeignParquetPart, "_from_pages", from_pages)
    plain = lake.spark.read.parquet(place)
    for filters in ("k = 45678", "text = '20000 ' AND k < 20001", "k % 30000 = 29999", "k IN (0, 69999)"):
        read.clear()
        expected = plain.where(filters).orderBy("k").toArrow().to_pylist()
        assert table.scan(filters).to_arrow().sort_by("k").to_pylist() == expected
        leaders = 2 if "text" in filters else 1
        assert read == [FLAT - leaders], filters
