"""Reads the bytes of a part; every format accesses the store through this module.

Invariant: a read returns as many bytes as requested, or raises an error that names the part and the reason.
The store itself retries lost connections and rejected requests within its deadlines (``retry_timeout``,
``timeout``). It cannot recognize a short or corrupted response, so such a response is requested once more
here, since the network can be at fault, before the part is reported corrupt.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any, TypeVar

import pyarrow as pa

from tamis.errors import CorruptData, NotFound, StoreUnavailable, TamisError
from tamis.storage.files.corrupt_parts import corrupt_part, missing_part
from tamis.storage.files.joined_ranges import join_in_place
from tamis.storage.files.protocol import IoCounters, PartRef
from tamis.storage.files.recent_bytes import RecentBytes
from tamis.storage.object_store.relative_paths import is_inside
from tamis.storage.object_store.store import Entry, merge_ranges

T = TypeVar("T")

_FINAL = {"PART_MISSING", "TRUNCATED", "SOURCE_CHANGED"}
"""Errors that another read does not fix, because they were already retried."""
_NAMED = {"PART_MISSING", "PART_REPLACED", "SOURCE_CHANGED"}
"""Errors that already say which part it is, and why."""


def read_twice(read: Callable[[], T], source: PartSource) -> T:
    """Return ``read()``, retried once from the store if it finds bytes that differ from what was committed."""
    try:
        return read()
    except CorruptData as error:
        if error.code in _FINAL:
            raise
        source.forget()
        return read()


def change_of(entry: Entry, ref: PartRef) -> str | None:
    """Return what a listing shows to have changed in a source's file since it became a part; None if nothing."""
    if entry.size != ref.bytes:
        return f"has {entry.size} bytes instead of the {ref.bytes} that it was adopted with"
    if ref.etag is not None and entry.etag is not None:
        return None if entry.etag == ref.etag else "has another ETag than when it was adopted"
    if ref.modified_micros is not None and entry.modified_micros != ref.modified_micros:
        return "was written again since it was adopted"
    return None


