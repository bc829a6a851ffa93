"""Writes Parquet: one row group per block, with page indexes, page checksums and column ids.

Encodings and compression are chosen from the first block (``encoding``). Files carry the metadata that
Spark's reader looks for: from ``org.apache.spark.version`` it concludes that dates and times need no
rebasing.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.core.stats.columns.tally import Extremes
from tamis.core.types import Field
from tamis.core.types.arrow import from_arrow_schema
from tamis.sizes import SIZES
from tamis.storage.files.checksummed_file import BUFFER_BYTES, ChecksumSink
from tamis.storage.files.parquet.column_layout import Layout
from tamis.storage.files.parquet.encoding import Encodings
from tamis.storage.files.parquet.index_checksum import INDEX_CHECKSUM, UNFILLED, checksum_note, filled_footer, split_end
from tamis.storage.files.parquet.offset_index import page_locations
from tamis.storage.files.parquet.page_offsets import PAGES, encode_page_note
from tamis.storage.files.parquet.row_group_statistics import extremes_of, plain_leaves
from tamis.storage.files.protocol import WriteOptions, WrittenFile

_NEVER = 2**30
"""Page size in bytes, too large to end a page before its rows are full."""
SPARK_VERSION = "4.3.0"
"""The Spark version that files declare as their writer.

Spark before 3.0 used another calendar, so readers rebase the dates of its files.
"""
PART_ID = "tamis.part"


class ParquetPartWriter:
    """One Parquet file. Void columns are not stored: they read as missing, which is NULL."""

    def __init__(self, target: Any, schema: pa.Schema, options: WriteOptions) -> None:
        self._sink = ChecksumSink(target)
        self._stream = pa.BufferedOutputStream(pa.PythonFile(self._sink, mode="w"), BUFFER_BYTES)
        """The library's file. It calls Python for large pieces only: a page is written and located by several calls."""
        self._kept = [at for at, f in enumerate(schema) if not pa.types.is_null(f.type)]
        self._schema = pa.schema([schema.field(at) for at in self._kept])
        self._options = options
        self._writer: pq.ParquetWriter | None = None
        self._blocks: list[int] = []

    @property
    def size(self) -> int:
        return int(self._stream.tell())

    def write(self, batch: pa.RecordBatch) -> None:
        table = (
            pa.Table.from_arrays([batch.column(at) for at in self._kept], schema=self._schema)
            if self._kept
            else pa.table({})
        )
        if self._writer is None:
            self._writer = self._open(table)
        if len(batch):
            self._writer.write_table(table, row_group_size=len(batch))
            self._blocks.append(len(batch))

    def close(self, notes: Mapping[str, str] | None = None) -> WrittenFile:
        if self._writer is None:
            self._writer = self._open(self._schema.empty_table())
        pairs = {
            PART_ID: self._options.part_id,
            "org.apache.spark.sql.parquet.row.metadata": self._options.schema_json,
            **(notes or {}),
        }
        self._writer.add_key_value_metadata(
            {"org.apache.spark.version": SPARK_VERSION} | {k: v for k, v in pairs.items() if v}
        )
        later = {INDEX_CHECKSUM: UNFILLED} | ({PAGES: UNFILLED} if self._blocks and self._kept else {})
        self._writer.add_key_value_metadata(later)
        self._stream.flush()
        self._sink.hold()
        self._writer.close()
        self._stream.flush()
        index, footer = split_end(self._sink.held)
        footer = filled_footer(footer, {key: self._note(key, index) for key in later})
        self._sink.release(index + footer)
        self._sink.commit()
        return WrittenFile(self._sink.size, self._sink.checksum, zlib.crc32(footer), tuple(self._blocks))

    def _note(self, key: str, index: bytes) -> str:
        """Return what a note says about the page indexes."""
        if key == INDEX_CHECKSUM:
            return checksum_note(index)
        assert self._writer is not None
        written = self._writer.writer.metadata
        first = written.row_group(0).column(0).data_page_offset
        found = page_locations(index, first, written.num_row_groups * written.num_columns)
        if found is None:
            return ""
        return encode_page_note(found.even_starts(self._options.page_rows), self._options.page_rows)

    @property
    def measured(self) -> Collection[int]:
        return frozenset(f.id for f in self._plain.values())

    def extremes(self) -> Extremes:
        return {} if self._writer is None else extremes_of(self._writer.writer.metadata, self._plain)

    @cached_property
    def _plain(self) -> dict[int, Field]:
        """The leaves with bounds outside lists and maps, by position."""
        schema = from_arrow_schema(self._schema)
        return dict(plain_leaves(Layout(self._schema, schema), schema))

    def abort(self) -> None:
        self._sink.abort()

    def _open(self, first: pa.Table) -> pq.ParquetWriter:
        return pq.ParquetWriter(
            self._stream,
            self._schema,
            **Encodings.of(first, self._options.page_rows).options(),
            store_schema=False,  # the table defines types; the file holds ids
            store_decimal_as_integer=True,
            write_page_index=True,
            write_page_checksum=True,
            max_rows_per_page=self._options.page_rows,
            data_page_size=_NEVER,
            # after each batch, the library may give up a dictionary, and ends the page there
            write_batch_size=self._options.page_rows,
            dictionary_pagesize_limit=SIZES.dictionary_bytes,
        )


__all__ = ["PART_ID", "SPARK_VERSION", "ParquetPartWriter"]
