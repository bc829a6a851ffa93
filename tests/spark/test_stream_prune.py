"""Filters above a stream prune its micro-batches: the rows are the same, what is read is little, and positions move on whatever is skipped."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from tests.scan.planted_proofs import Production, planted, skip_all
from tests.spark.capabilities import needs_syntax
from tests.spark.conftest import Lake
from tests.spark.streamed import batches_of, daily, drain, ended, now, some, where

import tamis
from tamis.engine.scan import funnel
from tamis.world import use

RECENT = "at > current_timestamp() - INTERVAL 5 DAYS"


def test_the_last_days_are_read_and_nothing_else(lake: Lake, tmp_path: Path) -> None:
    """By a new consumer, by one from the first version in small steps, and after a restart under another filter."""
    table = daily(lake, 12)
    recent = list(range(14, 24))
    assert drain(lake, tmp_path / "a", where(RECENT)) == [recent]
    (report,) = batches_of(lake)
    assert (report.parts["total"], report.parts["kept"], report.rows["total"]) == (12, 5, 24)
    assert set(report.columns) == {"id", "at"}
    assert report.stream is not None
    assert report.stream["batch"] == 0
    assert json.loads(report.stream["start"])["version"] == json.loads(report.stream["end"])["version"] - 1 == 12
    assert report.stream["query"] in repr(report)

    found = drain(lake, tmp_path / "b", where(RECENT), startingVersion="0", maxFilesPerTrigger="2")
    assert [row for batch in found for row in batch] == recent
    assert [len(batch) for batch in found] == [4, 4, 2], "two parts each, of those that the filter keeps"
    assert [r.parts["kept"] for r in batches_of(lake)[:3]] == [1, 2, 2]

    table.append(some(24, now() - timedelta(days=30)))
    assert drain(lake, tmp_path / "a", where("at < current_timestamp() - INTERVAL 20 DAYS")) == [[24, 25]]


def test_a_batch_of_which_all_is_skipped_moves_on_and_is_reported(lake: Lake, tmp_path: Path) -> None:
    table = daily(lake, 6)
    assert drain(lake, tmp_path / "a", where("id < 0"), maxFilesPerTrigger="1") == [[]]
    assert [r.parts["kept"] for r in batches_of(lake)] == [0]
    assert [r.stream["batch"] for r in batches_of(lake) if r.stream is not None] == [0]
    assert ended(tmp_path / "a")["version"] == 7
    assert drain(lake, tmp_path / "a", where("id < 0"), maxFilesPerTrigger="1") == [], "nothing is left"
    table.append(some(90, now()))
    assert drain(lake, tmp_path / "a", where("id >= 90")) == [[90, 91]]


def test_the_instant_is_that_of_the_batch(lake: Lake, tmp_path: Path) -> None:
    """A part that is newer than the first batch's instant, and older than the second's."""
    table = daily(lake, 2)
    seen: list[int] = []

    def take(df: Any, epoch: int) -> None:
        seen.extend(row["id"] for row in df.collect())
        if epoch == 0:
            table.append(some(50, now()))

    stream = lake.spark.readStream.table(f"{lake.name}.db.t").where("at <= current_timestamp()").select("id")
    query = stream.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "c"))
    running = query.trigger(processingTime="0 seconds").start()
    try:
        while (
            running.isActive
            and 50 not in seen
            and max((r.stream["batch"] for r in batches_of(lake) if r.stream), default=0) < 1
        ):
            running.processAllAvailable()
    finally:
        running.stop()
    assert sorted(seen) == [0, 1, 2, 3, 50, 51]


def test_pruning_changes_no_row(lake: Lake, tmp_path: Path) -> None:
    """Rows come, parts are compacted and rows are deleted, in small steps and over a restart."""
    daily(lake, 8)
    text, found_ids = "id % 3 = 1 AND at > current_timestamp() - INTERVAL 4 DAYS AND body IS NOT NULL", {}
    plain = {"startingVersion": "0", "maxFilesPerTrigger": "2", "skipChangeCommits": "true"}
    held = tamis.open(lake.folder / "db" / "t")
    off = {"tamis__stats__filter": "off", "tamis__index__use": "off", "tamis__read__lazy": "off"}
    for name, options in (("on", plain), ("off", plain | off)):
        found_ids[name] = [i for batch in drain(lake, tmp_path / name, where(text), **options) for i in batch]
    held.append(some(100, now(), 6))
    held.compact()
    held.append(some(200, now() - timedelta(days=9), 6))
    held.append(some(300, now(), 6))
    held.delete("id = 301")
    held.append(some(400, now(), 6))
    for name, options in (("on", plain), ("off", plain | off)):
        found_ids[name] += [i for batch in drain(lake, tmp_path / name, where(text), **options) for i in batch]
    assert found_ids["on"] == found_ids["off"] == [10, 13, 100, 103, 301, 304, 400, 403]
    reports = batches_of(lake)
    assert any(r.parts["kept"] < r.parts["total"] for r in reports)


KINDS = [
    "id IN (1, 6, 40)",
    "id % 4 = 1 OR at > current_timestamp() - INTERVAL 2 DAYS",
    "date_trunc('DAY', at) >= date_trunc('DAY', now() - INTERVAL 3 DAYS)",
    "date(at) < current_date() - 4",
    "at BETWEEN now() - INTERVAL 4 DAYS AND now() - INTERVAL 2 DAYS",
    "NOT (id > 3) AND upper(body) LIKE 'X%'",
    "coalesce(at > now() - INTERVAL 1 DAY, false) OR other = 1003",
    "ID <= 2",
]


def test_streams_keep_the_rows_that_queries_keep(lake: Lake, tmp_path: Path) -> None:
    """Many filters, as branches of one stream whose rows are distinguished by their numbers."""
    daily(lake, 8)

    def shape(stream: Any) -> Any:
        branches = [stream.where(kind).selectExpr(f"id + {10_000 * at} AS id") for at, kind in enumerate(KINDS)]
        return reduce(lambda a, b: a.union(b), branches)

    plain = lake.spark.read.option("tamis.stats.filter", "off").table(f"{lake.name}.db.t")
    assert drain(lake, tmp_path / "a", shape) == [sorted(row["id"] for row in shape(plain).collect())]
    found = batches_of(lake)
    assert len(found) == len(KINDS)
    assert all(r.parts["kept"] < r.parts["total"] for r in found), [r.filter for r in found]


def test_a_batch_that_is_repeated_reads_the_same(lake: Lake, tmp_path: Path) -> None:
    """By path, and under the instant that the checkpoint holds."""
    daily(lake, 6)
    seen: list[list[int]] = []

    def take(df: Any, epoch: int) -> None:
        seen.append(sorted(row["id"] for row in df.collect()))
        if len(seen) == 1:
            raise ValueError("the consumer fails")

    for attempt in range(2):
        stream = lake.spark.readStream.format("tamis").load(str(lake.folder / "db" / "t")).where(RECENT).select("id")
        query = stream.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "r"))
        running = query.trigger(availableNow=True).start()
        if attempt:
            running.awaitTermination()
            continue
        with pytest.raises(Exception, match="the consumer fails"):
            running.awaitTermination()
    assert seen == [list(range(2, 12))] * 2
    found = [r for r in tamis.reports(10) if r.table == str(lake.folder / "db" / "t") and r.stream is not None]
    assert {(r.filter, r.parts["kept"]) for r in found} == {(found[0].filter, 5)}


def test_a_filter_that_fails_fails_the_stream(lake: Lake, tmp_path: Path) -> None:
    """The part with the row that it fails on is not skipped, although no row of it can match."""
    daily(lake, 4)
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        drain(lake, tmp_path / "a", where("1 / (id - 3) < 0 AND id > 5"))


def test_two_filters_over_one_stream(lake: Lake, tmp_path: Path) -> None:
    daily(lake, 6)
    both = drain(lake, tmp_path / "a", lambda s: s.where("id < 2").select("id").union(s.where("id >= 10").select("id")))
    assert both == [[0, 1, 10, 11]]
    assert sorted(r.filter or "" for r in batches_of(lake)) == [
        "(id < 2L) AND (id IS NOT NULL)",
        "(id >= 10L) AND (id IS NOT NULL)",
    ]
    assert [r.parts["kept"] for r in batches_of(lake)] == [1, 1]


def test_different_columns_of_one_stream_stay_apart(lake: Lake, tmp_path: Path) -> None:
    """Spark compares scans by their streams alone, and columns by their positions: a shuffle must not be used again."""
    daily(lake, 3)

    def shape(stream: Any) -> Any:
        return stream.select("id").repartition(2).union(stream.select("other").repartition(2))

    assert drain(lake, tmp_path / "a", shape) == [[*range(6), *range(1_000, 1_006)]]


def test_rows_that_move_a_watermark_are_read(lake: Lake, tmp_path: Path) -> None:
    """Spark keeps a filter on the time above its watermark, and the watermark needs the rows below."""
    daily(lake, 4)
    frame = lambda s: s.withWatermark("at", "1 hour").where("at < current_timestamp() - INTERVAL 3 DAYS").select("id")  # noqa: E731
    assert drain(lake, tmp_path / "a", frame)[0] == [0, 1]
    first = batches_of(lake)[-1]
    assert (first.filter, first.parts["kept"]) == (None, 4)


def test_a_micro_batch_obeys_the_guard(lake: Lake, tmp_path: Path) -> None:
    daily(lake, 6)
    size = max(tamis.open(lake.folder / "db" / "t").metadata("parts")["bytes"].to_pylist())
    assert drain(lake, tmp_path / "a", where("id < 2"), tamis__scan__max_bytes=str(size)) == [[0, 1]]
    with pytest.raises(Exception, match="SCAN_TOO_LARGE"):
        drain(lake, tmp_path / "b", where("id < 8"), tamis__scan__max_bytes=str(size))


def test_a_micro_batch_is_audited(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    daily(lake, 4)
    assert drain(lake, tmp_path / "a", where("id = 3"), tamis__audit__percent="100") == [[3]]
    (report,) = batches_of(lake)
    assert (report.parts["kept"], report.parts["audited"], report.violations) == (1, 3, [])
    planted(monkeypatch, funnel, skip_all)
    assert drain(lake, tmp_path / "b", where("id = 3")) == [[]], "the plant shows"
    with use(Production()):
        assert drain(lake, tmp_path / "c", where("id = 3"), tamis__audit__percent="100") == [[3]]
    assert "1 rows match" in batches_of(lake)[0].violations[0].problem
    with pytest.raises(Exception, match="AUDIT_FAILED"):
        drain(lake, tmp_path / "d", where("id = 3"), tamis__audit__percent="100")


def test_views_pass_their_filter_on(lake: Lake, tmp_path: Path) -> None:
    """A view of the session's catalog in batch, which is all that Spark allows of those, and one of a stream."""
    daily(lake, 8)
    name = f"recent_{lake.name}"
    lake.sql(
        f"CREATE VIEW spark_catalog.default.{name} AS SELECT id, at FROM lake.db.t WHERE at > now() - INTERVAL 5 DAYS"
    )
    try:
        assert sorted(lake.rows(f"SELECT id FROM spark_catalog.default.{name}")) == [(i,) for i in range(6, 16)]
        assert tamis.reports(1)[0].parts["kept"] == 5
    finally:
        lake.sql(f"DROP VIEW spark_catalog.default.{name}")
    needs_syntax(lake.spark, "SELECT a FROM STREAM c.d.t")
    lake.sql(f"CREATE TEMPORARY VIEW {name} AS SELECT id, at FROM STREAM lake.db.t WHERE at > now() - INTERVAL 5 DAYS")
    found: list[int] = []
    stream = lake.spark.table(name).writeStream.foreachBatch(
        lambda df, epoch: found.extend(r["id"] for r in df.collect())
    )
    stream.option("checkpointLocation", str(tmp_path / "v")).trigger(availableNow=True).start().awaitTermination()
    assert sorted(found) == list(range(6, 16))
    assert batches_of(lake)[0].parts["kept"] == 5
    lake.sql(f"DROP VIEW {name}")


