"""Reads Vortex: chosen rows × columns, decoded by the library.

A part is a Vortex file per block, or (parts of earlier releases) one file. A scan of several columns also fetches
the bytes between them, and every scan takes a few hundred microseconds (docs/design/0014). Columns are therefore
scanned together if they are neighbours in the file, so that nothing lies between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.core.types import Field, Schema
from tamis.core.types.arrow import to_arrow_type
from tamis.errors import CorruptData
from tamis.storage.files.corrupt_parts import corrupt_part
from tamis.storage.files.file_source import Stream
from tamis.storage.files.named_columns import Ordinals, SealedPart
from tamis.storage.files.protocol import PartRef, Piece
from tamis.storage.files.sealed_reader import Sealed, open_sealed
from tamis.storage.files.stored_values import as_stored, stored_type
from tamis.storage.files.vortex.texts_as_bytes import has_text, type_in_file
from tamis.storage.files.vortex.vortex_library import import_vortex, vortex_storage_type
from tamis.storage.object_store.lru_cache import LruCache

CACHE_BYTES = 64 * 2**20
"""Segments that the library keeps of a file with several blocks, because neighbouring blocks share them."""
_FOOTERS = 32 * 2**20
_UNKNOWN_TAIL = 64 * 2**10
_JOINED_WIDTH = 64
"""Bytes of a row, as Arrow data, up to which the blocks of several files are joined."""
_footers = LruCache[Any](_FOOTERS)
"""Parsed footers, by their size in the file."""
_schemas = LruCache[pa.Schema](8 * 2**20)
"""The types of the files' columns."""


def open_vortex(store: Any, ref: PartRef, schema: Schema) -> VortexPart:
    """Open the part and check its seal; ``schema`` is the one it was written under.

    Raises ``CorruptData``, and ``InvalidInput`` without the library.
    """
    import_vortex()
    return VortexPart(open_sealed(store, ref), schema)


class VortexPart(SealedPart):
    """One open part (see ``PartFile``). Not thread-safe."""

    def __init__(self, source: Sealed, schema: Schema) -> None:
        super().__init__(source, schema)
        seal, starts = source.seal, self._columns.starts
        if seal.tails and len(seal.tails) != len(seal.spans):
            raise corrupt_part(source.ref, f"has {len(seal.tails)} tails of {len(seal.spans)} files")
        if seal.tails:
            begins = (0, *seal.spans[:-1])
            files = zip(begins, seal.spans, starts[:-1], starts[1:], seal.tails, strict=True)
        else:
            files = zip((0,), (seal.size,), starts[:1], starts[-1:], (b"",), strict=True)
        self._files = [_File(source, *one) for one in files] if self._columns.fields and seal.size else []
        self._places = {f.id: at for at, f in enumerate(self._columns.fields)}
        self._bounds = np.array([0, *(f.end for f in self._files)], dtype=np.int64)

    def read(self, columns: Sequence[int], blocks: Sequence[int], rows: Ordinals | None = None) -> Iterator[Piece]:
        fields, starts = self._columns.stored_fields(columns), self._columns.starts
        if rows is None:
            for run in self._runs(fields, blocks):
                first, end = int(starts[run[0]]), int(starts[run[-1] + 1])
                yield Piece(run[0], [(first, end)], self._decode(fields, first, end))
            return
        block_of = np.searchsorted(starts, rows, side="right") - 1
        taken = rows[np.isin(block_of, np.asarray(blocks, dtype=np.int64))]
        for part in self._pieces(fields, taken):
            first_block = int(np.searchsorted(starts, part[0], side="right")) - 1
            yield Piece(first_block, part, self._decode(fields, int(part[0]), int(part[-1]) + 1, part))

    def decoded_rows(self, columns: Sequence[int], rows: Ordinals) -> int:
        del columns  # an estimate: the library takes rows by index
        return len(rows)

    def _runs(self, fields: Sequence[Field], blocks: Sequence[int]) -> list[list[int]]:
        """Group adjacent blocks to decode together; wide blocks of several files stay alone, since joining copies."""
        if len(self._files) > 1 and self._columns.width(fields) > _JOINED_WIDTH:
            return [[block] for block in blocks]
        return self._columns.runs(fields, blocks)

    def _pieces(self, fields: Sequence[Field], rows: Ordinals) -> Iterator[Ordinals]:
        """Cut the rows into pieces to decode together, between files if there are several."""
        most = self._columns.rows_at_once(fields)
        whole = len(self._files) > 1
        at = 0
        while at < len(rows):
            end = min(at + most, len(rows))
            if whole and end < len(rows):
                bound = self._bounds[np.searchsorted(self._bounds, rows[end], side="right") - 1]
                end = max(int(np.searchsorted(rows, bound)), at)
                if end == at:  # one file holds more
                    end = int(np.searchsorted(rows, self._file_end(int(rows[at]))))
            yield rows[at:end]
            at = end

    def _file_end(self, row: int) -> int:
        return int(self._bounds[np.searchsorted(self._bounds, row, side="right")])

    def _decode(self, fields: list[Field], first: int, end: int, rows: Ordinals | None = None) -> pa.RecordBatch:
        """Decode the rows from ``first`` to ``end``, or only those of them that are in ``rows``."""
        length = end - first if rows is None else len(rows)
        if not fields:
            return self._columns.batch([], [], length)
        asked = self._neighbours(fields)
        low = int(np.searchsorted(self._bounds, first, side="right")) - 1
        high = int(np.searchsorted(self._bounds, end))
        found: list[list[pa.Array]] = []
        for file in self._files[low:high]:
            if rows is None:
                span = max(first, file.first), min(end, file.end)
                found.append([a for some in asked for a in file.read(some, span, None)])
                continue
            mine = rows[np.searchsorted(rows, file.first) : np.searchsorted(rows, file.end)]
            if len(mine):
                found.append([a for some in asked for a in file.read(some, (file.first, file.end), mine)])
        arrays = [pa.concat_arrays(parts) if len(parts) > 1 else parts[0] for parts in zip(*found, strict=True)]
        return self._columns.batch(fields, arrays, length)

    def _neighbours(self, fields: Sequence[Field]) -> list[list[Field]]:
        """Group columns that stand beside each other in the files, so that no other column lies between them."""
        groups: list[list[Field]] = []
        last = -2
        for f in fields:
            place = self._places[f.id]
            if place == last + 1:
                groups[-1].append(f)
            else:
                groups.append([f])
            last = place
        return groups


