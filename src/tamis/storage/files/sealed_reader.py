"""Reads sealed files (``files.file_seal``): opened by one request and verified chunk by chunk.

Invariant: a file that is not the one of its ``PartRef``, or bytes that differ from those sealed, raise
``CorruptData`` naming part and path. A mismatch is read once more before it is reported, because the network
can be at fault.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from tamis.storage.files.corrupt_parts import DAMAGED_CONTENT, corrupt_part
from tamis.storage.files.file_seal import CHUNK, Seal, sealed_length
from tamis.storage.files.file_source import PartSource, read_twice
from tamis.storage.files.protocol import IoCounters, PartRef
from tamis.storage.object_store.lru_cache import LruCache
from tamis.storage.object_store.store import merge_ranges

TAIL = 128 * 2**10
"""Bytes fetched from the end of a file, usually enough to contain the seal."""
CACHE_BYTES = 32 * 2**20

_seals = LruCache[Seal](CACHE_BYTES)


def open_sealed(store: Any, ref: PartRef) -> Sealed:
    """Open a sealed part and check its seal against ``ref``. Raises ``CorruptData``."""
    source = PartSource(store, ref)
    seal = _seals.get(source.key)
    if seal is None:
        seal, size = read_twice(lambda: _read(source), source)
        _seals.put(source.key, seal, size)
    if seal.part_id and seal.part_id not in source.names:
        raise corrupt_part(ref, f"was replaced: the file there is part {seal.part_id}", "PART_REPLACED")
    if sum(seal.blocks) != ref.rows:
        raise corrupt_part(ref, f"has {sum(seal.blocks)} rows instead of {ref.rows}")
    if ref.blocks and seal.blocks != ref.blocks:
        raise corrupt_part(ref, "has other blocks than were committed")
    return Sealed(source, seal)


def _read(source: PartSource) -> tuple[Seal, int]:
    ref = source.ref
    tail = source.tail(TAIL)
    length = sealed_length(tail)
    if length is None or length > ref.bytes:
        raise corrupt_part(ref, f"does not end as a sealed file of {ref.bytes} bytes does")
    if length > len(tail):
        tail = source.tail(length)
    raw = tail[len(tail) - length :]
    try:
        seal = Seal.unpack(raw)
    except (*DAMAGED_CONTENT, OSError) as error:
        raise corrupt_part(ref, f"has an unreadable seal ({error})") from error
    if ref.footer_checksum is not None and zlib.crc32(raw) != ref.footer_checksum and seal.part_id in source.names:
        raise corrupt_part(ref, "does not have the seal that was committed", "CHECKSUM")
    if seal.size != ref.bytes - length:
        raise corrupt_part(ref, "has a seal of another file")
    return seal, len(raw) + 8 * len(seal.crcs) + seal.statistics.nbytes


class Sealed:
    """The file proper, without its seal, as its decoder reads it; ``read`` is thread-safe."""

    def __init__(self, source: PartSource, seal: Seal) -> None:
        self._source, self.ref, self.seal, self.key = source, source.ref, seal, source.key

    @property
    def io(self) -> IoCounters:
        return self._source.io

    @property
    def remote(self) -> bool:
        return self._source.remote

    def read(self, offset: int, length: int) -> memoryview:
        """Return verified bytes, fewer at the end of the file."""
        length = min(length, self.seal.size - offset)
        if length <= 0:
            return memoryview(b"")
        start, data = self._load([_aligned(offset, length, self.seal.size)])[0]
        return data[offset - start : offset - start + length]

    def views(self, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        """Return the verified bytes of these (offset, length) ranges, which lie in the file, fetched together."""
        found = self._load(merge_ranges([_aligned(o, n, self.seal.size) for o, n in ranges], 0))
        starts = [start for start, _ in found]
        views = []
        for offset, length in ranges:
            start, data = found[bisect_right(starts, offset) - 1]
            views.append(data[offset - start : offset - start + length])
        return views

    def _load(self, spans: list[tuple[int, int]]) -> list[tuple[int, memoryview]]:
        return read_twice(lambda: self._load_once(spans), self._source)

    def _load_once(self, spans: list[tuple[int, int]]) -> list[tuple[int, memoryview]]:
        found = [(start, data) for (start, _), data in zip(spans, self._source.get(spans), strict=True)]
        if not all(self._sound(start, data) for start, data in found):
            raise corrupt_part(self.ref, "does not hold the bytes that were committed", "CHECKSUM")
        return found

    def _sound(self, start: int, data: memoryview) -> bool:
        crcs = self.seal.crcs
        return all(
            zlib.crc32(data[at : at + CHUNK]) == crcs[(start + at) // CHUNK] for at in range(0, len(data), CHUNK)
        )


def _aligned(offset: int, length: int, size: int) -> tuple[int, int]:
    start = offset - offset % CHUNK
    end = min(-(-(offset + length) // CHUNK) * CHUNK, size)
    return start, end - start
