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
        self._tail: bytearray | None = None
        self.writes: list[int] = []
        """Where each write began."""

    def write(self, data: Any) -> int:
        if self._target is None:  # pyarrow still writes a footer when an abandoned writer is collected
            return memoryview(data).nbytes
        self.checksum = zlib.crc32(data, self.checksum)
        self.writes.append(self.size)
        self.size += memoryview(data).nbytes
        if self._tail is not None:
            self._tail += data
        self._target.write(data)
        return memoryview(data).nbytes

    def keep_tail(self) -> None:
        """From here on, remember what is written: ``tail`` will be asked for."""
        self._tail = bytearray()

    def tail(self, length: int) -> bytes:
        """The last ``length`` bytes, all of them written since ``keep_tail``."""
        assert self._tail is not None
        assert len(self._tail) >= length
        return bytes(self._tail[len(self._tail) - length :])

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