def test_a_shuffle_after_nothing_is_reported(lake: Lake, tmp_path: Path) -> None:
    daily(lake, 3)
    assert drain(lake, tmp_path / "a", lambda s: s.where("id < 0").select("id").repartition(2)) == [[]]
    assert [r.parts["kept"] for r in batches_of(lake)] == [0]
    assert drain(lake, tmp_path / "b", lambda s: s.where("id < 2").select("id").repartition(2)) == [[0, 1]]
    assert [r.parts["kept"] for r in batches_of(lake)] == [1, 0]


def test_a_count_needs_no_column(lake: Lake, tmp_path: Path) -> None:
    daily(lake, 3)
    found: list[int] = []
    counted = lake.spark.readStream.table(f"{lake.name}.db.t").groupBy().count()
    query = counted.writeStream.outputMode("complete").foreachBatch(
        lambda df, epoch: found.extend(row["count"] for row in df.collect())
    )
    query.option("checkpointLocation", str(tmp_path / "n")).trigger(availableNow=True).start().awaitTermination()
    assert found == [6]
    assert (batches_of(lake)[0].columns, batches_of(lake)[0].parts["kept"]) == ([], 3)


def test_a_stream_into_a_table_is_pruned_and_reported(lake: Lake, tmp_path: Path) -> None:
    daily(lake, 6)
    stream = lake.spark.readStream.table(f"{lake.name}.db.t").where("id >= 8")
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "w")).trigger(availableNow=True)
    running = writer.toTable(f"{lake.name}.db.copied")
    running.awaitTermination()
    assert sorted(lake.rows("SELECT id FROM lake.db.copied")) == [(8,), (9,), (10,), (11,)]
    assert [(r.parts["kept"], r.rows["total"]) for r in batches_of(lake)] == [(2, 12)]
    assert running.recentProgress[0]["numInputRows"] == 4
