"""Parquet, the default format, through pyarrow."""

from tamis.storage.files.parquet.parquet_part import open_parquet
from tamis.storage.files.parquet.parquet_writer import ParquetPartWriter

__all__ = ["ParquetPartWriter", "open_parquet"]
