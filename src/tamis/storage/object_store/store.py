"""One small interface over object stores and local disk.

Invariant: an object is either complete or absent, and ``put_if_absent`` succeeds for one caller only. The
rest of the package reaches storage through ``Store``, and every request of a ``Store`` goes through ``_run``,
which translates errors, counts costs, and is where tests inject faults.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import obstore

from tamis.errors import CorruptData, NotFound
from tamis.storage.object_store.local_ranges import can_read_locally, local_state, read_local_file, read_local_ranges
from tamis.storage.object_store.local_remains import find_uploads, finished_name, remove_upload
from tamis.storage.object_store.location import Location, locate_store
from tamis.storage.object_store.object_file import Reader, Writer
from tamis.storage.object_store.storage_options import own_options, source_options
from tamis.storage.object_store.store_backends import check_process, connect_store, is_already_exists, translate_error

T = TypeVar("T")

MOST_OBJECT = 2**30
"""Largest object, in bytes, that is read whole: commits, lists of rollups, hints.

Larger tables are stored in files and read by ranges.
"""

GAP_LOCAL, GAP_REMOTE = 16 * 2**10, 2**20
_FETCHERS = 16
"""Concurrent requests for the spans of one object whose state is named."""
_NO_TARGETS: Mapping[tuple[int, int], memoryview] = MappingProxyType({})


class Entry(NamedTuple):
    """An object in a listing.

    ``path`` is relative to the store's root, ``size`` is in bytes, and ``modified_micros`` is the time of
    writing in microseconds since the epoch. ``etag`` names the object's state; None on local disk, where a copy
    of a file would have another one.
    """

    path: str
    size: int
    modified_micros: int
    etag: str | None = None


class Io:
    """Thread-safe counters of bytes and requests."""

    def __init__(self) -> None:
        self.bytes = 0
        self.written = 0
        self.requests = 0
        self._lock = threading.Lock()

    def add(self, read: int = 0, written: int = 0, requests: int = 0) -> None:
        with self._lock:
            self.bytes += read
            self.written += written
            self.requests += requests

    def __repr__(self) -> str:
        return f"Io(bytes={self.bytes}, written={self.written}, requests={self.requests})"


class Store:
    """The objects below one root.

    Paths are relative to the root, with ``/`` between names. A store is picklable, and equal by URL and
    options. Every method raises ``NotFound`` (``OBJECT_NOT_FOUND``), ``CorruptData`` (``TRUNCATED``) or
    ``StoreUnavailable``, naming the object.
    """

    def __init__(self, location: Location, options: Mapping[str, Any]) -> None:
        self.location = location
        self.options = dict(options)
        """All options that were given, with those for the stores of sources."""
        own = own_options(options)
        self.io = Io()
        self._prefix = f"{location.path}/" if location.scheme == "memory" and location.path else ""
        self._connection: Any = None
        if location.scheme != "file":  # local folders are opened on first use, so that reading does not create them
            self._connection = connect_store(location, own)
        elif own:
            connect_store(location, own)

    @property
    def url(self) -> str:
        return self.location.url

    @property
    def remote(self) -> bool:
        """Whether a request takes milliseconds, so that fewer and concurrent requests are better."""
        return self.location.remote

    @property
    def gap(self) -> int:
        """Largest gap in bytes between two wanted ranges for which one request is cheaper than two."""
        return GAP_REMOTE if self.remote else GAP_LOCAL

    def with_new_counters(self) -> Store:
        """Return the same store with its own counters."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.io = Io()
        return other

    def open_source_store(self, place: str) -> Store:
        """Return the store of a source at ``place``, with the options for sources.

        Without any, a source on the same kind of store is reached as the table is.
        """
        location, options = locate_store(place), source_options(self.options)
        if not options and location.scheme == self.location.scheme:
            options = own_options(self.options)
        return Store(location, options)

    def options_for_source(self) -> dict[str, Any]:
        """Return the options for a source whose place is still unknown, because a catalog will name it."""
        return source_options(self.options) or own_options(self.options)

    def get(self, path: str) -> bytes:
        """Return the whole object.

        Raises ``CorruptData`` (``TOO_LARGE``), before reading it, for an object of more than ``MOST_OBJECT``
        bytes.
        """

        def whole(store: Any, key: str) -> bytes:
            local = self.location.scheme == "file"
            if local and (data := read_local_file(f"{self.location.path}/{key}", key, MOST_OBJECT)) is not None:
                return data
            found = obstore.get(store, key)
            if found.meta["size"] > MOST_OBJECT:
                raise CorruptData(
                    f"{self.name(path)} has {found.meta['size']} bytes, more than the limit of {MOST_OBJECT}.",
                    code="TOO_LARGE",
                    name=self.name(path),
                    remedy="Restore it from a backup.",
                )
            return bytes(found.bytes().to_bytes())

        data = self._run("read", path, whole)
        self.io.add(read=len(data))
        return data

    def get_range(self, path: str, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from ``offset``; fewer are an error."""
        return self.get_ranges(path, [(offset, length)])[0]

    def get_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of each (offset, length) in the given order, merging nearby ranges."""
        return [bytes(view) for view in self.views(path, ranges)]

    def views(
        self,
        path: str,
        ranges: Sequence[tuple[int, int]],
        gap: int | None = None,
        etag: str | None = None,
        targets: Mapping[tuple[int, int], memoryview] = _NO_TARGETS,
    ) -> list[memoryview]:
        """Return the ranges as ``get_ranges`` does, but as views into the fetched spans, without copying.

        Ranges at most ``gap`` bytes apart are merged; by default, as many as the store finds cheap. With ``etag``,
        raises ``CorruptData`` (``OBJECT_CHANGED``) if the object is in another state. The bytes of a range in
        ``targets`` are also in that memory; those of a local file that is not merged are read into it.
        """
        wanted = [r for r in ranges if r[1] > 0]
        spans = merge_ranges(wanted, self.gap if gap is None else gap)
        chunks: list[memoryview] = []
        if spans:
            chunks = self._run("read", path, lambda store, key: self._fetched(store, key, spans, etag, targets))
        self.io.add(read=sum(len(c) for c in chunks), requests=max(0, len(chunks) - 1))
        if [len(c) for c in chunks] != [n for _, n in spans]:
            raise CorruptData(
                f"{self.name(path)} is shorter than it should be.",
                code="TRUNCATED",
                name=self.name(path),
                remedy="Restore it from a backup.",
            )
        views = chunks
        if spans != ranges:
            starts = [start for start, _ in spans]
            views = [_cut(offset, length, starts, chunks) for offset, length in ranges]
        for span, view in zip(ranges, views, strict=True) if targets else ():
            if span in targets and view.obj is not targets[span].obj:
                targets[span][:] = view
        return views

    def _fetched(
        self,
        store: Any,
        key: str,
        spans: Sequence[tuple[int, int]],
        etag: str | None,
        targets: Mapping[tuple[int, int], memoryview],
    ) -> list[memoryview]:
        if etag is not None:
            return _fetched_by_etag(store, key, spans, etag)
        if self.location.scheme == "file" and can_read_locally(key, spans):
            return read_local_ranges(f"{self.location.path}/{key}", spans, targets)
        starts, lengths = [s for s, _ in spans], [n for _, n in spans]
        return [memoryview(b) for b in obstore.get_ranges(store, key, starts=starts, lengths=lengths, coalesce=0)]

    def local_state(self, path: str) -> tuple[int, int] | None:
        """Return the size and the time of writing (µs) of a local file without a request; None if that cannot be."""
        if self.location.scheme != "file":
            return None
        key = self._prefix + path
        return local_state(f"{self.location.path}/{key}", key)

    def size(self, path: str) -> int:
        """Return the object's size in bytes."""
        return self.entry(path).size

    def entry(self, path: str) -> Entry:
        """Return what a listing says of the object."""
        return self._entry(self._run("read", path, obstore.head))

    def put(self, path: str, data: bytes) -> None:
        """Write the object, replacing an existing one."""
        self._run("write", path, lambda store, key: obstore.put(store, key, data, use_multipart=False), create=True)
        self.io.add(written=len(data))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write the object unless it exists; return whether it was written."""

        def attempt(store: Any, key: str) -> bool:
            try:
                obstore.put(store, key, data, mode="create", use_multipart=False)
            except Exception as error:
                if is_already_exists(error):
                    return False
                raise
            return True

        done = self._run("write", path, attempt, create=True)
        self.io.add(written=len(data) if done else 0)
        return done

    def list(self, prefix: str = "", after: str | None = None) -> list[Entry]:
        """List all objects below the folder ``prefix`` in path order, or only those after ``after``."""

        def walk(store: Any, key: str) -> list[Any]:
            offset = None if after is None else self._prefix + after
            return [
                meta for chunk in obstore.list(store, key or None, offset=offset, chunk_size=1_000) for meta in chunk
            ]

        try:
            found = self._run("list", prefix, walk)
        except NotFound:
            return []
        return sorted(self._entry(meta) for meta in found)

    def list_folder(self, prefix: str = "") -> tuple[Sequence[str], Sequence[Entry]]:
        """List the direct children of ``prefix``: folders and objects, as paths relative to the root."""
        try:
            found = self._run("list", prefix, lambda store, key: obstore.list_with_delimiter(store, key or None))
        except NotFound:
            return [], []
        return sorted(p.removeprefix(self._prefix) for p in found["common_prefixes"]), sorted(
            self._entry(meta) for meta in found["objects"]
        )

    def list_uploads(self, prefix: str) -> Sequence[Entry]:
        """List the files in the folder ``prefix`` that are being written, or were by a process that was killed.

        An object store shows none: its rules for multipart uploads remove them.
        """
        if self.location.scheme != "file":
            return []
        found = self._run("list", prefix, lambda _, key: list(find_uploads(f"{self.location.path}/{key}")))
        return [Entry(f"{prefix}/{name}", size, modified) for name, size, modified in found]

    def delete(self, path: str) -> None:
        """Delete the object if it exists, or what an upload left."""

        def remove(store: Any, key: str) -> None:
            if self.location.scheme == "file" and finished_name(key) != key:
                remove_upload(f"{self.location.path}/{key}")
            else:
                obstore.delete(store, key)

        try:
            self._run("delete", path, remove)
        except NotFound:
            return

    def reader(self, path: str, size: int | None = None) -> Reader:
        """Open a seekable binary file over range reads; passing ``size`` saves a request."""
        return Reader(self, path, self.size(path) if size is None else size)

    def writer(self, path: str) -> Writer:
        """Open a binary file that becomes visible, complete, on close, and never if aborted or dropped."""
        stream = self._run("write", path, obstore.open_writer, create=True)
        return Writer(self, path, stream)

    def name(self, path: str) -> str:
        """Return the name of an object for messages."""
        return f"{self.url}/{path}" if path else self.url

    def _run(self, action: str, path: str, call: Callable[[Any, str], T], *, create: bool = False) -> T:
        """Pass the connection and the object's key to ``call``; every access to storage goes through here."""
        self.io.add(requests=1)
        check_process(self.name(path))
        try:
            return call(self._connect(create), (self._prefix + path).rstrip("/"))
        except Exception as error:
            ours = translate_error(error, action, self.name(path), self.options)
            if ours is error:
                raise
            # what a remote store says may hold addresses and credentials, so no traceback shows it
            raise ours from (None if self.remote else error)

    def _connect(self, create: bool) -> Any:
        if self._connection is None:
            self._connection = connect_store(self.location, {}, mkdir=create)
        return self._connection

    def _entry(self, meta: Any) -> Entry:
        return Entry(
            meta["path"].removeprefix(self._prefix),
            int(meta["size"]),
            int(meta["last_modified"].timestamp() * 1e6),
            None if self.location.scheme == "file" else meta["e_tag"],
        )

    def __getstate__(self) -> dict[str, Any]:
        return {"location": self.location, "options": self.options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["location"], state["options"])  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Store) and (self.location, self.options) == (other.location, other.options)

    def __hash__(self) -> int:
        return hash(self.location)

    def __repr__(self) -> str:
        return f"Store({self.url!r})"  # options may hold secrets


