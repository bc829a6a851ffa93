"""Metadata of an Iceberg table is read in each form of the format, and is refused where it is damaged or unknown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tamis
from tamis.bridges.sources.iceberg_metadata import IcebergOptions
from tamis.bridges.sources.iceberg_source import read_iceberg
from tamis.errors import CorruptData
from tests.bridges import iceberg_tables as ice
from tests.bridges.followed_iceberg_tables import DATA, made
from tests.bridges.iceberg_sources import changed_metadata, two_files


@pytest.mark.parametrize("changes", [{"format-version": 4}, {"encryption-keys": [{"key-id": "a"}]}])
def test_unknown_features_are_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(tamis.errors.InvalidInput, match="ICEBERG_FEATURE"):
        read_iceberg(changed_metadata(two_files(tmp_path), **changes))


def test_a_file_outside_the_location_is_refused(tmp_path: Path) -> None:
    table = two_files(tmp_path)
    moved = changed_metadata(table, location=f"file://{tmp_path}/warehouse/n/t/data")
    with pytest.raises(tamis.errors.InvalidInput, match="OUTSIDE_SOURCE"):
        read_iceberg(moved)
    assert len(read_iceberg(moved, IcebergOptions(outside=True)).files) == 2


@pytest.mark.parametrize("harm", ["metadata", "list", "manifest", "manifest gone", "metadata gone"])
def test_damage_is_an_error_that_names_it(tmp_path: Path, harm: str) -> None:
    table = two_files(tmp_path)
    snapshot = table.current_snapshot()
    places = {"metadata": ice.metadata_of(table), "list": ice.local(snapshot.manifest_list)}
    places["manifest"] = ice.local(snapshot.manifests(table.io)[0].manifest_path)
    path = places[harm.split(maxsplit=1)[0]]
    path.write_bytes(path.read_bytes()[:100])
    if harm.endswith("gone"):
        path.unlink()
    wanted = tamis.errors.NotFound if harm.endswith("gone") else tamis.errors.CorruptData
    with pytest.raises(wanted, match=path.name):
        read_iceberg(str(ice.metadata_of(table)))


def edited(folder: Path, change: Callable[[dict[str, Any]], object]) -> str:
    source = made(folder, DATA, "c")
    path = ice.metadata_of(source)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return str(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.pop("schemas"),
        lambda m: m.update({"schemas": [3]}),
        lambda m: m.update({"current-schema-id": 9}),
        lambda m: m["snapshots"][-1].pop("manifest-list"),
        lambda m: m["snapshots"][-1].pop("timestamp-ms"),
        lambda m: m["snapshots"][-1].pop("snapshot-id"),
        lambda m: m["partition-specs"][-1]["fields"][0].pop("transform"),
        lambda m: m["partition-specs"][-1]["fields"][0].update({"source-id": "2"}),
        lambda m: m["schemas"][0]["fields"][0].update({"name": None}),
        lambda m: m.update({"properties": [1]}),
        lambda m: m.update({"refs": {"main": {}}}),
        lambda m: m.update({"snapshots": 7}),
    ],
    ids=[
        "without schemas",
        "a schema that is a number",
        "a current schema that is not there",
        "a snapshot without manifests",
        "a snapshot without a time",
        "a snapshot without an id",
        "a partition field without a transform",
        "a partition field of a text",
        "a column without a name",
        "properties that are a list",
        "a branch without a snapshot",
        "snapshots that are a number",
    ],
)
def test_metadata_of_another_form_is_damaged(tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    with pytest.raises(CorruptData, match="ICEBERG_METADATA_DAMAGED"):
        tamis.adopt(edited(tmp_path, change), tmp_path / "t")


def test_a_snapshot_of_a_schema_that_is_gone_is_damaged(tmp_path: Path) -> None:
    place = edited(tmp_path, lambda m: m["snapshots"][-1].update({"schema-id": 7}))
    snapshot = json.loads(Path(place).read_text())["snapshots"][-1]["snapshot-id"]
    with pytest.raises(CorruptData, match="there is no schema 7"):
        tamis.adopt(place, tmp_path / "t", source_options={"version": snapshot})


def test_a_snapshot_without_a_summary_is_read(tmp_path: Path) -> None:
    place = edited(tmp_path, lambda m: m["snapshots"][-1].pop("summary"))
    assert tamis.adopt(place, tmp_path / "t").scan("c = 'a'").count() == 1


def test_partition_fields_of_format_1_may_have_no_ids(tmp_path: Path) -> None:
    def as_in_format_1(content: dict[str, Any]) -> None:
        for spec in content["partition-specs"]:
            for field in spec["fields"]:
                del field["field-id"]

    table = tamis.adopt(edited(tmp_path, as_in_format_1), tmp_path / "t")
    assert table.scan("c = 'a'", ["k"]).to_arrow()["k"].to_pylist() == [1]
