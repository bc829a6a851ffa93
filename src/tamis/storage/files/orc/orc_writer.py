"""Writes ORC: one or more stripes per block, zstd, sealed.

Types that ORC represents wrongly are stored as integers: its timestamps are read as nanoseconds, which end in
2262, and it has no times or intervals.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.stats.columns.tally import Extremes
from tamis.core.types.arrow import from_arrow_schema
from tamis.sizes import SIZES
from tamis.storage.files.file_seal import SealingSink, Summary
from tamis.storage.files.orc.orc_tail import MAGIC, compressed_chunks, tail_bytes
from tamis.storage.files.orc.stripe_encoding import STRIDE, Stripe, dictionary_threshold, encode_stripe, types_of
from tamis.storage.files.orc.stripe_layout import StripeLayout
from tamis.storage.files.protocol import WriteOptions, WrittenFile
from tamis.storage.files.shredded_leaves import LEAVES
from tamis.storage.files.stored_values import as_stored, stored_schema

STRIPE_ROWS, WIDE = SIZES.stripe_rows, SIZES.stripe_row_bytes
"""Rows of a stripe of wide rows, and the bytes from which a row is wide.

One row that is wanted costs a stripe of every column.
"""


def orc_storage_type(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(data_type) or pa.types.is_time64(data_type) or pa.types.is_duration(data_type):
        return pa.int64()
    return data_type


class OrcPartWriter:
    """One ORC file. Void columns are not stored: they read as missing, which is NULL."""

    def __init__(self, target: Any, schema: pa.Schema, options: WriteOptions) -> None:
        self._sink = SealingSink(target)
        self._summary = Summary(from_arrow_schema(schema))
        self._options, self._schema = options, stored_schema(schema, orc_storage_type)
        self._kept = [at for at, f in enumerate(schema) if not pa.types.is_null(f.type)]
        self._types: list[bytes] = []
        self._stripes: list[Stripe] = []
        self._spans: list[int] = []
        self._threshold: float | None = None
        self._sink.write(MAGIC)

    measured = frozenset[int]()

    @property
    def size(self) -> int:
        return self._sink.size

    def write(self, batch: pa.RecordBatch) -> None:
        if not len(batch):
            return
        count = -(-len(batch) // STRIPE_ROWS) if batch.nbytes >= WIDE * len(batch) else 1
        cuts = [len(batch) * n // count for n in range(count + 1)]
        for start, end in pairwise(cuts):
            self._write_stripe(self._stored(batch.slice(start, end - start)))
        self._summary.add(batch)
        self._summary.end()
        self._spans.append(self._sink.size)

    def _stored(self, batch: pa.RecordBatch) -> pa.Table:
        if not self._kept:
            return _rows(len(batch))
        columns = [as_stored(batch.column(at), f.type) for at, f in zip(self._kept, self._schema, strict=True)]
        return pa.Table.from_arrays(columns, schema=self._schema)

    def _write_stripe(self, table: pa.Table) -> None:
        if self._threshold is None:
            self._threshold = dictionary_threshold(table)
        self._types, data, stripe = encode_stripe(table, self._threshold)
        self._sink.write(data)
        self._stripes.append(stripe)

    def close(self, notes: Mapping[str, str] | None = None) -> WrittenFile:
        if not self._stripes:
            self._types = types_of(self._schema.empty_table() if len(self._schema) else _rows(0))
        sizes = np.array([(0, *s.lengths, s.rows) for s in self._stripes], dtype=np.int64).reshape(-1, 5)
        sizes[:, 0] = len(MAGIC) + np.cumsum(sizes[:, 1:4].sum(axis=1)) - sizes[:, 1:4].sum(axis=1)
        metadata = compressed_chunks(b"".join(s.statistics for s in self._stripes))
        self._sink.write(tail_bytes(self._types, sizes, metadata, STRIDE))
        layout = StripeLayout.of(self._types, self._stripes).pack()
        leaves = (notes or {}).get(LEAVES, "")
        return self._sink.seal(self._summary, self._options, self._spans, leaves, layout=layout)

    def extremes(self) -> Extremes:
        return {}

    def abort(self) -> None:
        self._sink.abort()


def _rows(length: int) -> pa.Table:
    """Return a table with rows for a schema of void columns only."""
    return pa.table({"": pa.nulls(length, pa.bool_())})
