"""A version of a Delta table is found by its number or its time, and has the rows that deltalake reads."""

from __future__ import annotations

import os
import shutil
from datetime import date
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import tamis
from tamis.bridges.sources.delta_source import read_delta
from tests.bridges import delta_logs as logs
from tests.bridges.exported_tables import CHANGES, RENAMES, made
from tests.bridges.foreign_tables import check_claims, contents, live_rows, sorted_rows
from tests.bridges.source_histories import table_of_commits


def test_a_version_is_that_of_deltalake(tmp_path: Path) -> None:
    schema = pa.schema([("p", pa.string()), ("q", pa.date32()), ("v", pa.int64())])
    places = ["a b", "ü/%", "", None, "x=y", "a%20b"]
    for at in range(6):
        rows = [{"p": places[at], "q": date(2020, 1, at + 1), "v": n} for n in range(at + 1)]
        deltalake.write_deltalake(tmp_path, pa.Table.from_pylist(rows, schema), mode="append", partition_by=["p", "q"])
    table = deltalake.DeltaTable(tmp_path)
    table.delete("v = 0 and p = 'a b'")
    table.create_checkpoint()
    table.update({"v": "v + 10"}, predicate="p = 'x=y'")
    table.optimize.compact()
    before = contents(tmp_path)
    for version in range(table.version() + 1):
        table.load_as_version(version)
        source = read_delta(str(tmp_path), version=version)
        assert source.version == str(version)
        assert sorted_rows(live_rows(source)) == sorted_rows(table.to_pyarrow_table()), version
        check_claims(source)
    assert contents(tmp_path) == before


def test_a_time_finds_the_version_that_was_current(tmp_path: Path) -> None:
    for at in range(4):
        deltalake.write_deltalake(tmp_path, pa.table({"v": [at]}), mode="append")
        # the clock of the third writer is behind
        stamp = [100, 200, 150, 400][at] * 10**9
        os.utime(tmp_path / "_delta_log" / f"{at:020}.json", ns=(stamp, stamp))
    found = [read_delta(str(tmp_path), timestamp_micros=s * 10**6).version for s in (100, 199, 201, 399, 10**6)]
    assert found == ["0", "0", "2", "2", "3"]
    with pytest.raises(tamis.errors.NotFound, match="DELTA_VERSION_NOT_FOUND"):
        read_delta(str(tmp_path), timestamp_micros=1)


def test_the_time_in_a_commit_counts_where_the_table_says_so(tmp_path: Path) -> None:
    metadata = logs.metadata([logs.field("v", "long")], **{"delta.enableInCommitTimestamps": "true"})
    first = {"commitInfo": {"inCommitTimestamp": 1_000}}
    logs.commit(tmp_path, 0, [first, {"protocol": logs.PROTOCOL}, {"metaData": metadata}])
    logs.commit(tmp_path, 1, [{"commitInfo": {"inCommitTimestamp": 2_000}}])
    assert read_delta(str(tmp_path), timestamp_micros=1_999_999).version == "0"
    assert read_delta(str(tmp_path)).timestamp_micros == 2_000_000


def test_times_of_objects_do_not_count_after_the_times_in_commits_begin(tmp_path: Path) -> None:
    """A copy of the table changes the former: here they are later than all times in the commits."""
    since = {"delta.enableInCommitTimestamps": "true", "delta.inCommitTimestampEnablementVersion": "2"}
    metadata = {"metaData": logs.metadata([logs.field("v", "long")], **since)}
    logs.commit(tmp_path, 0, [{"protocol": logs.PROTOCOL}, metadata])
    logs.commit(tmp_path, 1, [{"commitInfo": {}}])
    for version, stamp in ((2, 2_000), (3, 3_000)):
        logs.commit(tmp_path, version, [{"commitInfo": {"inCommitTimestamp": stamp}}])
    for version, seconds in ((0, 100), (1, 200), (2, 201), (3, 202)):
        os.utime(tmp_path / "_delta_log" / f"{version:020}.json", ns=(seconds * 10**9, seconds * 10**9))
    found = [read_delta(str(tmp_path), timestamp_micros=ms * 1_000).version for ms in (2_500, 3_000, 150_000)]
    assert found == ["2", "3", "3"]
    os.utime(tmp_path / "_delta_log" / f"{0:020}.json", ns=(10**9, 10**9))
    assert read_delta(str(tmp_path), timestamp_micros=1_500_000).version == "0"


@pytest.mark.push_cases(6)
@pytest.mark.parametrize("name", [*CHANGES, *RENAMES])
def test_an_export_reads_as_what_was_exported(tmp_path: Path, name: str) -> None:
    table = made(tmp_path / "t")
    table.delete("id % 9 = 2")
    {**CHANGES, **RENAMES}[name](table)
    table.export("delta")
    source = read_delta(str(tmp_path / "t"))
    ours, theirs = table.scan().to_arrow(), live_rows(source)
    flat = [f.name for f in ours.schema if not pa.types.is_nested(f.type)]
    assert sorted_rows(theirs.select(flat)) == sorted_rows(ours.select(flat))
    assert check_claims(source) > 10


def test_no_table_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(tamis.errors.NotFound, match="DELTA_NOT_FOUND"):
        read_delta(str(tmp_path))
    table_of_commits(tmp_path, 1)
    with pytest.raises(tamis.errors.NotFound, match="The newest is 0"):
        read_delta(str(tmp_path), version=5)
    shutil.rmtree(tmp_path / "_delta_log")
    with pytest.raises(tamis.errors.NotFound):
        read_delta(str(tmp_path))


@pytest.mark.parametrize("mode", ["reference", "copy"])
def test_a_table_without_files_is_an_empty_one(tmp_path: Path, mode: str) -> None:
    deltalake.DeltaTable.create(str(tmp_path / "delta"), deltalake.Schema.from_arrow(pa.schema([("a", pa.int64())])))
    table = tamis.adopt(str(tmp_path / "delta"), str(tmp_path / "ours"), mode=mode)
    assert table.scan().to_arrow().num_rows == 0
    assert table.schema.names == ["a"]
