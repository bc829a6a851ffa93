"""Manifests of an Iceberg export are few, and hold true metrics, row ids and places of deletion vectors."""

from __future__ import annotations

import json
import struct
import zlib
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.bridges.export import iceberg_manifests
from tamis.bridges.export.iceberg_avro import avro_rows
from tamis.bridges.export.iceberg_bounds import serialize_values
from tamis.core.types import BOOLEAN, BYTE, DATE, DOUBLE, LONG, STRING, DataType
from tamis.core.types import Decimal as DecimalType
from tamis.storage.object_store import open_store
from tests.bridges.exported_tables import SCHEMA, append_parts, expected, made, rows
from tests.bridges.foreign_readers import iceberg_by_pyiceberg, metadata_file, opened


def listed(path: str) -> set[str]:
    return {p.name for p in Path(path, "metadata", "tamis").iterdir()}


def test_an_append_writes_one_manifest(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.delete("id = 4")
    table.export("iceberg")
    before = listed(table.path)
    table.append(rows(50))
    done = table.export("iceberg")
    fresh = listed(table.path) - before
    assert (done.files_added, done.files_removed, done.exported_version) == (1, 0, 2)
    assert sorted("snap" if name.startswith("snap") else name.split("-")[3] for name in fresh) == ["data", "snap"]
    assert not table.export("iceberg").written
    assert len(opened(table.path).inspect.manifests()) == 4  # one of each append, one of deletes


@pytest.mark.slow
def test_young_manifests_are_merged(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    for i in range(40):
        table.append(rows(100 + i))
        if i % 10 == 0:
            table.delete(f"id = {100 + i}")
        table.export("iceberg")
    assert len(opened(table.path).inspect.manifests()) < 2 * iceberg_manifests.MERGE_FROM
    assert iceberg_by_pyiceberg(table.path) == expected(table)


@pytest.mark.parametrize("vectors", [False, True])
def test_blocks_of_one_version_are_not_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vectors: bool) -> None:
    """A deletion may leave so few parts of a large version that all of its manifests are young."""
    monkeypatch.setattr(iceberg_manifests, "MOST_ENTRIES", 4)
    monkeypatch.setattr(iceberg_manifests, "MERGE_FROM", 3)
    table = tamis.create(tmp_path / "t", SCHEMA)
    append_parts(table, 0, 16)
    table.export("iceberg")
    table.delete("id % 20 >= 5" if not vectors else "id % 20 >= 3")
    table.export("iceberg")
    assert len(opened(table.path).inspect.files()) == 4 * (1 + vectors)
    assert iceberg_by_pyiceberg(table.path) == expected(table)


def test_metrics_are_those_of_the_files(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.export("iceberg")
    for file in opened(table.path).inspect.files().to_pylist():
        data = pq.read_table(file["file_path"].removeprefix("file://"))
        metrics = file["readable_metrics"]
        for name in ("id", "n", "s", "amount", "day", "ts", "flag", "f"):
            values = [v for v in data[name].to_pylist() if v is not None and v == v]
            if name != "f" or min(values):  # a zero is no bound: the value may be -0.0
                assert metrics[name]["lower_bound"] <= min(values)
            if name != "f":  # its upper bound is left out, because the column has NaN
                assert metrics[name]["upper_bound"] >= max(values)
            assert metrics[name]["null_value_count"] == data[name].null_count
            assert metrics[name]["value_count"] == len(data)
        assert metrics["f"]["nan_value_count"] == pc.sum(pc.is_nan(data["f"])).as_py()


@pytest.mark.parametrize(
    ("value", "kind", "data"),
    [
        (True, BOOLEAN, b"\x01"),
        (-2, BYTE, struct.pack("<i", -2)),
        (-2, LONG, struct.pack("<q", -2)),
        (1.5, DOUBLE, struct.pack("<d", 1.5)),
        (18262, DATE, struct.pack("<i", 18262)),
        ("é", STRING, "é".encode()),
        (Decimal("14.20"), DecimalType(10, 2), bytes.fromhex("058c")),
        (Decimal("-1.28"), DecimalType(10, 2), b"\x80"),
        (Decimal("1.28"), DecimalType(10, 2), b"\x00\x80"),
        (Decimal("99999999999999999999999999999999.999999"), DecimalType(38, 6), (10**38 - 1).to_bytes(16, "big")),
    ],
)
def test_bounds_are_serialized_as_the_format_says(value: Any, kind: DataType, data: bytes) -> None:
    arrow = tamis.core.types.arrow.to_arrow_type(kind)
    values = pa.array([None, value], pa.int32()).cast(arrow) if kind == DATE else pa.array([None, value], arrow)
    assert serialize_values(values, kind) == [None, data]


def test_version_3_numbers_rows(tmp_path: Path) -> None:
    """Row ids overlap in no two files, are those of a file in every manifest, and lie below the next one."""
    table = made(tmp_path / "t")
    append_parts(table, 100, 3)
    table.delete("id BETWEEN 100 AND 104")
    table.append(rows(*range(50, 60)))
    table.export("iceberg", format_version=3)
    metadata = json.loads(Path(metadata_file(table.path)).read_text())
    store = open_store(table.path)
    names = [name for name in listed(table.path) if "-data-" in name]
    files = [row["data_file"] for name in names for row in avro_rows(store.get(f"metadata/tamis/{name}"))]
    taken = {(f["first_row_id"], f["first_row_id"] + f["record_count"]) for f in files}
    assert len({(f["file_path"], f["first_row_id"]) for f in files}) == len(taken) < len(files)
    assert len({f["file_path"] for f in files}) == len(taken)
    assert all(end <= start for (_, end), (start, _) in pairwise(sorted(taken)))
    assert max(taken)[1] <= metadata["next-row-id"]


def test_a_deletion_vector_stands_where_the_manifest_says(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.delete("id = 4")
    table.export("iceberg", format_version=3)
    store = open_store(table.path)
    (name,) = (name for name in listed(table.path) if "-deletes-" in name)
    (row,) = avro_rows(store.get(f"metadata/tamis/{name}"))
    file = row["data_file"]
    data = Path(file["file_path"].removeprefix("file://")).read_bytes()
    assert len(data) == file["file_size_in_bytes"]
    blob = data[file["content_offset"] :][: file["content_size_in_bytes"]]
    assert blob[:4] == (len(blob) - 8).to_bytes(4, "big")
    assert blob[4:8].hex() == "d1d33964"
    assert blob[-4:] == zlib.crc32(blob[4:-4]).to_bytes(4, "big")
