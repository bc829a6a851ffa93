"""What libraries in our own environment read from exports."""

from __future__ import annotations

from pathlib import Path

import deltalake
import polars as pl
import pyarrow as pa
from pyiceberg.table import StaticTable

from tests.bridges.exported_tables import values_of


def delta_by_deltalake(path: str) -> list[str]:
    """The rows, as deltalake and its query engine read them."""
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path)).execute("SELECT * FROM t")
    return values_of(pa.table(query))


def delta_by_polars(path: str) -> list[str]:
    return values_of(pl.scan_delta(path).collect().to_arrow())


def metadata_file(path: str) -> str:
    """The newest metadata file of an Iceberg export, as its hint says."""
    number = Path(path, "metadata", "version-hint.text").read_text()
    return f"{path}/metadata/v{number}.metadata.json"


def iceberg_by_pyiceberg(path: str) -> list[str]:
    return values_of(StaticTable.from_metadata(metadata_file(path)).scan().to_arrow())


def iceberg_by_polars(path: str) -> list[str]:
    return values_of(pl.scan_iceberg(metadata_file(path)).collect().to_arrow())


def opened(path: str) -> StaticTable:
    return StaticTable.from_metadata(metadata_file(path))
