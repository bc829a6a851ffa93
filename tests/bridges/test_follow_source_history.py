"""A synchronization refuses a source with a gap in its history, a missing file or another table in its place."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import tamis
from tests.bridges import delta_logs as logs
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


def test_a_source_that_was_vacuumed_meanwhile_can_be_taken_without_its_history(tmp_path: Path) -> None:
    source, table = followed_delta(tmp_path)
    DELTA["append"](source)
    before = set(source.glob("*.parquet"))
    DELTA["update"](source)
    lost = {path.name for path in set(source.glob("*.parquet")) - before}
    DELTA["overwrite"](source)
    for name in lost:
        (source / name).unlink()
    with pytest.raises(
        tamis.errors.CorruptData, match=r"SOURCE_HISTORY_GONE.*from its version 2.*skip_history"
    ) as caught:
        table.sync()
    assert isinstance(caught.value.__cause__, tamis.errors.CorruptData)
    assert caught.value.__cause__.name in lost
    deltalake.DeltaTable(source).vacuum(0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(tamis.errors.CorruptData, match="SOURCE_HISTORY_GONE"):
        table.sync()
    assert table.sync(skip_history=True).commits == 1
    assert sorted_rows(table.scan().to_arrow()) == delta_rows(source)


def test_a_file_of_a_version_between_that_the_newest_still_has_must_come_back(tmp_path: Path) -> None:
    source, table = followed_delta(tmp_path)
    before = set(source.glob("*.parquet"))
    DELTA["append"](source)
    (new,) = set(source.glob("*.parquet")) - before
    DELTA["append"](source)
    data = new.read_bytes()
    new.unlink()
    for skip in (False, True):
        with pytest.raises(tamis.errors.CorruptData, match=rf"SOURCE_CHANGED.*{new.name}.*is gone"):
            table.sync(skip_history=skip)
    new.write_bytes(data)
    assert table.sync().commits == 2
    assert sorted_rows(table.scan().to_arrow()) == delta_rows(source)


def test_a_deletion_vector_of_a_version_between_may_be_gone(tmp_path: Path) -> None:
    source = tmp_path / "source"
    add = logs.add(source, "a.parquet", pa.table({"k": [1, 2, 3, 4]}), {})
    metadata = {"metaData": logs.metadata([logs.field("k", "long")])}
    logs.commit(source, 0, [{"protocol": logs.protocol("deletionVectors")}, metadata, add])
    table = tamis.adopt(source, tmp_path / "t", follow=True)
    assert isinstance(table, tamis.Table)
    files: list[Path] = []
    before: dict[str, Any] = {}
    for version in (1, 2, 3):
        (vector,) = logs.stored_vectors(source, range(version))
        files += sorted(set(source.glob("deletion_vector_*")) - set(files))
        remove, more = logs.remove("a.parquet", **before), {"deletionVector": vector}
        logs.commit(source, version, [remove, {"add": {**add["add"], **more}}])
        before = more
    files[1].unlink()
    with pytest.raises(tamis.errors.CorruptData, match=r"SOURCE_HISTORY_GONE.*from its version 1"):
        table.sync()
    assert table.refresh().scan().to_arrow()["k"].to_pylist() == [2, 3, 4], "version 1 could be taken"
    newest = files[2].read_bytes()
    files[2].unlink()
    for skip in (False, True):
        with pytest.raises(tamis.errors.NotFound, match="OBJECT_NOT_FOUND"):
            table.sync(skip_history=skip)
    files[2].write_bytes(newest)
    assert table.sync(skip_history=True).commits == 1
    assert table.scan().to_arrow()["k"].to_pylist() == [4]
