"""A synchronization refuses a source with a gap in its history, a missing file or another table in its place."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import deltalake
import pytest

import tamis
from tests.bridges.foreign_tables import sorted_rows
from tests.bridges.source_histories import DELTA, delta_rows, followed_delta, rows


def test_a_history_with_a_gap_is_recognised(tmp_path: Path) -> None:
    source, table = followed_delta(tmp_path)
    for name in ("append", "delete", "append"):
        DELTA[name](source)
    deltalake.DeltaTable(source).create_checkpoint()
    (source / "_delta_log" / f"{2:020}.json").unlink()
    with pytest.raises(tamis.errors.CorruptData, match=r"SOURCE_HISTORY_GONE.*no commit 2.*skip_history"):
        table.sync()
    for at in (0, 1):
        (source / "_delta_log" / f"{at:020}.json").unlink()
    with pytest.raises(tamis.errors.CorruptData, match="SOURCE_HISTORY_GONE"):
        table.sync()
    done = table.sync(skip_history=True)
    assert (done.commits, done.source_version) == (1, "4")
    assert sorted_rows(table.scan().to_arrow()) == delta_rows(source)
    DELTA["update"](source)
    assert table.sync().commits == 1
    assert sorted_rows(table.scan().to_arrow()) == delta_rows(source)


def test_another_table_in_its_place_is_recognised(tmp_path: Path) -> None:
    source, table = followed_delta(tmp_path)
    shutil.rmtree(source)
    for start in (500, 510, 520):
        deltalake.write_deltalake(source, rows(start), mode="append")
    with pytest.raises(tamis.errors.CorruptData, match="SOURCE_REPLACED"):
        table.sync()
    with pytest.raises(tamis.errors.CorruptData, match="SOURCE_REPLACED"):
        table.sync(skip_history=True)


def test_a_commit_that_was_only_touched_is_the_same(tmp_path: Path) -> None:
    source, table = followed_delta(tmp_path)
    os.utime(source / "_delta_log" / f"{1:020}.json", ns=(1, 1))
    DELTA["append"](source)
    assert table.sync().commits == 1


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    source, table = followed_delta(tmp_path)
    version = table.version
    before = set(source.glob("*.parquet"))
    DELTA["append"](source)
    (new,) = set(source.glob("*.parquet")) - before
    data = new.read_bytes()
    new.unlink()
    with pytest.raises(tamis.errors.CorruptData, match=rf"SOURCE_CHANGED.*{new.name}.*is gone"):
        table.sync()
    new.write_bytes(data[:-20] + b"x" * 20)
    with pytest.raises(tamis.errors.TamisError, match=new.name):
        table.sync()
    assert tamis.open(tmp_path / "t").version == version
    new.write_bytes(data)
    assert table.sync().commits == 1
    min(before).unlink()
    with pytest.raises(tamis.errors.CorruptData, match="SOURCE_CHANGED"):
        tamis.adopt(source, tmp_path / "other")
    assert not (tmp_path / "other").exists()
