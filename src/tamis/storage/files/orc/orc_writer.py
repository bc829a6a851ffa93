"""Writes ORC: one stripe per block, zstd, sealed.

Types that ORC represents wrongly are stored as integers: its timestamps are read as nanoseconds, which end in
2262, and it has no times or intervals.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyarrow import orc

from tamis.core.types.arrow import from_arrow_schema
from tamis.storage.files.file_seal import SealingSink, Summary
from tamis.storage.files.protocol import WriteOptions, WrittenFile
from tamis.storage.files.shredded_leaves import LEAVES
from tamis.storage.files.stored_values import as_stored, stored_schema

_LARGEST_BLOCK = 2**20
"""Rows that the library takes at once.

With a stripe size of one byte, each batch that the library takes ends a stripe, so a block is a stripe. Its
encoders hold back batches of a few hundred rows and merge them with the next.
"""
_BUFFER = 64 * 2**10
_MAGIC = b"ORC"
"""Bytes written before the first stripe."""


def keep(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(data_type) or pa.types.is_time64(data_type) or pa.types.is_duration(data_type):
        return pa.int64()
    return data_type


class OrcPartWriter:
    """One ORC file. Void columns are not stored: they read as missing, which is NULL."""

    def __init__(self, target: Any, schema: pa.Schema, options: WriteOptions) -> None:
        self._sink = SealingSink(target)
        self._summary = Summary(from_arrow_schema(schema))
        self._options, self._schema = options, stored_schema(schema, keep)
        self._kept = [at for at, f in enumerate(schema) if not pa.types.is_null(f.type)]
        self._writer = orc.ORCWriter(
            pa.PythonFile(self._sink, mode="w"),
            batch_size=_LARGEST_BLOCK,
            stripe_size=1,
            compression="zstd",
            compression_block_size=_BUFFER,
            dictionary_key_size_threshold=0.5,
        )
        self._spans: list[int] = []
        self._rows = 0

    @property
    def size(self) -> int:
        return self._sink.size

    def write(self, batch: pa.RecordBatch) -> None:
        if not len(batch):
            return
        self._rows += len(batch)
        columns = [as_stored(batch.column(at), f.type) for at, f in zip(self._kept, self._schema, strict=True)]
        table = pa.Table.from_arrays(columns, schema=self._schema) if columns else _rows(len(batch))
        before = max(self._sink.size, len(_MAGIC))
        self._writer.write(table)
        self._summary.add(batch)
        if self._sink.size > before:
            self._end()

    def close(self, notes: Mapping[str, str] | None = None) -> WrittenFile:
        if not self._rows:
            self._writer.write(self._schema.empty_table() if len(self._schema) else _rows(0))
        self._writer.close()
        self._end()
        return self._sink.seal(self._summary, self._options, self._spans, (notes or {}).get(LEAVES, ""))

    def _end(self) -> None:
        self._summary.end()
        self._spans = [*self._spans, self._sink.size][: len(self._summary.blocks)]

    def abort(self) -> None:
        self._sink.abort()


def _rows(length: int) -> pa.Table:
    """Return a table with rows for a schema of void columns only."""
    return pa.table({"": pa.nulls(length, pa.bool_())})
