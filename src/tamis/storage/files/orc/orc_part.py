"""Reads ORC: chosen stripes × columns, decoded by pyarrow.

Rows are selected after a stripe is decoded, because the library cannot do it earlier.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import orc

from tamis.core.types import Field, Schema
from tamis.storage.files.corrupt_parts import corrupt
from tamis.storage.files.file_source import Stream
from tamis.storage.files.named_columns import Ordinals, SealedPart
from tamis.storage.files.protocol import PartRef, Piece
from tamis.storage.files.sealed_reader import Sealed, open_sealed

_WHOLE, _WHOLE_REMOTE = 0.9, 0.5
"""Share of a stripe above which it is fetched whole by one request instead of stream by stream.

What is left out was often already read for the filter.
"""


def open_orc(store: Any, ref: PartRef, schema: Schema) -> OrcPart:
    """Open the part and check its seal. Raises ``CorruptData``.

    ``schema`` is the one under which the part was written.
    """
    return OrcPart(open_sealed(store, ref), schema)


class OrcPart(SealedPart):
    """One open ORC file (see ``PartFile``). Not thread-safe."""

    def __init__(self, source: Sealed, schema: Schema) -> None:
        super().__init__(source, schema)
        self._stream = Stream(source.ref, source.seal.size, source.read)
        with self._stream.decoding("its footer"):
            self._file = orc.ORCFile(pa.PythonFile(self._stream, mode="r"))
        if self._file.nrows != source.ref.rows or self._file.nstripes != len(source.seal.blocks):
            raise corrupt(
                source.ref, f"has {self._file.nrows} rows in {self._file.nstripes} stripes, other than its seal says"
            )
        self._places = {name: at for at, name in enumerate(self._file.schema.names)}
        """Positions of the columns in the file, including leaves that its note does not declare."""

    def read(self, columns: Sequence[int], blocks: Sequence[int], rows: Ordinals | None = None) -> Iterator[Piece]:
        fields, starts = self._columns.wanted(columns), self._columns.starts
        for run in self._columns.runs(fields, blocks):
            if rows is None:
                places = [(int(starts[run[0]]), int(starts[run[-1] + 1]))]
                yield Piece(run[0], places, self._decode(fields, run, [None] * len(run)))
                continue
            cuts = np.searchsorted(rows, starts[run[0] : run[-1] + 2])
            taken = [rows[a:z] - starts[b] for b, a, z in zip(run, cuts, cuts[1:], strict=False)]
            hit = [(b, t) for b, t in zip(run, taken, strict=True) if len(t)]
            if hit:
                yield Piece(
                    hit[0][0], rows[cuts[0] : cuts[-1]], self._decode(fields, [b for b, _ in hit], [t for _, t in hit])
                )

    def _decode(self, fields: list[Field], blocks: list[int], taken: Sequence[Ordinals | None]) -> pa.RecordBatch:
        """Decode all rows of these stripes, or those ``taken`` from each."""
        counts = [int(self._columns.rows[b]) if t is None else len(t) for b, t in zip(blocks, taken, strict=True)]
        if not fields:
            return self._columns.batch([], [], sum(counts))
        if any(f.name not in self._places for f in fields):
            raise corrupt(self._source.ref, "lacks a column that was written")
        places = [self._places[f.name] for f in fields]
        if self._columns.share(fields) >= (_WHOLE_REMOTE if self._source.remote else _WHOLE):
            self._source.hold([self._span(b) for b in blocks])
        try:
            with self._stream.decoding(f"blocks {blocks}"):
                table = pa.Table.from_batches([self._stripe(b, places, t) for b, t in zip(blocks, taken, strict=True)])
                arrays = [table.column(at).combine_chunks() for at in range(len(fields))]
                return self._columns.batch(fields, [_plain(a) for a in arrays], sum(counts))
        finally:
            self._source.forget()

    def _stripe(self, block: int, places: list[int], taken: Ordinals | None) -> pa.RecordBatch:
        batch = self._file.read_stripe(block, columns=places)
        if len(batch) != self._columns.rows[block]:
            raise corrupt(
                self._source.ref, f"has a stripe of {len(batch)} rows where {self._columns.rows[block]} were said"
            )
        return batch if taken is None else batch.take(pa.array(taken))

    def _span(self, block: int) -> tuple[int, int]:
        ends = self._source.seal.spans
        start = ends[block - 1] if block else 0
        return start, ends[block] - start


def _plain(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        return array.chunk(0) if array.num_chunks == 1 else pa.concat_arrays(array.chunks)
    return array
