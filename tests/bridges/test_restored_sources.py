"""A version of a followed source that may bring back old rows is marked, so that a stream does not take it for an append."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import tamis
from tamis.bridges.adoption.source_sync import REMOVED_UNTIL
from tests.bridges import delta_logs as logs
from tests.bridges.source_histories import followed_delta, rows


def marked(table: tamis.Table) -> list[bool]:
    """Which synchronizations may bring back rows, oldest first."""
    found = [json.loads(text or "{}") for text in table.history()["parameters"].to_pylist()]
    return [one.get("may_restore", False) for one in reversed(found) if "source_version" in one][1:]


def test_a_restore_is_marked_and_writes_are_not(tmp_path: Path) -> None:
    source, table = followed_delta(tmp_path)
    deltalake.write_deltalake(source, rows(20), mode="append")
    deltalake.DeltaTable(source).delete("k >= 10 AND k < 20")
    deltalake.DeltaTable(source).restore(1)
    deltalake.write_deltalake(source, rows(30), mode="append")
    deltalake.DeltaTable(source).optimize.compact()
    table.sync()
    assert marked(table) == [False, False, True, False, False]


@pytest.mark.parametrize("operation", ["RESTORE", "CLONE", None, ["WRITE"], "WRITE"])
def test_a_file_that_was_removed_comes_back_unless_a_writer_says_it_is_new(tmp_path: Path, operation: object) -> None:
    source = tmp_path / "source"
    first = logs.add(source, "0.parquet", pa.table({"a": [0]}))
    logs.create(source, [logs.field("a", "long")], [first])
    table = tamis.adopt(source, tmp_path / "t", follow=True)
    assert isinstance(table, tamis.Table)
    logs.commit(source, 1, [{"remove": {"path": "0.parquet", "dataChange": True}}])
    logs.commit(source, 2, [_info(operation), first])
    late = logs.add(source, "late.parquet", pa.table({"a": [2]}))
    newer = (source / "0.parquet").stat().st_mtime + 10
    os.utime(source / "late.parquet", (newer, newer))
    logs.commit(source, 3, [_info(operation), late])
    table.sync()
    assert marked(table) == [False, operation != "WRITE", False]


def test_an_old_file_that_the_table_never_had_is_no_restore(tmp_path: Path) -> None:
    """Its writer was overtaken by another."""
    source = tmp_path / "source"
    early = logs.add(source, "early.parquet", pa.table({"a": [1]}))
    logs.create(source, [logs.field("a", "long")], [logs.add(source, "0.parquet", pa.table({"a": [0]}))])
    table = tamis.adopt(source, tmp_path / "t", follow=True)
    assert isinstance(table, tamis.Table)
    logs.commit(source, 1, [_info("CLONE"), early])
    table.sync()
    assert marked(table) == [False]


def test_a_table_of_an_earlier_release_does_not_know_what_it_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    early = logs.add(source, "early.parquet", pa.table({"a": [1]}))
    logs.create(source, [logs.field("a", "long")], [logs.add(source, "0.parquet", pa.table({"a": [0]}))])
    monkeypatch.setattr(
        "tamis.bridges.adoption.log_sources.replace",
        lambda table, properties: replace(table, properties=_without(properties)),
    )
    table = tamis.adopt(source, tmp_path / "t", follow=True)
    assert isinstance(table, tamis.Table)
    logs.commit(source, 1, [_info("CLONE"), early])
    table.sync()
    assert marked(table) == [True]


def _without(properties: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in properties.items() if name != REMOVED_UNTIL}


def _info(operation: object) -> dict[str, object]:
    return {"commitInfo": {"timestamp": 1, **({} if operation is None else {"operation": operation})}}


@pytest.mark.parametrize("change", [True, False])
@pytest.mark.parametrize("operation", ["COMPUTE STATS", "WRITE"])
def test_a_file_that_is_named_again_counts_once(tmp_path: Path, operation: str, change: bool) -> None:
    """The log of a copied table may be older than its files, so times do not tell which files are new."""
    source = tmp_path / "source"
    named = logs.add(source, "0.parquet", pa.table({"a": [1, 2]}))
    logs.create(source, [logs.field("a", "long")], [named])
    newer = (source / "0.parquet").stat().st_mtime + 10
    os.utime(source / "0.parquet", (newer, newer))
    table = tamis.adopt(source, tmp_path / "t", follow=True)
    assert isinstance(table, tamis.Table)
    fresh = logs.add(source, "1.parquet", pa.table({"a": [3]}))
    logs.commit(source, 1, [_info("WRITE"), fresh])
    logs.commit(source, 2, [_info(operation), {"add": {**named["add"], "dataChange": change}}, fresh])
    table.sync()
    assert sorted(table.scan().to_arrow()["a"].to_pylist()) == [1, 2, 3]
    assert sorted(deltalake.DeltaTable(source).to_pyarrow_table()["a"].to_pylist()) == [1, 2, 3]
    assert marked(table) == [False, False]


def test_a_skipped_history_may_have_been_a_restore(tmp_path: Path) -> None:
    source, table = followed_delta(tmp_path)
    deltalake.DeltaTable(source).delete("k >= 10")
    table.sync()
    deltalake.DeltaTable(source).restore(1)
    table.sync(skip_history=True)
    assert marked(table) == [False, True]
    deltalake.write_deltalake(source, rows(20), mode="append")
    table.sync(skip_history=True)
    assert marked(table) == [False, True, False], "all its files are newer than the version before"
