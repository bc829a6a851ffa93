"""The property ``tamis.export``: exports follow every commit, fail none, and heal."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

import tamis
from tamis.errors import Conflict, InvalidInput
from tests.bridges.exported_tables import CHANGES, RENAMES, expected, fitted, made, rows, values_of
from tests.bridges.foreign_readers import delta_by_deltalake, iceberg_by_pyiceberg, metadata_file

BOTH = {"tamis.export": "iceberg, delta"}


@pytest.mark.push_cases(5)
@pytest.mark.parametrize("change", CHANGES)
def test_exports_follow_every_commit(tmp_path: Path, change: str) -> None:
    table = made(tmp_path / "t", properties=BOTH)
    assert delta_by_deltalake(table.path) == iceberg_by_pyiceberg(table.path) == expected(table)
    CHANGES[change](table)
    assert delta_by_deltalake(table.path) == iceberg_by_pyiceberg(table.path) == expected(table)
    exports = table.exports().to_pylist()
    assert [(row["format"], row["behind"], row["problem"]) for row in exports] == [
        ("delta", 0, None),
        ("iceberg", 0, None),
    ]


def test_a_failure_fails_no_commit_is_listed_and_heals(tmp_path: Path) -> None:
    table = made(tmp_path / "t", properties=BOTH)
    RENAMES["rename"](table)  # all files have the column under one name yet
    table.refresh().append(fitted(table, rows(50)))
    assert iceberg_by_pyiceberg(table.path) == expected(table)
    delta, iceberg = table.refresh().exports().to_pylist()
    assert (delta["version"], delta["behind"]) == (3, 1)
    assert delta["problem"].startswith("[EXPORT_RENAMED]")
    assert (iceberg["behind"], iceberg["problem"]) == (0, None)
    table.compact(cluster_by=["id", "day"])
    assert delta_by_deltalake(table.path) == expected(table)
    assert [row["problem"] for row in table.exports().to_pylist()] == [None, None]


def test_a_library_that_is_missing_is_such_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(__import__("sys").modules, "fastavro", None)
        table = made(tmp_path / "t", properties={"tamis.export": "iceberg"})
    (row,) = table.exports().to_pylist()
    assert row["version"] is None
    assert row["problem"].startswith("[MISSING_PACKAGE]")
    table.append(rows(50))
    assert iceberg_by_pyiceberg(table.path) == expected(table)


def test_any_error_of_an_export_leaves_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError("planted")

    table = made(tmp_path / "t", properties=BOTH)
    monkeypatch.setattr("tamis.bridges.export.current_exports.export_table", fails)
    table.append(rows(50))
    assert "ZeroDivisionError" in table.exports().to_pylist()[0]["problem"]


def test_the_property_is_checked(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as error:
        made(tmp_path / "t", properties={"tamis.export": "hudi"})
    assert error.value.code == "BAD_OPTION"


@pytest.mark.parametrize("properties", [BOTH, {}])
def test_vacuum_leaves_what_exports_need(tmp_path: Path, properties: dict[str, str]) -> None:
    """Also of exports that were behind; snapshots of versions that it lets go are dropped before."""
    table = made(tmp_path / "t", properties=properties)
    table.export("delta")
    table.export("iceberg")
    table.compact(cluster_by=["id", "day"])
    table.append(rows(70))
    done = table.vacuum(timedelta(0), dry_run=False, below_retention=True)
    assert len(done.objects)
    assert delta_by_deltalake(table.path) == iceberg_by_pyiceberg(table.path) == expected(table)
    found = StaticTable.from_metadata(metadata_file(table.path))
    for snapshot in found.snapshots():
        rows_then = values_of(tamis.open(table.path, snapshot.snapshot_id - 1).scan().to_arrow())
        assert values_of(found.scan(snapshot_id=snapshot.snapshot_id).to_arrow()) == rows_then
    assert table.verify().ok


def test_pyiceberg_reads_a_null_map_of_structs_as_an_empty_map(tmp_path: Path) -> None:
    """As docs/exporting.md says; the file itself has NULL."""
    table = tamis.create(tmp_path, "k BIGINT, m MAP<STRING, STRUCT<x: INT>>")
    table.append(pa.Table.from_pylist([{"k": 1, "m": None}], schema=table.schema))
    table.export("iceberg")
    (part,) = (tmp_path / "data").glob("*.parquet")
    assert pq.read_table(part)["m"].null_count == 1
    assert iceberg_by_pyiceberg(table.path) == ["[('k', 1), ('m', [])]"]


def test_vacuum_is_refused_while_an_export_cannot_follow(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.export("delta")
    table.compact(cluster_by=["id", "day"])
    log = tmp_path / "t" / "_delta_log" / f"{1:020}.json"
    log.write_text('{"commitInfo":{}}\n')
    with pytest.raises(Conflict):
        table.vacuum(timedelta(0), dry_run=False, below_retention=True)
    assert len(list((tmp_path / "t" / "data").iterdir())) == 3