class _File:
    """One Vortex file in a part: the rows from ``first`` to ``end``. Opened when it is first read."""

    def __init__(self, source: Sealed, begin: int, stop: int, first: int, end: int, tail: bytes) -> None:
        self.first, self.end = int(first), int(end)
        self._source, self._begin, self._size, self._tail = source, begin, stop - begin, tail
        self._stream = Stream(source.ref, self._size, self._bytes)
        self._opened: Any = None

    def _bytes(self, offset: int, length: int) -> memoryview:
        behind = offset - (self._size - len(self._tail))
        if behind >= 0 and self._tail:
            return memoryview(self._tail)[behind : behind + length]
        return self._source.read(self._begin + offset, min(length, self._size - offset))

    @property
    def _file(self) -> Any:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    @property
    def _key(self) -> tuple[Any, ...]:
        return (*self._source.key, self._source.seal.crcs[-1:].tobytes(), self._begin)

    def _open(self) -> Any:
        ref, module, key = self._source.ref, import_vortex(), self._key
        shared: dict[str, Any] = {}
        if not self._tail and hasattr(module, "SegmentCache"):
            shared = {"segment_cache": module.SegmentCache(CACHE_BYTES), "cache_key": ref.part_id or ref.path}
        with self._stream.decoding("its footer"):
            file = module.open_readable(self._stream, footer=_footers.get(key), **shared)
            _footers.put(key, file.footer, len(self._tail) or _UNKNOWN_TAIL)
        if len(file) != self.end - self.first:
            raise corrupt_part(ref, f"has {len(file)} rows instead of {self.end - self.first} from row {self.first}")
        return file

    def read(self, fields: Sequence[Field], span: tuple[int, int], rows: Ordinals | None) -> list[pa.Array]:
        """Return these columns of the rows of ``span``, or of ``rows``, with one scan."""
        try:
            return self._read_span(fields, span) if rows is None else self._read_rows(fields, rows)
        except CorruptData:
            if not any(has_text(to_arrow_type(f.type)) for f in fields):
                raise
        # Older releases wrote texts that are not UTF-8 as texts, of which the library may not be able to read a few.
        whole = self._read_span(fields, (self.first, self.end))
        if rows is None:
            return [array.slice(span[0] - self.first, span[1] - span[0]) for array in whole]
        return [array.take(pa.array(rows - self.first)) for array in whole]

    def _read_span(self, fields: Sequence[Field], span: tuple[int, int]) -> list[pa.Array]:
        with self._stream.decoding(f"rows {span[0]} to {span[1]}"):
            scan = self._file.to_repeated_scan([f.name for f in fields])
            found = scan.execute(row_range=(span[0] - self.first, span[1] - self.first))
            return self._arrays(fields, found, span[1] - span[0])

    def _read_rows(self, fields: Sequence[Field], rows: Ordinals) -> list[pa.Array]:
        with self._stream.decoding(f"rows {rows[0]} to {rows[-1] + 1}"):
            indices = import_vortex().array(pa.array((rows - self.first).astype(np.uint64)))
            return self._arrays(fields, self._file.scan([f.name for f in fields], indices=indices), len(rows))

    def _arrays(self, fields: Sequence[Field], found: Any, length: int) -> list[pa.Array]:
        wanted = [stored_type(to_arrow_type(f.type), vortex_storage_type) for f in fields]
        kinds = [
            pa.field(f.name, type_in_file(kind, self._held.field(f.name).type) if has_text(kind) else kind)
            for f, kind in zip(fields, wanted, strict=True)
        ]
        array = found.to_arrow_array(arrow_type=pa.struct(kinds), combine_chunks=True)
        if len(array) != length:
            raise corrupt_part(self._source.ref, f"gave {len(array)} rows where {length} were asked for")
        return [as_stored(array.field(at), kind) for at, kind in enumerate(wanted)]

    @cached_property
    def _held(self) -> pa.Schema:
        """The types of the file's columns."""
        found = _schemas.get(self._key)
        if found is None:
            found = self._file.dtype.to_arrow_schema()
            _schemas.put(self._key, found, 200 * len(found))
        return found
