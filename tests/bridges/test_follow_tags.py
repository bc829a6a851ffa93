"""A table that follows a tag of an Iceberg table has the tag's rows in the schema of its snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.types import LongType

import tamis
from tamis.bridges.sources.iceberg_metadata import IcebergMetadata
from tests.bridges.foreign_tables import sorted_rows
from tests.bridges.iceberg_sources import evolved


def tagged(folder: Path) -> Any:
    """A table whose schema changed after the snapshot of its tag."""
    source = evolved(folder)
    source.manage_snapshots().create_tag(source.snapshots()[0].snapshot_id, "release").commit()
    return source


def catalog_of(folder: Path) -> dict[str, str]:
    return {"catalog.type": "sql", "catalog.uri": f"sqlite:///{folder}/catalog.db"}


def adopted(folder: Path, name: str, *, follow: bool) -> tamis.Table:
    more = {"catalog": "local", "catalog.warehouse": f"file://{folder}/warehouse", "ref": "release"}
    table = tamis.adopt("n.t", folder / name, follow=follow, source_options={**catalog_of(folder), **more})
    assert isinstance(table, tamis.Table)
    return table


def check(source: Any, table: tamis.Table) -> None:
    """Compare the table with the tag, as PyIceberg reads it."""
    expected = source.scan(snapshot_id=source.refs()["release"].snapshot_id).to_arrow()
    found = table.refresh().scan().to_arrow()
    assert found.column_names == expected.column_names
    assert sorted_rows(found) == sorted_rows(expected)
    assert not len(table.verify().problems)


@pytest.mark.parametrize("follow", [True, False])
def test_a_tag_is_seen_in_the_schema_of_its_snapshot(tmp_path: Path, follow: bool) -> None:
    source = tagged(tmp_path)
    table = adopted(tmp_path, "t", follow=follow)
    check(source, table)
    assert table.schema.names == ["i", "f", "d", "gone", "s"]


def test_what_comes_after_a_tag_is_no_change_of_it(tmp_path: Path) -> None:
    source = tagged(tmp_path)
    table = adopted(tmp_path, "t", follow=True)
    source.delete("i = 1")
    with source.update_schema() as update:
        update.add_column("another", LongType())
    assert table.sync(source_options=catalog_of(tmp_path)).commits == 0
    check(source, table)


@pytest.mark.parametrize("skip_history", [True, False])
def test_a_tag_that_was_moved_has_the_schema_of_its_new_snapshot(tmp_path: Path, skip_history: bool) -> None:
    """Between lie an append and a delete; later columns are no columns of the tag."""
    source = tagged(tmp_path)
    table = adopted(tmp_path, "t", follow=True)
    source.delete("i = 1")
    newest = source.current_snapshot().snapshot_id
    with source.update_schema() as update:
        update.delete_column("later").rename_column("text", "words").add_column("another", LongType())
    source.manage_snapshots().remove_tag("release").commit()
    source.manage_snapshots().create_tag(newest, "release").commit()
    done = table.sync(source_options=catalog_of(tmp_path), skip_history=skip_history)
    assert (done.commits > 1) != skip_history
    check(source, table)
    assert table.schema.names == ["i", "f", "d", "text", "later", "gone"]


@pytest.mark.parametrize("skip_history", [True, False])
def test_a_tag_that_an_earlier_release_took_is_set_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, skip_history: bool
) -> None:
    source = tagged(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(IcebergMetadata, "seen_at", lambda self, **_: self)
        table = adopted(tmp_path, "t", follow=True)
    assert "later" in table.schema.names
    table.sync(source_options=catalog_of(tmp_path), skip_history=skip_history)
    check(source, table)
