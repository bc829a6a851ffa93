"""Metadata of an Iceberg table that is damaged, or has a feature that we do not know, is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tamis
from tamis.bridges.sources.iceberg_metadata import IcebergOptions
from tamis.bridges.sources.iceberg_source import read_iceberg
from tests.bridges import iceberg_tables as ice
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
