"""A snapshot of an Iceberg table has the rows and the schema that PyIceberg reads."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.bridges.sources.iceberg_source import read_iceberg
from tests.bridges import iceberg_tables as ice
from tests.bridges.exported_tables import CHANGES, RENAMES, made
from tests.bridges.foreign_tables import check_claims, contents, live_rows, sorted_rows
from tests.bridges.iceberg_sources import evolved


def test_an_evolved_schema_reads_as_in_pyiceberg(tmp_path: Path) -> None:
    table = evolved(tmp_path)
    source = read_iceberg(str(ice.metadata_of(table)))
    assert sorted_rows(live_rows(source)) == sorted_rows(table.scan().to_arrow())
    assert check_claims(source) >= 14
    assert source.by_field_id
    first = table.snapshots()[0].snapshot_id
    old = read_iceberg(str(ice.metadata_of(table)), snapshot=first)
    assert old.schema.names == ("i", "f", "d", "gone", "s")
    assert sorted_rows(live_rows(old)) == sorted_rows(table.scan(snapshot_id=first).to_arrow())


def test_branches_and_tags_name_snapshots(tmp_path: Path) -> None:
    table = evolved(tmp_path)
    first, second = (s.snapshot_id for s in table.snapshots())
    table.manage_snapshots().create_tag(first, "release").create_branch(first, "audit").commit()
    place = str(ice.metadata_of(table))
    tag, branch, main = (read_iceberg(place, ref=name) for name in ("release", "audit", "main"))
    assert (tag.version, branch.version, main.version) == (str(first), str(first), str(second))
    assert tag.schema.names != main.schema.names == branch.schema.names
    with pytest.raises(tamis.errors.NotFound, match="audit, main, release"):
        read_iceberg(place, ref="other")
    with pytest.raises(tamis.errors.NotFound, match="It may have expired"):
        read_iceberg(place, snapshot=5)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", [*CHANGES, *RENAMES])
@pytest.mark.push_cases(4)
def test_an_export_reads_as_what_was_exported(tmp_path: Path, name: str, version: int) -> None:
    table = made(tmp_path / "t")
    table.delete("id % 9 = 2")
    {**CHANGES, **RENAMES}[name](table)
    table.export("iceberg", format_version=version)
    source = read_iceberg(str(tmp_path / "t"))
    ours, theirs = table.scan().to_arrow(), live_rows(source)
    flat = [f.name for f in ours.schema if not pa.types.is_nested(f.type)]
    assert sorted_rows(theirs.select(flat)) == sorted_rows(ours.select(flat))
    assert check_claims(source) > 10


def test_nothing_of_the_source_is_written(tmp_path: Path) -> None:
    table = evolved(tmp_path)
    before = contents(tmp_path)
    read_iceberg(str(ice.metadata_of(table)))
    assert contents(tmp_path) == before
