"""A write-only file that computes the CRC-32 of what is written to it."""

from __future__ import annotations

import zlib
from typing import Any

BUFFER_BYTES = 1 << 18
"""Bytes that are written together: libraries write headers and checksums by themselves."""

_LARGE = BUFFER_BYTES // 4
"""Bytes of a write that is passed on by itself."""


class ChecksumSink:
    """Forward writes to ``target`` in large pieces, tracking size and checksum.

    ``commit`` makes the file visible; ``abort`` discards it.
    """

    def __init__(self, target: Any) -> None:
        self._target = target
        self.size = 0
        self.closed = False
        self._checksum = 0
        self._buffer = bytearray()
        self._held: bytearray | None = None

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        if self._target is None:  # pyarrow still writes a footer when an abandoned writer is garbage-collected
            return size
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
        """Write ``data`` in place of the held bytes."""
        self.size += len(data) - len(self.held)
        self._held = None
        self._pass_on(data)

    def _pass_on(self, data: Any) -> None:
        if not self._buffer and memoryview(data).nbytes >= _LARGE:
            self._write_through(data)
            return
        self._buffer += data
        if len(self._buffer) >= BUFFER_BYTES:
            self._write_buffer()

    def _write_buffer(self) -> None:
        if self._buffer:
            written, self._buffer = self._buffer, bytearray()
            self._write_through(written)

    def _write_through(self, data: Any) -> None:
        self._checksum = zlib.crc32(data, self._checksum)
        self._target.write(data)

    @property
    def checksum(self) -> int:
        """CRC-32 of all bytes that were written and are not held."""
        return zlib.crc32(self._buffer, self._checksum)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        """Do nothing: written data is not visible before ``commit``."""

    def close(self) -> None:
        """Only mark the file closed: pyarrow closes it on errors as well, so ``commit`` makes it visible."""
        self.closed = True

    def commit(self) -> None:
        """Make the file visible."""
        self._write_buffer()
        self._target.close()

    def abort(self) -> None:
        """Discard the file and ignore later writes."""
        target, self._target = self._target, None
        self._buffer.clear()
        target.abort()
