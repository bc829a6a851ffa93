"""Paths in a Delta log are decoded once, and those outside the root are refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.bridges.sources.delta_source import DeltaOptions, read_delta
from tamis.bridges.sources.foreign_paths import percent_decoded
from tests.bridges import delta_logs as logs
from tests.bridges.foreign_tables import live_rows


@pytest.mark.parametrize("path", ["../b.parquet", "x/../../b.parquet", "/b.parquet", "s3://other/b.parquet", "a//b"])
def test_a_file_outside_the_root_is_refused(tmp_path: Path, path: str) -> None:
    action = {"add": {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}}
    logs.create(tmp_path, [logs.field("v", "long")], [action])
    with pytest.raises(tamis.errors.InvalidInput, match="OUTSIDE_SOURCE"):
        read_delta(str(tmp_path))


def test_absolute_paths_below_the_root_are_its_own_and_others_may_be_allowed(tmp_path: Path) -> None:
    there, clone = tmp_path / "base table", tmp_path / "clone"
    base = logs.add(there, "a b.parquet", pa.table({"v": [1]}), {})["add"]
    own = logs.add(clone, "c.parquet", pa.table({"v": [2]}), {})["add"]
    actions = [
        {"add": {**base, "path": (there / "a b.parquet").as_uri()}},
        {"add": {**own, "path": (clone / "c.parquet").as_uri()}},
    ]
    logs.create(clone, [logs.field("v", "long")], actions)
    with pytest.raises(tamis.errors.InvalidInput, match="OUTSIDE_SOURCE"):
        read_delta(str(clone))
    source = read_delta(str(clone), DeltaOptions(outside=True))
    assert source.files["path"].to_pylist() == [f"file://{there}/a b.parquet", "c.parquet"]
    assert sorted(live_rows(source)["v"].to_pylist()) == [1, 2]


def test_escapes_in_paths_are_decoded_once() -> None:
    paths = pa.array(["a%20b", "a%2520b", "%c3%BC", "plain", "100%"])
    assert percent_decoded(paths).to_pylist() == ["a b", "a%20b", "ü", "plain", "100%"]


@pytest.mark.parametrize("form", ["escaped", "absolute", "absolute and escaped"])
@pytest.mark.parametrize(("second", "expected"), [("remove", []), ("add", [1, 2])])
def test_a_path_that_is_written_in_two_ways_is_one_file(
    tmp_path: Path, form: str, second: str, expected: list[int]
) -> None:
    """deltalake escapes a path that it removes in its own way. A table that follows and one that is adopted later agree."""
    source = tmp_path / "source"
    added = logs.add(source, "p=é/a.parquet", pa.table({"id": [1, 2]}), {})
    logs.create(source, [logs.field("id", "long")], [added])
    followed = tamis.adopt(source, tmp_path / "followed", follow=True)
    again = "p=%c3%A9/a.parquet" if "escaped" in form else "p=é/a.parquet"
    again = f"file://{source}/{again}" if "absolute" in form else again
    logs.commit(source, 1, [logs.remove(again) if second == "remove" else {"add": {**added["add"], "path": again}}])
    followed.sync()
    for table in (followed, tamis.adopt(source, tmp_path / "later")):
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == expected


def test_a_removed_path_that_is_not_utf8_concerns_no_file(tmp_path: Path) -> None:
    source = tmp_path / "source"
    added = logs.add(source, "a.parquet", pa.table({"id": [1]}), {})
    logs.create(source, [logs.field("id", "long")], [added])
    followed = tamis.adopt(source, tmp_path / "followed", follow=True)
    logs.commit(source, 1, [logs.remove("%FF.parquet")])
    followed.sync()
    for table in (followed, tamis.adopt(source, tmp_path / "later")):
        assert table.scan().to_arrow()["id"].to_pylist() == [1]


def test_a_path_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    added = logs.add(tmp_path, "a.parquet", pa.table({"id": [1]}), {})["add"]
    logs.create(tmp_path, [logs.field("id", "long")], [{"add": {**added, "path": "%FF.parquet"}}])
    with pytest.raises(tamis.errors.InvalidInput, match="SOURCE_PATH"):
        read_delta(str(tmp_path))
