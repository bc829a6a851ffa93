"""A write-only file that computes the CRC-32 of what is written to it."""

from __future__ import annotations

import zlib
from typing import Any


class ChecksumSink:
    """Forward writes to ``target``, tracking size and checksum.

    ``commit`` makes the file visible; ``abort`` discards it.
    """

    def __init__(self, target: Any) -> None:
        self._target = target
        self.checksum = 0
        self.size = 0
        self.closed = False
        self._held: bytearray | None = None
        self.writes: list[int] = []
        """Offset of each write."""

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        if self._target is None:  # pyarrow still writes a footer when an abandoned writer is garbage-collected
            return size
        self.writes.append(self.size)
        self.size += size
        if self._held is not None:
            self._held += data
        else:
            self._pass_on(data)
        return size

    def hold(self) -> None:
        """Buffer everything written from here on until ``release``."""
        self._held = bytearray()

    @property
    def held(self) -> bytes:
        """The bytes written since ``hold``."""
        return bytes(self._held or b"")

    def release(self, data: bytes) -> None:
        """Write ``data``, of the same length, in place of the held bytes."""
        if len(data) != len(self.held):
            raise ValueError(f"{len(data)} bytes in the place of {len(self.held)}")
        self._held = None
        self._pass_on(data)

    def _pass_on(self, data: Any) -> None:
        self.checksum = zlib.crc32(data, self.checksum)
        self._target.write(data)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        """Do nothing: written data is not visible before ``commit``."""

    def close(self) -> None:
        """Only mark the file closed: pyarrow closes it on errors as well, so ``commit`` makes it visible."""
        self.closed = True

    def commit(self) -> None:
        """Make the file visible."""
        self._target.close()

    def abort(self) -> None:
        """Discard the file and ignore later writes."""
        target, self._target = self._target, None
        target.abort()
