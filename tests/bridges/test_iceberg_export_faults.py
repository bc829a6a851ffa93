"""Commits of other writers, faults and late hints leave an Iceberg export that is refused or heals."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable

import tamis
from tamis.bridges.export import iceberg_metadata
from tamis.bridges.export.iceberg_export import export_iceberg
from tamis.errors import Conflict, StoreUnavailable, TamisError
from tamis.storage.commit_log import load
from tamis.storage.commit_log.vacuum_marker import record_oldest
from tamis.storage.object_store import Store, open_store
from tests.bridges.exported_tables import expected, made, rows, values_of
from tests.bridges.foreign_readers import iceberg_by_pyiceberg, metadata_file, opened
from tests.storage.faults import FAULTS, FaultyStore, Plan
from tests.storage.making import forget


def test_a_foreign_commit_ends_the_export(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.export("iceberg")
    catalog = SqlCatalog("local", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("shop")
    catalog.register_table("shop.orders", metadata_file(table.path)).append(
        rows(100).cast(opened(table.path).schema().as_arrow())
    )
    table.append(rows(50))
    before = {p: p.read_bytes() for p in (tmp_path / "t" / "metadata").glob("*.json")}
    with pytest.raises(Conflict) as error:
        table.export("iceberg")
    assert error.value.code == "EXPORT_FOREIGN_COMMIT"
    assert {p: p.read_bytes() for p in (tmp_path / "t" / "metadata").glob("*.json")} == before


@pytest.mark.parametrize("edit", ["a property", "another table", "no JSON"])
def test_a_metadata_file_of_another_writer_is_recognised(tmp_path: Path, edit: str) -> None:
    table = made(tmp_path / "t")
    table.export("iceberg")
    table_metadata = json.loads(Path(metadata_file(table.path)).read_text())
    if edit == "a property":
        table_metadata["properties"]["owner"] = "me"
    if edit == "another table":
        table_metadata["properties"]["tamis.table_id"] = "0" * 32
    text = "{" if edit == "no JSON" else json.dumps(table_metadata)
    (tmp_path / "t" / "metadata" / "v2.metadata.json").write_text(text)
    table.append(rows(50))
    with pytest.raises(Conflict) as error:
        table.export("iceberg")
    assert error.value.code == "EXPORT_FOREIGN_COMMIT"


def test_two_exporters_at_once(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    store = open_store(table.path)
    snapshot = load(store)
    other = FaultyStore(open_store(table.path), Plan.none())
    put = other.put_if_absent

    def late(path: str, data: bytes) -> bool:
        if path.endswith(".metadata.json"):
            export_iceberg(store, snapshot)
        return put(path, data)

    other.put_if_absent = late  # type: ignore[method-assign]
    assert not export_iceberg(other, snapshot).written
    assert iceberg_by_pyiceberg(table.path) == expected(table)
    assert [p.name for p in (tmp_path / "t" / "metadata").glob("*.json")] == ["v1.metadata.json"]


@pytest.mark.parametrize("raced", [True, False])
def test_an_older_snapshot_takes_no_export_back(tmp_path: Path, raced: bool) -> None:
    """It is asked for another format version, while another process commits and exports."""
    table = made(tmp_path / "t")
    table.export("iceberg", format_version=2)
    snapshot = load(open_store(table.path))
    other = FaultyStore(open_store(table.path), Plan.none())
    put = other.put_if_absent
    late: list[str] = []

    def overtake() -> None:
        late.append("once")
        table.append(rows(50))
        table.export("iceberg")

    def overtaken(path: str, data: bytes) -> bool:
        if path.endswith(".metadata.json") and not late:
            overtake()
        return put(path, data)

    other.put_if_absent = overtaken  # type: ignore[method-assign]
    if not raced:
        overtake()
    done = export_iceberg(other, snapshot, format_version=3)
    assert (late, done.written, done.version) == (["once"], True, table.version)
    assert iceberg_by_pyiceberg(table.path) == expected(table)
    assert opened(table.path).format_version == 3


def test_an_older_snapshot_below_the_vacuum_marker_mixes_no_versions(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    store = open_store(table.path)
    for at in range(50, 55):
        table.append(rows(at))
    table.export("iceberg")
    record_oldest(store, load(store).head.table_id, 2)
    assert export_iceberg(store, load(store, 5)).version == table.version
    assert [s.snapshot_id for s in opened(table.path).snapshots()] == [3, 4, 5, 6, 7, 8]
    assert iceberg_by_pyiceberg(table.path) == expected(table)
    export_iceberg(store, load(store))
    table.append(rows(60))
    table.export("iceberg")
    assert [s.snapshot_id for s in opened(table.path).snapshots()] == [3, 4, 5, 6, 7, 8, 9]
    assert iceberg_by_pyiceberg(table.path) == expected(table)


def test_a_snapshot_that_vacuum_released_is_exported_as_the_newest(tmp_path: Path) -> None:
    """Also where there is no export yet."""
    table = made(tmp_path / "t")
    store = open_store(table.path)
    snapshot = load(store)
    table.append(rows(50))
    record_oldest(store, snapshot.head.table_id, table.version)
    assert export_iceberg(store, snapshot).version == table.version
    assert iceberg_by_pyiceberg(table.path) == expected(table)


def plant(table: tamis.Table, **changes: Any) -> None:
    """Write what the export says anew, with changes."""
    store = open_store(table.path)
    state = iceberg_metadata.read_state(store, table.snapshot.head.table_id)
    assert state is not None
    assert iceberg_metadata.write_metadata(store, state.number + 1, state.metadata | changes)


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("state", ["an older version", "twice", "an older list"])
def test_metadata_that_mixes_two_versions_heals(tmp_path: Path, state: str, committed: bool) -> None:
    """As earlier releases left it where they took an export back."""
    table = made(tmp_path / "t")
    table.append(rows(50))
    table.append(rows(51))
    table.export("iceberg")
    found = json.loads(Path(metadata_file(table.path)).read_text())
    snapshots = found["snapshots"]
    if state == "an older version":
        said = load(open_store(table.path), 3).commit.operation_id
        plant(table, properties=found["properties"] | {"tamis.version": "3", "tamis.operation_id": said})
    if state == "twice":
        plant(table, snapshots=[*snapshots, *snapshots[-2:]])
    if state == "an older list":  # of fewer files
        plant(table, snapshots=[*snapshots[:-1], snapshots[-1] | {"manifest-list": snapshots[-2]["manifest-list"]}])
        table.append(rows(52))
    if committed:
        table.append(rows(60))
    assert table.export("iceberg").written
    assert [s.snapshot_id for s in opened(table.path).snapshots()] == list(range(1, table.version + 2))
    assert iceberg_by_pyiceberg(table.path) == expected(table)


def test_an_export_is_not_taken_back_to_a_log_that_was_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exports of earlier releases do not say of which commit they are."""
    table = made(tmp_path / "t")
    log = tmp_path / "t" / "_tamis" / "log"
    shutil.copytree(log, tmp_path / "log")
    table.append(rows(50))
    table.export("iceberg")
    shutil.rmtree(log)
    shutil.copytree(tmp_path / "log", log)
    forget()
    monkeypatch.setattr(iceberg_metadata.IcebergState, "operation_id", None)
    with pytest.raises(Conflict) as error:
        tamis.open(table.path).export("iceberg", format_version=3)
    assert error.value.code == "EXPORT_OF_LOST_HISTORY"


