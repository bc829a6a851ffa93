"""File objects over a store for pyarrow: a ranged reader, and a writer with atomic visibility."""

from __future__ import annotations

import io
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamis.storage.object_store.store import Store


class Reader(io.RawIOBase):
    """A seekable, read-only file; each read is one range request, counted by the store."""

    def __init__(self, store: Store, path: str, size: int) -> None:
        super().__init__()
        self._store, self._path, self._size, self._at = store, path, size, 0

    @property
    def size(self) -> int:
        """Size of the object in bytes."""
        return self._size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self._size - self._at)
        length = left if size is None or size < 0 else min(size, left)
        if not length:
            return b""
        data = self._store.get_range(self._path, self._at, length)
        self._at += length
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        return self.read()


class Writer:
    """A write-only file.

    Invariant: the object becomes visible when ``close`` succeeds, and in no other way. Leaving a ``with``
    block by an exception, calling ``abort`` and garbage collection all leave nothing visible.
    """

    def __init__(self, store: Store, path: str, stream: Any) -> None:
        self._store, self._path, self._stream, self._at = store, path, stream, 0

    @property
    def closed(self) -> bool:
        return self._stream is None

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        """Return the number of bytes written so far."""
        return self._at

    def flush(self) -> None:
        """Do nothing: written data is not visible before ``close``."""

    def write(self, data: Any) -> int:
        octets = memoryview(data).cast("B")  # pyarrow passes buffers of signed bytes, which obstore rejects
        stream = self._open()
        self._store._run("write", self._path, lambda _store, _key: stream.write(octets))  # all requests go through _run
        self._at += octets.nbytes
        return octets.nbytes

    def close(self) -> None:
        """Make the object visible.

        Raises ``StoreUnavailable`` if it is not visible or its state is unknown.
        """
        if self._stream is None:
            return
        stream, self._stream = self._stream, None
        self._store._run("write", self._path, lambda _store, _key: stream.close())
        self._store.io.add(written=self._at)

    def abort(self) -> None:
        """Discard what was written."""
        self._stream = None

    def _open(self) -> Any:
        if self._stream is None:
            raise ValueError("The file is closed.")
        return self._stream

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()
