"""Each snapshot of a followed Iceberg table becomes a commit that has its rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.bridges.adoption.source_sync import Synchronization
from tests.bridges import iceberg_tables as ice
from tests.bridges.foreign_tables import contents, sorted_rows
from tests.bridges.source_histories import ICEBERG, rows


def followed_iceberg(folder: Path) -> tuple[Any, tamis.Table]:
    source = ice.catalog(folder).create_table("n.t", rows(0).schema)
    for start in (0, 10):
        source.append(rows(start))
    return source, adopted(folder)


def adopted(folder: Path) -> tamis.Table:
    options = {"catalog": "local", "catalog.type": "sql", "catalog.uri": f"sqlite:///{folder}/catalog.db"}
    table = tamis.adopt(
        "n.t",
        folder / "t",
        follow=True,
        source_options={**options, "catalog.warehouse": f"file://{folder}/warehouse"},
    )
    assert isinstance(table, tamis.Table)
    return table


def synced(folder: Path, table: tamis.Table, **more: Any) -> Synchronization:
    options = {"catalog.type": "sql", "catalog.uri": f"sqlite:///{folder}/catalog.db"}
    return table.sync(source_options=options, **more)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Delete operation did not match any records")
@given(st.lists(st.lists(st.sampled_from(sorted(ICEBERG)), min_size=1, max_size=3), min_size=1, max_size=2))
def test_an_iceberg_table_is_followed_through_any_history(
    tmp_path_factory: pytest.TempPathFactory, steps: list[list[str]]
) -> None:
    folder = tmp_path_factory.mktemp("iceberg")
    source, table = followed_iceberg(folder)
    for names in steps:
        for name in names:
            ICEBERG[name](source)
        before = contents(folder / "warehouse")
        done = synced(folder, table)
        assert contents(folder / "warehouse") == before
        table.refresh()
        assert done.source_version == str(source.current_snapshot().snapshot_id)
        assert sorted_rows(table.scan().to_arrow()) == sorted_rows(source.scan().to_arrow())
        assert sorted_rows(table.scan("k > 8").to_arrow()) == sorted_rows(source.scan("k > 8").to_arrow())
    assert table.verify().ok
    for snapshot in source.snapshots()[1:]:
        own = tamis.open(folder / "t", version=table.version_of_source(snapshot.snapshot_id))
        theirs = source.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
        assert sorted(own.scan().to_arrow()["k"].to_pylist()) == sorted(theirs["k"].to_pylist())


def test_a_rolled_back_or_replaced_iceberg_table_is_recognised(tmp_path: Path) -> None:
    source, table = followed_iceberg(tmp_path)
    first = source.snapshots()[0].snapshot_id
    source.manage_snapshots().rollback_to_snapshot(first).commit()
    with pytest.raises(tamis.errors.CorruptData, match="SOURCE_HISTORY_GONE"):
        synced(tmp_path, table)
    assert synced(tmp_path, table, skip_history=True).source_version == str(first)
    assert sorted_rows(table.scan().to_arrow()) == sorted_rows(source.scan().to_arrow())
    found = ice.catalog(tmp_path)
    found.drop_table("n.t")
    found.create_table("n.t", rows(0).schema).append(rows(900))
    for skip in (False, True):
        with pytest.raises(tamis.errors.CorruptData, match="SOURCE_REPLACED"):
            synced(tmp_path, table, skip_history=skip)


def test_a_metadata_file_cannot_be_followed(tmp_path: Path) -> None:
    source, _ = followed_iceberg(tmp_path)
    with pytest.raises(tamis.errors.InvalidInput, match="SOURCE_FIXED"):
        tamis.adopt(ice.metadata_of(source), tmp_path / "other", follow=True)
    table = tamis.adopt(ice.metadata_of(source), tmp_path / "other")
    assert isinstance(table, tamis.Table)
    assert sorted_rows(table.scan().to_arrow()) == sorted_rows(source.scan().to_arrow())


def test_no_secret_of_a_catalog_is_kept(tmp_path: Path) -> None:
    _, table = followed_iceberg(tmp_path)
    commits = "".join(p.read_text() for p in (tmp_path / "t" / "_tamis" / "log").iterdir())
    assert "catalog.db" not in commits
    assert table.version == 0


def test_iceberg_rolled_back_and_forward_is_a_restore(tmp_path: Path) -> None:
    source, table = followed_iceberg(tmp_path)
    first = source.current_snapshot().snapshot_id
    source.append(rows(20))
    synced(tmp_path, table)
    source.append(rows(30))
    newest = source.current_snapshot().snapshot_id
    synced(tmp_path, table, skip_history=True)
    source.manage_snapshots().rollback_to_snapshot(first).commit()
    synced(tmp_path, table, skip_history=True)
    source.manage_snapshots().set_current_snapshot(newest).commit()
    synced(tmp_path, table)
    source.append(rows(40))
    synced(tmp_path, table)
    assert sorted_rows(table.scan().to_arrow()) == sorted_rows(source.scan().to_arrow())
    may_restore = [json.loads(text).get("may_restore", False) for text in table.history()["parameters"].to_pylist()[:6]]
    assert may_restore[::-1] == [False, False, False, True, True, False]


def test_an_append_of_a_file_that_is_there_is_refused(tmp_path: Path) -> None:
    """As an adoption refuses it: a row of such a table has no place of its own."""
    source, table = followed_iceberg(tmp_path)
    (path,) = {file["file_path"] for file in source.inspect.files().to_pylist()[:1]}
    mapping = source.schema().name_mapping.model_dump_json()
    source.transaction().set_properties({"schema.name-mapping.default": mapping}).commit_transaction()
    source.add_files([path], check_duplicate_files=False)
    before = table.version
    for skip in (False, True):
        with pytest.raises(tamis.errors.CorruptData, match="listed twice"):
            synced(tmp_path, table, skip_history=skip)
    assert table.refresh().version == before
