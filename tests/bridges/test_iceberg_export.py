"""Foreign readers see the rows of each version in the Iceberg metadata of an export."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import GreaterThan

import tamis
from tamis.bridges.export import iceberg_manifests
from tamis.errors import InvalidInput, TamisError
from tamis.storage.object_store import open_store
from tests.bridges.exported_tables import CHANGES, RENAMES, append_parts, expected, made, rows, values_of, widen
from tests.bridges.foreign_readers import iceberg_by_polars, iceberg_by_pyiceberg, metadata_file, opened

pytestmark = pytest.mark.filterwarnings("ignore::polars.exceptions.PerformanceWarning")

EVERY = {**CHANGES, **RENAMES, "widen": widen}
"""Iceberg finds columns by their ids, so renames are as any change."""


@pytest.mark.parametrize("format_version", [2, 3])
@pytest.mark.parametrize("change", EVERY)
@pytest.mark.push_cases(4)
def test_readers_see_the_rows_after_each_change(tmp_path: Path, change: str, format_version: int) -> None:
    table = made(tmp_path / "t")
    table.delete("id = 4")
    table.export("iceberg", format_version=format_version)
    assert iceberg_by_pyiceberg(table.path) == expected(table)
    EVERY[change](table)
    assert table.export("iceberg").written
    assert iceberg_by_pyiceberg(table.path) == expected(table)
    assert iceberg_by_polars(table.path) == expected(table)


@given(
    st.lists(st.tuples(st.sampled_from(sorted(EVERY)), st.booleans()), max_size=6),
    st.sampled_from([2, 3]),
    st.integers(1, 4),
)
@pytest.mark.merge
def test_random_histories_read_the_same(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, bool]], format_version: int, most: int
) -> None:
    """Every version, read as the snapshot of that version, and however parts are spread over manifests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iceberg_manifests, "MOST_ENTRIES", most)
        patch.setattr(iceberg_manifests, "MERGE_FROM", 2)
        table = made(tmp_path_factory.mktemp("random") / "t")
        append_parts(table, 200, 3)
        for change, exported in steps:
            try:
                EVERY[change](table)
            except TamisError:
                continue  # such as a second column of one name
            table.refresh()
            if exported:
                table.export("iceberg", format_version=format_version)
        table.export("iceberg", format_version=format_version)
    found = opened(table.path)
    assert values_of(found.scan().to_arrow()) == expected(table)
    assert [s.snapshot_id for s in found.snapshots()] == list(range(1, table.version + 2))
    for version in range(1, table.version + 1):
        rows_then = values_of(tamis.open(table.path, version).scan().to_arrow())
        assert values_of(found.scan(snapshot_id=version + 1).to_arrow()) == rows_then
    if found.inspect.manifests():  # PyIceberg cannot list the files of a snapshot that has none
        assert pc.count_distinct(found.inspect.files()["file_path"]).as_py() == len(found.inspect.files())


def test_a_catalog_registers_the_table_and_filters_skip_files(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.export("iceberg")
    catalog = SqlCatalog("local", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("shop")
    found = catalog.register_table("shop.orders", metadata_file(table.path))
    assert len(list(found.scan(GreaterThan("id", 30)).plan_files())) == 1
    assert values_of(found.scan(GreaterThan("id", 30)).to_arrow()) == values_of(table.scan("id > 30").to_arrow())


def test_an_unknown_version_of_iceberg_is_refused(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    for version in (1, 4, True, 3.0, "3"):
        with pytest.raises(InvalidInput) as error:
            table.export("iceberg", format_version=version)  # type: ignore[arg-type]
        assert error.value.code == "EXPORT_ICEBERG_VERSION"
    with pytest.raises(InvalidInput) as error:
        table.export("delta", format_version=3)
    assert error.value.code == "BAD_OPTION"


@pytest.mark.parametrize("behind", [True, False])
def test_snapshots_of_vacuumed_versions_are_dropped(tmp_path: Path, behind: bool) -> None:
    table = made(tmp_path / "t")
    table.export("iceberg")
    table.compact(cluster_by=["id", "day"])
    table.append(rows(70))
    if not behind:
        table.export("iceberg")
    tamis.engine.operations.vacuum(open_store(table.path), timedelta(0), dry_run=False, below_retention=True)
    table.export("iceberg")
    assert iceberg_by_pyiceberg(table.path) == expected(table)
    kept = {s.snapshot_id: opened(table.path).scan(snapshot_id=s.snapshot_id) for s in opened(table.path).snapshots()}
    assert {at: scan.to_arrow().num_rows for at, scan in kept.items()} == dict.fromkeys((5, 6), table.scan().count())


def test_a_symbolic_link_is_no_other_place(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.export("iceberg")
    (tmp_path / "link").symlink_to(tmp_path / "t")
    linked = tamis.open(tmp_path / "link")
    assert not linked.export("iceberg").written
    assert linked.exports()["problem"].to_pylist() == [None]
    linked.append(rows(50))
    assert linked.export("iceberg").written
    table.refresh()
    assert not table.export("iceberg").written
    assert iceberg_by_pyiceberg(table.path) == expected(table)
    assert folders(table.path) == {f"file://{table.path}"}


@pytest.mark.parametrize("committed", [True, False])
def test_a_table_that_has_moved_is_told_at_its_new_place(tmp_path: Path, committed: bool) -> None:
    table = made(tmp_path / "t")
    table.export("iceberg")
    (tmp_path / "t").rename(tmp_path / "moved")
    table = tamis.open(tmp_path / "moved")
    if committed:
        table.append(rows(50))
    (row,) = table.exports().to_pylist()
    assert (row["behind"], row["problem"][:17]) == (int(committed), "[EXPORT_LOCATION]")
    table.export("iceberg")
    assert table.exports()["problem"].to_pylist() == [None]
    assert iceberg_by_pyiceberg(table.path) == expected(table)
    assert folders(table.path) == {f"file://{table.path}"}
    assert not table.export("iceberg").written


def test_the_last_export_of_a_copied_table_names_no_file_of_the_first(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.export("iceberg")
    shutil.copytree(tmp_path / "t", tmp_path / "copy")
    tamis.open(tmp_path / "copy").export("iceberg", final=True)
    assert folders(f"{tmp_path}/copy") == {f"file://{tmp_path}/copy"}
    assert folders(table.path) == {f"file://{table.path}"}


def folders(path: str) -> set[str]:
    """Where the files of an export are, as its metadata says."""
    return {f["file_path"].rpartition("/data/")[0] for f in opened(path).inspect.files().to_pylist()}


def test_without_fastavro_the_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path / "t")
    monkeypatch.setitem(__import__("sys").modules, "fastavro", None)
    with pytest.raises(InvalidInput, match="fastavro") as error:
        table.export("iceberg")
    assert error.value.code == "MISSING_PACKAGE"
