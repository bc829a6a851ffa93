"""Exports of tables whose parts are files of a source: refused by name until the rows are the table's own."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import tamis
from tamis.errors import InvalidInput
from tests.bridges.exported_tables import expected
from tests.bridges.foreign_readers import delta_by_deltalake, iceberg_by_pyiceberg

READERS = {"delta": delta_by_deltalake, "iceberg": iceberg_by_pyiceberg}


@pytest.mark.parametrize("name", READERS)
def test_files_of_a_source_are_refused_until_they_are_rewritten(tmp_path: Path, name: str) -> None:
    write_deltalake(str(tmp_path / "source"), pa.table({"id": [1, 2, 3], "s": ["a", "b", None]}))
    before = {path: path.read_bytes() for path in (tmp_path / "source").rglob("*") if path.is_file()}
    table = tamis.adopt(tmp_path / "source", tmp_path / "t")
    assert isinstance(table, tamis.Table)
    table.append(pa.table({"id": [4], "s": ["d"]}))
    with pytest.raises(InvalidInput, match=r"part-\S+ of a source") as error:
        table.export(name)
    assert error.value.code == "EXPORT_SOURCE"
    assert {path.name for path in (tmp_path / "t").iterdir()} == {"_tamis", "data"}
    table.overwrite(table.scan().to_arrow())
    table.delete("id = 2")
    table.export(name)
    assert READERS[name](table.path) == expected(table)
    assert {path: path.read_bytes() for path in (tmp_path / "source").rglob("*") if path.is_file()} == before


def test_the_property_of_an_adopted_table_fails_no_commit(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "source"), pa.table({"id": [1, 2, 3]}))
    table = tamis.adopt(tmp_path / "source", tmp_path / "t", properties={"tamis.export": "delta"})
    assert isinstance(table, tamis.Table)
    table.append(pa.table({"id": [4]}))
    (row,) = table.exports().to_pylist()
    assert row["problem"].startswith("[EXPORT_SOURCE]")
    table.overwrite(table.scan().to_arrow())
    assert delta_by_deltalake(table.path) == expected(table)
