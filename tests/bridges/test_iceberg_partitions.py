"""Columns of an Iceberg identity partition are constants, and equality deletes of a partition hold in it alone."""

from __future__ import annotations

import json
import struct
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.transforms import IdentityTransform, VoidTransform
from pyiceberg.types import DecimalType, DoubleType, LongType, NestedField, StringType, TimestampType

import tamis
from tamis.bridges.sources.iceberg_manifests import Entries
from tamis.bridges.sources.iceberg_source import read_iceberg
from tests.bridges import iceberg_tables as ice
from tests.bridges.foreign_tables import live_rows, sorted_rows


def partitioned(folder: Path) -> Any:
    schema = IcebergSchema(
        NestedField(1, "s", StringType(), required=False),
        NestedField(2, "day", TimestampType(), required=False),
        NestedField(3, "v", LongType(), required=False),
        NestedField(4, "d", DecimalType(9, 2), required=False),
    )
    spec = PartitionSpec(
        PartitionField(1, 1000, IdentityTransform(), "s"),
        PartitionField(3, 1002, VoidTransform(), "nothing"),
        PartitionField(4, 1003, IdentityTransform(), "d"),
    )
    table = ice.catalog(folder).create_table("n.t", schema, partition_spec=spec)
    rows = [
        {"s": s, "day": datetime(2020, 1, n + 1, 5), "v": n, "d": Decimal(n) if n else None}
        for n, s in enumerate(["a b", "é/%", None, ""])
    ]
    table.append(pa.Table.from_pylist(rows, schema.as_arrow()))
    return table


def test_columns_of_an_identity_partition_are_constants(tmp_path: Path) -> None:
    table = partitioned(tmp_path)
    source = read_iceberg(str(ice.metadata_of(table)))
    constants = [json.loads(text) for text in source.files["constants"].to_pylist()]
    assert sorted(map(repr, constants)) == sorted(
        map(
            repr,
            [{"1": "a b", "4": None}, {"1": "é/%", "4": "1.00"}, {"1": None, "4": "2.00"}, {"1": "", "4": "3.00"}],
        )
    )
    assert sorted_rows(live_rows(source)) == sorted_rows(table.scan().to_arrow())
    for path in source.files["path"].to_pylist():  # as in files of Hive: they lack the columns
        file = Path(source.root) / path
        pq.write_table(pq.read_table(file, partitioning=None).drop_columns(["s", "d"]), file)
    assert sorted_rows(live_rows(source)) == sorted_rows(table.scan().to_arrow())


def test_equality_deletes_of_a_partition_hold_in_it_alone(tmp_path: Path) -> None:
    schema = IcebergSchema(
        NestedField(1, "p", StringType(), required=False), NestedField(2, "k", LongType(), required=False)
    )
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "p"))
    table = ice.catalog(tmp_path).create_table("n.t", schema, partition_spec=spec)
    table.append(pa.table({"p": ["a", "a", "b", "b"], "k": [1, 2, 1, 2]}))
    file = ice.equality_file(table, pa.table({"k": [1]}), {"k": 2})
    made = ice.commit_deletes(ice.metadata_of(table), [file], partition={"p": "a"})
    found = live_rows(read_iceberg(str(made))).to_pylist()
    assert sorted((r["p"], r["k"]) for r in found) == [("a", 2), ("b", 1), ("b", 2)]


def by_double(folder: Path) -> Any:
    schema = IcebergSchema(NestedField(1, "p", DoubleType()), NestedField(2, "k", LongType()))
    by_p = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "p"))
    return ice.catalog(folder).create_table("n.t", schema, partition_spec=by_p)


def test_zeros_of_both_signs_are_two_partitions(tmp_path: Path) -> None:
    table = by_double(tmp_path)
    for zero in (0.0, -0.0):
        table.append(pa.table({"p": [zero, zero], "k": [1, 2]}))
    gone = ice.equality_file(table, pa.table({"k": [1]}), {"k": 2})
    made = ice.commit_deletes(ice.metadata_of(table), [gone], partition={"p": -0.0})
    for place, expected in (
        (ice.metadata_of(table), {("0.0", 1), ("0.0", 2), ("-0.0", 1), ("-0.0", 2)}),
        (made, {("0.0", 1), ("0.0", 2), ("-0.0", 2)}),
    ):
        adopted = tamis.adopt(place, tmp_path / f"of-{len(expected)}")
        assert isinstance(adopted, tamis.Table)
        rows = adopted.scan().to_arrow().to_pylist()
        assert {(str(row["p"]), row["k"]) for row in rows} == expected
        assert len(rows) == len(expected)


def test_partitions_are_equal_as_in_java() -> None:
    nan, other = float("nan"), struct.unpack(">d", bytes.fromhex("fff8000000000001"))[0]
    values = [nan, other, 0.0, -0.0, 1.5, None, 1]
    entries = Entries(specs=[0] * len(values), partitions=[{1000: value, 1001: "x"} for value in values])
    keys = [entries.partition_key(at) for at in range(len(values))]
    assert keys[0] == keys[1]
    assert len(set(keys)) == len(values) - 1
