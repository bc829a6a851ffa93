"""A version of a followed source that may bring back old rows is marked, so that a stream does not take it for an append."""

from __future__ import annotations

import json
import os
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import tamis
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
def test_an_old_file_is_an_append_only_of_a_write(tmp_path: Path, operation: object) -> None:
    """A file may be older than the commit before it: its writer was overtaken by another."""
    source = tmp_path / "source"
    early = logs.add(source, "early.parquet", pa.table({"a": [1]}))
    logs.create(source, [logs.field("a", "long")], [logs.add(source, "0.parquet", pa.table({"a": [0]}))])
    table = tamis.adopt(source, tmp_path / "t", follow=True)
    assert isinstance(table, tamis.Table)
    info = {"commitInfo": {"timestamp": 1, **({} if operation is None else {"operation": operation})}}
    logs.commit(source, 1, [info, early])
    late = logs.add(source, "late.parquet", pa.table({"a": [2]}))
    newer = (source / "late.parquet").stat().st_mtime + 10
    os.utime(source / "late.parquet", (newer, newer))
    logs.commit(source, 2, [info, late])
    table.sync()
    assert marked(table) == [operation != "WRITE", False]


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
