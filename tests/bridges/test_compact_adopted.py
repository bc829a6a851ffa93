"""``compact(adopted=True)`` moves the rows of adopted files into files of the table, and leaves the source as it is."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import tamis
from tamis.errors import InvalidInput
from tests.bridges.foreign_files import contents, write_file


def rows(first: int, count: int = 1000) -> pa.Table:
    ids = list(range(first, first + count))
    return pa.table({"id": ids, "name": [f"n{i % 50:02}" for i in ids]})


def adopted(source: Path, tmp_path: Path, **more: Any) -> tamis.Table:
    table = tamis.adopt(source, tmp_path / "table", **more)
    assert isinstance(table, tamis.Table)
    return table


def ids_of(table: tamis.Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "source"
    for month in (1, 2, 3):
        write_file(place / f"month={month}" / "part-0.parquet", rows(month * 1000))
    return place


def sources(table: tamis.Table) -> set[Any]:
    """The sources of the table's parts."""
    parts = table.refresh().snapshot.parts(None)
    return set(parts["source"].to_pylist()) if "source" in parts.column_names else {None}


def test_rows_move_and_files_stay(folder: Path, tmp_path: Path) -> None:
    before = contents(folder)
    table = adopted(folder, tmp_path)
    table.create_index("by_name", ["name"])
    table.delete("id < 1900")
    table.append(rows(9000, 10).append_column("month", pa.array([9] * 10, pa.int32())))
    whole = table.scan().to_arrow().sort_by("id")
    assert not any("adopted files" in group.reasons for group in table.compact(dry_run=True).groups)
    plan = table.compact(dry_run=True, adopted=True)
    assert any("adopted files" in group.reasons for group in plan.groups)
    done = table.compact(adopted=True)
    assert done.parts_removed >= 3
    assert sources(table) == {None}
    assert table.refresh().scan().to_arrow().sort_by("id").equals(whole)
    assert table.scan("month = 3").to_arrow().num_rows == whole.filter(pa.compute.equal(whole["month"], 3)).num_rows
    assert contents(folder) == before
    assert not table.compact(adopted=True).parts_removed
    shutil.rmtree(folder)
    assert table.refresh().scan().to_arrow().sort_by("id").equals(whole)
    assert table.scan(f"name = '{whole['name'][0].as_py()}'").to_arrow().num_rows


def test_a_filter_and_a_limit_move_some(folder: Path, tmp_path: Path) -> None:
    table = adopted(folder, tmp_path)
    table.compact("month = 2", adopted=True)
    parts = table.refresh().snapshot.parts(None)
    assert parts["source"].null_count == 1
    table.compact(max_bytes=1, adopted=True)
    assert table.refresh().snapshot.parts(None)["source"].null_count == 2
    assert ids_of(table) == list(range(1000, 4000))


def test_deleted_rows_of_a_delta_table_do_not_come_back(tmp_path: Path) -> None:
    source = tmp_path / "delta"
    deltalake.write_deltalake(source, pa.table({"id": list(range(100))}))
    table = adopted(source, tmp_path)
    table.delete("id % 3 = 0")
    table.compact(cluster_by=(), adopted=True)
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [i for i in range(100) if i % 3]
    assert table.verify().ok
    assert table.export("delta").version == table.version


def test_a_following_table_keeps_its_files(tmp_path: Path) -> None:
    source = tmp_path / "delta"
    deltalake.write_deltalake(source, pa.table({"id": [1]}))
    table = adopted(source, tmp_path, follow=True)
    with pytest.raises(InvalidInput) as caught:
        table.compact(adopted=True)
    assert caught.value.code == "FOLLOWING_TABLE"
