"""Tasks of the "Coming from" pages that read rows, changes or metadata."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import Any

from tests.spark.capabilities import needs_changes
from tests.spark.coming_from_shop import Shop

import tamis


def travel_in_time(shop: Shop) -> None:
    for frame in (
        shop.lake.sql("SELECT * FROM lake.db.t VERSION AS OF 1"),
        shop.lake.spark.read.option("versionAsOf", 1).table(shop.name),
        shop.lake.spark.read.format("tamis").option("versionAsOf", 1).load(shop.path),
    ):
        assert frame.count() == 3
    assert shop.lake.sql("SELECT * FROM lake.db.t TIMESTAMP AS OF '2999-01-01'").count() == 6
    assert tamis.open(shop.path, version=1).scan().count() == 3
    for option in ("snapshot-id", "as-of-timestamp", "branch", "tag"):
        reader = shop.lake.spark.read.format("tamis").option(option, "1")
        shop.fails(partial(reader.load, shop.path), "timestampAsOf" if "timestamp" in option else "versionAsOf")


def read_changes(shop: Shop) -> None:
    shop.open().update({"state": "'x'"}, "id = 5")
    kinds = ["delete", "insert"]
    assert sorted(shop.open().changes(2).to_arrow()["_change_type"].to_pylist()) == kinds
    by_call = shop.lake.sql("CALL lake.system.changes(table => 'db.t', from_version => 2)")
    assert sorted(row["_change_type"] for row in by_call.collect()) == kinds
    feed = {"readChangeFeed": "true", "startingVersion": "3", "endingVersion": "3"}
    assert shop.lake.spark.read.format("tamis").options(**feed).load(shop.path).count() == 2
    keyed = shop.lake.spark.read.format("tamis").options(**feed, keyColumns="id").load(shop.path)
    images = ["update_postimage", "update_preimage"]
    assert sorted(row["_change_type"] for row in keyed.collect()) == images
    shop.fails(
        lambda: shop.lake.spark.readStream.format("tamis").options(readChangeFeed="true").load(shop.path), "hange"
    )
    needs_changes(shop.lake.spark)
    assert shop.lake.sql(f"SELECT * FROM table_changes('{shop.name}', 3)").count() == 2
    assert shop.lake.sql(f"SELECT * FROM table_changes('{shop.name}', 3, NULL, 'id')").count() == 2
    assert shop.lake.sql("SELECT * FROM lake.db.t CHANGES FROM VERSION 3").count() == 2


def name_files(shop: Shop) -> None:
    wanted = ("file_path", "file_name", "file_size", "row_index")
    found = shop.lake.rows(f"SELECT {', '.join(f'_metadata.{name}' for name in wanted)} FROM lake.db.t WHERE id = 4")
    assert len(found) == 1
    assert found[0][1] in found[0][0]
    assert found[0][3] == 1


def read_stream(shop: Shop) -> None:
    def count(checkpoint: str, **options: Any) -> int:
        got: list[int] = []
        source = shop.drained(shop.stream(**options), checkpoint)
        source.foreachBatch(lambda batch, _: got.append(batch.count())).start().awaitTermination()
        return sum(got)

    assert count("a", startingVersion=2, maxFilesPerTrigger=1) == 3
    assert count("b", startingTimestamp="2001-01-01", maxBytesPerTrigger="1m") == 6
    shop.open().delete("id = 0")
    assert count("c", startingVersion=1, skipChangeCommits="true") == 6
    shop.fails(lambda: count("d", startingVersion=1), "skipChangeCommits")
    shop.fails(lambda: shop.stream(ignoreChanges="true"), "ignoreChanges")


def read_without_spark(shop: Shop) -> None:
    assert tamis.open(shop.path).scan("day = '2026-01-03'").to_arrow()["id"].to_pylist() == [2, 5]


def scan_in_python(shop: Shop) -> None:
    scan = shop.open().scan(row_filter="id > 0", selected_fields=("id",), version=2, limit=2, order_by=["id"])
    assert scan.to_arrow()["id"].to_pylist() == [1, 2]
    assert len(shop.open().scan().to_pandas()) == len(shop.open().scan().to_polars()) == 6
    assert len(shop.open().scan().to_duckdb().fetchall()) == shop.open().scan().count() == 6


def show_skipped(shop: Shop) -> None:
    shop.lake.rows("SELECT * FROM lake.db.t WHERE id > 4")
    assert tamis.reports()[-1].parts.kept == 1
    assert "parts" in shop.lake.rows("EXPLAIN SELECT * FROM lake.db.t WHERE id > 4")[0][0]
    completed = subprocess.run(
        [sys.executable, "-m", "tamis.cli.entry", "explain", shop.path, "id > 4"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert completed.returncode == 0, completed.stderr
    assert shop.open().explain("id > 4").parts.kept == 1
    assert len(shop.open().scan("id > 4").plan().parts) == 1


def list_metadata(shop: Shop) -> None:
    for name in ("snapshots", "parts", "segments", "history", "columns", "schemas"):
        assert shop.lake.rows(f"SELECT * FROM lake.db.t.{name}")
    for name in ("indexes", "constraints"):
        assert shop.lake.rows(f"SELECT * FROM lake.db.t.{name}") == []
