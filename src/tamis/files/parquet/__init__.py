"""The default format, through pyarrow."""

from tamis.files.parquet.part import open_parquet
from tamis.files.parquet.writer import ParquetPartWriter

__all__ = ["ParquetPartWriter", "open_parquet"]
