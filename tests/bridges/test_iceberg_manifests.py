"""Entries of Iceberg manifests say which format a file has, and by sequence numbers which deletes hold for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

import tamis
from tamis.bridges.sources.iceberg_source import read_iceberg
from tests.bridges import iceberg_tables as ice
from tests.bridges.iceberg_sources import keys, two_files


def test_deletes_hold_for_older_files_alone(tmp_path: Path) -> None:
    """A position delete of the file's own commit holds, an equality delete does not."""
    table = two_files(tmp_path)
    one, two = ice.data_paths(table)
    made = ice.commit_deletes(
        ice.metadata_of(table),
        [
            ice.position_file(table, [(one, 1), (two, 1)]),
            ice.equality_file(table, pa.table({"k": [2, 12, None]}), {"k": 1}),
        ],
    )
    table_metadata = json.loads(made.read_text())
    listed = ice.local(table_metadata["snapshots"][-1]["manifest-list"])
    _rewrite(listed, lambda m: {**m, "sequence_number": 2 if m["content"] else m["sequence_number"]})
    assert keys(made) == [0, *range(3, 10), 10, *range(12, 20)]
    _rewrite(listed, lambda m: {**m, "sequence_number": 1 if m["content"] else m["sequence_number"]})
    assert keys(made) == [0, *range(2, 20)]


def _rewrite(path: Path, change: Any) -> None:

    with path.open("rb") as file:
        reader = fastavro.reader(file)
        schema, found = reader.writer_schema, [change(r) for r in reader]
    plain = {key: value for key, value in schema.items() if not key.startswith("__")}
    with path.open("wb") as file:
        fastavro.writer(file, plain, found)


def test_an_entry_keeps_its_sequence_number_when_its_manifest_is_rewritten(tmp_path: Path) -> None:
    table = two_files(tmp_path)
    file = ice.equality_file(table, pa.table({"k": [2, 13]}), {"k": 1})
    made = ice.commit_deletes(ice.metadata_of(table), [file])
    table_metadata = json.loads(made.read_text())
    listed = ice.local(table_metadata["snapshots"][-1]["manifest-list"])
    with listed.open("rb") as opened:
        manifests = [m for m in fastavro.reader(opened) if not m["content"]]
    for manifest in manifests:
        _rewrite(ice.local(manifest["manifest_path"]), lambda e: {**e, "status": 0, "sequence_number": 1})
    _rewrite(listed, lambda m: {**m, "sequence_number": m["sequence_number"] if m["content"] else 9})
    assert keys(made) == [n for n in range(20) if n not in (2, 13)]


def test_a_file_of_another_format_is_refused_by_name(tmp_path: Path) -> None:
    table = two_files(tmp_path)
    made = ice.commit_deletes(ice.metadata_of(table), [])
    table_metadata = json.loads(made.read_text())
    with ice.local(table_metadata["snapshots"][-1]["manifest-list"]).open("rb") as file:
        manifest = ice.local(next(iter(fastavro.reader(file)))["manifest_path"])
    _rewrite(manifest, lambda e: {**e, "data_file": {**e["data_file"], "file_format": "ORC"}})
    with pytest.raises(tamis.errors.InvalidInput, match="SOURCE_FORMAT"):
        read_iceberg(str(made))
