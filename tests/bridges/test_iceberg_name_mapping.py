"""Columns of Iceberg data files without field ids are found by the name mapping."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.types import StringType

import tamis
from tamis.bridges.sources.iceberg_source import read_iceberg
from tests.bridges import iceberg_tables as ice
from tests.bridges.iceberg_sources import changed_metadata, keys, rows, two_files


def test_files_without_ids_are_read_by_the_name_mapping(tmp_path: Path) -> None:
    table = ice.catalog(tmp_path).create_table("n.t", pa.schema([("k", pa.int64()), ("s", pa.string())]))
    plain = tmp_path / "warehouse" / "n" / "t" / "plain.parquet"
    plain.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows(0), plain)
    table.add_files([plain.as_uri()])
    assert read_iceberg(str(ice.metadata_of(table))).column_names == {}
    with table.update_schema() as update:
        update.rename_column("s", "text")
    with pytest.raises(tamis.errors.InvalidInput, match="several names for the column 'text'"):
        read_iceberg(str(ice.metadata_of(table)))
    with table.transaction() as change:
        mapping = [{"field-id": 1, "names": ["k"]}, {"field-id": 2, "names": ["s"]}]
        change.set_properties({"schema.name-mapping.default": json.dumps(mapping)})
    source = read_iceberg(str(ice.metadata_of(table)))
    assert source.column_names == {2: "s"}
    made = ice.commit_deletes(
        ice.metadata_of(table), [ice.equality_file(table, pa.table({"text": ["s3"]}), {"text": 2})]
    )
    assert keys(made) == [0, 1, 2, *range(4, 10)]


def test_a_column_that_the_name_mapping_leaves_out_is_in_no_file_without_ids(tmp_path: Path) -> None:
    """Such as one that was dropped and added again: the values in the file are those of the dropped one."""
    table = ice.catalog(tmp_path).create_table("n.t", pa.schema([("k", pa.int64()), ("s", pa.string())]))
    plain = tmp_path / "warehouse" / "n" / "t" / "plain.parquet"
    plain.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"k": [1, 2], "s": ["old", "gone"]}), plain)
    table.add_files([plain.as_uri()])
    with table.update_schema() as update:
        update.delete_column("s")
    with table.update_schema() as update:
        update.add_column("s", StringType())
    with table.transaction() as change:
        mapping = [{"field-id": 1, "names": ["k"]}, {"field-id": 2, "names": ["s"]}]
        change.set_properties({"schema.name-mapping.default": json.dumps(mapping)})
    expected = [{"k": 1, "s": None}, {"k": 2, "s": None}]
    assert table.scan().to_arrow().to_pylist() == expected
    found = tamis.adopt(str(ice.metadata_of(table)), tmp_path / "t")
    assert isinstance(found, tamis.Table)
    assert found.scan().to_arrow().to_pylist() == found.scan("s IS NULL").to_arrow().to_pylist() == expected
    by_new = ice.commit_deletes(ice.metadata_of(table), [ice.equality_file(table, pa.table({"s": ["old"]}), {"s": 3})])
    assert keys(by_new) == [1, 2]
    by_old = ice.commit_deletes(ice.metadata_of(table), [ice.equality_file(table, pa.table({"s": ["gone"]}), {"s": 2})])
    assert keys(by_old) == [1]


@pytest.mark.parametrize("change", ["nothing", "renamed", "added again", "renamed inside"])
def test_files_without_ids_and_name_mapping_are_read_where_names_meant_one_column(tmp_path: Path, change: str) -> None:
    """By the new name, a renamed column would be NULL; one that was added again would have the dropped one's values."""
    data = pa.table({"k": [1], "s": ["old"], "l": [[{"x": "y"}]]})
    table = ice.catalog(tmp_path).create_table("n.t", data.schema)
    plain = tmp_path / "warehouse" / "n" / "t" / "plain.parquet"
    plain.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(data, plain)
    table.add_files([plain.as_uri()])
    if change.startswith("renamed"):
        with table.update_schema() as update:
            update.rename_column("s" if change == "renamed" else "l.element.x", "text")
    elif change == "added again":
        with table.update_schema() as update:
            update.delete_column("s")
        with table.update_schema() as update:
            update.add_column("s", StringType())
    place = changed_metadata(table, properties={})
    if change == "nothing":
        found = tamis.adopt(place, tmp_path / "t")
        assert isinstance(found, tamis.Table)
        assert found.scan().to_arrow().to_pylist() == data.to_pylist()
        return
    with pytest.raises(tamis.errors.InvalidInput, match=r"ICEBERG_NAME_MAPPING.*no name mapping"):
        tamis.adopt(place, tmp_path / "t")


def test_several_names_do_not_matter_where_files_have_ids(tmp_path: Path) -> None:
    table = two_files(tmp_path)
    mapping = [{"field-id": 1, "names": ["k", "key"]}, {"field-id": 2, "names": ["s"]}]
    with table.transaction() as change:
        change.set_properties({"schema.name-mapping.default": json.dumps(mapping)})
    assert read_iceberg(str(ice.metadata_of(table))).column_names == {}