class PartSource:
    """One part's bytes, with I/O counters; thread-safe."""

    def __init__(self, store: Any, ref: PartRef) -> None:
        if not is_inside(ref.path):
            raise corrupt_part(ref, "lies outside of its table's folder", "PATH_OUTSIDE")
        self._store, self.ref = store.with_new_counters(), ref
        self._recent, self._lock = RecentBytes(), threading.Lock()
        self._mark: tuple[int, bytes] | None = None
        self.key = (store.url, *ref.file_key)
        """Cache key of everything remembered about the file."""

    @property
    def io(self) -> IoCounters:
        return IoCounters(self._store.io.bytes, self._store.io.requests)

    @property
    def remote(self) -> bool:
        """Whether a request takes milliseconds, so that fewer requests are better."""
        return bool(self._store.remote)

    @property
    def names(self) -> set[str]:
        """The part ids that the file may contain.

        A restored part has another id than the file that it reuses.
        """
        return {self.ref.part_id, PurePosixPath(self.ref.path).stem}

    def check_unchanged(self) -> None:
        """Raise ``CorruptData`` (``SOURCE_CHANGED``) if a source's file is not the one that was adopted.

        Compares the size and the time of writing that the store reports. A file with an ETag is not checked here: every
        read requests the file by its ETag.
        """
        ref = self.ref
        if ref.source is None or ref.etag is not None or (self.remote and ref.modified_micros is None):
            return
        self.check_listed()

    def _check_still_unchanged(self) -> None:
        """Check again after a read of a local file, since each read opens it anew, by its path."""
        ref = self.ref
        if self.remote or ref.source is None or ref.etag is not None:
            return
        found = self._store.local_state(ref.path)
        if found is None or found != (ref.bytes, ref.modified_micros):
            self.check_listed()

    def check_listed(self) -> None:
        """Raise ``CorruptData`` (``SOURCE_CHANGED``) if the store names another state of the file than its part."""
        ref = self.ref
        try:
            entry = self._store.entry(ref.path)
        except NotFound as error:
            raise missing_part(ref) from error
        changed = change_of(entry, ref)
        if changed is not None:
            raise corrupt_part(ref, changed, "SOURCE_CHANGED")

    def get(self, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        """Read these (offset, length) ranges, merging nearby ones. Bytes fetched recently are not fetched again.

        Raises ``CorruptData`` or ``StoreUnavailable`` naming the part.
        """
        try:
            return self._get(ranges)
        except NotFound as error:
            raise missing_part(self.ref) from error
        except CorruptData as error:
            if error.code in _NAMED:
                raise
            if error.code == "OBJECT_CHANGED":
                raise corrupt_part(self.ref, "has changed since it was adopted", "SOURCE_CHANGED") from error
            raise corrupt_part(
                self.ref, f"is shorter than the {self.ref.bytes} bytes that were committed", "TRUNCATED"
            ) from error
        except StoreUnavailable as error:
            raise StoreUnavailable(
                f"Part {self.ref.part_id} ({self.ref.path}) could not be read. {error.message}",
                code=error.code,
                name=self.ref.path,
                remedy=error.remedy,
            ) from error

    def expect_mark(self, offset: int, mark: bytes) -> None:
        """Let the next read also read ``mark``, by which the file is recognized, and fail if it is not there."""
        self._mark = (offset, mark)

    def _get(self, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        if self._mark is None:
            return self._joined(ranges)
        offset, mark = self._mark
        *views, found = self._joined([*ranges, (offset, len(mark))])
        if found != mark:
            raise corrupt_part(self.ref, "was replaced since this process read it first", "PART_REPLACED")
        self._mark = None
        return views

    def _joined(self, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        spans = merge_ranges([r for r in ranges if r[1] > 0], self._store.gap)
        with self._lock:
            recent = self._recent
            missing, changes = recent.missing(spans), recent.changes
            found = recent.overlapping([] if missing == spans else spans)
        joined = join_in_place(ranges, missing, found)
        views = self._views(missing, joined.targets)
        fetched = [(offset, data) for (offset, _), data in zip(missing, views, strict=True)]
        found.add_all(fetched)
        with self._lock:
            again = missing if recent.changes == changes else recent.missing(missing)
            if again != missing:  # another thread has fetched some of it
                fetched = [(offset, found.joined(offset, length)) for offset, length in again]
            recent.add_all(fetched)
        at_once = dict(zip(missing, views, strict=True))  # as asked for; others are cut from a merged span
        at_once.update({r: whole.toreadonly() for r, whole in joined.wholes.items()})
        return [at_once[r] if r in at_once else found.joined(*r) for r in ranges]

    def _views(
        self, ranges: Sequence[tuple[int, int]], targets: Mapping[tuple[int, int], memoryview]
    ) -> list[memoryview]:
        def read() -> list[memoryview]:
            return list(self._store.views(self.ref.path, ranges, gap=0, etag=self.ref.etag, targets=targets))

        try:
            views = read()
        except CorruptData:  # a short response, or a short object
            self._check_still_unchanged()
            views = read()
        if ranges:
            self._check_still_unchanged()
        return views

    def forget(self) -> None:
        """Ask the store for every byte again from now on."""
        with self._lock:
            self._recent = RecentBytes()

    def tail(self, length: int) -> bytes:
        """Return the last ``length`` bytes, or all bytes of a smaller file."""
        wanted = min(length, self.ref.bytes)
        return bytes(self.get([(self.ref.bytes - wanted, wanted)])[0])


@contextmanager
def decoding_errors(ref: PartRef, what: str) -> Iterator[None]:
    """Convert any exception of a decoder, even a panic, to ``CorruptData`` naming the part."""
    try:
        yield
    except (TamisError, MemoryError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise corrupt_part(ref, f"cannot be decoded in {what} ({error})") from error


class Stream(io.RawIOBase):
    """A file of ``size`` bytes as decoders read it: by offset (``read_at``) or as a stream.

    ``read`` returns the bytes at an offset, fewer at the end of the file. Decoders report a failed read only
    as text of their own, or not at all, so its error is kept and raised by ``decoding_errors``.
    """

    def __init__(self, ref: PartRef, size: int, read: Callable[[int, int], memoryview]) -> None:
        super().__init__()
        self._ref, self._size, self._read, self._at = ref, size, read, 0
        self._failed: BaseException | None = None

    @contextmanager
    def decoding(self, what: str) -> Iterator[None]:
        """Convert any exception of a decoder, even a panic, to ``CorruptData`` naming the part.

        If reading had failed, raise the error of the read instead.
        """
        self._failed = None
        try:
            with decoding_errors(self._ref, what):
                yield
        except CorruptData:
            if self._failed is not None:
                raise self._failed from None
            raise

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
        """Return a buffer without copying; pyarrow calls this instead of ``read`` where it can."""
        return pa.py_buffer(self._next(size))

    def _next(self, length: int) -> memoryview:
        data = self.read_at(self._at, length)
        self._at += len(data)
        return data
