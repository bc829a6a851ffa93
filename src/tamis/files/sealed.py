"""Reading a sealed file (``files.seal``): opened by one request, checked chunk by chunk.

Law: a file that is not the one of its ``PartRef``, or bytes of it that are not what was sealed, are ``CorruptData`` naming part and path. What does not
fit is asked for once more before that is said: a wire can be at fault.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa

from tamis.errors import CorruptData, NotFound
from tamis.files.corrupt import corrupt
from tamis.files.protocol import IoCounters, PartRef
from tamis.files.recent import Recent
from tamis.files.seal import CHUNK, Seal, sealed_length

TAIL = 128 * 2**10
"""Bytes fetched from the end of a file, in the hope that the seal is within."""
CACHE_BYTES = 32 * 2**20

_seals = Recent[Seal](CACHE_BYTES)


def open_sealed(store: Any, ref: PartRef) -> Sealed:
    """Raises ``CorruptData``."""
    own = store.fresh()
    key = (store.url, ref.path, ref.bytes, ref.checksum, ref.footer_checksum)
    seal = _seals.get(key)
    if seal is None:
        seal, size = _read(own, ref)
        _seals.put(key, seal, size)
    if seal.part_id and seal.part_id not in {
        ref.part_id,
        PurePosixPath(ref.path).stem,
    }:  # one that was restored has another id than its file
        raise corrupt(ref, f"was replaced: the file there is part {seal.part_id}", "PART_REPLACED")
    if sum(seal.blocks) != ref.rows:
        raise corrupt(ref, f"has {sum(seal.blocks)} rows instead of {ref.rows}")
    if ref.blocks and seal.blocks != ref.blocks:
        raise corrupt(ref, "has other blocks than were committed")
    return Sealed(own, ref, seal)


def _read(store: Any, ref: PartRef) -> tuple[Seal, int]:
    tail = _fetch(store, ref, ref.bytes - min(TAIL, ref.bytes), min(TAIL, ref.bytes))
    length = sealed_length(tail)
    if length is None or length > ref.bytes:
        raise corrupt(ref, f"does not end as a sealed file of {ref.bytes} bytes does")
    if length > len(tail):
        tail = _fetch(store, ref, ref.bytes - length, length)
    raw = tail[len(tail) - length :]
    try:
        seal = Seal.unpack(raw)
    except (ValueError, KeyError, TypeError, pa.ArrowException, OSError) as error:
        raise corrupt(ref, f"has an unreadable seal ({error})") from error
    if (
        ref.footer_checksum is not None
        and zlib.crc32(raw) != ref.footer_checksum
        and seal.part_id in {ref.part_id, PurePosixPath(ref.path).stem}
    ):
        raise corrupt(ref, "does not have the seal that was committed", "CHECKSUM")
    if seal.size != ref.bytes - length:
        raise corrupt(ref, "has a seal of another file")
    return seal, len(raw) + 8 * len(seal.crcs) + seal.statistics.nbytes


def _fetch(store: Any, ref: PartRef, offset: int, length: int) -> bytes:
    try:
        data: bytes = store.get_range(ref.path, offset, length)
    except NotFound as error:
        raise corrupt(ref, "is missing", "PART_MISSING") from error
    except CorruptData as error:
        raise corrupt(ref, f"is shorter than the {ref.bytes} bytes that were committed", "TRUNCATED") from error
    return data


class Sealed:
    """The file proper, as its decoder sees it. ``read`` may be called by several threads at once."""

    def __init__(self, store: Any, ref: PartRef, seal: Seal) -> None:
        self._store, self.ref, self.seal = store, ref, seal
        self._held: list[tuple[int, memoryview]] = []
        self._lock = threading.Lock()

    @property
    def io(self) -> IoCounters:
        return IoCounters(self._store.io.bytes, self._store.io.requests)

    def read(self, offset: int, length: int) -> memoryview:
        """These bytes, checked; fewer where the file ends."""
        length = min(length, self.seal.size - offset)
        if length <= 0:
            return memoryview(b"")
        with self._lock:
            held = list(self._held)
        for start, data in held:
            if start <= offset and offset + length <= start + len(data):
                return data[offset - start : offset - start + length]
        start, data = self._load([_aligned(offset, length, self.seal.size)])[0]
        return data[offset - start : offset - start + length]

    def hold(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Fetches these (offset, length) ranges together and keeps them until ``forget``."""
        found = self._load([_aligned(o, min(n, self.seal.size - o), self.seal.size) for o, n in ranges])
        with self._lock:
            self._held = [*self._held, *found]

    def forget(self) -> None:
        with self._lock:
            self._held = []

    def _load(self, spans: list[tuple[int, int]]) -> list[tuple[int, memoryview]]:
        for attempt in (0, 1):
            try:
                found = [memoryview(data) for data in self._store.get_ranges(self.ref.path, spans)]
            except NotFound as error:
                raise corrupt(self.ref, "is missing", "PART_MISSING") from error
            except CorruptData as error:
                raise corrupt(self.ref, f"is shorter than the {self.ref.bytes} bytes that were committed", "TRUNCATED") from error
            if all(self._sound(start, data) for (start, _), data in zip(spans, found, strict=True)):
                break
            if attempt:
                raise corrupt(self.ref, "does not hold the bytes that were committed", "CHECKSUM")
        return [(start, data) for (start, _), data in zip(spans, found, strict=True)]

    def _sound(self, start: int, data: memoryview) -> bool:
        crcs = self.seal.crcs
        return all(zlib.crc32(data[at : at + CHUNK]) == crcs[(start + at) // CHUNK] for at in range(0, len(data), CHUNK))


def _aligned(offset: int, length: int, size: int) -> tuple[int, int]:
    start = offset - offset % CHUNK
    end = min(-(-(offset + length) // CHUNK) * CHUNK, size)
    return start, end - start
