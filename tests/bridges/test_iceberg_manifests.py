"""Entries of Iceberg manifests say which format a file has, and by sequence numbers which deletes hold for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from fastavro import _read
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

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


def _rewrite(path: Path, change: Any, optional: str = "") -> None:
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        schema, found = reader.writer_schema, [change(r) for r in reader]
    plain = {key: value for key, value in schema.items() if not key.startswith("__")}
    fields = [
        {**f, "type": ["null", f["type"]], "default": None} if f["name"] == optional else f for f in plain["fields"]
    ]
    with path.open("wb") as file:
        fastavro.writer(file, {**plain, "fields": fields}, found)


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


@pytest.mark.parametrize("known", [True, False])
def test_an_append_of_format_1_may_not_say_which_manifests_are_new(tmp_path: Path, known: bool) -> None:
    source = format_1(tmp_path)
    source.append(ROWS.slice(0, 2))
    options = {"catalog.type": "sql", "catalog.uri": f"sqlite:///{tmp_path}/catalog.db"}
    found = {**options, "catalog": "local", "catalog.warehouse": f"file://{tmp_path}/warehouse"}
    table = tamis.adopt("n.t", tmp_path / "t", follow=True, source_options=found)
    source.append(ROWS.slice(2))
    path = ice.metadata_of(source)
    content = json.loads(path.read_text())
    if not known:
        listed = ice.local(content["snapshots"][-1]["manifest-list"])
        _rewrite(listed, lambda m: {**m, "added_snapshot_id": None}, optional="added_snapshot_id")
        content["snapshots"][-1]["summary"] = {"operation": "append"}
        path.write_text(json.dumps(content))
    table.sync(source_options=options)
    assert sorted(table.refresh().scan().to_arrow()["k"].to_pylist()) == [1, 2, 3, 4]


@pytest.mark.parametrize("inline", [False, True])
def test_a_manifest_that_no_list_describes_names_its_partition_spec(tmp_path: Path, inline: bool) -> None:
    source = format_1(tmp_path, PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "p"), spec_id=0))
    source.append(ROWS.slice(0, 2))
    with source.update_spec() as change:
        change.remove_field("p")
        change.add_field("q", IdentityTransform(), "q")
    source.append(ROWS.slice(2))
    path = ice.metadata_of(source)
    content = json.loads(path.read_text())
    for snapshot in content["snapshots"] if inline else ():
        with ice.local(snapshot.pop("manifest-list")).open("rb") as file:
            snapshot["manifests"] = [m["manifest_path"] for m in fastavro.reader(file)]
    path.write_text(json.dumps(content))
    table = tamis.adopt(path, tmp_path / "t")
    assert table.scan().to_arrow().sort_by("k").to_pylist() == ROWS.to_pylist()
    assert sorted(table.scan("p = 'a'").to_arrow()["k"].to_pylist()) == [1, 3]


ROWS = pa.table({"k": [1, 2, 3, 4], "p": ["a", "b", "a", "b"], "q": ["x", "y", "x", "y"]})


def format_1(folder: Path, spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC) -> Any:
    """A table of format 1 for ``ROWS``."""
    schema = Schema(
        NestedField(1, "k", LongType()), NestedField(2, "p", StringType()), NestedField(3, "q", StringType())
    )
    return ice.catalog(folder).create_table("n.t", schema, partition_spec=spec, properties={"format-version": "1"})


def test_a_codec_without_its_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyIceberg writes Zstandard by a package of its own."""
    monkeypatch.setitem(_read.BLOCK_READERS, "zstandard", vars(_read)["missing_codec_lib"]("zstandard", "a package"))
    catalog = ice.catalog(tmp_path)
    compressed = {"write.avro.compression-codec": "zstd"}
    table = catalog.create_table("n.t", pa.schema([("id", pa.int64())]), properties=compressed)
    table.append(pa.table({"id": [1, 2]}))
    with pytest.raises(tamis.errors.InvalidInput, match=r"MISSING_PACKAGE.*fastavro\[zstandard\]"):
        tamis.adopt(table.metadata_location, tmp_path / "adopted")
