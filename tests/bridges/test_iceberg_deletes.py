"""Rows that an Iceberg table deleted are gone, whether by position, by equality, by vector or with their file."""

from __future__ import annotations

import contextlib
import math
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.manifest import ManifestContent
from pyiceberg.table import StaticTable

import tamis
from tamis.bridges.sources.iceberg_equality import matching
from tamis.bridges.sources.iceberg_source import read_iceberg
from tests.bridges import iceberg_tables as ice
from tests.bridges.foreign_tables import check_claims, duckdb_rows, live_rows
from tests.bridges.iceberg_sources import evolved, keys, rows, two_files


def test_position_deletes(tmp_path: Path) -> None:
    table = two_files(tmp_path)
    one, two = ice.data_paths(table)
    files = [ice.position_file(table, [(one, 1), (one, 3), (two, 0)]), ice.position_file(table, [(two, 9), (two, 0)])]
    made = ice.commit_deletes(ice.metadata_of(table), files)
    assert keys(made) == [0, 2, *range(4, 10), *range(11, 19)]
    assert keys(made) == sorted(StaticTable.from_metadata(str(made)).scan().to_arrow()["k"].to_pylist())
    assert check_claims(read_iceberg(str(made))) >= 8


def test_files_that_pyiceberg_deleted_are_gone(tmp_path: Path) -> None:
    table = two_files(tmp_path)
    table.delete("k < 10")
    table.delete("k = 12")
    assert keys(ice.metadata_of(table)) == [10, 11, *range(13, 20)]
    table.overwrite(rows(50))
    assert keys(ice.metadata_of(table)) == list(range(50, 60))


@pytest.mark.parametrize("key", [{"k": [2, 13]}, {"s": ["s2", "s13"]}, {"s": ["s2", "s13", "s4"], "k": [2, 13, 5]}])
def test_equality_deletes(tmp_path: Path, key: Mapping[str, Any]) -> None:
    table = two_files(tmp_path)
    file = ice.equality_file(table, pa.table(dict(key)), {name: {"k": 1, "s": 2}[name] for name in key})
    made = ice.commit_deletes(ice.metadata_of(table), [file])
    assert keys(made) == [n for n in range(20) if n not in (2, 13)]


def test_deletes_whose_data_files_are_all_gone(tmp_path: Path) -> None:
    """Merge-on-read tables keep the delete files of rows that a later overwrite removed with their files."""
    table = ice.catalog(tmp_path).create_table("n.t", pa.schema([("k", pa.int64())]))
    table.append(pa.table({"k": [1, 2, 3]}))
    made = ice.commit_deletes(ice.metadata_of(table), [ice.position_file(table, [(ice.data_paths(table)[0], 0)])])
    with contextlib.closing(sqlite3.connect(tmp_path / "catalog.db")) as catalog, catalog:
        catalog.execute("UPDATE iceberg_tables SET metadata_location = ?", (made.as_uri(),))
    table = ice.catalog(tmp_path).load_table("n.t")
    table.delete("k >= 0")
    snapshot = table.current_snapshot()
    assert snapshot is not None
    contents = [(m.content, m.existing_files_count, m.added_files_count) for m in snapshot.manifests(table.io)]
    assert [c for c in contents if sum(count or 0 for count in c[1:])] == [(ManifestContent.DELETES, *contents[-1][1:])]
    adopted = tamis.adopt(ice.metadata_of(table), tmp_path / "t")
    assert isinstance(adopted, tamis.Table)
    assert adopted.scan().to_arrow().num_rows == 0
    assert adopted.scan("k = 2").count() == 0


def test_an_equality_delete_by_a_column_that_files_lack(tmp_path: Path) -> None:
    """Files from before the column hold NULL in it; one that was renamed and widened meanwhile is found by its id."""
    table = evolved(tmp_path)
    file = ice.equality_file(table, pa.table({"later": pa.array([None], pa.string()), "i": [1]}), {"later": 6, "i": 1})
    made = ice.commit_deletes(ice.metadata_of(table), [file])
    found = live_rows(read_iceberg(str(made)))
    assert sorted(found["text"].to_pylist()) == ["l", "m"]


def test_equality_is_that_of_iceberg() -> None:
    data = pa.table({"f": [0.0, -0.0, math.nan, None, 1.0], "s": ["a", "a", "a", None, None]})
    assert matching(data, pa.table({"f": [math.nan, -0.0, None], "s": ["a", "a", None]})).tolist() == [1, 2, 3]
    assert matching(data, data.slice(0, 0)).tolist() == []


def test_deletion_vectors(tmp_path: Path) -> None:
    table = two_files(tmp_path)
    one, two = ice.data_paths(table)
    older = ice.commit_deletes(ice.metadata_of(table), [ice.position_file(table, [(one, 5), (two, 5)])])
    made = ice.commit_deletes(older, ice.vector_files(table, {one: [0, 2]}), version=3)
    # the vector of the first file replaces its position deletes
    assert keys(made) == [1, *range(3, 15), *range(16, 20)]


@pytest.mark.parametrize("harm", ["checksum", "length", "magic", "cardinality", "beyond", "no place"])
def test_a_damaged_vector_is_an_error(tmp_path: Path, harm: str) -> None:
    table = two_files(tmp_path)
    one, _ = ice.data_paths(table)
    (entry,) = ice.vector_files(table, {one: [0, 40] if harm == "beyond" else [0, 2]})
    file = ice.local(entry["file_path"])
    data, at = bytearray(file.read_bytes()), entry["content_offset"]
    place = {"checksum": at + entry["content_size_in_bytes"] - 6, "length": at + 3, "magic": at + 4}.get(harm)
    if place is not None:
        data[place] ^= 1
        file.write_bytes(data)
    changes: dict[str, dict[str, Any]] = {"cardinality": {"record_count": 3}, "no place": {"content_offset": None}}
    more = changes.get(harm, {})
    made = ice.commit_deletes(ice.metadata_of(table), [{**entry, **more}], version=3)
    with pytest.raises(tamis.errors.CorruptData, match="ICEBERG_METADATA_DAMAGED"):
        read_iceberg(str(made))


def test_duckdb_sees_the_same_rows(tmp_path: Path) -> None:
    table = two_files(tmp_path)
    one, two = ice.data_paths(table)
    made = ice.commit_deletes(ice.metadata_of(table), [ice.position_file(table, [(one, 1), (two, 9)])])
    made = ice.commit_deletes(made, [ice.equality_file(table, pa.table({"k": [2, 13]}), {"k": 1})])
    theirs = duckdb_rows(["avro", "iceberg"], f"SELECT k FROM iceberg_scan('{made}') ORDER BY k")
    assert [k for (k,) in theirs] == keys(made)
