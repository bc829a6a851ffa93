"""A file that knows the CRC-32 of what was written to it."""

from __future__ import annotations

import zlib
from typing import Any


class ChecksumSink:
    """Passes everything on to ``target``, counting. ``close`` makes the file visible, ``abort`` forgets it."""

    def __init__(self, target: Any) -> None:
        self._target = target
        self.checksum = 0
        self.size = 0
        self.closed = False
        self._held: bytearray | None = None
        self.writes: list[int] = []
        """Where each write began."""

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        if self._target is None:  # pyarrow still writes a footer when an abandoned writer is collected
            return size
        self.writes.append(self.size)
        self.size += size
        if self._held is not None:
            self._held += data
        else:
            self._pass_on(data)
        return size

    def hold(self) -> None:
        """From here on, keeps what is written until ``release``."""
        self._held = bytearray()

    @property
    def held(self) -> bytes:
        """Returns what was written since ``hold``."""
        return bytes(self._held or b"")

    def release(self, data: bytes) -> None:
        """Passes on ``data``, as long as what was held, in its place."""
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
        """Nothing: what is written is not visible before ``commit``."""

    def close(self) -> None:
        """Nothing: whoever writes through pyarrow closes when it is told to, and so on errors too."""
        self.closed = True

    def commit(self) -> None:
        """Makes the file visible."""
        self._target.close()

    def abort(self) -> None:
        """Forgets it, and whatever may still be written."""
        target, self._target = self._target, None
        target.abort()
