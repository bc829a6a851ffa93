"""Builds a small Parquet file in memory of pages that were fetched from a larger one.

The library decodes whole column chunks. To decode only wanted pages, it is given a file of a new footer and the
original bytes of these pages, dictionaries first, which it decodes like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.storage.files.parquet.compact_thrift import column_chunk, row_group, schema_head, seal_footer, thrift_text
from tamis.storage.object_store.pooled_memory import joined_memory

Octets = bytes | memoryview

_NAME = "?" * 16
"""The name of a column whose schema element is taken from the library."""
_NO_ROWS = b"\x16\x00\x19\x0c"
"""The bytes after the schema in a footer without rows and row groups."""


class ExcerptColumn(NamedTuple):
    """A column of an excerpt: how its file describes it, and how its pages are compressed."""

    element: bytes
    physical: str
    codec: str


@lru_cache(4096)
def schema_element(kind: pa.DataType, nullable: bool, physical: str, length: int) -> bytes | None:
    """Return the description of a column without nesting, as the library writes it; see ``named_element``.

    ``physical`` and ``length`` are the type in which the file stores the column. Returns None if the library does
    not store ``kind`` in this type, or reads it as another.
    """
    sink = pa.BufferOutputStream()
    options = {
        "store_schema": False,
        "store_decimal_as_integer": physical in {"INT32", "INT64"},
        "use_deprecated_int96_timestamps": physical == "INT96",
    }
    try:
        pq.ParquetWriter(sink, pa.schema([pa.field(_NAME, kind, nullable)]), **options).close()
    except (pa.ArrowException, ValueError):
        return None
    raw: bytes = sink.getvalue().to_pybytes()
    file = open_excerpt(pa.py_buffer(raw))
    column = file.schema.column(0)
    if (column.physical_type, column.length) != (physical, length) or file.schema_arrow.field(0).type != kind:
        return None
    footer = raw[-8 - int.from_bytes(raw[-8:-4], "little") : -8]
    return footer[len(schema_head(1)) : footer.rindex(_NO_ROWS)]


def named_element(element: bytes, name: str) -> bytes:
    """Return the schema element with this name of its column."""
    return element.replace(thrift_text(_NAME), thrift_text(name), 1)


def excerpt_file(
    columns: Sequence[ExcerptColumn], groups: Iterable[tuple[int, Sequence[tuple[Octets, Sequence[Octets]]]]]
) -> pa.Buffer:
    """Build a Parquet file of these columns, which are named by their position.

    ``groups`` holds the number of rows and, for each column, the bytes of its dictionary (or nothing) and of
    its pages.
    """
    pieces: list[Octets] = [b"PAR1"]
    at = 4
    built, total = [], 0
    names = [str(place) for place in range(len(columns))]
    for rows, found in groups:
        chunks = []
        for name, (_, kind, codec), (dictionary, pages) in zip(names, columns, found, strict=True):
            size = len(dictionary) + sum(len(p) for p in pages)
            chunks.append(column_chunk(kind, name, codec, rows, size, at + len(dictionary), at if dictionary else None))
            if dictionary:
                pieces.append(dictionary)
            pieces += pages
            at += size
        built.append(row_group(chunks, rows))
        total += rows
    elements = [named_element(column.element, name) for name, column in zip(names, columns, strict=True)]
    pieces.append(seal_footer(schema_head(len(columns)) + b"".join(elements), total, built))
    return pa.py_buffer(joined_memory(pieces))


def open_excerpt(file: pa.Buffer, texts: Sequence[str] = ()) -> pq.ParquetFile:
    """Return the library's view of an excerpt; ``texts`` names the columns that are read as dictionaries."""
    return pq.ParquetFile(
        pa.BufferReader(file),
        read_dictionary=list(texts),
        pre_buffer=False,
        page_checksum_verification=True,
        arrow_extensions_enabled=False,
        coerce_int96_timestamp_unit="us",
    )
