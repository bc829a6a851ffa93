"""Reads Vortex: chosen rows × columns, decoded by the library, one column at a time.

A scan of several columns also fetches the bytes between them; a scan of each column by itself fetches only
that column's segments and takes a few hundred microseconds (docs/design/0014). Columns are therefore scanned
together only for rows in nearly every segment, which leave nothing between them unread. Segments are cached
while the part is open, up to ``CACHE_BYTES``, because neighbouring blocks share them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.types import Field, Schema
from tamis.core.types.arrow import to_arrow_type
from tamis.cost_model import COSTS
from tamis.storage.files.corrupt_parts import corrupt
from tamis.storage.files.file_source import Stream
from tamis.storage.files.named_columns import PIECE_ROWS, Ordinals, SealedPart
from tamis.storage.files.protocol import PartRef, Piece
from tamis.storage.files.sealed_reader import Sealed, open_sealed
from tamis.storage.files.stored_values import stored_type
from tamis.storage.files.vortex.vortex_library import keep, vortex
from tamis.storage.object_store.lru_cache import LruCache

CACHE_BYTES = 64 * 2**20
SEGMENT_ROWS = 131_072
"""Rows of an integer segment, and about those of others; the library fixes this number."""
WINDOW_ROWS = 4 * SEGMENT_ROWS
_TOGETHER = COSTS.vortex_together_share
"""Share of the segments above which all columns are scanned together."""
_STRIDE = 8 * PIECE_ROWS
_FOOTERS = 256
_footers = LruCache[Any](_FOOTERS)


def open_vortex(store: Any, ref: PartRef, schema: Schema) -> VortexPart:
    """Open the part and check its seal; ``schema`` is the one it was written under.

    Raises ``CorruptData``, and ``InvalidInput`` without the library.
    """
    vortex()
    return VortexPart(open_sealed(store, ref), schema)


class VortexPart(SealedPart):
    """One open Vortex file (see ``PartFile``). Not thread-safe."""

    def __init__(self, source: Sealed, schema: Schema) -> None:
        super().__init__(source, schema)
        self._stream = Stream(source.ref, source.seal.size, source.read)
        ref, module = source.ref, vortex()
        key = (ref.path, ref.bytes, ref.checksum, source.seal.crcs[-1:].tobytes())
        with self._stream.decoding("its footer"):
            cache = module.SegmentCache(CACHE_BYTES) if hasattr(module, "SegmentCache") else None
            shared = {"segment_cache": cache, "cache_key": ref.part_id or ref.path} if cache is not None else {}
            self._file = module.open_readable(self._stream, footer=_footers.get(key), **shared)
            _footers.put(key, self._file.footer, 1)
        if self._columns.fields and len(self._file) != ref.rows:
            raise corrupt(ref, f"has {len(self._file)} rows instead of {ref.rows}")

    @property
    def stride(self) -> int:
        return _STRIDE

    def read(self, columns: Sequence[int], blocks: Sequence[int], rows: Ordinals | None = None) -> Iterator[Piece]:
        fields, starts = self._columns.wanted(columns), self._columns.starts
        if rows is None:
            for run in self._columns.runs(fields, blocks):
                first, end = int(starts[run[0]]), int(starts[run[-1] + 1])
                arrays = [self._range(f, first, end) for f in fields]
                yield Piece(run[0], np.arange(first, end), self._columns.batch(fields, arrays, end - first))
            return
        block_of = np.searchsorted(starts, rows, side="right") - 1
        taken = rows[np.isin(block_of, np.asarray(blocks, dtype=np.int64))]
        everywhere, most = self._everywhere(taken), self._columns.together(fields)
        for part in (taken[at : at + most] for at in range(0, len(taken), most)):
            first_block = int(np.searchsorted(starts, part[0], side="right")) - 1
            arrays = self._rows(fields, part) if everywhere else [a for f in fields for a in self._rows([f], part)]
            yield Piece(first_block, part, self._columns.batch(fields, arrays, len(part)))

    def _everywhere(self, rows: Ordinals) -> bool:
        """Whether nearly every segment holds one of these rows."""
        return len(np.unique(rows // SEGMENT_ROWS)) >= _TOGETHER * -(-self._source.ref.rows // SEGMENT_ROWS)

    def _range(self, field: Field, first: int, end: int) -> pa.Array:
        with self._stream.decoding(f"rows {first} to {end}"):
            scan = self._file.to_repeated_scan([field.name])
            return self._arrays([field], scan.execute(row_range=(first, end)), end - first)[0]

    def _rows(self, fields: Sequence[Field], rows: Ordinals) -> list[pa.Array]:
        if not fields:
            return []
        with self._stream.decoding(f"{len(rows)} rows from {rows[0]}"):
            indices = vortex().array(pa.array(rows.astype(np.uint64)))
            return self._arrays(fields, self._file.scan([f.name for f in fields], indices=indices), len(rows))

    def _arrays(self, fields: Sequence[Field], found: Any, length: int) -> list[pa.Array]:
        kinds = [pa.field(f.name, stored_type(to_arrow_type(f.type), keep)) for f in fields]
        array = found.to_arrow_array(arrow_type=pa.struct(kinds), combine_chunks=True)
        if len(array) != length:
            raise corrupt(self._source.ref, f"gave {len(array)} rows where {length} were asked for")
        return [array.field(at) for at in range(len(fields))]