def open_store(place: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> Store:
    """Return the store rooted at ``place``.

    ``place`` is a local path, ``file://``, ``s3://``, ``gs://``, ``az://`` or ``memory://`` (shared by name
    within the process). Only checks the options; accesses nothing yet. Raises ``InvalidInput`` naming the
    invalid path or option.
    """
    return Store(locate_store(place), storage_options or {})


def merge_ranges(ranges: Sequence[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    """Return sorted spans (offset, length) that cover all ``ranges``, merging nearby ones."""
    spans: list[tuple[int, int]] = []
    for offset, length in sorted(ranges):
        if spans and offset <= spans[-1][0] + spans[-1][1] + gap:
            start, size = spans[-1]
            spans[-1] = (start, max(size, offset + length - start))
        else:
            spans.append((offset, length))
    return spans


def _cut(offset: int, length: int, starts: Sequence[int], chunks: Sequence[memoryview]) -> memoryview:
    """Return a range's bytes from the last chunk that begins at or before it."""
    if length <= 0:
        return memoryview(b"")
    at = bisect_right(starts, offset) - 1
    chunk, begin = chunks[at], offset - starts[at]
    # the chunk itself where it can be: each view is one more object that garbage collection visits
    return chunk if begin == 0 and len(chunk) == length else chunk[begin : begin + length]


def _fetched_by_etag(store: Any, key: str, spans: Sequence[tuple[int, int]], etag: str) -> list[memoryview]:
    """Fetch the spans of an object in the state ``etag``, concurrently; only single requests can name it."""

    def fetched(span: tuple[int, int]) -> memoryview:
        options = {"range": (span[0], sum(span)), "if_match": etag}
        return memoryview(obstore.get(store, key, options=options).bytes())

    if len(spans) == 1:
        return [fetched(spans[0])]
    with ThreadPoolExecutor(min(len(spans), _FETCHERS), thread_name_prefix="tamis-fetch") as pool:
        return list(pool.map(fetched, spans))
