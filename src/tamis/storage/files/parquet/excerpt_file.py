"""Builds a small Parquet file in memory of pages that were fetched from a larger one.

The library decodes whole column chunks. To decode only wanted pages, it is given a file of a new footer and the
original bytes of these pages, dictionaries first, which it decodes like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamis.storage.files.parquet.compact_thrift import (
    NUMBER,
    column_chunk,
    encode_footer,
    row_group,
    schema_head,
    thrift_text,
    wide_numbers,
)
from tamis.storage.object_store.pooled_memory import joined_memory

Octets = bytes | memoryview
OctetArray = np.ndarray[Any, np.dtype[np.uint8]]
Ordinals = np.ndarray[Any, np.dtype[np.int64]]

_NAME = "?" * 16
"""The name of a column whose schema element is taken from the library."""
_MAGIC = b"PAR1"
_REMEMBERED_CHUNKS = 1024
"""Column chunks up to which a footer without its numbers is remembered: some 100 kB."""
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
    its pages. There is at least one group, and one column.
    """
    pieces: list[Octets] = [_MAGIC]
    rows: list[int] = []
    sizes: list[tuple[int, int]] = []
    for count, found in groups:
        rows.append(count)
        for dictionary, pages in found:
            if dictionary:
                pieces.append(dictionary)
            pieces += pages
            sizes.append((len(dictionary), sum(map(len, pages))))
    shape = len(rows), len(columns), 2
    footer = _footer(tuple(columns), np.array(rows, np.int64), np.array(sizes, np.int64).reshape(shape))
    pieces += [footer, len(footer).to_bytes(4, "little"), _MAGIC]
    return pa.py_buffer(joined_memory(pieces))


def _footer(columns: tuple[ExcerptColumn, ...], rows: Ordinals, sizes: Ordinals) -> bytes:
    """Return a footer; ``sizes`` are the bytes of dictionary and pages by group and column."""
    dictionaries = sizes[..., 0] > 0
    few = dictionaries.size <= _REMEMBERED_CHUNKS
    blank, starts = (_remembered_footer if few else _blank_footer)(columns, len(rows), dictionaries.tobytes())
    size = sizes.sum(axis=-1)
    begin = len(_MAGIC) + np.cumsum(size).reshape(size.shape) - size
    values = np.broadcast_to(rows[:, None], size.shape)
    chunks = np.stack([values, size, size, begin + sizes[..., 0], begin], axis=-1)
    written = np.ones(chunks.shape, np.bool_)
    written[..., 4] = dictionaries
    count = len(rows)
    numbers = np.concatenate([chunks.reshape(count, -1), rows[:, None]], axis=1)
    written = np.concatenate([written.reshape(count, -1), np.ones((count, 1), np.bool_)], axis=1)
    footer = blank.copy()
    places = starts[:, None] + np.arange(len(NUMBER))
    footer[places] = wide_numbers(np.concatenate([[rows.sum()], numbers[written]]))
    return footer.tobytes()


def _blank_footer(columns: tuple[ExcerptColumn, ...], count: int, dictionaries: bytes) -> tuple[OctetArray, Ordinals]:
    """Return the footer of ``count`` groups without its numbers, and the place of each number.

    ``dictionaries`` says for each group and column whether it has one.
    """
    width = len(columns)
    groups = []
    for start in range(0, count * width, width):
        flags = dictionaries[start : start + width]
        groups.append(
            row_group(
                [
                    column_chunk(kind, str(place), codec, dictionary=bool(flag))
                    for place, ((_, kind, codec), flag) in enumerate(zip(columns, flags, strict=True))
                ]
            )
        )
    elements = [named_element(column.element, str(place)) for place, column in enumerate(columns)]
    head = schema_head(width) + b"".join(elements)
    footer = encode_footer(head, groups)
    starts = [found.start() for found in re.compile(re.escape(NUMBER)).finditer(footer, len(head))]
    return np.frombuffer(footer, np.uint8), np.array(starts, np.int64)


_remembered_footer = lru_cache(128)(_blank_footer)


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