@pytest.mark.slow
@pytest.mark.parametrize("format_version", [2, 3])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.push_cases(2)
def test_a_fault_at_any_request_leaves_an_export_that_heals(tmp_path: Path, fault: str, format_version: int) -> None:
    table = made(tmp_path / "t")
    table.export("iceberg", format_version=format_version)
    calls = 0
    for index in range(100):
        plan = Plan.at(index, fault)
        table.update({"n": "n + 1"}, "id % 4 = 2")
        done = False
        try:
            export_iceberg(FaultyStore(open_store(table.path), plan), load(open_store(table.path)))
            done = True
        except TamisError:
            pass
        plan.settle()
        if not done:
            table.export("iceberg")
        number = max(int(p.name[1:].split(".")[0]) for p in (tmp_path / "t" / "metadata").glob("*.json"))
        found = StaticTable.from_metadata(f"{table.path}/metadata/v{number}.metadata.json")
        assert values_of(found.scan().to_arrow()) == expected(table)
        calls = plan.calls
        if calls <= index:
            break
    assert 0 < calls < 100


def test_a_hint_that_was_not_written_is_a_problem_and_heals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise StoreUnavailable("planted", name="x")

    table = made(tmp_path / "t", properties={"tamis.export": "iceberg"})
    with monkeypatch.context() as patch:
        patch.setattr(iceberg_metadata, "write_hint", fails)
        table.append(rows(50))
    assert iceberg_by_pyiceberg(table.path) != expected(table)
    (row,) = table.refresh().exports().to_pylist()
    assert (row["behind"], row["problem"][:13]) == (0, "[EXPORT_HINT]")
    assert not table.export("iceberg").written
    assert iceberg_by_pyiceberg(table.path) == expected(table)
    assert table.exports()["problem"].to_pylist() == [None]


def test_an_older_hint_that_comes_late_does_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path / "t")
    plain = iceberg_metadata.write_hint
    late: list[int] = []

    def slow(store: Store, number: int) -> None:
        if not late:
            late.append(number)
            table.append(rows(50))
            tamis.open(table.path).export("iceberg")
        plain(store, number)

    monkeypatch.setattr(iceberg_metadata, "write_hint", slow)
    table.export("iceberg")
    assert late == [1]
    assert iceberg_by_pyiceberg(table.path) == expected(table)


def test_a_hint_that_comes_after_its_file_was_deleted_names_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path / "t")
    monkeypatch.setattr(iceberg_metadata, "KEPT", 2)
    for number in range(4):
        table.append(rows(50 + number))
        table.export("iceberg")
    iceberg_metadata.write_hint(table.store, 1)
    assert iceberg_metadata.read_hint(table.store) == 4
    assert iceberg_by_pyiceberg(table.path) == expected(table)
