"""The changes of a source, one after the other, lead to what its versions hold."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import deltalake
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.bridges.sources.delta_changes import DeltaPosition, adopted_delta, delta_changes
from tamis.bridges.sources.delta_source import DeltaOptions, read_delta
from tamis.bridges.sources.iceberg_changes import IcebergPosition, adopted_iceberg, iceberg_changes
from tamis.bridges.sources.iceberg_columns import KnownColumns
from tamis.bridges.sources.iceberg_metadata import IcebergOptions
from tamis.bridges.sources.iceberg_source import read_iceberg
from tamis.bridges.sources.source_changes import SourceChange
from tamis.bridges.sources.source_table import SourceTable
from tamis.core.types import Schema
from tests.bridges import iceberg_tables as ice
from tests.bridges.foreign_tables import check_claims
from tests.bridges.source_histories import DELTA, ICEBERG, rows

Files = dict[str, bytes | None]


def files_of(table: SourceTable) -> Files:
    return dict(zip(table.files["path"].to_pylist(), table.files["deletion"].to_pylist(), strict=True))


def changed(files: Files, change: SourceChange) -> Files:
    """The live files after a change."""
    own = files_of(change.table)
    if change.whole:
        return own
    assert not set(change.removed) & set(own)
    assert set(change.removed) <= set(files)
    return {**{path: held for path, held in files.items() if path not in change.removed}, **own}


@pytest.mark.slow
@given(st.lists(st.sampled_from(sorted(DELTA)), min_size=1, max_size=5))
def test_commits_of_delta(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    folder = tmp_path_factory.mktemp("delta")
    place = str(folder)
    for start in (0, 10):
        deltalake.write_deltalake(folder, rows(start), mode="append", partition_by=["p"])
    table, position = adopted_delta(place, DeltaOptions())
    for name in names:
        DELTA[name](folder)
    files, schema = files_of(table), table.schema
    position = DeltaPosition.from_json(position.to_json())
    highest = schema.highest_id()
    for change, after in delta_changes(place, DeltaOptions(), position, schema, highest):
        files, highest = changed(files, change), max(highest, change.table.schema.highest_id())
        whole = read_delta(place, version=after.version, previous=schema)
        assert files == files_of(whole)
        assert change.table.schema.names == whole.schema.names
        assert (change.table.version, change.table.timestamp_micros) == (whole.version, whole.timestamp_micros)
        with contextlib.suppress(FileNotFoundError):
            check_claims(change.table)
        schema, position = change.table.schema, after
    assert position.version == deltalake.DeltaTable(folder).version()
    assert list(delta_changes(place, DeltaOptions(), position, schema, highest)) == []


def columns_of(table: SourceTable, schema: Schema | None = None) -> KnownColumns:
    """What a table that adopted ``table`` knows of its columns, once it has ``schema``."""
    return KnownColumns(
        schema or table.schema, (), table.highest_column_id, {}, None, is_recorded=True, column_names={}
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Delete operation did not match any records")
@given(st.lists(st.sampled_from(sorted(ICEBERG)), min_size=1, max_size=4))
def test_snapshots_of_iceberg(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    folder = tmp_path_factory.mktemp("iceberg")
    source = ice.catalog(folder).create_table("n.t", rows(0).schema)
    for start in (0, 10):
        source.append(rows(start))
    table, position = adopted_iceberg(str(ice.metadata_of(source)), IcebergOptions())
    for name in names:
        ICEBERG[name](source)
    place, files, schema = str(ice.metadata_of(source)), files_of(table), table.schema
    position = IcebergPosition.from_json(position.to_json())
    for change, after in iceberg_changes(place, IcebergOptions(), position, columns_of(table, schema)):
        if not change.whole:
            assert not set(files_of(change.table)) & set(files), "an append adds new files alone"
        files = changed(files, change)
        assert after.snapshot is not None
        assert files == files_of(read_iceberg(place, snapshot=after.snapshot))
        check_claims(change.table)
        schema, position = change.table.schema, after
    assert position.snapshot == source.current_snapshot().snapshot_id
    assert schema.fields == read_iceberg(place).schema.fields
    assert list(iceberg_changes(place, IcebergOptions(), position, columns_of(table, schema))) == []


def test_an_append_reads_its_own_manifests_alone(tmp_path: Path) -> None:
    source: Any = ice.catalog(tmp_path).create_table("n.t", rows(0).schema)
    source.append(rows(0))
    table, position = adopted_iceberg(str(ice.metadata_of(source)), IcebergOptions())
    for manifest in source.current_snapshot().manifests(source.io):
        ice.local(manifest.manifest_path).write_bytes(b"not to be read")
    source.append(rows(10))
    found = list(iceberg_changes(str(ice.metadata_of(source)), IcebergOptions(), position, columns_of(table)))
    assert [(len(c.table.files), c.whole) for c, _ in found] == [(1, False)]


def test_an_append_that_says_another_number_of_files_is_compared_whole(tmp_path: Path) -> None:
    source: Any = ice.catalog(tmp_path).create_table("n.t", rows(0).schema)
    source.append(rows(0))
    table, position = adopted_iceberg(str(ice.metadata_of(source)), IcebergOptions())
    source.append(rows(10))
    path = ice.metadata_of(source)
    table_metadata = json.loads(path.read_text())
    table_metadata["snapshots"][-1]["summary"]["added-data-files"] = "2"
    path.write_text(json.dumps(table_metadata))
    found = list(iceberg_changes(str(path), IcebergOptions(), position, columns_of(table)))
    assert [(len(c.table.files), c.whole) for c, _ in found] == [(2, True)]
