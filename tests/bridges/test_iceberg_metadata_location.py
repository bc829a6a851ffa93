"""The current metadata file of an Iceberg table is found by a version hint or a catalog."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import tamis
from tamis.bridges.sources.iceberg_metadata import IcebergOptions
from tamis.bridges.sources.iceberg_source import read_iceberg
from tests.bridges import iceberg_tables as ice
from tests.bridges.iceberg_sources import two_files


def test_a_folder_needs_a_hint(tmp_path: Path) -> None:
    table = two_files(tmp_path)
    folder = ice.local(table.location())
    with pytest.raises(tamis.errors.InvalidInput, match="ICEBERG_WHICH_METADATA"):
        read_iceberg(str(folder))
    (folder / "metadata" / "version-hint.text").write_text(ice.metadata_of(table).name.removesuffix(".metadata.json"))
    assert len(read_iceberg(str(folder)).files) == 2


def test_a_hint_may_be_behind(tmp_path: Path) -> None:
    """As Hadoop's tables count: the newest version after the hint is current. It may be compressed."""
    table = two_files(tmp_path)
    folder = ice.local(table.location())
    log = [ice.local(e.metadata_file) for e in table.metadata.metadata_log] + [ice.metadata_of(table)]
    for n, path in enumerate(log, 1):
        (folder / "metadata" / f"v{n}.metadata.json").write_bytes(path.read_bytes())
    (folder / "metadata" / "v3.metadata.json").unlink()
    (folder / "metadata" / "v3.gz.metadata.json").write_bytes(gzip.compress(log[-1].read_bytes()))
    (folder / "metadata" / "version-hint.text").write_text("2")
    assert len(log) == 3
    assert len(read_iceberg(str(folder)).files) == 2


def test_a_catalog_names_the_metadata(tmp_path: Path) -> None:
    table = two_files(tmp_path)
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    options = IcebergOptions(catalog="local", catalog_properties=properties)
    assert read_iceberg("n.t", options).version == str(table.current_snapshot().snapshot_id)
    with pytest.raises(tamis.errors.NotFound, match=r"has no table 'n\.other'"):
        read_iceberg("n.other", options)
    broken = IcebergOptions(catalog="local", catalog_properties={"type": "sql", "uri": "nothing://secret"})
    with pytest.raises(tamis.errors.InvalidInput, match="ICEBERG_CATALOG") as raised:
        read_iceberg("n.t", broken)
    assert "secret" not in str(raised.value)
