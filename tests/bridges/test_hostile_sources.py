"""Small files of a source that would take all memory, or hours: they are passed over, or are an error."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tamis.bridges.sources import delta_log, iceberg_metadata
from tamis.bridges.sources.delta_actions import read_commit
from tamis.errors import CorruptData
from tamis.storage.object_store import open_store


@pytest.mark.parametrize("parts", ["0500000000", "9999999999"])
def test_a_checkpoint_of_any_number_of_parts(tmp_path: Path, parts: str) -> None:
    (tmp_path / "_delta_log").mkdir()
    name = f"00000000000000000005.checkpoint.0000000001.{parts}.parquet"
    (tmp_path / "_delta_log" / name).touch()
    assert delta_log.list_log(open_store(str(tmp_path))).checkpoints == []


def test_blank_lines_in_a_commit(tmp_path: Path) -> None:
    add = {"add": {"path": "a", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}}
    other = {"commitInfo": {"operation": "WRITE"}}
    data = b"\n" * 1_000_000 + json.dumps(add).encode() + b"\n \t\n" + json.dumps(other).encode() + b"\n" * 1_000_000
    found = read_commit(open_store(str(tmp_path)), "x", data)
    assert (found.added["path"].to_pylist(), found.info) == (["a"], {"operation": "WRITE"})


def test_metadata_that_unpacks_to_more_than_an_object_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    content: dict[str, Any] = {"location": "x", "format-version": 2}
    packed = gzip.compress(json.dumps(content).encode() + b" " * 10_000)
    monkeypatch.setattr(iceberg_metadata, "MOST_OBJECT", 5_000)
    with pytest.raises(CorruptData, match="unpacks to more than 5000 bytes"):
        iceberg_metadata.parsed_metadata("m", packed)


def test_a_version_hint_of_any_length(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "version-hint.text").write_text("1" * 5_000)
    options = iceberg_metadata.IcebergOptions()
    assert iceberg_metadata._hinted(str(tmp_path), options).endswith("1.metadata.json")
