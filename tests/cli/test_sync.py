"""The command that synchronizes a table with the source that it follows."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
from tests.cli.conftest import Run

import tamis


def test_sync_takes_the_versions_of_the_source(run: Run, tmp_path: Path) -> None:
    source, place = tmp_path / "source", str(tmp_path / "t")
    deltalake.write_deltalake(source, pa.table({"n": [1, 2]}))
    tamis.adopt(source, place, follow=True)
    deltalake.write_deltalake(source, pa.table({"n": [3]}), mode="append")
    done = run("sync", place)
    assert (done.code, done.out) == (0, "1 version taken, up to 1. 1 file came, 0 left. Version 1.\n")
    assert done.err.startswith("Synchronizing")
    assert run("sync", place).out == "Nothing new: the source is at version 1.\n"
    deltalake.DeltaTable(source).delete("n = 1")
    result = run("sync", place, "--json").json
    assert {k: result[k] for k in ("commits", "source_version", "files_added", "files_removed")} == {
        "commits": 1,
        "source_version": "2",
        "files_added": 1,
        "files_removed": 1,
    }
    (source / "_delta_log" / f"{2:020}.json").unlink()
    assert "SOURCE_HISTORY_GONE" in run("sync", place).err
    assert "FOLLOWING_TABLE" in run("compact", place).err


def test_a_table_that_follows_nothing(run: Run, tmp_path: Path) -> None:
    tamis.create(tmp_path / "t", pa.schema([("n", pa.int64())]))
    done = run("sync", str(tmp_path / "t"))
    assert done.code != 0
    assert "NOT_FOLLOWING" in done.err
    hidden = run("sync", str(tmp_path / "t"), "--source-option", "topsecret")
    assert "topsecret" not in hidden.err
