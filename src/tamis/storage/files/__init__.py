"""Data formats behind one protocol: write a part in one pass, read chosen blocks, columns and rows."""

from tamis.storage.files.formats import create_part, open_part
from tamis.storage.files.parquet.page_offsets import count_touched_pages
from tamis.storage.files.protocol import (
    PAGE_ROWS,
    IoCounters,
    PartFile,
    PartRef,
    PartWriter,
    Piece,
    WriteOptions,
    WrittenFile,
    page_rows_for,
)

__all__ = [
    "PAGE_ROWS",
    "IoCounters",
    "PartFile",
    "PartRef",
    "PartWriter",
    "Piece",
    "WriteOptions",
    "WrittenFile",
    "count_touched_pages",
    "create_part",
    "open_part",
    "page_rows_for",
]
