"""Where a part's bytes come from: the one way of every format to the store.

Law: what comes back is as long as what was asked for, or the error says which part it was and why. The store tries lost connections and refused requests
again by itself, within its deadlines (``retry_timeout``, ``timeout``). An answer that is too short, or is not what was written, it cannot know: that is asked for
once more here, for a wire can be at fault, before the part is said to be corrupt.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any, TypeVar

import pyarrow as pa

from tamis.errors import CorruptData, NotFound, StoreUnavailable, TamisError
from tamis.storage.files.corrupt_parts import corrupt
from tamis.storage.files.protocol import IoCounters, PartRef
from tamis.storage.object_store.relative_paths import is_inside

T = TypeVar("T")

_FINAL = {"PART_MISSING", "TRUNCATED"}
"""What asking again does not change: it has been asked again."""


def twice(read: Callable[[], T]) -> T:
    """What ``read`` gives, tried once more where it meets bytes that are not what was committed."""
    try:
        return read()
    except CorruptData as error:
        if error.code in _FINAL:
            raise
        return read()


class PartSource:
    """One part's bytes, and what they cost. May be used by several threads at once."""

    def __init__(self, store: Any, ref: PartRef) -> None:
        if not is_inside(ref.path):
            raise corrupt(ref, "lies outside of its table's folder", "PATH_OUTSIDE")
        self._store, self.ref = store.fresh(), ref
        self.key = (store.url, ref.path, ref.bytes, ref.checksum, ref.footer_checksum)
        """What is remembered of the file is remembered under this."""

    @property
    def io(self) -> IoCounters:
        return IoCounters(self._store.io.bytes, self._store.io.requests)

    @property
    def remote(self) -> bool:
        """Whether a request takes milliseconds, so that fewer are better."""
        return bool(self._store.remote)

    @property
    def names(self) -> set[str]:
        """The ids that the file may give itself: a part that was restored has another than the file that it takes up again."""
        return {self.ref.part_id, PurePosixPath(self.ref.path).stem}

    def get(self, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        """The bytes of these (offset, length) ranges, near ones by one request. Raises ``CorruptData`` or ``StoreUnavailable`` naming the part."""
        try:
            return self._get(ranges)
        except NotFound as error:
            raise corrupt(self.ref, "is missing", "PART_MISSING") from error
        except CorruptData as error:
            raise corrupt(self.ref, f"is shorter than the {self.ref.bytes} bytes that were committed", "TRUNCATED") from error
        except StoreUnavailable as error:
            raise StoreUnavailable(
                f"Part {self.ref.part_id} ({self.ref.path}) could not be read. {error.message}",
                code=error.code,
                name=self.ref.path,
                remedy=error.remedy,
            ) from error

    def _get(self, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        try:
            return list(self._store.views(self.ref.path, ranges))
        except CorruptData:  # a short answer, or a short object
            return list(self._store.views(self.ref.path, ranges))

    def tail(self, length: int) -> bytes:
        """The last ``length`` bytes, or all of fewer."""
        wanted = min(length, self.ref.bytes)
        return bytes(self.get([(self.ref.bytes - wanted, wanted)])[0])


class Stream(io.RawIOBase):
    """A file of ``size`` bytes as a decoder sees it, by place (``read_at``) or as a stream; ``read`` gives the bytes at an offset, fewer where the file ends.

    Decoders tell what went wrong in reading as a text of theirs, or not at all; so it is kept, and raised by ``decoding``.
    """

    def __init__(self, ref: PartRef, size: int, read: Callable[[int, int], memoryview]) -> None:
        super().__init__()
        self._ref, self._size, self._read, self._at = ref, size, read, 0
        self._failed: BaseException | None = None

    @contextmanager
    def decoding(self, what: str) -> Iterator[None]:
        """Whatever a decoder raises, a panic among it, is ``CorruptData`` naming the part, unless reading had failed: then it is that."""
        self._failed = None
        try:
            yield
        except (TamisError, MemoryError, KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:
            if self._failed is not None:
                raise self._failed from None
            raise corrupt(self._ref, f"cannot be decoded in {what} ({error})") from error

    def read_at(self, offset: int, length: int) -> memoryview:
        try:
            return self._read(offset, length)
        except BaseException as error:
            self._failed = error
            raise

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def size(self) -> int:
        return self._size

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence] + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        return bytes(self._next(self._size - self._at if size is None or size < 0 else size))

    def read_buffer(self, size: int) -> pa.Buffer:
        """What pyarrow calls instead of ``read`` where it can: nothing is copied."""
        return pa.py_buffer(self._next(size))

    def _next(self, length: int) -> memoryview:
        data = self.read_at(self._at, length)
        self._at += len(data)
        return data
