"""Columns of files that store names but no ids: maps them to ids and to the part's types."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.stats import columns_of_ids
from tamis.core.types import NULL, Field, Schema
from tamis.sizes import SIZES
from tamis.storage.files.column_conversion import Names, convert_array
from tamis.storage.files.file_seal import Seal
from tamis.storage.files.protocol import IoCounters
from tamis.storage.files.sealed_reader import Sealed
from tamis.storage.files.shredded_leaves import decode_leaves, with_leaves

PIECE_ROWS = SIZES.piece_rows
PIECE_BYTES = 64 * 2**20
"""Largest run of rows, and of bytes as Arrow data, that is decoded together.

A run is made of adjacent blocks, at least one.
"""

Ordinals = np.ndarray[Any, np.dtype[np.int64]]


class NamedColumns:
    """Columns and blocks of one sealed file; struct fields are read with the whole of their column."""

    def __init__(self, seal: Seal, schema: Schema) -> None:
        self.seal, self._schema = seal, schema
        self.fields = [f for f in schema if f.type != NULL]
        self.rows = np.array(seal.blocks, dtype=np.int64)
        self.starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.rows)])
        self._names = Names(schema)
        self._total = max(sum(seal.weights.values()), 1)

    def stored_fields(self, ids: Collection[int]) -> list[Field]:
        """Return the stored columns that hold these ids, in the file's order."""
        tops = {self._schema.paths[i][0] for i in ids if i in self._schema.paths}
        return [f for f in self.fields if f.id in tops]

    def byte_share(self, fields: Sequence[Field]) -> float:
        """Estimate the share of the file's bytes that these columns take."""
        return sum(self.seal.weights.get(f.id, 0) for f in fields) / self._total

    def cost(self, ids: Collection[int], blocks: Sequence[int]) -> int:
        rows = int(self.rows[list(blocks)].sum()) / max(int(self.starts[-1]), 1)
        return int(self.seal.size * self.byte_share(self.stored_fields(ids)) * rows)

    def batch(self, fields: Sequence[Field], arrays: Sequence[pa.Array], length: int) -> pa.RecordBatch:
        if not fields:
            return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), length, [None]))
        typed = [convert_array(a, f, self._names) for f, a in zip(fields, arrays, strict=True)]
        return pa.RecordBatch.from_arrays(typed, names=[str(f.id) for f in fields])

    def statistics(self, ids: Collection[int]) -> pa.Table:
        table = self.seal.statistics
        return table.select([*columns_of_ids(table.column_names, ids), "rows"])

    def rows_at_once(self, fields: Sequence[Field]) -> int:
        """Return how many rows of these columns to decode at once."""
        return max(1, min(PIECE_ROWS, int(PIECE_BYTES / max(self.width(fields), 1.0))))

    def width(self, fields: Sequence[Field]) -> float:
        """Return the average bytes of a row of these columns, as Arrow data."""
        return sum(self.seal.weights.get(f.id, 0) for f in fields) / max(int(self.starts[-1]), 1)

    def runs(self, fields: Sequence[Field], blocks: Sequence[int]) -> list[list[int]]:
        """Group adjacent blocks, as far as memory allows."""
        most = self.rows_at_once(fields)
        runs: list[list[int]] = []
        for block in blocks:
            near = runs and runs[-1][-1] + 1 == block
            if near and self.starts[block + 1] - self.starts[runs[-1][0]] <= most:
                runs[-1].append(block)
            else:
                runs.append([block])
        return runs


class SealedPart:
    """The ``PartFile`` methods that the sealed formats share: all but ``read``."""

    def __init__(self, source: Sealed, schema: Schema) -> None:
        self.leaves = decode_leaves(source.seal.leaves)
        self._source, self._columns = source, NamedColumns(source.seal, with_leaves(schema, self.leaves))

    @property
    def block_rows(self) -> Sequence[int]:
        return self._source.seal.blocks

    @property
    def stride(self) -> int:
        return PIECE_ROWS

    @property
    def io(self) -> IoCounters:
        return self._source.io

    def cost(self, columns: Sequence[int], blocks: Sequence[int]) -> int:
        return self._columns.cost(columns, blocks)

    def statistics(self, ids: Collection[int]) -> pa.Table:
        return self._columns.statistics(ids)

    def pages(self) -> pa.Table | None:
        return None
