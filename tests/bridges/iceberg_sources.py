"""Iceberg tables that tests read as sources: of two files, with an evolved schema, or with changed metadata."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.types import DecimalType, DoubleType, FloatType, IntegerType, LongType, NestedField, StringType

from tamis.bridges.sources.iceberg_source import read_iceberg
from tests.bridges import iceberg_tables as ice
from tests.bridges.foreign_tables import live_rows


def evolved(folder: Path) -> Any:
    """A table whose schema changed in every way that PyIceberg knows, with rows of each schema."""
    schema = IcebergSchema(
        NestedField(1, "i", IntegerType(), required=False),
        NestedField(2, "f", FloatType(), required=False),
        NestedField(3, "d", DecimalType(6, 2), required=False),
        NestedField(4, "gone", StringType(), required=False),
        NestedField(5, "s", StringType(), required=False),
    )
    table = ice.catalog(folder).create_table("n.t", schema)
    first = {
        "i": pa.array([1, None], pa.int32()),
        "f": pa.array([0.1, 2.0], pa.float32()),
        "d": pa.array([Decimal("1.50"), None], pa.decimal128(6, 2)),
        "gone": ["x", "y"],
        "s": ["k", "l"],
    }
    table.append(pa.table(first))
    with table.update_schema() as update:
        update.update_column("i", LongType()).update_column("f", DoubleType()).update_column("d", DecimalType(10, 2))
        update.delete_column("gone").rename_column("s", "text").add_column("later", StringType())
    with table.update_schema() as update:
        update.add_column("gone", LongType())
    second = {
        "i": [2**40],
        "f": [0.3],
        "d": pa.array([Decimal("12345678.25")], pa.decimal128(10, 2)),
        "text": ["m"],
        "later": ["n"],
        "gone": [7],
    }
    table.append(pa.table(second))
    return table


def two_files(folder: Path, **more: Any) -> Any:
    table = ice.catalog(folder).create_table("n.t", pa.schema([("k", pa.int64()), ("s", pa.string())]), **more)
    for start in (0, 10):
        table.append(rows(start))
    return table


def rows(start: int) -> pa.Table:
    return pa.table({"k": list(range(start, start + 10)), "s": [f"s{n}" for n in range(start, start + 10)]})


def keys(metadata: Path) -> list[int]:
    return sorted(live_rows(read_iceberg(str(metadata)))["k"].to_pylist())


def changed_metadata(table: Any, **changes: Any) -> str:
    table_metadata: dict[str, Any] = {**json.loads(ice.metadata_of(table).read_text()), **changes}
    path = ice.metadata_of(table).with_name("88888-changed.metadata.json")
    path.write_text(json.dumps(table_metadata))
    return str(path)
